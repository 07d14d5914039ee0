"""The start-up check: can one request of max_model_len be held? What each release adds up for it, and how it refuses.

layers       each layer of a stage by itself, windows as windows, nothing padded (up to 0.13)
first_group  the blocks of the first group alone, in bytes of the widest (0.14 to 0.18): a hybrid starts that cannot hold it
groups       the blocks of every group (from 0.19), one more where the null block is reserved (from 0.29)
"""

from collections.abc import Callable

from longreach.sizing.kv_plan import KvPlan
from longreach.sizing.pages import blocks_for_tokens
from longreach.units import GIB

LONGEST_SEARCHED_TOKENS = 2**31 - 1
"""Where the search for the largest length ends: a cache that does not grow with the prompt has no largest length."""


def find_refusal(plan: KvPlan, max_model_len: int, available: int) -> str | None:
    """The sentence with which vLLM refuses: it checks the workers in order and stops at the first that cannot hold a request."""
    for stage in _checked_stages(plan):
        usable = available - plan.null_blocks * _block_bytes(plan, stage)
        if usable <= 0:
            return "No available memory for the cache blocks."
        needed = _checked_bytes(plan, stage, max_model_len)
        if needed > usable:
            most = _largest(lambda tokens: _checked_bytes(plan, stage, tokens) <= usable, max_model_len)  # noqa: B023 - called here
            return _refusal_sentence(plan, max_model_len, (needed, usable), most)
    return None


def needed_bytes(plan: KvPlan, num_tokens: int) -> int:
    """Least bytes per GPU with which an engine of this max_model_len starts and holds one such request."""
    held = (plan.blocks_per_request(num_tokens) + plan.null_blocks) * plan.bytes_per_block
    if plan.release.startup_check == "groups" and plan.checked_block_bytes is None:
        return held
    checked = (
        _checked_bytes(plan, stage, num_tokens) + plan.null_blocks * _block_bytes(plan, stage)
        for stage in _checked_stages(plan)
    )
    return max(held, *checked)


def largest_length(plan: KvPlan, available: int) -> int:
    """The largest length that starts and that the pool holds."""
    return _largest(lambda tokens: needed_bytes(plan, tokens) <= available, LONGEST_SEARCHED_TOKENS)


def _checked_stages(plan: KvPlan) -> tuple[int | None, ...]:
    """None stands for the whole model, held against the poorest worker."""
    return tuple(range(len(plan.stage_block_bytes))) if plan.release.startup_check_by_stage else (None,)


def _block_bytes(plan: KvPlan, stage: int | None) -> int:
    if stage is None:
        return max(group.bytes_per_block() for group in plan.groups)
    return plan.stage_block_bytes[stage]


def _checked_bytes(plan: KvPlan, stage: int | None, num_tokens: int) -> int:
    match plan.release.startup_check:
        case "groups":
            return plan.blocks_per_request(num_tokens) * (plan.checked_block_bytes or _block_bytes(plan, stage))
        case "first_group":
            first = plan.groups[0].representative
            return blocks_for_tokens(first, num_tokens, plan.shape) * _block_bytes(plan, stage)
        case "layers":
            assert stage is not None
            return sum(
                count * cache.page_size_bytes * blocks_for_tokens(cache, num_tokens, plan.shape)
                for cache, count in plan.stage_caches[stage]
            )


def _refusal_sentence(plan: KvPlan, max_model_len: int, needed_and_usable: tuple[int, int], estimate: int) -> str:
    release = plan.release
    needed, usable = (_gib(size, trimmed=release.refusal_gib_trimmed) for size in needed_and_usable)
    advice = f" Based on the available memory, the estimated maximum model length is {estimate}."
    return (
        f"To serve at least one request with the model{'s' if release.refusal_says_models else ''}'s max seq len "
        f"({max_model_len}), ({needed} GiB KV cache is needed, which is larger than the available KV cache memory "
        f"({usable} GiB).{advice if estimate > 0 and release.refusal_estimates else ''}"
    )


def _gib(size_bytes: int, *, trimmed: bool) -> str:
    return f"{round(size_bytes / GIB, 2)}" if trimmed else f"{size_bytes / GIB:.2f}"  # "10.0", "10.00"


def _largest(fits: Callable[[int], bool], limit: int) -> int:
    """The largest length up to `limit` that fits, 0 when not even one token does. Blocks never fall with the length."""
    if not fits(1):
        return 0
    low, high = 1, 2
    while high < limit and fits(high):
        low, high = high, high * 2
    high = min(high, limit + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
