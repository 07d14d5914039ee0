"""Do cold and warm agree, and did the model read the prompt?"""

import dataclasses

from tests.measure.sends import NEEDLES, PROMPT, send

from longreach.measure.answer_checks import check_needles, check_same_answer
from longreach.measure.target import ExpectedServer, VerifySettings

GREEDY = VerifySettings()
GPU, CPU = ExpectedServer(), ExpectedServer(is_deterministic=True)


def test_equal_answers_pass() -> None:
    item = check_same_answer(send(), [send("warm 1")], GREEDY, GPU)
    assert (item.verdict, item.evidence) == ("pass", "2 answers, 4 characters, identical")


def test_small_difference_on_a_gpu_is_shown_but_not_judged() -> None:
    item = check_same_answer(send(content="one two"), [send("warm 1", content="one tree")], GREEDY, GPU)
    assert item.verdict == "cannot_tell"
    assert item.evidence.startswith("warm 1 differs from character 5 on: 'wo', 'ree'")


def test_difference_on_a_deterministic_engine_fails() -> None:
    item = check_same_answer(send(content="ab"), [send("warm 1"), send("warm 2", content="abc")], GREEDY, CPU)
    assert item.verdict == "fail"


def test_difference_that_loses_a_needle_fails_anywhere() -> None:
    warm = send("warm 1", content="other", needles=NEEDLES[:1])
    item = check_same_answer(send(), [warm], GREEDY, GPU)
    assert (item.verdict, "different needles" in item.evidence) == ("fail", True)


def test_needles_found_name_their_depths() -> None:
    item = check_needles(PROMPT, [send(), send("warm 1")])
    assert item is not None
    assert (item.verdict, item.evidence) == ("pass", "all 2 in every answer (depths 10%, 90%)")


def test_a_missing_needle_is_named() -> None:
    item = check_needles(PROMPT, [send(needles=NEEDLES[:1])])
    assert item is not None
    assert (item.verdict, item.evidence) == ("fail", f"cold: not Heron {NEEDLES[1].code} at 90%")


def test_an_answer_cut_at_its_limit_decides_nothing() -> None:
    item = check_needles(PROMPT, [send(needles=(), finish_reason="length")])
    assert item is not None
    assert item.verdict == "cannot_tell"


def test_needles_left_out_say_why_or_are_not_listed() -> None:
    without = dataclasses.replace(PROMPT, needles=())
    assert check_needles(without, [send()]) is None
    item = check_needles(dataclasses.replace(without, needles_off_reason="random weights"), [send()])
    assert item is not None
    assert (item.verdict, item.evidence) == ("cannot_tell", "not asked: random weights")
