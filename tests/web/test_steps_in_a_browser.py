"""The steps of a trial in Chromium: jumps, filters, slices, links to an event, side by side, and a trial under way."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import msgspec

from fairtrial.agents.workspace.making import kept_name
from fairtrial.core.events import CallEvent, MessageEvent, ResultEvent
from fairtrial.core.trace import Trace
from fairtrial.engine.journals import SessionState
from fairtrial.store.files import kept_journals
from tests.axe import serious

from .test_every_page import NARROW, WIDE, hindrances, overflow, show
from .trajectories import LONG, agents, hostile, reporting, searching

IN_SIGHT = """(id) => { const box = document.getElementById(id).getBoundingClientRect();
  return box.top >= 0 && box.bottom <= innerHeight; }"""


async def test_the_first_failure_is_one_key_away_in_ten_thousand_events(
    site: str, visitor: Any, run_suite: Any, tmp_path: Path
) -> None:
    run = await run_suite(**reporting(tmp_path, LONG))
    await visitor.goto(f"{site}/runs/{run.id}/cases/1/1/1")
    assert await visitor.locator(".step").count() == 100
    await visitor.keyboard.press("f")
    await visitor.locator("#e8644").wait_for()
    assert await visitor.evaluate(IN_SIGHT, "e8644") and visitor.url.endswith("#e8644")
    assert await visitor.evaluate("document.activeElement.id") == "e8644"
    await visitor.get_by_role("link", name="Earlier steps").click()
    await visitor.locator("#e8444").wait_for()
    await visitor.get_by_role("link", name="More steps").click()
    await visitor.locator("#e8844").wait_for()
    numbers = await visitor.evaluate("[...document.querySelectorAll('.step')].map((row) => Number(row.id.slice(1)))")
    assert numbers == sorted(numbers) and len(numbers) == len(set(numbers)) == 300
    await visitor.get_by_role("link", name="Errors 1").click()
    await visitor.locator("[aria-current=true]", has_text="Errors").wait_for()
    assert await visitor.locator(".step").count() == 1
    await visitor.goto(f"{site}/runs/{run.id}/cases/1/1/1#e5000")  # the same page: only the hash is new
    await visitor.locator("#e5000").wait_for()
    await visitor.goto(f"{site}/runs/{run.id}/cases/1/1/1?first=3000#e3000")
    assert await visitor.evaluate(IN_SIGHT, "e3000")


async def test_two_trials_part_in_sight_and_the_pages_are_accessible(
    site: str, visitor: Any, run_suite: Any, model: Any, tmp_path: Path
) -> None:
    await model(searching)
    run = await run_suite(**agents())
    evil = await run_suite(**reporting(tmp_path, repr(hostile())))
    await visitor.goto(f"{site}/runs/{run.id}/cases/2/1/1")
    await visitor.get_by_role("link", name="m/hasty", exact=True).last.click()
    await visitor.wait_for_url("**/side-by-side?arm=2")
    await visitor.keyboard.press("f")
    await visitor.wait_for_url("**#parts")
    assert await visitor.evaluate(IN_SIGHT, "parts")
    await visitor.locator("#parts .at").first.click()
    await visitor.locator(".step.here").wait_for()
    found = {}
    for address in (
        f"/runs/{run.id}/cases/2/2/1",
        f"/runs/{run.id}/cases/2/1/1/side-by-side?arm=2",
        f"/runs/{evil.id}/cases/1/1/1",
        f"/runs/{run.id}",
    ):
        await show(visitor, *NARROW)
        await visitor.goto(site + address)
        for late in await visitor.locator(".pending").all():
            await late.wait_for(state="detached")
        if await visitor.locator("#causes").count():
            await visitor.locator("#causes summary").first.click()
            await visitor.locator("#causes .causes").wait_for()
        problems = [*await serious(visitor, "color-contrast"), *await overflow(visitor), *await hindrances(visitor)]
        await show(visitor, *WIDE)
        problems += [*await serious(visitor), *await overflow(visitor)]
        if problems:
            found[address] = problems
    assert not found


async def test_a_trial_that_is_under_way_is_followed(
    site: str, visitor: Any, run_suite: Any, model: Any, store: Any
) -> None:
    """Its journal is what the engine writes; here its session is made to go on by hand, event by event."""
    await model(searching)
    run = await run_suite(**agents(repeats=1))
    with store.writing() as connection:
        connection.exec_driver_sql("delete from scores where case_position = 0 and arm_position = 0")
        connection.exec_driver_sql("delete from trials where case_position = 0 and arm_position = 0")
    folder = kept_journals(store, run.id)
    folder.mkdir(parents=True, exist_ok=True)  # a slow session has left it
    events: list[Any] = [MessageEvent(text="I look."), CallEvent(id="1", tool="lookup", server="facts", at=0.1)]

    def write() -> None:
        state = SessionState(
            trial_id="t", case_id="code", arm="m/careful", repeat=1, process=os.getpid(), started_at=time.time(),
            trace=Trace(events=tuple(events)).as_dict(),
        )  # fmt: skip
        (folder / f"{kept_name('code', 't')}.json").write_bytes(msgspec.json.encode(state))

    write()
    await visitor.goto(f"{site}/runs/{run.id}/cases/1/1/1")
    assert "under way" in await visitor.locator(".trial").inner_text()
    await visitor.locator(".step", has_text="did not finish").wait_for()
    assert await visitor.locator(".step").count() == 3
    events += [ResultEvent(call="1", text="4711", ms=5.0), MessageEvent(text="It is 4711.")]
    write()
    await visitor.locator(".step", has_text="It is 4711.").wait_for()
    assert await visitor.locator(".step").count() == 4
    assert not await visitor.locator(".step", has_text="did not finish").count()
