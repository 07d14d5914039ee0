"""Shell text and command are inverse, and the shell itself agrees."""

import subprocess

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from longreach.engine.command import render_command
from longreach.engine.options import EngineOptions, OffloadOptions, ServeCommand
from longreach.engine.release import get_release
from longreach.engine.shell import parse_shell, render_shell
from longreach.errors import UsageError

words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,6}", fullmatch=True)
commands = st.builds(
    lambda tail, env: ServeCommand(("vllm", "serve", *tail), tuple(env.items())),
    st.lists(words, max_size=6),
    st.dictionaries(names, words, max_size=3),
)


@settings(deadline=None)
@given(commands)
@example(ServeCommand(("vllm", "serve", "a\\\nb", "\\", "--x", '{"a": "it\'s \\"q\\" $HOME `ls`"}')))
@example(ServeCommand(("vllm", "serve", "", "#", "~", "*", "!", "a;b", "|", "&", "\n")))
def test_shell_text_reads_back_as_the_command(command: ServeCommand) -> None:
    assert parse_shell(render_shell(command)) == command


NASTY = ServeCommand(
    (
        "vllm",
        "serve",
        "m",
        "--j",
        '{"a":"it\'s \\"q\\" $HOME `ls` \\\\ !x","ü":[1,2]}',
        "--e",
        "",
        "--n",
        "a\nb\\\nc",
        "*",
        "~",
    ),
    (("LR_A", "x 'y' $z\nw"), ("LR_B", "")),
)


def test_the_shell_yields_exactly_the_same_words_and_environment() -> None:
    text = render_shell(NASTY).replace("\nvllm ", '\nsh -c \'printf "%s\\0" "$LR_A" "$LR_B" "$@"\' ', 1)
    done = subprocess.run(["/bin/sh", "-c", text], capture_output=True, check=True, timeout=10)
    expected = [*dict(NASTY.env).values(), *NASTY.argv[2:]]
    # `serve` becomes $0 of the inner shell; everything behind it must arrive unchanged.
    assert done.stdout.decode().split("\0")[:-1] == expected


def test_one_flag_a_line_with_the_environment_first() -> None:
    options = EngineOptions("org/m", offload=OffloadOptions(5), env=(("A", "1"), ("B", "x y")))
    assert render_shell(render_command(options, get_release("0.32.0"))) == (
        "A=1 \\\n"
        "B='x y' \\\n"
        "vllm serve org/m \\\n"
        "  --host 127.0.0.1 \\\n"
        "  --port 8000 \\\n"
        '  --kv-transfer-config \'{"kv_connector":"OffloadingConnector","kv_role":"kv_both",'
        '"kv_connector_extra_config":{"cpu_bytes_to_use":5,"eviction_policy":"lru"}}\'\n'
    )


def test_double_quotes_and_continuations_are_read() -> None:
    text = 'A="1 2" vllm \\\n  serve "org/\\\nm" --x "a\\"b"'
    assert parse_shell(text) == ServeCommand(("vllm", "serve", "org/m", "--x", 'a"b'), (("A", "1 2"),))


@pytest.mark.parametrize("text", ["vllm serve m; rm x", "vllm serve m\nvllm serve n", "vllm serve m | tee l", "a && b"])
def test_more_than_one_command_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="more than one command"):
        parse_shell(text)


def test_an_open_quote_is_told() -> None:
    with pytest.raises(UsageError, match="cannot be split") as caught:
        parse_shell("vllm serve m --x '{")
    assert "No closing quotation" in caught.value.why
