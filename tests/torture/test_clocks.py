"""Clocks that jump by hours and by years, both ways: nothing is lost, waits for ever, or is said to have taken less than no time.

The clock that is set is that of the process: what `time.time` says is moved by the seconds in a file.
"""

from __future__ import annotations

import re
import time
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from fairtrial.core.formatting import span
from fairtrial.providers.errors import error_of_status
from fairtrial.providers.quota import read_quota
from fairtrial.store import Store, schema
from tests import forks
from tests.conftest import numbered
from tests.torture.blows import Ended, end_of, until, whole_store, without_complaint
from tests.torture.test_kills import PRICES, QUICK

_PROGRAM = """
import time
from pathlib import Path
real = time.time
def shown():
    try:
        return real() + float(Path({place!r}).read_text() or 0)
    except (OSError, ValueError):
        return real()
time.time, time.time_ns = shown, lambda: int(shown() * 1e9)
from fairtrial.cli.main import main
main()
"""
_HOUR, _YEAR = 3600.0, 365 * 86_400.0
JUMPS = (_HOUR, -_HOUR, 30 * 24 * _HOUR, -30 * 24 * _HOUR, 9 * _YEAR, -9 * _YEAR)
LESS_THAN_NOTHING = re.compile(r"(?<![\w.:-])[-−]\d+(\.\d+)? ?(ms|s|min|h|d|days|hours)\b")


class Clock:
    """The clock of every process that is started through it."""

    def __init__(self, folder: Path) -> None:
        self._place, self._folder = folder / "clock", folder
        self.set(0.0)

    def set(self, seconds: float) -> None:
        new = self._place.with_suffix(".new")
        new.write_text(str(seconds))
        new.replace(self._place)

    def start(self, *arguments: Any) -> Any:
        return forks.start(*arguments, program=_PROGRAM.format(place=str(self._place)), folder=self._folder)

    async def run(self, *arguments: Any) -> Ended:
        return without_complaint(await end_of(self.start(*arguments)), 1)


async def test_a_clock_that_jumps_while_a_run_goes_on(campaign, write_suite, model_server, tmp_path):
    clock = Clock(tmp_path)
    for number, chance in enumerate(campaign.rounds(short=1)):
        store = tmp_path / f"{number}.db"
        state = await model_server(latency=0.004, answer="42: {prompt}", faults={"429": 0.1, "500": 0.05}, seed=number)
        keys = {"prices": PRICES, "budget_usd": 50.0, "params": {"max_tokens": 40}, "retry": QUICK, "concurrency": 3}
        suite = write_suite(targets=["openai:m"], scorer="boolean", cases=numbered(40), **keys)
        for run in range(1, 3):
            await run_with_jumps(campaign, chance, clock, state, suite, store, run)
            state.calls.clear()
        await what_is_said(clock, store)
        whole_store(store)
        campaign.count(lost=0, hung=0, negative=0)


async def run_with_jumps(
    campaign: Any, chance: Any, clock: Clock, state: Any, suite: Path, store: Path, number: int
) -> None:
    process = clock.start("run", suite, "--store", store, "--quiet")
    for goal in sorted(chance.sample(range(1, 40), 3)):
        await until(lambda goal=goal: state.calls.total() >= goal, process)
        clock.set(chance.choice(JUMPS))
        campaign.count(jumps=1)
    state.hold(after=state.calls.total())
    if process.poll() is None:
        other = await clock.run("resume", "latest", "--store", store, "--quiet")
        assert process.poll() is not None or (other.code == 1 and "running" in other.err), other
    state.release()
    ended = without_complaint(await end_of(process))
    assert ended.code == 0, ended
    opened = Store(str(store))
    run = opened.runs()[0]
    assert (run.number, run.status) == (number, "completed")
    rows = opened.fetch_dicts(select(schema.trials).where(schema.trials.c.run_id == run.id))
    opened.close()
    assert {row["answer"] for row in rows} == {f"42: Question {n}?" for n in range(40)}
    assert all(row["latency_ms"] > 0 and row["waited_ms"] >= 0 for row in rows)


async def what_is_said(clock: Clock, store: Path) -> None:
    """The run that began last is the latest, whatever the clock says, and nothing took less than no time."""
    opened = Store(str(store))
    latest, first = (run.id for run in opened.runs())
    opened.close()
    listed = (await clock.run("list", "--store", store, "--json")).out
    assert listed.index(latest) < listed.index(first)
    page = store.with_suffix(".html")
    shown = await clock.run("show", "latest", "--store", store)
    assert (await clock.run("report", "latest", "--output", page, "--store", store)).code == 0
    written = re.sub(r"<(script|style).*?</\1>", "", page.read_text(), flags=re.DOTALL)
    assert latest in shown.out and not LESS_THAN_NOTHING.search(written + shown.said)


@pytest.mark.parametrize("wrong", JUMPS)
def test_moments_of_a_server_are_read_by_its_own_clock(wrong, monkeypatch):
    there = time.time() + wrong
    date = {"Date": formatdate(there, usegmt=True)}
    again = error_of_status(429, b"slow down", {**date, "Retry-After": formatdate(there + 7, usegmt=True)})
    assert again.retry_after == pytest.approx(7, abs=2)
    whole = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(there + 30))
    name = "anthropic-ratelimit-requests"
    limits = {f"{name}-limit": "50", f"{name}-remaining": "20", f"{name}-reset": whole}
    assert read_quota({**date, **limits}).requests.reset == pytest.approx(30, abs=2)
    assert read_quota({"Date": "?", **limits}).requests.reset >= 0


def test_nothing_takes_less_than_no_time():
    assert span(-3600.5) == "–" and span(-0.2) == "0 s" and span(0) == "0 s"
