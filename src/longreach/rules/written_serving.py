"""Settings that a command makes and that do not do what they say, or that the release refuses: LR960 to LR966. Pure."""

from collections.abc import Iterator, Mapping

from longreach.engine.backend_dtypes import backend_kv_dtypes
from longreach.engine.checks import check_values
from longreach.engine.flag_values import write_value
from longreach.engine.parsing.parsed import is_open
from longreach.engine.parsing.ranges import find_misfit
from longreach.rules.edit import Edit, remove_flag
from longreach.rules.named_backend import named_backend
from longreach.rules.rule import Diagnosis, rule
from longreach.rules.written import CommandRule, WrittenCommand

_PARTIAL_PREFILLS = ("--max-num-partial-prefills", "--max-long-partial-prefills")
_ROPE_DICTS = ("rope_scaling", "rope_parameters")
# Fields of a model's config that are names of flags too: an override of them is meant for the config.
_CONFIG_FIELDS = frozenset(
    (
        "dtype",
        "model",
        "tokenizer",
        "revision",
        "task",
        "runner",
        "convert",
        "seed",
        "block_size",
        "rope_scaling",
        "rope_theta",
    )
)
_LONG_PROMPT_TOKENS = 100_000
_FAST_TOKENIZER = "VLLM_USE_FASTOKENS"


@rule(
    "LR960",
    "warning",
    "partial_prefills_ignored",
    "the scheduler does not look at partial-prefill limits",
    outcome="no_effect",
    first="0.10.0",
)
def partial_prefills_ignored(written: WrittenCommand) -> Iterator[Diagnosis]:
    """The V1 scheduler enforces neither limit; the flags are gone from 0.27."""
    for name in _PARTIAL_PREFILLS:
        if name in written.registry.flags and (value := written.parsed.value(name)) is not None and value != "1":
            yield Diagnosis(
                f"{name} {value} is accepted and never enforced",
                "the V1 scheduler does not look at it; long prompts are held back by --long-prefill-token-threshold alone",
                f"take {name} out, and set --long-prefill-token-threshold",
                edit=remove_flag(name),
            )


@rule(
    "LR961",
    "error",
    "engine_keys_in_hf_overrides",
    "engine settings stand among the model's config overrides",
    outcome="no_effect",
)
def engine_keys_in_hf_overrides(written: WrittenCommand) -> Iterator[Diagnosis]:
    """--hf-overrides changes the model's config; a flag's name in it sets an attribute that nobody reads."""
    overrides = written.parsed.json("--hf-overrides")
    if overrides is None:
        return
    names = {f"--{key.replace('_', '-')}": key for key in overrides if key not in _CONFIG_FIELDS}
    engine = {flag: key for flag, key in names.items() if flag in written.registry.flags}
    if not engine:
        return
    left = {key: value for key, value in overrides.items() if key not in engine.values()}
    yield Diagnosis(
        f"{', '.join(engine.values())} in --hf-overrides {'do' if len(engine) > 1 else 'does'} nothing",
        "--hf-overrides changes the model's config.json; engine settings are flags of their own",
        " ".join(f"{flag} {_text(overrides[key])}" for flag, key in engine.items()),
        edit=Edit(
            set=(
                *(
                    (flag, (_text(overrides[key]),))
                    for flag, key in engine.items()
                    if written.parsed.value(flag) is None
                ),
                *((("--hf-overrides", (write_value(left),)),) if left else ()),
            ),
            remove=() if left else ("--hf-overrides",),
        ),
    )


def _text(value: object) -> str:
    return write_value(dict(value)) if isinstance(value, Mapping) else write_value(value)


@rule(
    "LR962",
    "error",
    "rope_type_missing",
    "a rope override names its type by the old key",
    outcome="refused_at_start",
    last="0.9.2",
)
def rope_type_missing(written: WrittenCommand) -> Iterator[Diagnosis]:
    """Up to 0.9.2 `type` was translated in config.json and not in an override."""
    overrides = written.parsed.json("--hf-overrides")
    for path, rope in _rope_dicts(overrides or {}):
        if "type" in rope and "rope_type" not in rope:
            yield Diagnosis(
                f"{'.'.join(path)} has the key 'type' and no 'rope_type'",
                f"vLLM {written.release.version} translates the old key in config.json only: KeyError 'rope_type'",
                f'"rope_type": "{rope["type"]}"',
            )


def _rope_dicts(overrides: Mapping[str, object]) -> Iterator[tuple[tuple[str, ...], Mapping[str, object]]]:
    for key, value in overrides.items():
        if not isinstance(value, Mapping):
            continue
        if key in _ROPE_DICTS:
            yield (key,), value
        else:
            yield from (((key, *path), rope) for path, rope in _rope_dicts(value))


@rule(
    "LR963",
    "warning",
    "unprofiled_memory",
    "packed KV needs memory that the profile does not see",
    first="0.20.0",
)
def unprofiled_memory(written: WrittenCommand) -> Iterator[Diagnosis]:
    """TurboQuant unpacks into scratch buffers that grow with the batch, after the cache was sized."""
    dtype, share = written.options.kv_cache_dtype or "", written.options.gpu_memory_utilization
    if not dtype.startswith("turboquant") or share is None or share <= 0.95 or written.options.kv_cache_memory_bytes:
        return
    yield Diagnosis(
        f"--gpu-memory-utilization {share:g} leaves no room for the scratch buffers of {dtype}",
        f"they are made after {share:.0%} of the card is given out: a start that works can run out of memory at a long prompt",
        "--gpu-memory-utilization 0.92",
        edit=Edit(set=(("--gpu-memory-utilization", ("0.92",)),)),
    )


@rule(
    "LR964",
    "error",
    "backend_refuses_kv_dtype",
    "the attention backend that is asked for does not store this KV data type",
    outcome="refused_at_start",
    first="0.11.2",
)
def backend_refuses_kv_dtype(written: WrittenCommand) -> Iterator[Diagnosis]:
    """A backend given by name is taken or refused, never replaced."""
    name, dtype = named_backend(written), written.options.kv_cache_dtype
    taken = backend_kv_dtypes(name, written.release) if name else None
    if dtype is None or taken is None or dtype in taken:
        return
    flag = "--attention-backend"
    yield Diagnosis(
        f"attention backend {name} does not take --kv-cache-dtype {dtype}",
        f"in vLLM {written.release.version} it takes {', '.join(taken)}",
        f"--kv-cache-dtype auto, or leave the backend to vLLM, which picks one that stores {dtype}",
        edit=remove_flag(flag) if written.value(flag) else Edit(unset_env=("VLLM_ATTENTION_BACKEND",)),
    )


@rule("LR965", "advice", "slow_tokenizer_for_long_prompts", "long prompts are tokenized by the slow tokenizer")
def slow_tokenizer_for_long_prompts(written: WrittenCommand) -> Iterator[Diagnosis]:
    """The default tokenizer needs seconds of one core for a prompt of megabytes, a warm one included."""
    length = written.options.max_model_len
    if _FAST_TOKENIZER not in written.registry.names("env") or length is None or length < _LONG_PROMPT_TOKENS:
        return
    if written.variable(_FAST_TOKENIZER) is not None:
        return
    yield Diagnosis(
        f"prompts of up to {length} tokens are tokenized at about 1.5 MB a second of one core",
        "a 680,000-token prompt took 2 s in HF tokenizers and 0.02 to 0.05 s in fastokens, with the same count; on a prefix "
        "hit that is a large part of the time to first token",
        f"{_FAST_TOKENIZER}=1, with the package fastokens installed beside vLLM",
        edit=Edit(set_env=((_FAST_TOKENIZER, "1"),)),
    )


@rule(
    "LR959",
    "error",
    "positional_model_on_module",
    "the server module forgets a model without --model",
    outcome="no_effect",
    first="0.10.0",
)
def positional_model_on_module(written: WrittenCommand) -> Iterator[Diagnosis]:
    """From 0.10 the module takes one bare word, for `vllm serve`'s sake, and does not look at it."""
    passed_over = written.parsed.passed_over
    if passed_over is None or is_open(passed_over[1]):
        return
    place, word = passed_over
    named = written.parsed.model
    served = repr(named) if named else "vLLM's own default"
    yield Diagnosis(
        f"{word!r} is taken and forgotten: the model is {served}",
        "vllm.entrypoints.openai.api_server reads its model from --model alone; a bare word is for 'vllm serve'",
        f"--model {word}" if named is None else f"remove {word!r}",
        edit=Edit(set=() if named else (("--model", (word,)),), remove_words=(place,)),
    )


@rule(
    "LR967",
    "error",
    "value_out_of_range",
    "a value is outside what its flag can mean",
    outcome="refused_at_start",
)
def value_out_of_range(written: WrittenCommand) -> Iterator[Diagnosis]:
    """The parser takes any number; the settings classes and the socket do not."""
    for use in written.parsed.uses:
        misfit = find_misfit(use)
        if misfit is not None and written.parsed.named(use.name)[-1] is use:
            edit = Edit(set=((use.name, (misfit.meant,)),)) if misfit.meant else remove_flag(use.name)
            why = f"{misfit.why}; vLLM {written.release.version} refuses"
            yield Diagnosis(misfit.what, why, misfit.fix, edit=None if use.from_config else edit)
    for problem in check_values(written.options):
        yield Diagnosis(
            f"{problem.what}: out of range", f"{problem.why}; vLLM {written.release.version} refuses", problem.fix
        )


@rule("LR966", "warning", "weight_offload_on_cpu", "there is nothing to offload on a CPU", outcome="no_effect")
def weight_offload_on_cpu(written: WrittenCommand) -> Iterator[Diagnosis]:
    """--cpu-offload-gb moves weights from a GPU to host memory; on the CPU they are there."""
    size = written.value("--cpu-offload-gb")
    on_cpu = written.value("--device") == "cpu" or (
        written.machine is not None and written.machine.device_type == "cpu"
    )
    if size in (None, "0") or not on_cpu:
        return
    yield Diagnosis(
        f"--cpu-offload-gb {size} does nothing on a CPU",
        "--cpu-offload-gb keeps weights in host memory instead of on the GPU, and here they are in host memory anyway",
        "take --cpu-offload-gb out",
        edit=remove_flag("--cpu-offload-gb"),
    )


RULES: tuple[CommandRule, ...] = (
    weight_offload_on_cpu,
    value_out_of_range,
    positional_model_on_module,
    partial_prefills_ignored,
    engine_keys_in_hf_overrides,
    rope_type_missing,
    unprofiled_memory,
    backend_refuses_kv_dtype,
    slow_tokenizer_for_long_prompts,
)
