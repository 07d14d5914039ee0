from pathlib import Path

import pytest

from longreach.cli.tiers_progress import TiersProgress
from longreach.launch.up_events import EngineStarted
from longreach.measure.tiers.run import TiersEvent
from longreach.measure.tiers.values import TierSet


def test_every_line_of_a_start_says_whose_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    progress = TiersProgress()
    for number, variant in enumerate((TierSet(("gpu",)), TierSet(("gpu", "cpu"), "lru")), 1):
        progress.on_run(TiersEvent("begin", variant, 1, number, 2))
        progress.on_launch(EngineStarted("main", 7, (), Path("log")))
    progress.close()
    assert capsys.readouterr().err.splitlines() == [
        "run 1 of 2: GPU",
        "GPU: main: started as pid 7, log log",
        "run 2 of 2: GPU+CPU",
        "GPU+CPU: main: started as pid 7, log log",
    ]
