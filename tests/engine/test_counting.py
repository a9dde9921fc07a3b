"""What a session counts: trials of earlier sessions, and failures in a row."""

import pytest

from fairtrial.core.money import Cost
from fairtrial.engine.patience import Patience
from fairtrial.engine.progress import Progress
from fairtrial.store.totals import ArmTotals


@pytest.mark.parametrize(
    ("mode", "failed", "unscored", "total", "done"),
    [("resume", 2, 1, 10, 8), ("retry", 0, 0, 10, 5), ("rescore", 0, 0, 6, 5)],
)
def test_a_session_starts_from_what_earlier_ones_did(mode, failed, unscored, total, done):
    """Eight answers are stored: five have a score, two failed, one could not be scored."""
    sums = dict.fromkeys(ArmTotals._fields, 0)
    stored = ArmTotals(
        **{**sums, "stored": 8, "failed": 2, "scored": 5, "unscored": 1, "value_sum": 4.0, "cost": Cost()}
    )
    progress = Progress(["a"], [10])
    progress.restore({0: stored}, mode)
    (arm,) = progress.arms
    assert (arm.scored, arm.failed, arm.unscored, arm.total) == (5, failed, unscored, total)
    assert progress.before == arm.done == done and arm.mean == pytest.approx(0.8)


def test_twenty_failures_in_a_row_are_too_many():
    patience = Patience(concurrency=4)
    assert patience.count("a") == 0
    assert [patience.failed("a") for _ in range(20)] == [False] * 19 + [True]
    patience.succeeded("a")
    assert patience.count("a") == 0 and not patience.failed("a")
    many = Patience(concurrency=50)
    assert [many.failed("a") for _ in range(100)] == [False] * 99 + [True]
