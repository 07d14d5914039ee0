import pytest

from longreach.report.html.plots.hits import split_sources


@pytest.mark.parametrize(
    ("cached", "hits", "parts"),
    [
        (None, (), {"unknown": 1000}),
        (0, (), {"computed": 1000}),
        (1000, (("device", 1000),), {"device": 1000}),
        (
            600,
            (("device", 100), ("host", 300), ("disk", 200)),
            {"computed": 400, "device": 100, "host": 300, "disk": 200},
        ),
        (600, (("device", 100),), {"computed": 400, "device": 100, "unattributed": 500}),
        (600, (("external_unspecified", 600),), {"computed": 400, "elsewhere": 600}),
        (100, (("device", 160),), {"computed": 840, "device": 160}),
    ],
    ids=[
        "not told",
        "cold",
        "all from the GPU",
        "three tiers",
        "not told where",
        "outside the GPU",
        "more hits than cached",
    ],
)
def test_every_prompt_token_has_a_source(
    cached: int | None, hits: tuple[tuple[str, int], ...], parts: dict[str, int]
) -> None:
    assert split_sources(1000, cached, hits) == parts
