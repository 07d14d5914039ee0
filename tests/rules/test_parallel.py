from dataclasses import replace

import pytest
from tests.rules.deployments import DENSE, HYBRID, with_model, with_options

from longreach.model.spec import KdaLayer, MlaLayer
from longreach.rules.deployment import Deployment
from longreach.rules.parallel import (
    dcp_impossible,
    kv_heads_replicated,
    mla_latent_replicated,
    more_workers_than_gpus,
    tp_splits_state_unevenly,
)

MLA_NO_DCP = with_options(DENSE, decode_context_parallel_size=3)


@pytest.mark.parametrize(
    ("deployment", "why"),
    [
        (MLA_NO_DCP, "it must divide it: 4 % 3 is 1"),
        (
            with_options(DENSE, decode_context_parallel_size=2),
            "it spreads copies of KV heads, and 8 heads over 4 GPUs leave 1 of each",
        ),
        (
            with_options(
                with_model(DENSE, num_attention_heads=72), tensor_parallel_size=32, decode_context_parallel_size=4
            ),
            "it must divide the 9 query heads of each KV head",
        ),
    ],
    ids=["not a divisor", "more than copies", "query heads"],
)
def test_dcp_is_refused_for_the_first_reason_that_holds(deployment: Deployment, why: str) -> None:
    (finding,) = dcp_impossible.check(deployment)
    assert finding.why == why


def test_dcp_that_spreads_copies_is_accepted() -> None:
    assert (
        list(dcp_impossible.check(with_options(DENSE, tensor_parallel_size=32, decode_context_parallel_size=4))) == []
    )


def test_state_of_other_recurrent_layers_is_split_by_heads_too() -> None:
    kda = KdaLayer(num_heads=6, head_dim=128, conv_kernel=4)
    (finding,) = tp_splits_state_unevenly.check(with_model(HYBRID, layers=(kda,)))
    assert finding.what == "tensor-parallel-size 4 does not divide the 6 state heads of the recurrent layers"


def test_hybrid_with_copied_heads_is_told_of_instances_only() -> None:
    (finding,) = kv_heads_replicated.check(with_options(HYBRID, tensor_parallel_size=8))
    assert finding.fix == "run 2 instances of --tensor-parallel-size 4 where the weights fit"
    assert finding.remedy is None


def test_latent_beside_other_layers_has_no_sure_remedy() -> None:
    latent = MlaLayer(num_heads=32, kv_lora_rank=512, rope_head_dim=64, nope_head_dim=128, v_head_dim=128)
    kda = KdaLayer(num_heads=32, head_dim=128, conv_kernel=4)
    (finding,) = mla_latent_replicated.check(with_model(HYBRID, layers=(kda, latent)))
    assert finding.remedy is None


@pytest.mark.parametrize(
    ("sizes", "beside"), [((4,), "beside another instance"), ((1, 1), "beside 2 other instances")], ids=["one", "two"]
)
def test_gpus_of_the_other_instances_are_counted_as_they_are(sizes: tuple[int, ...], beside: str) -> None:
    others = tuple(replace(DENSE.options, tensor_parallel_size=size) for size in sizes)
    (finding,) = more_workers_than_gpus.check(replace(DENSE, others=others))
    assert finding.what.startswith(f"{4 + sum(sizes)} GPUs")
    assert beside in finding.why
    fitting = with_options(DENSE, tensor_parallel_size=2)
    assert list(more_workers_than_gpus.check(replace(fitting, others=others[1:]))) == []
