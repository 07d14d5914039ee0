from dataclasses import replace

import pytest

from longreach.errors import UsageError
from longreach.launch.spec import HIDDEN, LaunchSpec, check_specs, hide_secrets, unplanned_variables

SPEC = LaunchSpec(name="long", argv=("vllm", "serve", "model"), host="127.0.0.1", port=8000)


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:8000"),
        ("0.0.0.0", "http://127.0.0.1:8000"),
        ("::", "http://[::1]:8000"),
        ("box.lan", "http://box.lan:8000"),
    ],
)
def test_a_wildcard_is_reached_over_loopback(host: str, url: str) -> None:
    assert replace(SPEC, host=host).base_url == url


@pytest.mark.parametrize(
    ("specs", "message"),
    [
        ([], "nothing to start"),
        ([SPEC, replace(SPEC, port=8001)], "two instances have the name 'long'"),
        ([SPEC, replace(SPEC, name="short")], "two instances have the port '8000'"),
    ],
    ids=["none", "one name twice", "one port twice"],
)
def test_colliding_instances_are_refused(specs: list[LaunchSpec], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        check_specs(specs)


@pytest.mark.parametrize(
    ("arguments", "variable"),
    [
        (("--api-key", "sk-1"), "VLLM_API_KEY"),
        (("--api_key=sk-1",), "VLLM_API_KEY"),
        (("--api-k", "sk-1"), "VLLM_API_KEY"),
        (("--hf-token", "hf_1"), "HF_TOKEN"),
    ],
)
def test_secrets_do_not_go_into_arguments(arguments: tuple[str, ...], variable: str) -> None:
    with pytest.raises(UsageError, match="would show a secret") as caught:
        check_specs([replace(SPEC, argv=(*SPEC.argv, *arguments))])
    assert variable in caught.value.fix
    assert "sk-1" not in str(caught.value)


@pytest.mark.parametrize(
    "arguments",
    [("--api-server-count", "2"), ("--hf-token", "--port", "8000"), ("--hf-overrides", "{}"), ("--hf-token",)],
    ids=["another flag", "the stored token", "a longer flag", "the stored token, last"],
)
def test_harmless_arguments_pass(arguments: tuple[str, ...]) -> None:
    check_specs([replace(SPEC, argv=(*SPEC.argv, *arguments))])


def test_secret_values_are_hidden_by_their_names() -> None:
    env = {"VLLM_API_KEY": "sk-1", "HF_TOKEN": "hf_1", "db_password": "p", "CUDA_VISIBLE_DEVICES": "0,1"}
    assert hide_secrets(env) == {
        "VLLM_API_KEY": HIDDEN,
        "HF_TOKEN": HIDDEN,
        "db_password": HIDDEN,
        "CUDA_VISIBLE_DEVICES": "0,1",
    }


def test_variables_of_the_shell_that_the_plan_does_not_know_are_named() -> None:
    shell = {"VLLM_CPU_KVCACHE_SPACE": "4", "CUDA_VISIBLE_DEVICES": "0", "HOME": "/root", "NCCL_P2P_LEVEL": "SYS"}
    assert unplanned_variables(shell, {"CUDA_VISIBLE_DEVICES": "0,1"}) == ("NCCL_P2P_LEVEL", "VLLM_CPU_KVCACHE_SPACE")
