"""Changes that are offered can be typed."""

import pytest

from longreach.hardware.catalogue import find_gpu, gpu_names, parse_gpus
from longreach.plan.changes import NO_CHANGE, Change, together, typed_name


@pytest.mark.parametrize("name", gpu_names())
def test_the_name_of_every_card_is_one_word_that_means_it(name: str) -> None:
    typed = typed_name(find_gpu(name))
    assert " " not in typed
    order = parse_gpus(f"8x{typed}")
    assert (order.gpu.name, order.count) == (name, 8)


def test_all_settings_together_take_the_first_value_of_each() -> None:
    dtypes = [Change(dtype, ("--kv-cache-dtype", dtype), {"kv_cache_dtype": dtype}) for dtype in ("fp8_e4m3", "nvfp4")]
    drafts = Change("no drafts", ("--spec", "none"), {"speculation": "none"})
    both = together([drafts, *dtypes])
    assert both is not None
    assert both.options == ("--spec", "none", "--kv-cache-dtype", "fp8_e4m3")
    assert both.goal == {"speculation": "none", "kv_cache_dtype": "fp8_e4m3"}
    assert both.words == "no drafts, fp8_e4m3"


def test_one_setting_is_not_repeated_as_all_of_them() -> None:
    dtypes = [Change(dtype, (), {"kv_cache_dtype": dtype}) for dtype in ("fp8_e4m3", "nvfp4")]
    assert together(dtypes) is None
    assert together([NO_CHANGE]) is None
