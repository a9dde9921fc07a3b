"""Several runs from the page, in a real browser: watched from the first to the last, stopped, resumed, and analysed."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from fairtrial import pipeline
from fairtrial.store import Store
from fairtrial.web import series as series_page
from fairtrial.web.serving import serve_site
from tests.ports import free_port

from .conftest import TOKEN

pytestmark = pytest.mark.slow

CASES = [{"id": f"c{n}", "input": f"Question {n}", "expected": "one"} for n in range(4)]
EACH = 8  # answers of one run: two targets on four cases


@pytest.fixture
async def held(model_server: Any, write_suite: Any) -> AsyncIterator[Any]:
    """A suite in this folder whose models answer as often as the test allows; their runs differ."""
    state = await model_server(answers=("one", "two", "one", "one", "three", "one", "two"))
    targets = [{"id": name, "target": f"openai:{name}"} for name in ("left", "right")]
    write_suite(name="small.yaml", targets=targets, cases=CASES, scorer="match", concurrency=2, retry={"attempts": 1})
    yield state
    state.release()


def allow(state: Any, answers: int) -> None:
    """Let so many calls of all runs together be answered."""
    state.release()
    state.hold(after=answers)


async def start(page: Any, site: str, held: Any, answers: int) -> str:
    """Press "Run 3 times"; the models answer so often, then wait. Return the path of the series."""
    allow(held, answers)
    await page.goto(f"{site}/new?file=small.yaml")
    await page.get_by_role("button", name="Run 3 times").click()
    await page.wait_for_url("**/series/*")
    await page.evaluate("window.marker = 'never reloaded'")
    return "/" + page.url.split("/", 3)[3]


def statuses(store: Store) -> list[str]:
    return [record.status for record in reversed(store.runs())]


async def test_three_runs_are_watched_to_the_analysis_without_a_click(
    site: str, visitor: Any, held: Any, store: Store
) -> None:
    page = visitor
    await start(page, site, held, 3)
    for number in (1, 2, 3):
        await page.locator("#part", has_text=f"run {number} of 3").wait_for()
        await page.locator("#done", has_text=re.compile(r"^[123]$")).wait_for()
        assert await page.get_by_role("button", name="Stop").is_visible()
        assert await page.locator(".recent .badge.completed").count() == number - 1
        assert await page.get_by_text("to come").count() == 3 - number
        assert await page.locator(".recent .badge.running").count() == 1
        done = int(await page.locator("#all-done").inner_text())
        assert (number - 1) * EACH < done <= (number - 1) * EACH + 3
        await page.wait_for_function(f"/^run {number} of 3, [123].8/.test(document.title)")
        if number == 3:  # two runs are enough to see how runs differ
            await page.get_by_role("heading", name="So far: ").wait_for()
        allow(held, number * EACH + 3)
    await page.locator("h1", has_text="too close to call").wait_for()
    await page.get_by_role("heading", name="Run by run").wait_for()
    table = page.get_by_role("region", name="Means over runs")
    assert await table.get_by_role("row").count() == 3
    pairs = page.get_by_role("region", name="Pairs by their run means")
    assert re.search(r"left against right\s.*\((negligible|small|medium|large)\)", await pairs.inner_text(), re.DOTALL)
    assert not await page.get_by_role("button").count() and not await page.locator("#live").count()
    assert await page.evaluate("window.marker") == "never reloaded"
    assert statuses(store) == ["completed"] * 3


async def test_a_reload_and_a_second_tab_show_the_same(
    site: str, visitor: Any, browser: Any, held: Any, store: Store
) -> None:
    path = await start(visitor, site, held, 3)
    second = await browser.new_page(extra_http_headers={"authorization": f"Bearer {TOKEN}"})
    await second.goto(f"{site}{path}")
    await second.locator("#part", has_text="run 1 of 3").wait_for()
    allow(held, EACH + 3)
    await second.locator("#part", has_text="run 2 of 3").wait_for()
    await visitor.locator("#part", has_text="run 2 of 3").wait_for()
    await visitor.reload()
    await visitor.locator("#part", has_text="run 2 of 3").wait_for()
    await visitor.locator("#done", has_text=re.compile(r"^[123]$")).wait_for()
    # The pages of its runs know where they belong.
    first, running = (record.id for record in reversed(store.runs()))
    await second.goto(f"{site}/runs/{first}")
    await second.get_by_text("a series of 3 runs of the same plan; run 2 is in progress").wait_for()
    await second.goto(f"{site}/runs/{running}")
    await second.locator("#part", has_text="run 2 of 3").wait_for()
    await second.goto(f"{site}/")
    await second.get_by_text("run 2 of 3: ").wait_for()
    await second.get_by_role("link", name="Watch").click()
    await second.wait_for_url(f"**{path}")
    await second.get_by_role("button", name="Stop").click()
    await visitor.get_by_text("interrupted in run 2 of 3").wait_for()
    assert statuses(store) == ["completed", "interrupted"]
    allow(held, held.calls.total() + 2)
    await second.get_by_role("button", name="Resume").click()
    await second.locator("#part", has_text="run 2 of 3").wait_for()
    await visitor.locator("#part", has_text="run 2 of 3").wait_for()
    held.release()
    for page in (visitor, second):
        await page.locator("h1", has_text="too close to call").wait_for()
    await second.close()
    assert statuses(store) == ["completed"] * 3


async def test_stop_ends_the_whole_series_and_resume_finishes_it(
    site: str, visitor: Any, held: Any, store: Store
) -> None:
    page = visitor
    path = await start(page, site, held, EACH + 3)
    await page.locator("#part", has_text="run 2 of 3").wait_for()
    await page.locator("#done", has_text=re.compile(r"^[123]$")).wait_for()
    await page.get_by_role("button", name="Stop").click()
    await page.get_by_text("The series was interrupted in run 2 of 3. Every answer so far is kept").wait_for()
    await page.get_by_text("not made").wait_for()
    assert statuses(store) == ["completed", "interrupted"]
    kept = held.answered.total()
    held.release()
    await page.get_by_role("button", name="Resume").click()
    await page.wait_for_url(f"**{path}")
    await page.locator("h1", has_text="too close to call").wait_for()
    assert statuses(store) == ["completed"] * 3
    assert kept <= held.delivered.total() and sum(len(list(_trials(store, run.id))) for run in store.runs()) == 3 * EACH


def _trials(store: Store, run_id: str) -> Any:
    return store.trial_rows(run_id, 0)


async def test_the_stop_of_a_run_that_has_just_ended_stops_the_series(
    site: str, visitor: Any, held: Any, store: Store
) -> None:
    page = visitor
    await start(page, site, held, 3)
    (first,) = store.runs()
    await page.goto(f"{site}/runs/{first.id}")
    button = page.get_by_role("button", name="Stop the series")
    await button.wait_for()
    await page.route("**/events*", lambda route: route.abort())  # it does not hear of the end
    await page.reload()
    allow(held, EACH + 3)
    while statuses(store) != ["completed", "running"]:
        await asyncio.sleep(0.05)
    await button.click()
    await page.wait_for_url("**/series/*")
    assert statuses(store) == ["completed", "interrupted"]
    page.broken.clear()  # the browser complains about the stream that this test took away


async def test_a_run_whose_calls_fail_does_not_end_the_series(site: str, visitor: Any, held: Any, store: Store) -> None:
    page = visitor
    held.fault = lambda _: "500" if EACH + 2 < held.calls.total() <= 2 * EACH else None
    await start(page, site, held, EACH + 2)
    await page.locator("#part", has_text="run 2 of 3").wait_for()
    held.release()
    await page.locator("h1", has_text="too close to call").wait_for()
    assert statuses(store) == ["completed", "incomplete", "completed"]
    assert await page.locator(".recent .badge.incomplete").count() == 1
    assert await page.evaluate("window.marker") == "never reloaded"


async def test_a_run_that_cannot_begin_ends_the_series_with_its_reason(
    site: str, visitor: Any, held: Any, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = visitor
    await start(page, site, held, 3)
    await page.locator("#done", has_text=re.compile(r"^[123]$")).wait_for()
    monkeypatch.delenv("OPENAI_API_KEY")
    real = pipeline.preflight

    async def refuse(*arguments: Any) -> Any:
        from fairtrial.core.errors import FairtrialError

        raise FairtrialError("the MCP server `graph` cannot be reached: start it first")

    monkeypatch.setattr(pipeline, "preflight", refuse)
    held.release()
    await page.get_by_role("alert").wait_for()
    said = await page.get_by_role("alert").inner_text()
    assert said.startswith("The series ended in run 2 of 3: the MCP server graph cannot be reached: start it first.")
    assert statuses(store) == ["completed"]
    monkeypatch.setattr(pipeline, "preflight", real)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-key-0001")
    await page.get_by_role("button", name="Resume").click()
    await page.locator("h1", has_text="too close to call").wait_for()
    assert statuses(store) == ["completed"] * 3 and not await page.get_by_role("alert").count()


async def test_a_server_that_was_started_anew_offers_to_go_on(
    stranger: Any, held: Any, store: Store, tmp_path: Path
) -> None:
    page, port = stranger, free_port()
    await page.set_extra_http_headers({"authorization": f"Bearer {TOKEN}"})
    async with serve_site(store, tmp_path, token=TOKEN, port=port) as address:
        await start(page, address.rstrip("/"), held, EACH + 3)
        await page.locator("#part", has_text="run 2 of 3").wait_for()
    async with serve_site(store, tmp_path, token=TOKEN, port=port):
        await page.get_by_text("The series was interrupted in run 2 of 3.").wait_for()
        assert await page.evaluate("window.marker") == "never reloaded"
        assert not await page.locator("#lost").is_visible()
        held.release()
        await page.get_by_role("button", name="Resume").click()
        await page.locator("h1", has_text="too close to call").wait_for()
    assert statuses(store) == ["completed"] * 3
    page.broken.clear()  # connections that were refused meanwhile


async def test_a_series_of_another_process_is_followed_from_run_to_run(
    site: str, visitor: Any, held: Any, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(series_page, "INTERVAL_ELSEWHERE", 0.1)
    page = visitor
    suite = pipeline.load(tmp_path / "small.yaml")
    series = pipeline.SeriesPlan("elsewhere", 3)
    allow(held, 3)
    first = asyncio.create_task(pipeline.arun(suite, store=store, series=series))
    while statuses(store) != ["running"]:
        await asyncio.sleep(0.02)
    await page.goto(f"{site}/series/elsewhere")
    await page.locator("#part", has_text="run 1 of 3").wait_for()
    assert not await page.get_by_role("button").count()
    await page.get_by_text("Another process is running it.").wait_for()
    held.release()
    await first
    await page.locator("#part", has_text="run 2 of 3 is starting").wait_for()
    await pipeline.arun(suite, store=store, series=series)
    await page.locator("#part", has_text="run 3 of 3 is starting").wait_for()
    monkeypatch.setattr(series_page, "_BETWEEN", 0.0)  # nobody begins it
    await page.get_by_text("2 of 3 runs are done. Every answer so far is kept").wait_for()
    await page.get_by_role("button", name="Resume").click()
    await page.locator("h1", has_text="too close to call").wait_for()
    assert statuses(store) == ["completed"] * 3
