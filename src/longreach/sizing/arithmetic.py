"""Integer rounding, as exact as the counts it is used for."""


def ceil_div(dividend: int, divisor: int) -> int:
    """The least integer that is not below dividend / divisor."""
    return -(-dividend // divisor)


def round_up(value: int, multiple: int) -> int:
    """The least multiple of `multiple` that is not below `value`."""
    return ceil_div(value, multiple) * multiple
