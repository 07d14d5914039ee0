"""What `launch` is asked to start: a command as planned, where it will listen, and what it is expected to say."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from longreach.engine.address import base_url, connect_host
from longreach.errors import UsageError

_TELLING_PREFIXES = ("VLLM_", "NCCL_", "CUDA_", "PYTORCH_")
_SECRET_WORDS = ("KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL")
_SECRET_FLAGS = {"--api-key": "VLLM_API_KEY", "--hf-token": "HF_TOKEN"}  # and the variable vLLM reads instead
HIDDEN = "<hidden>"


@dataclass(frozen=True, slots=True)
class ExpectedEngine:
    """What the plan says the engine will report. None: the plan says nothing about it.

    `kv_certainty` is of the four KV figures; `kv_capacity_range` replaces equality where the plan could only give bounds.
    """

    kv_certainty: Literal["exact", "estimate"] = "exact"
    kv_estimate_reason: str | None = None
    kv_capacity_tokens: int | None = None
    kv_capacity_range: tuple[int, int] | None = None
    max_concurrency: float | None = None
    num_blocks: int | None = None
    block_size: int | None = None
    max_model_len: int | None = None
    kv_cache_dtype: str | None = None
    attention_backend: str | None = None
    tensor_parallel_size: int | None = None
    pipeline_parallel_size: int | None = None
    data_parallel_size: int | None = None
    release: str | None = None


@dataclass(frozen=True, slots=True)
class LaunchSpec:
    """One instance. `env` is added to the environment `longreach` runs in; `argv[0]` is the engine's command."""

    name: str
    argv: tuple[str, ...]
    host: str
    port: int
    env: Mapping[str, str] = field(default_factory=dict)
    expected: ExpectedEngine = ExpectedEngine()

    @property
    def connect_host(self) -> str:
        """The address that reaches it from this machine: a wildcard is listened on, not connected to."""
        return connect_host(self.host)

    @property
    def base_url(self) -> str:
        """Where a client on this machine finds it."""
        return base_url(self.host, self.port)


def check_specs(specs: Sequence[LaunchSpec]) -> None:
    """UsageError when there is nothing to start, two instances collide, or an argument would show a secret in `ps`."""
    if not specs:
        raise UsageError("nothing to start", "the plan has no instance", "longreach plan MODEL -o plan.yaml")
    for what, values in (("name", [spec.name for spec in specs]), ("port", [str(spec.port) for spec in specs])):
        twice = next((value for value in values if values.count(value) > 1), None)
        if twice is not None:
            why = f"instances: {', '.join(f'{spec.name} on {spec.port}' for spec in specs)}"
            raise UsageError(f"two instances have the {what} '{twice}'", why, f"give each instance its own {what}")
    for spec in specs:
        _check_no_secrets(spec)


def _check_no_secrets(spec: LaunchSpec) -> None:
    following = (*spec.argv[1:], "-")
    for argument, after in zip(spec.argv, following, strict=True):
        flag, _, value = argument.partition("=")
        known = next((full for full in _SECRET_FLAGS if _means(flag.replace("_", "-"), full)), None)
        if known is not None and (value or not after.startswith("-")):
            raise UsageError(
                f"{known} would show a secret to every user of this machine",
                "the arguments of a process are public: `ps` prints them",
                f"drop the flag and set {_SECRET_FLAGS[known]} in the environment instead",
            )


def _means(flag: str, full: str) -> bool:
    """Any unique prefix is taken by argparse: `--api-k` is `--api-key`, but `--api-` might be `--api-server-count`."""
    return full.startswith(flag) and len(flag) > full.rindex("-") + 1


def unplanned_variables(environ: Mapping[str, str], planned: Mapping[str, str]) -> tuple[str, ...]:
    """Names of variables that an engine inherits from our shell, that change what it does, and that the plan does not set."""
    return tuple(sorted(name for name in environ if name.startswith(_TELLING_PREFIXES) and name not in planned))


def is_secret_name(name: str) -> bool:
    """Whether a variable of this name is likely to hold a secret."""
    return any(word in name.upper() for word in _SECRET_WORDS)


def hide_secrets(env: Mapping[str, str]) -> dict[str, str]:
    """The variables with the values of secret-looking names replaced: fit to be written down."""
    return {name: HIDDEN if is_secret_name(name) else value for name, value in env.items()}
