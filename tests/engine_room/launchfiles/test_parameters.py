"""Variables as the shell and compose fill them in, where the text says what they are."""

import pytest

from longreach.engine.launchfiles.parameters import Value, expand_text

VALUES: dict[str, Value] = {"A": "1", "EMPTY": "", "LIST": ("x", "y"), "NONE": ()}


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("$A ${A} $B ${B}", "1 1 $B ${B}"),
        ("${A:-2} ${B:-2} ${B-2} ${EMPTY:-2} ${EMPTY-2}", "1 2 2 2 "),
        ("${B:-${A}} ${B:-${C:-3}} ${B:-'q r'}", "1 3 q r"),
        ("${B:=2} ${A:?missing} ${B:?missing}", "2 1 ${B:?missing}"),
        ("${A:+yes} ${B:+yes}", "yes ${B:+yes}"),
        ("${B:-} ${EMPTY:-}", "${B:-} "),
        ("${A%.gguf} ${A/x/y} ${#A} ${!A} ${A:0:2}", "${A%.gguf} ${A/x/y} ${#A} ${!A} ${A:0:2}"),
        ("$LIST ${LIST} ${NONE}", "x x "),
        ("${LIST[0]} ${A", "${LIST[0]} ${A"),
        ("$$A $$", "$$A $$"),
    ],
)
def test_a_text_is_expanded(text: str, expanded: str) -> None:
    assert expand_text(text, VALUES) == expanded


def test_a_doubled_sign_stands_for_itself_in_compose() -> None:
    assert expand_text("$$A $A", VALUES, doubled="$") == "$A 1"


def test_defaults_in_defaults_end_somewhere() -> None:
    nested = "${B:-" * 30 + "x" + "}" * 30
    assert "${B:-" in expand_text(nested, {})
