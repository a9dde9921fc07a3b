"""What a session counts: trials of earlier sessions, failures in a row, retries, money and time."""

import time

import pytest

from fairtrial.core.answer import Answer, Failure
from fairtrial.core.money import Cost
from fairtrial.core.settings import RetrySpec
from fairtrial.engine.budget import Budget, Need
from fairtrial.engine.patience import Patience
from fairtrial.engine.progress import Progress
from fairtrial.engine.retry import Retries
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


def test_the_time_left_follows_from_the_rate(monkeypatch):
    progress = Progress(["a"], [10])
    assert progress.seconds_left is None  # nothing is done yet
    progress.arms[0].scored = 4
    monkeypatch.setattr(time, "monotonic", lambda: progress.started + 8)
    assert progress.rate == pytest.approx(0.5) and progress.seconds_left == pytest.approx(12)


def failure(kind="server", **keys):
    return Failure(kind=kind, message="", retryable=True, **keys)


class TestRetries:
    def test_what_is_final_is_not_tried_again(self):
        assert Retries(RetrySpec()).wait(Failure(kind="auth", message="")) is None
        assert Retries(RetrySpec(attempts=1)).wait(failure()) is None
        twice = Retries(RetrySpec(attempts=3))
        assert [twice.wait(failure()) is None for _ in range(3)] == [False, False, True]

    def test_a_broken_stream_is_asked_for_as_a_whole_at_once(self):
        retries = Retries(RetrySpec())
        assert retries.wait(failure("stream")) == 0 and retries.wait(failure("stream")) > 0

    def test_a_server_says_when_to_come_back(self):
        assert Retries(RetrySpec(max_wait=60)).wait(failure(retry_after=7)) == 7
        assert Retries(RetrySpec(max_wait=60)).wait(failure(retry_after=700)) == 60

    def test_waits_grow(self):
        retries = Retries(RetrySpec(wait=1, max_wait=3))
        waits = [retries.wait(failure()) for _ in range(4)]
        assert all(most / 2 <= wait <= most for wait, most in zip(waits, (1, 2, 3, 3), strict=True))

    def test_agents_are_not_asked_again_after_a_timeout(self):
        assert Retries(RetrySpec(), agent=True).wait(failure("timeout")) is None
        model = Retries(RetrySpec())
        assert model.wait(failure("timeout")) is not None and model.wait(failure("timeout")) is None

    def test_empty_answers(self):
        retries = Retries(RetrySpec(empty=2, empty_wait=0.4))
        assert [retries.wait(Answer(text=" ")) for _ in range(3)] == [0.4, 0.8, None]
        assert Retries(RetrySpec()).wait(Answer(text="", finish_reason="length")) is None
        assert Retries(RetrySpec()).wait(Answer(text="4")) is None


async def test_money_is_set_aside_until_it_is_known_what_a_call_cost():
    budget = Budget(1.0, spent=0.2)
    assert budget.limited and budget.unspent == pytest.approx(0.8)
    assert await budget.reserve(Need(0.8)) == 0.8  # all of it
    budget.settle(0.8, Cost(known=0.3, charged=0.3))
    assert budget.unspent == pytest.approx(0.5) and not budget.exhausted
    assert await budget.reserve(Need(0.6)) is None and budget.exhausted
    assert not Budget(None).limited and await Budget(None).reserve(Need(9.0)) == 9.0
