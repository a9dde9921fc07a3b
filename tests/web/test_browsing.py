"""How browsers are used: two tabs, reload, back, a server that dies, the keyboard alone."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from threading import Event, Semaphore
from types import SimpleNamespace
from typing import Any

import pytest

from fairtrial.analyse.run import Run
from fairtrial.store import Store
from fairtrial.targets import mock
from fairtrial.web import cache
from fairtrial.web.serving import serve_site
from tests.axe import serious
from tests.ports import free_port

from .conftest import TOKEN

pytestmark = pytest.mark.slow
WATCH = """() => { window.moved = []; new PerformanceObserver((list) => { for (const shift of list.getEntries())
  window.moved.push([shift.value, ...shift.sources.map((one) => one.node?.outerHTML?.slice(0, 80) ?? "text")]); })
  .observe({ type: "layout-shift", buffered: true }); }"""
COUNT = "(least) => Number(document.getElementById('done').textContent) >= least"


class Gate:
    """Lets a mock say so many pieces of its answers; for what follows it waits. It is opened from another thread."""

    def __init__(self) -> None:
        self._pieces = Semaphore(0)

    async def sleep(self, _: float) -> None:
        while not self._pieces.acquire(blocking=False):
            await asyncio.sleep(0.01)

    def let(self, pieces: int) -> None:
        self._pieces.release(pieces)


async def test_a_run_in_progress_in_two_tabs_after_reload_and_back_and_without_its_server(
    browser: Any, write_suite: Any, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, port = Gate(), free_port()
    monkeypatch.setattr(mock, "asyncio", SimpleNamespace(**{**vars(asyncio), "sleep": gate.sleep}))
    options = {"answer": "one two three four five six seven eight nine ten", "latency_ms": 100}
    targets = [
        {"id": "slow", "target": "mock:slow", "options": options},
        {"id": "broken", "target": "mock:broken", "options": {**options, "faults": {"refused": 1.0}}},
    ]
    cases = [
        {"id": f"c{n}", "input": f"Question {n}", "expected": "one"} for n in range(20)
    ]  # a target is given up after 20 failures in a row
    write_suite(targets=targets, cases=cases, concurrency=2)
    context = await browser.new_context(extra_http_headers={"authorization": f"Bearer {TOKEN}"})
    async with AsyncExitStack() as first_server:
        address = await first_server.enter_async_context(serve_site(store, tmp_path, token=TOKEN, port=port))
        tab = await context.new_page()
        await tab.goto(f"{address}new")
        await tab.get_by_role("button", name="Run", exact=True).click()
        await tab.wait_for_url("**/runs/*")
        await tab.evaluate(WATCH)
        gate.let(24)
        await tab.wait_for_function(COUNT, arg=4)
        await tab.locator("#failures", has_text="refused").wait_for()  # why answers are missing, with how many

        # A second tab sees the same; a reload and the way back find the run where it is by then.
        other = await context.new_page()
        await other.goto(tab.url)
        await other.evaluate(WATCH)
        gate.let(24)
        await asyncio.gather(*(one.wait_for_function(COUNT, arg=8) for one in (tab, other)))
        assert await serious(other) == []
        assert await tab.evaluate("() => window.moved") == []  # nothing moves while numbers and answers come in
        await tab.reload()
        await tab.goto(f"{address}runs")
        await tab.go_back()
        gate.let(24)
        await asyncio.gather(*(one.wait_for_function(COUNT, arg=12) for one in (tab, other)))
        assert await other.evaluate("() => window.moved") == []

    # The server is gone: the page says so, keeps what it has, and no longer promises a time.
    for one in (tab, other):
        await one.locator("#lost", has_text="The server does not answer").wait_for()
        assert await one.locator("#left").text_content() == "–"
    async with serve_site(store, tmp_path, token=TOKEN, port=port):
        for one in (tab, other):
            await one.locator(".badge.interrupted").wait_for()
            assert not await one.locator("#lost").is_visible()
        gate.let(100_000)
        await tab.get_by_role("button", name="Resume").click()
        await tab.locator(".badge.incomplete").wait_for()
    await context.close()
    run = Run.find("latest", store)
    assert [(arm.scored, arm.failed) for arm in run.arms] == [(20, 0), (0, 20)]


async def tab_to(page: Any, selector: str) -> None:
    """Press Tab until what is wanted has the focus, which must be seen."""
    for _ in range(150):
        await page.keyboard.press("Tab")
        reached = "(selector) => document.activeElement.matches(selector)"
        if await page.evaluate(reached, selector):
            ring = "() => getComputedStyle(document.activeElement).outlineStyle"
            assert await page.evaluate(ring) != "none", selector
            return
    raise AssertionError(f"Tab never reaches {selector}")


async def test_the_main_journey_needs_only_the_keyboard(site: str, visitor: Any, store: Store) -> None:
    page = visitor
    await page.goto(site)
    assert await serious(page) == []  # the empty home
    await tab_to(page, "form[action='/first'] button")
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/runs/*")
    await page.locator(".badge.completed").first.wait_for()
    await page.locator(".forest").first.wait_for()
    # From the leaders to the cases of an arm, to an answer, along the answers and back.
    await tab_to(page, ".forest a")
    await page.keyboard.press("Enter")
    await page.wait_for_url("**#cases")
    await tab_to(page, "#grid td a")
    await page.keyboard.press("Enter")
    await page.locator("#panel .trial").wait_for()
    before = await page.locator("#panel header").text_content()
    await page.keyboard.press("j")
    await page.wait_for_function(
        "(before) => document.querySelector('#panel header').textContent !== before", arg=before
    )
    await page.keyboard.press("Escape")
    await page.locator("#panel").wait_for(state="hidden")
    assert await page.evaluate("() => Boolean(document.activeElement.closest('#grid'))")
    # To a vote, and on to the leaderboard.
    run = store.runs()[0].id
    await page.goto(f"{site}/runs/{run}")
    await tab_to(page, f"a[href='/runs/{run}/vote']")
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/vote?by=*")
    await page.keyboard.press("ArrowLeft")
    await page.wait_for_url("**last=*")
    await tab_to(page, "nav a[href='/board']")
    await page.keyboard.press("Enter")
    await page.get_by_role("heading", name="Standings").wait_for()


async def test_a_page_does_not_wait_for_the_order_of_its_cases(
    run_suite: Any, site: str, visitor: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a million trials, sorting takes longer than a page may: the page comes first, its cases when they are ready."""
    cases = [{"id": f"c{n}", "input": f"Question {n}", "expected": "good" if n % 2 else "bad"} for n in range(4)]
    run = await run_suite(targets=[{"id": "one", "target": "mock:one", "options": {"answer": "good"}}], cases=cases)
    ready, sort = Event(), cache.ordered_cases
    monkeypatch.setattr(cache, "ordered_cases", lambda *args: ready.wait(60) and sort(*args))
    page = visitor
    await page.goto(f"{site}/runs/{run.id}?sort=mean#cases")
    await page.locator("#case-rows .spinner").wait_for()
    ready.set()
    await page.locator("#grid tbody tr").nth(3).wait_for()
    order = await page.locator("#grid tbody th small").all_text_contents()
    assert order == ["c0", "c2", "c1", "c3"]
    assert await page.locator("#grid-card header").count() == 1  # only the rows were replaced
    await page.keyboard.press("j")
    await page.keyboard.press("Enter")
    await page.locator("#panel .trial").wait_for()


async def test_what_is_typed_before_the_script_is_there_counts(site: str, visitor: Any, write_suite: Any) -> None:
    write_suite(targets=[{"id": "one", "target": "mock:echo"}], cases=[{"input": "Hello", "expected": "Hello"}])
    page, there = visitor, asyncio.Event()

    async def late(route: Any) -> None:
        await there.wait()
        await route.continue_()

    await page.route("**/static/new_run.js", late)
    await page.goto(f"{site}/new?file=suite.yaml", wait_until="commit")
    await page.get_by_label("Repeats", exact=True).fill("2")
    there.set()
    await page.locator("#estimate dd", has_text="2").first.wait_for()

    there.clear()
    await page.route("**/static/suite.js", late)
    await page.goto(f"{site}/suites/edit?file=suite.yaml", wait_until="commit")
    await page.get_by_label("Target", exact=True).fill("mock:nobody")
    there.set()
    await page.get_by_text("a mock needs `answer` or `answers`").first.wait_for()
