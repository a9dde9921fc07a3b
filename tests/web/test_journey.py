"""What people do with the web page, in a real browser, from the first suite to the last vote."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fairtrial.analyse.run import Run
from fairtrial.cli.main import _run
from fairtrial.store import Store
from fairtrial.targets import mock
from fairtrial.webpage.seal import SANDBOX
from tests.ports import free_port

from .conftest import CAPITALS, TOKEN

pytestmark = pytest.mark.slow


def path_of(page: Any) -> str:
    return "/" + page.url.split("/", 3)[3]


@pytest.mark.slow
async def test_from_nothing_to_a_verdict(site: str, visitor: Any, tmp_path: Path, store: Store) -> None:
    page = visitor
    await page.goto(f"{site}/suites")
    await page.get_by_text("No suites yet").wait_for()
    await page.get_by_label("Name").fill("Small sums")
    await page.get_by_role("button", name="Create").click()

    # The form changes the text, the text is checked as one types, and the file is written when one says so.
    await page.wait_for_url("**/suites/edit**")
    assert (tmp_path / "small-sums.yaml").read_text().startswith("name: Small sums\n")
    await page.get_by_label("Target", exact=True).fill("mock:nobody")
    await page.get_by_text("a mock needs `answer` or `answers`").first.wait_for()
    await page.get_by_label("Target", exact=True).fill("mock:echo")
    await page.get_by_text("1 case × 1 arm, 1 trial").wait_for()
    await page.get_by_role("button", name="Add a target").click()
    second = page.get_by_label("Name in results").nth(1)
    await second.fill("other")
    await page.get_by_text("1 case × 2 arms, 2 trials").wait_for()
    await page.get_by_role("button", name="Add a case").click()
    await page.locator("""[data-path='["cases", 1, "input"]']""").fill("Say 42")
    await page.locator("""[data-path='["cases", 1, "expected"]']""").fill("42")
    await page.get_by_text("2 cases × 2 arms, 4 trials").wait_for()
    assert "Say 42" not in (tmp_path / "small-sums.yaml").read_text()
    await page.get_by_role("button", name="Save").click()
    await page.get_by_text("Saved.").wait_for()
    assert "Say 42" in (tmp_path / "small-sums.yaml").read_text()
    assert _run(["validate", "small-sums.yaml"]) == 0

    # Run it, and watch it end.
    await page.get_by_role("link", name="Run this suite").click()
    await page.get_by_role("heading", name="Estimate").wait_for()
    await page.get_by_label("Repeats", exact=True).fill("2")
    await page.locator("#estimate dd", has_text="8").first.wait_for()
    await page.get_by_role("button", name="Run", exact=True).click()
    await page.wait_for_url("**/runs/*")
    await page.locator(".badge.completed").first.wait_for()
    run = Run.find("latest", store)
    assert run.status == "completed" and [arm.scored for arm in run.arms] == [4, 4]

    # Down to one answer, and along by keyboard.
    await page.locator("#grid td a").first.click()
    await page.locator("#panel", has_text="Say Paris").wait_for()  # beside the grid, which stays
    await page.keyboard.press("j")
    await page.locator("#panel", has_text="Say 42").wait_for()
    await page.keyboard.press("Escape")
    await page.locator("#panel").wait_for(state="hidden")
    await page.keyboard.press("Enter")
    await page.locator("#panel", has_text="Say 42").wait_for()
    await page.get_by_role("link", name="Open as a page").click()
    await page.wait_for_url("**/cases/2/1/1")
    await page.keyboard.press("l")
    await page.wait_for_url("**/cases/2/2/1")
    await page.keyboard.press("Escape")
    await page.wait_for_url("**/cases/2")

    await page.goto(f"{site}/compare?runs={run.id}")
    await page.get_by_role("heading", name="mock:echo and other are too close to call").wait_for()


class Gate:
    """Lets a mock say so many pieces of its answers; for what follows it waits until the gate is open."""

    def __init__(self, pieces: int) -> None:
        self._left, self._open = pieces, asyncio.Event()

    async def sleep(self, _: float) -> None:
        self._left -= 1
        if self._left < 0:
            await self._open.wait()
        await asyncio.sleep(0)

    def open(self) -> None:
        self._open.set()


@pytest.mark.slow
async def test_a_run_is_watched_while_it_goes_on_and_stopped_and_resumed(
    site: str, visitor: Any, write_suite: Any, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(pieces=110)  # four answers at a time, of twenty pieces each: some are whole, others half
    monkeypatch.setattr(mock, "asyncio", SimpleNamespace(**{**vars(asyncio), "sleep": gate.sleep}))
    slow = {"target": "mock:slow", "options": {"answer": "one two three four five six", "latency_ms": 400}}
    cases = [{"id": f"c{n}", "input": f"Question {n}", "expected": "one"} for n in range(40)]
    write_suite(targets=[slow], cases=cases, concurrency=4)
    page = visitor
    await page.goto(f"{site}/new")
    await page.get_by_role("button", name="Run", exact=True).click()
    await page.wait_for_url("**/runs/*")
    # Answers are seen as they are given, then scored; counters move; nothing is reloaded meanwhile.
    await page.locator("#grid .saying", has_text="one").first.wait_for()
    await page.locator("#grid td.cell b", has_text=re.compile(r"^\d+$")).first.wait_for()
    await page.locator("#done", has_text=re.compile(r"^[1-9]")).wait_for()
    await page.get_by_role("button", name="Stop").click()
    await page.locator(".badge.interrupted").wait_for()
    done = Run.find("latest", store).arms[0].scored
    assert 0 < done < 40
    gate.open()
    await page.get_by_role("button", name="Resume").click()
    await page.locator(".badge.completed").wait_for()
    run = Run.find("latest", store)
    assert run.status == "completed" and run.arms[0].scored == 40
    assert all(trial.attempts == 1 for trial in run.trials())


@pytest.mark.slow
async def test_several_runs_show_their_analysis_by_themselves(
    site: str, visitor: Any, tmp_path: Path, store: Store
) -> None:
    (tmp_path / "capitals.yaml").write_text(CAPITALS)
    page = visitor
    await page.goto(f"{site}/new")
    await page.get_by_label("Benchmark mode").check()
    assert await page.locator("[name=param_temperature]").is_disabled()
    await page.get_by_role("button", name="Run 3 times").click()
    await page.wait_for_url("**/series/*")
    await page.get_by_role("heading", name="Run by run").wait_for()
    await page.locator("#live").wait_for(state="detached")
    assert await page.locator("table.series tbody tr").count() == 2
    assert await page.get_by_role("region", name="Means over runs").get_by_role("row").count() == 3
    last = store.runs()[0]
    assert last.series_id is not None and [record.status for record in store.runs()] == ["completed"] * 3
    assert Run(store, last).settings["benchmark_mode"] is True
    await page.get_by_role("link", name=f"run 3 {last.id}").click()
    await page.get_by_role("link", name="a series of 3 runs").click()
    await page.get_by_role("heading", name="Run by run").wait_for()
    await page.goto(f"{site}/board")
    await page.get_by_role("heading", name="By difficulty").wait_for()
    await page.get_by_role("heading", name="Over time").wait_for()


@pytest.mark.slow
async def test_a_judge_is_calibrated_and_answers_are_labelled_by_keyboard(
    site: str, visitor: Any, model_server: Any, run_suite: Any, store: Store
) -> None:
    await model_server(answer='{"reasoning": "fine", "score": 8}')
    page = visitor
    await page.goto(f"{site}/judges")
    await page.locator("[name=judge]").fill("openai:gpt-test")
    await page.get_by_role("button", name="Calibrate").click()
    await page.get_by_role("heading", name="openai:gpt-test is a poor judge").wait_for()
    assert await page.get_by_role("region", name="Samples").get_by_role("row").count() == 9

    run = await run_suite(cases=[{"id": f"c{n}", "input": f"Say {n}", "expected": "Say 1"} for n in range(3)])
    await page.goto(f"{site}/runs/{run.id}/label")
    for number, key in enumerate(("7", "p", "f"), start=1):
        assert "mock:echo" not in await page.locator("#booth > .side > .stack").first.inner_text()
        await page.keyboard.press(key)
        await page.get_by_text(re.compile(rf"^{number} labels?\b")).first.wait_for()
    await page.get_by_text("All scored answers that can be labelled are labelled.").wait_for()
    from fairtrial.store import opinions

    assert sorted(row["value"] for row in opinions.labelled(store, run.id, 0)) == [0.0, 0.7, 1.0]


@pytest.mark.slow
async def test_pages_are_seen_while_they_are_written_and_voted_on(
    site: str, visitor: Any, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for part in ("acting", "pointer"):  # the demo's flawed pages fail checks, each of which waits frame by frame
        monkeypatch.setattr(f"fairtrial.webpage.{part}.PATIENCE_MS", 500)
    page = visitor
    await page.goto(f"{site}/arena")
    await page.get_by_role("button", name="Try the demo").click()
    await page.wait_for_url("**/pages*")
    # A sealed page is there before the answer is: the run has no trial yet, and the frame is of another origin.
    frame = page.locator(".frame iframe").first
    await frame.wait_for()
    assert await frame.get_attribute("sandbox") == SANDBOX
    source = await frame.get_attribute("src")
    assert source and not source.startswith(site)
    await page.locator(".badge.completed").wait_for()
    for name in ("careful", "hasty"):
        section = page.get_by_role("region", name=name, exact=True)
        await section.get_by_text("visual accuracy").wait_for()
        await section.get_by_text("Browser checks").wait_for()
    run = Run.find("latest", store)
    await page.goto(f"{site}/runs/{run.id}/vote?by=me")
    for key, pair in (("ArrowLeft", "pair 1 of 2"), ("ArrowRight", "pair 2 of 2")):
        await page.get_by_text(pair).wait_for()
        await page.keyboard.press(key)
    await page.get_by_text("You have voted on all 2 pairs.").wait_for()
    await page.get_by_role("link", name="Open the board").click()
    await page.get_by_text("2 votes").first.wait_for()
    from fairtrial.store.votes import votes

    assert [vote["voter"] for vote in votes(store, run.id)] == ["me", "me"]


@pytest.mark.slow
async def test_a_run_goes_on_after_the_server_was_killed(
    stranger: Any, write_suite: Any, store: Store, model_server: Any
) -> None:
    """And who was let in by the printed link before need not ask again."""
    import os
    import signal
    import sys

    state = await model_server(answer="one")
    state.hold(after=20)
    cases = [{"id": f"c{n}", "input": f"Question {n}", "expected": "one"} for n in range(60)]
    write_suite(targets=["openai:m"], cases=cases, concurrency=4)
    url = f"sqlite:///{store.address}"

    port = free_port()

    async def serve() -> tuple[Any, str]:
        command = [sys.executable, "-m", "fairtrial", "serve", "--port", str(port), "--store", url]
        process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
        line = (await process.stderr.readline()).decode()
        return process, line.split()[4]

    process, address = await serve()
    await stranger.goto(address)
    await stranger.wait_for_url(f"http://127.0.0.1:{port}/")
    await stranger.goto(f"http://127.0.0.1:{port}/new")
    await stranger.get_by_role("button", name="Run", exact=True).click()
    await stranger.locator("#done", has_text=re.compile(r"^[1-9]")).wait_for()
    os.kill(process.pid, signal.SIGKILL)
    await process.wait()
    run_id = path_of(stranger).split("/")[2]
    await stranger.goto("about:blank")
    before = [trial.trial_id for trial in Run.find(run_id, store).trials()]
    assert 0 < len(before) < 60

    state.release()
    process, _ = await serve()
    stranger.broken.clear()  # the page could not reach the server any more
    await stranger.goto(f"http://127.0.0.1:{port}/runs/{run_id}")
    await stranger.locator(".badge.interrupted").wait_for()
    await stranger.get_by_role("button", name="Resume").click()
    await stranger.locator(".badge.completed").wait_for()
    trials = list(Run.find(run_id, store).trials())
    assert len(trials) == 60 and all(trial.attempts == 1 for trial in trials)
    process.send_signal(signal.SIGINT)
    assert await process.wait() == 0


@pytest.mark.slow
async def test_ctrl_c_saves_what_is_at_work(visitor: Any, write_suite: Any, store: Store, model_server: Any) -> None:
    from fairtrial.web.serving import serve_site

    state = await model_server(answer="one")
    state.hold(after=20)
    cases = [{"id": f"c{n}", "input": f"Question {n}", "expected": "one"} for n in range(60)]
    path = write_suite(targets=["openai:m"], cases=cases, concurrency=4)
    async with serve_site(store, path.parent, token=TOKEN) as address:
        await visitor.goto(f"{address}new")
        await visitor.get_by_role("button", name="Run", exact=True).click()
        await visitor.locator("#done", has_text=re.compile(r"^[1-9]")).wait_for()
        await visitor.goto("about:blank")
    assert Run.find("latest", store).record.status == "interrupted"
    assert Run.find("latest", store).arms[0].scored > 0


@pytest.mark.slow
async def test_one_click_gives_a_first_result(site: str, visitor: Any, store: Store, tmp_path: Path) -> None:
    await visitor.goto(site)
    await visitor.get_by_role("button", name="Run the example").click()
    await visitor.locator(".badge.completed").wait_for()
    await visitor.get_by_role("heading", name="Who leads").wait_for()
    assert (tmp_path / "capitals.yaml").exists() and len(store.runs()) == 1
    run = store.runs()[0]
    assert run.status == "completed"
