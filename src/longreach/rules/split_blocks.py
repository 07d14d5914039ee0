"""Which tensor parallel sizes cut the blocks of block-wise FP8 weights: LR997. Pure."""

from collections.abc import Iterator

from longreach.model.spec import ModelSpec
from longreach.rules.deployment import Deployment
from longreach.rules.edit import set_flag
from longreach.rules.parallel import experts_stay_whole
from longreach.rules.rule import Diagnosis, Rule, rule

_BLOCK = 128  # rows and columns of one scale in block-wise FP8
_BLOCK_PUBLISHERS = ("qwen/", "deepseek-ai/", "minimaxai/", "moonshotai/")  # whose FP8 checkpoints are block-wise


@rule(
    "LR997",
    "error",
    "fp8_blocks_split",
    "the tensor parallel size cuts blocks of FP8 experts",
    outcome="refused_at_start",
)
def fp8_blocks_split(deployment: Deployment) -> Iterator[Diagnosis]:
    """Each GPU's share of an expert must be whole blocks of 128; expert parallelism keeps all but the shared expert whole."""
    model, options, tp = deployment.model, deployment.options, deployment.tp_size
    if model.widths is None or not _is_block_wise(deployment, model):
        return
    ways = 1 if experts_stay_whole(options) else tp * options.data_parallel_size
    shared_is_split = options.data_parallel_size == 1 and _cuts(model.widths.shared, tp)
    if _cuts(model.widths.expert, ways):
        name, width, parts = "experts", model.widths.expert, ways
    elif shared_is_split:
        name, width, parts = "shared expert", model.widths.shared, tp
    else:
        return
    yield Diagnosis(
        f"{parts} GPUs cut the {width}-wide FP8 {name} of '{model.name}' into parts of {width // parts}",
        f"vLLM stops: 'The output_size of gate's and up's weight = {width // parts} is not divisible by weight quantization "
        f"block_n = {_BLOCK}.'",
        "lower --tensor-parallel-size: the shared expert would be cut as well"
        if shared_is_split
        else "add --enable-expert-parallel, which keeps experts whole, or lower --tensor-parallel-size",
        edit=None if shared_is_split else set_flag("--enable-expert-parallel"),
    )


def _cuts(width: int, ways: int) -> bool:
    return width > 0 and width % ways == 0 and (width // ways) % _BLOCK != 0


def _is_block_wise(deployment: Deployment, model: ModelSpec) -> bool:
    """By the name as written: the catalogue's own checkpoint may stand for one of another publisher."""
    return model.weights.quantization == "fp8" and deployment.options.model.lower().startswith(_BLOCK_PUBLISHERS)


RULES: tuple[Rule, ...] = (fp8_blocks_split,)
