"""Who can reach the server: LR710. Pure."""

from collections.abc import Iterator

from longreach.engine.address import is_local
from longreach.rules.rule import Diagnosis, HasOptions, Rule, rule

_KEY = "VLLM_API_KEY"


@rule("LR710", "warning", "open_to_network", "others can reach the server and no key is asked for")
def open_to_network(deployment: HasOptions) -> Iterator[Diagnosis]:
    """A server beyond the loopback answers everyone, unless it has a key."""
    options = deployment.options
    has_key = dict(options.env).get(_KEY) or any(
        word.startswith(("--api-key", "--api_key")) for word in options.extra_args
    )
    if is_local(options.host) or has_key:
        return
    yield Diagnosis(
        f"the server on {options.host} answers everyone who can reach this machine",
        f"vLLM asks for no key unless {_KEY} is set, and then only below /v1",
        f"set {_KEY} in the environment of the server, or listen on 127.0.0.1 behind a gateway or a proxy",
    )


RULES: tuple[Rule, ...] = (open_to_network,)
