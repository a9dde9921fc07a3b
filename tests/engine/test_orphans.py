"""A worker whose driver has gone begins nothing more, even before it has read the end of its orders."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from fairtrial.engine.cluster.messages import LimitShare
from fairtrial.engine.cluster.shares import LeasedLimiter

ASKED = """
import sys
from fairtrial.engine.cluster.pipes import hung_up
print(hung_up(), flush=True)
sys.stdin.buffer.raw.read(1)
while not hung_up():  # although orders are left that were not read
    pass
print(sys.stdin.buffer.read(), flush=True)
"""


async def test_no_call_begins_without_a_driver() -> None:
    """A process that was frozen finds answers and the end of its driver at once: the answers came first."""
    gone = False
    limiter = LeasedLimiter(2, lambda: None, lambda: gone)
    limiter.apply(LimitShare(slots=1))
    entered = []

    async def call() -> None:
        async with limiter:
            entered.append(1)

    async with limiter:
        waiting = [asyncio.create_task(call()) for _ in range(2)]
        await asyncio.sleep(0)
        gone = True
    found = await asyncio.gather(*waiting, return_exceptions=True)
    assert not entered and [type(error) for error in found] == [asyncio.CancelledError] * 2
    assert limiter.waiting == 0


@pytest.mark.skipif(sys.platform == "win32", reason="pipes cannot be asked there")
def test_a_closed_pipe_is_known_before_it_is_read() -> None:
    with subprocess.Popen([sys.executable, "-c", ASKED], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        assert process.stdout.readline().strip() == b"False"
        process.stdin.write(b"2 orders")
        process.stdin.close()
        assert process.stdout.readline().strip() == b"b' orders'"
