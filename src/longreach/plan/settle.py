"""Settle what the goal left open: parallel sizes, length, batch limits, speculation. Each choice with its reason."""

import re
from dataclasses import dataclass, replace
from typing import Protocol

from longreach.engine.defaults import default_max_num_batched_tokens, default_max_num_seqs
from longreach.engine.options import SpeculativeOptions
from longreach.errors import UsageError
from longreach.hardware.spec import Machine
from longreach.model.spec import ModelSpec
from longreach.plan.goal import Goal
from longreach.plan.split import Split
from longreach.plan.values import Choice
from longreach.rules.speculation import has_local_argmax
from longreach.units import ceil_div, format_tokens, shortened

_DRAFT_COUNT = re.compile(r"[0-9]{1,2}")
_LONGEST_TOKENS = 10**9  # a hundred times the longest context any published model claims

_USUAL_INPUT_TOKENS = 32_768
_RUNNING_TOKENS = 2**23  # no box of eight cards keeps more tokens running than this


@dataclass(frozen=True, slots=True)
class Trial:
    """One way to serve a goal: what it left open and what is counted through, one value after the other."""

    split: Split
    speculation: str | None = None  # as the goal writes it
    chunk_tokens: int | None = None  # None: vLLM's default


@dataclass(frozen=True, slots=True)
class Settled:
    """Values that are certain from here on, with the choices that made them so."""

    split: Split
    max_model_len: int
    max_num_batched_tokens: int
    max_num_seqs: int
    mean_input_tokens: int
    speculative: SpeculativeOptions | None
    choices: tuple[Choice, ...]


def settle(model: ModelSpec, machine: Machine, goal: Goal, trial: Trial) -> Settled:
    """The goal with what is tried for it. Raises UsageError for sizes that cannot be."""
    choices: list[Choice] = []
    split = trial.split
    max_model_len = goal.max_model_len
    if max_model_len is None:
        max_model_len = model.native_context_tokens or model.max_position_embeddings
        choices.append(Choice("--max-model-len", format_tokens(max_model_len), "the model's native context"))
    _check_length(max_model_len)
    mean_input_tokens = goal.mean_input_tokens
    if mean_input_tokens is None:
        mean_input_tokens = min(_USUAL_INPUT_TOKENS, max_model_len)
        why = "a usual prompt of agents and coding tools; concurrency and speed are told for it too"
        choices.append(Choice("--mean-input", format_tokens(mean_input_tokens), why))
    engine_gpus = split.tp_size * split.pp_size
    max_num_batched_tokens = goal.max_num_batched_tokens
    if max_num_batched_tokens is None:
        default = default_chunk_tokens(machine, engine_gpus)
        max_num_batched_tokens, why = trial.chunk_tokens or default, "vLLM's default for this device"
        if max_num_batched_tokens > default:
            why = f"a step must hold one block of recurrent state, and {format_tokens(default)} tokens, the default, do not"
        elif max_num_batched_tokens < default:
            why = f"with {format_tokens(default)}, vLLM's default for this device, the goal does not fit"
        why += "; a prompt is read in chunks of this size"
        choices.append(Choice("--max-num-batched-tokens", format_tokens(max_num_batched_tokens), why))
    max_num_seqs = goal.max_num_seqs
    if max_num_seqs is None:
        default = _default_of(default_max_num_seqs, machine, engine_gpus, 256)
        max_num_seqs, why = _choose_max_num_seqs(goal, default, max_model_len, split.dp_size)
        max_num_seqs = min(max_num_seqs, max_num_batched_tokens)
        choices.append(Choice("--max-num-seqs", str(max_num_seqs), why))
    return Settled(
        split=split,
        max_model_len=max_model_len,
        max_num_batched_tokens=max_num_batched_tokens,
        max_num_seqs=max_num_seqs,
        mean_input_tokens=min(mean_input_tokens, max_model_len),
        speculative=_choose_speculation(trial.speculation, model, split.tp_size),
        choices=tuple(choices),
    )


def default_chunk_tokens(machine: Machine, world_size: int) -> int:
    """Tokens of a prefill chunk when the flag is absent."""
    return _default_of(default_max_num_batched_tokens, machine, world_size, 2048)


def _choose_speculation(text: str | None, model: ModelSpec, tp_size: int) -> SpeculativeOptions | None:
    """MTP over several GPUs reduces the draft's argmax locally, where its class can, instead of gathering logits."""
    options = parse_speculation(text)
    if options is None or options.method != "mtp":
        return options
    return replace(options, use_local_argmax_reduction=tp_size > 1 and has_local_argmax(model))


def parse_speculation(text: str | None) -> SpeculativeOptions | None:
    """`mtp:3`, `ngram:5` or `none`."""
    if text is None or text == "none":
        return None
    method, _, count = text.partition(":")
    if method not in ("mtp", "ngram") or not _DRAFT_COUNT.fullmatch(count) or not 1 <= int(count) <= 64:
        raise UsageError(
            f"speculation '{shortened(text)}' is not understood",
            "expected a method and its number of draft tokens (1 to 64), or none",
            "--spec mtp:3, --spec ngram:5 or --spec none",
        )
    if method == "ngram":
        return SpeculativeOptions("ngram", int(count), prompt_lookup_max=int(count))
    return SpeculativeOptions("mtp", int(count))


def _choose_max_num_seqs(goal: Goal, default: int, max_model_len: int, dp_size: int) -> tuple[int, str]:
    if goal.concurrency is not None and dp_size > 2:
        return 2 * ceil_div(
            goal.concurrency, dp_size
        ), "twice a replica's share of the wanted concurrency: they fill unevenly"
    if goal.concurrency is not None:
        return goal.concurrency, "the wanted concurrency"
    few = max(_RUNNING_TOKENS // max_model_len, 16)
    if few < default:
        return few, "few long requests run at once, and room for more takes memory from the KV cache"
    return default, "vLLM's default for this device"


class _DeviceDefault(Protocol):
    def __call__(
        self, device_memory_bytes: int | None, gpu_name: str, *, device_type: str, world_size: int
    ) -> int | None: ...


def _default_of(default: _DeviceDefault, machine: Machine, world_size: int, small: int) -> int:
    """VLLM's default for the device; `small`, its default for small cards, where the memory is unknown."""
    gpu = machine.gpu
    memory_bytes = None if gpu is None else (gpu.cuda_memory_bytes or (gpu.memory_bytes,))[0]
    name = "" if gpu is None else gpu.name
    return default(memory_bytes, name, device_type=machine.device_type, world_size=world_size) or small


def _check_length(max_model_len: int) -> None:
    if not 1 <= max_model_len <= _LONGEST_TOKENS:
        raise UsageError(
            f"max-model-len {max_model_len} is not a length that can be served",
            f"expected 1 to {format_tokens(_LONGEST_TOKENS)} tokens",
            "--max-model-len 750k",
        )


def check_gpus(split: Split, num_gpus: int, machine: Machine) -> None:
    """UsageError when the split takes more than the GPUs that are left for the instance."""
    wanted = split.num_gpus
    if machine.device_type == "cpu" or wanted <= num_gpus:
        return
    per_tp = wanted // split.tp_size
    smaller = f"--tp {num_gpus // per_tp}, or " if num_gpus >= per_tp else ""
    raise UsageError(
        f"the instance needs {wanted} GPU{'s' if wanted > 1 else ''} and {num_gpus or 'none'} "
        f"{'is' if num_gpus < 2 else 'are'} left for it",
        f"TP x PP x DP is the number of GPUs that one instance occupies; the machine has {machine.num_gpus}",
        f"{smaller}more cards in --gpus, or fewer instances",
    )
