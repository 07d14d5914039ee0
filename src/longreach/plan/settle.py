"""Settle what the goal left open: parallel sizes, length, batch limits, speculation. Each choice with its reason."""

from dataclasses import dataclass, replace
from typing import Protocol

from longreach.engine.defaults import default_max_num_batched_tokens, default_max_num_seqs
from longreach.engine.options import EngineOptions, SpeculativeOptions
from longreach.engine.release import Release
from longreach.errors import UsageError
from longreach.hardware.spec import Machine
from longreach.model.spec import ModelSpec
from longreach.plan.goal import Goal
from longreach.plan.values import Choice
from longreach.rules.deployment import Deployment
from longreach.rules.parallel import SPLIT_RULES
from longreach.rules.speculation import has_local_argmax
from longreach.units import format_tokens

_LONGEST_TOKENS = 10**9  # a hundred times the longest context any published model claims

_USUAL_INPUT_TOKENS = 32_768
_RUNNING_TOKENS = 2**23  # no box of eight cards keeps more tokens running than this


@dataclass(frozen=True, slots=True)
class Settled:
    """Values that are certain from here on, with the choices that made them so."""

    tp_size: int
    pp_size: int
    dp_size: int
    dcp_size: int
    max_model_len: int
    max_num_batched_tokens: int
    max_num_seqs: int
    mean_input_tokens: int
    speculative: SpeculativeOptions | None
    choices: tuple[Choice, ...]

    @property
    def num_gpus(self) -> int:
        """GPUs that one instance occupies."""
        return self.tp_size * self.pp_size * self.dp_size


def settle(model: ModelSpec, machine: Machine, release: Release, goal: Goal, num_gpus: int) -> Settled:
    """`num_gpus` is this instance's share of the machine. Raises UsageError for sizes that cannot be."""
    choices: list[Choice] = []
    pp_size, dp_size = goal.pp_size or 1, goal.dp_size or 1
    tp_size = goal.tp_size
    if tp_size is None:
        tp_size = _choose_tp_size(model, machine, release, num_gpus // (pp_size * dp_size))
        if num_gpus > 1:
            why = f"the most of {num_gpus} GPUs over which heads, vocabulary and state split evenly"
            choices.append(Choice("--tp", str(tp_size), why))
    _check_gpus(tp_size * pp_size * dp_size, tp_size, num_gpus, machine)
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
    max_num_batched_tokens = goal.max_num_batched_tokens
    if max_num_batched_tokens is None:
        max_num_batched_tokens = _default_of(default_max_num_batched_tokens, machine, tp_size * pp_size, 2048)
        why = "vLLM's default for this device; a prompt is read in chunks of this size"
        choices.append(Choice("--max-num-batched-tokens", format_tokens(max_num_batched_tokens), why))
    max_num_seqs = goal.max_num_seqs
    if max_num_seqs is None:
        default = _default_of(default_max_num_seqs, machine, tp_size * pp_size, 256)
        max_num_seqs, why = _choose_max_num_seqs(goal, default, max_model_len)
        max_num_seqs = min(max_num_seqs, max_num_batched_tokens)
        choices.append(Choice("--max-num-seqs", str(max_num_seqs), why))
    return Settled(
        tp_size=tp_size,
        pp_size=pp_size,
        dp_size=dp_size,
        dcp_size=goal.dcp_size or 1,
        max_model_len=max_model_len,
        max_num_batched_tokens=max_num_batched_tokens,
        max_num_seqs=max_num_seqs,
        mean_input_tokens=min(mean_input_tokens, max_model_len),
        speculative=_choose_speculation(goal.speculation, model, tp_size),
        choices=tuple(choices),
    )


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
    if method not in ("mtp", "ngram") or not count.isdigit() or not 1 <= int(count) <= 64:
        raise UsageError(
            f"speculation '{text}' is not understood",
            "expected a method and its number of draft tokens (1 to 64), or none",
            "--spec mtp:3, --spec ngram:5 or --spec none",
        )
    if method == "ngram":
        return SpeculativeOptions("ngram", int(count), prompt_lookup_max=int(count))
    return SpeculativeOptions("mtp", int(count))


def _choose_max_num_seqs(goal: Goal, default: int, max_model_len: int) -> tuple[int, str]:
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


def _choose_tp_size(model: ModelSpec, machine: Machine, release: Release, num_gpus: int) -> int:
    def splits(tp_size: int) -> bool:
        options = EngineOptions(model=model.name, tensor_parallel_size=tp_size)
        probe = Deployment(model, machine, release, options, 1, 1, 1)
        return not any(True for rule in SPLIT_RULES for _ in rule.check(probe))

    return next((size for size in range(num_gpus, 1, -1) if splits(size)), 1)


def _check_length(max_model_len: int) -> None:
    if not 1 <= max_model_len <= _LONGEST_TOKENS:
        raise UsageError(
            f"max-model-len {max_model_len} is not a length that can be served",
            f"expected 1 to {format_tokens(_LONGEST_TOKENS)} tokens",
            "--max-model-len 750k",
        )


def _check_gpus(wanted: int, tp_size: int, num_gpus: int, machine: Machine) -> None:
    if machine.device_type == "cpu" or wanted <= num_gpus:
        return
    per_tp = wanted // tp_size
    smaller = f"--tp {num_gpus // per_tp}, or " if num_gpus >= per_tp else ""
    raise UsageError(
        f"the instance needs {wanted} GPU{'s' if wanted > 1 else ''} and {num_gpus or 'none'} "
        f"{'is' if num_gpus < 2 else 'are'} left for it",
        f"TP x PP x DP is the number of GPUs that one instance occupies; the machine has {machine.num_gpus}",
        f"{smaller}more cards in --gpus, or fewer instances",
    )
