"""Time limits: what counts is the time in which this process could act."""

import asyncio

import pytest

from fairtrial.core.time_limit import time_limit


@pytest.fixture
async def clock(monkeypatch):
    """A function that moves the event loop's clock."""
    loop = asyncio.get_running_loop()
    real, ahead = loop.time, 0.0

    def move(seconds: float) -> None:
        nonlocal ahead
        ahead += seconds

    monkeypatch.setattr(loop, "time", lambda: real() + ahead)
    return move


async def rounds_of_the_loop(count: int = 20) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


@pytest.mark.parametrize("seconds", [0.3, 60, 3600])
async def test_a_process_that_was_stopped_has_its_time_still(clock, seconds):
    async with time_limit(seconds):
        for _ in range(5):
            clock(100_000)
            await rounds_of_the_loop()


@pytest.mark.parametrize("seconds", [0.3, 60, 100])
async def test_time_in_which_the_process_ran_is_over_at_some_point(clock, seconds):
    steps = 0
    with pytest.raises(TimeoutError):
        async with time_limit(seconds):
            while steps < 1000:
                clock(seconds / 100)
                await rounds_of_the_loop(2)
                steps += 1
    assert 8 <= steps <= 110


async def test_each_block_has_a_limit_of_its_own(clock):
    async with time_limit(60):
        with pytest.raises(TimeoutError):
            async with time_limit(0.001):
                await asyncio.Event().wait()
        await rounds_of_the_loop()


async def test_who_is_cancelled_did_not_run_out_of_time():
    async def wait() -> None:
        async with time_limit(600):
            await asyncio.Event().wait()

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_nothing_is_left_when_the_block_is_over(clock):
    async with time_limit(1):
        pass
    for _ in range(50):
        clock(1)
        await asyncio.sleep(0)
