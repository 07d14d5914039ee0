"""What a server adds to a prompt is learned, or a note says why not."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.measure.known_truth import MODEL, TEMPLATE_TOKENS, TruthMode, known_truth

from longreach.errors import InputFileError, ServerError
from longreach.measure.client import open_client
from longreach.measure.endpoint import read_endpoint
from longreach.measure.sending import Sender
from longreach.measure.target import Api
from longreach.measure.workload.building import build_workload
from longreach.measure.workload.counting import LearnedCounting, learn_counting
from longreach.measure.workload.wishes import SyntheticSource, WorkloadWish


async def learn(
    url: str, tokenizer: Path | None, api: Api = "chat", fields: Mapping[str, object] | None = None
) -> LearnedCounting:
    async with open_client(read_endpoint(url)) as client:
        return await learn_counting(
            Sender(client, MODEL, api, fields or {}), None if tokenizer is None else str(tokenizer), "seed"
        )


@pytest.mark.parametrize("with_tokenize", [True, False], ids=["tokenize", "probes"])
@pytest.mark.parametrize(("api", "added"), [("chat", TEMPLATE_TOKENS), ("completions", 0)])
async def test_template_is_learned(api: Api, added: int, with_tokenize: bool) -> None:
    async with known_truth(TruthMode(with_tokenize=with_tokenize)) as server:
        learned = await learn(server.url, server.tokenizer_folder, api)
        assert len(server.requests) == (0 if with_tokenize else 2)
    assert learned.counting.template_tokens == added
    assert learned.notes == ()


async def test_the_servers_own_count_serves_without_a_tokenizer_and_prompts_are_exact() -> None:
    async with known_truth(TruthMode()) as server, open_client(read_endpoint(server.url)) as client:
        sender = Sender(client, MODEL, "chat", {})
        counting = (await learn_counting(sender, None, "seed")).counting
        source = SyntheticSource(4, 700, 8, shared_prefix_tokens=300)
        workload = await build_workload(WorkloadWish(source), counting)
        texts = [workload.render_text(request) for request in workload.requests]
        assert [await sender.count_at_server(text) for text in texts] == [700] * 4
    assert "the server's own /tokenize" in workload.tokenizer


async def test_another_tokenizer_than_the_served_one_gives_way(wrong_tokenizer: Path) -> None:
    async with known_truth(TruthMode()) as server:
        learned = await learn(server.url, wrong_tokenizer)
    assert learned.counting.template_tokens == TEMPLATE_TOKENS
    assert "is not the served one" in learned.notes[0]
    assert "/tokenize counts instead" in learned.notes[0]


async def test_another_tokenizer_stays_where_the_server_has_none(wrong_tokenizer: Path) -> None:
    async with known_truth(TruthMode(with_tokenize=False)) as server:
        learned = await learn(server.url, wrong_tokenizer)
    assert learned.counting.template_tokens == 0
    assert learned.notes[0].startswith("what the server adds to a prompt is not known")


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        (TruthMode(with_tokenize=False, refuse_with=(400, "not today")), "refused: not today"),
        (TruthMode(with_tokenize=False, with_usage=False), "without a usage object"),
        (TruthMode(with_tokenize=False, template_grows=True), "two probes have"),
        (TruthMode(with_tokenize=False, die_after_tokens=0), "disconnected"),
    ],
    ids=["refused", "no_usage", "grows", "dies"],
)
async def test_what_cannot_be_learned_is_a_note(mode: TruthMode, reason: str) -> None:
    async with known_truth(mode) as server:
        learned = await learn(server.url, server.tokenizer_folder)
    assert learned.counting.template_tokens == 0
    (note,) = learned.notes
    assert reason in note


async def test_a_server_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    async with known_truth(TruthMode()) as server:
        url, folder = server.url, server.tokenizer_folder
    with pytest.raises(ServerError):
        await learn(url, folder)


async def test_nothing_that_counts_is_an_error() -> None:
    async with known_truth(TruthMode(with_tokenize=False)) as server:
        with pytest.raises(InputFileError, match="nothing can count"):
            await learn(server.url, None)
