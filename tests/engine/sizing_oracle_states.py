"""(shapes, dtypes) of recurrent states from vLLM's own calculators; part of the oracle, under the engine's Python."""

from typing import Any

from vllm.model_executor.layers.mamba.mamba_utils import MambaStateDtypeCalculator, MambaStateShapeCalculator

Json = dict[str, Any]


def gated_delta(layer: Json, tp: int, drafts: int, types: Any) -> Any:
    shape = MambaStateShapeCalculator.gated_delta_net_state_shape(
        tp,
        layer["num_k_heads"],
        layer["num_v_heads"],
        layer["k_head_dim"],
        layer["v_head_dim"],
        layer["conv_kernel"],
        drafts,
    )
    return shape, MambaStateDtypeCalculator.gated_delta_net_state_dtype(*types)


def kda(layer: Json, tp: int, drafts: int, types: Any) -> Any:
    shape = MambaStateShapeCalculator.kda_state_shape(
        tp, layer["num_heads"], layer["head_dim"], conv_kernel_size=layer["conv_kernel"], num_spec=drafts
    )
    return shape, MambaStateDtypeCalculator.kda_state_dtype(*types)


def mamba2(layer: Json, tp: int, drafts: int, types: Any) -> Any:
    shape = MambaStateShapeCalculator.mamba2_state_shape(
        tp,
        layer["intermediate_size"],
        layer["num_groups"],
        layer["num_heads"],
        layer["head_dim"],
        layer["state_size"],
        layer["conv_kernel"],
        drafts,
    )
    return shape, MambaStateDtypeCalculator.mamba2_state_dtype(*types)


def mamba1(layer: Json, tp: int, _: int, types: Any) -> Any:
    shape = MambaStateShapeCalculator.mamba1_state_shape(
        tp, layer["intermediate_size"], layer["state_size"], layer["conv_kernel"]
    )
    return shape, MambaStateDtypeCalculator.mamba1_state_dtype(*types)


def short_conv(layer: Json, tp: int, drafts: int, types: Any) -> Any:
    shape = MambaStateShapeCalculator.short_conv_state_shape(tp, layer["dim"], layer["conv_kernel"], drafts)
    return shape, MambaStateDtypeCalculator.short_conv_state_dtype(*types[:2])


def linear(layer: Json, tp: int, _: int, types: Any) -> Any:
    shape = MambaStateShapeCalculator.linear_attention_state_shape(layer["num_heads"], tp, layer["head_dim"])
    return shape, MambaStateDtypeCalculator.linear_attention_state_dtype(*types[:2])


STATES = {
    "GatedDeltaNetLayer": gated_delta,
    "KdaLayer": kda,
    "Mamba2Layer": mamba2,
    "Mamba1Layer": mamba1,
    "ShortConvLayer": short_conv,
    "LinearAttentionLayer": linear,
}
MAMBA_TYPES = {
    "GatedDeltaNetLayer": "GDN_ATTN",
    "KdaLayer": "GDN_ATTN",
    "Mamba1Layer": "MAMBA1",
    "ShortConvLayer": "SHORT_CONV",
    "LinearAttentionLayer": "LINEAR",
}
