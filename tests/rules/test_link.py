from dataclasses import replace

import pytest
from tests.rules.deployments import HYBRID, MEMORY, with_link, with_machine, with_options

from longreach.rules.deployment import Deployment
from longreach.rules.link import all_reduce_dominates_prefill, custom_all_reduce_unavailable, tp_crosses_sockets
from longreach.sizing.values import MemoryBudget
from longreach.units import GIB

TWO_NODES = with_machine(HYBRID, num_numa_nodes=2)
HEAVY = replace(MEMORY, weights_bytes=(15 * GIB, 16 * GIB))


@pytest.mark.parametrize(
    ("deployment", "fix"),
    [
        (
            HYBRID,
            "use two instances of --tp 2 where the model and its length fit; or a driver with peer-to-peer access",
        ),
        (with_options(HYBRID, tensor_parallel_size=2), "use one GPU where the model fits; or a driver"),
        (
            with_link(HYBRID, p2p=True),
            "use two instances of --tp 2 where the model and its length fit: fewer GPUs move",
        ),
    ],
    ids=["no P2P", "a pair", "P2P"],
)
def test_slow_link_is_cured_by_fewer_gpus_or_a_faster_path(deployment: Deployment, fix: str) -> None:
    (finding,) = all_reduce_dominates_prefill.check(deployment)
    assert finding.fix.startswith(fix)


def test_custom_all_reduce_knows_few_group_sizes() -> None:
    odd = with_options(with_link(HYBRID, name="nvlink"), tensor_parallel_size=3)
    (finding,) = custom_all_reduce_unavailable.check(odd)
    assert finding.why == "it knows group sizes 2, 4, 6, 8, 16, not 3; vLLM warns and uses NCCL"


@pytest.mark.parametrize(
    ("memory", "words"),
    [
        (MEMORY, "whose weights fit on half the GPUs"),
        (HEAVY, "but the weights do not fit on half the GPUs: prefer cards of one node"),
        (None, "if the weights fit on half the GPUs"),
    ],
    ids=["fits", "does not", "unknown"],
)
def test_split_over_sockets_says_whether_the_weights_fit(memory: MemoryBudget | None, words: str) -> None:
    (finding,) = tp_crosses_sockets.check(replace(TWO_NODES, memory=memory))
    assert finding.fix == f"run 2 instances of --tp 2, one per node, {words}"
