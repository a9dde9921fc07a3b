"""The experiments: speed, faults, a kill in the middle, and the viewer. Each is one tool on a server of its own."""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.measure import model_server
from benchmarks.rivals.process import Process, run
from benchmarks.rivals.tool import Job, Outcome, Tool, size_of
from fairtrial.webpage.browser import find_browser

LATENCY = 0.2
FAULTS = ("--fault", "429=0.05", "--fault", "500=0.02", "--fault", "reset=0.01", "--fault", "empty=0.01")
KILL_CONCURRENCY = 20
_RETRY_AFTER = ("--retry-after", "1")
_PATIENCE = 1800.0  # seconds after which a tool is killed


class Size(NamedTuple):
    """How much is asked."""

    count: int
    concurrency: int


class Speed(NamedTuple):
    """One run by itself, and one with a single question, which shows the start-up."""

    first_request: float  # seconds from the start to the first request, with one question
    one_wall: float
    wall: float
    asking: float  # seconds from the first request to the last answer
    cpu_per_trial: float  # beyond the processor time of a run with one question
    peak_mb: float
    log_bytes: int


class Faults(NamedTuple):
    """What became of questions that can all be answered rightly."""

    wall: float
    calls: int
    outcome: Outcome | None
    code: int


class Killed(NamedTuple):
    """What a resumed run asked again; None if the tool cannot resume."""

    finished: int  # answers that were delivered before the kill
    again: int | None  # of these, how many were asked for again


class View(NamedTuple):
    """A viewer with many results."""

    seconds: float  # from the start of its server until rows are visible
    data_bytes: int  # of JSON, HTML and the like
    code_bytes: int  # of scripts, styles and fonts
    rows: int


def speed(tool: Tool, size: Size) -> Speed:
    """Run it with one question, then with all of them."""
    with _job(tool, Size(1, 1), LATENCY) as job:
        one = run(tool.command(job), job.folder, job.folder / "output.txt", _PATIENCE)
        first = _stats(job)["first_call"] - one.started
    with _job(tool, size, LATENCY) as job:
        many = run(tool.command(job), job.folder, job.folder / "output.txt", _PATIENCE)
        stats = _stats(job)
        assert stats["delivered_prompts"] == size.count, f"{tool.name} asked {stats['delivered_prompts']} questions"
        return Speed(
            first_request=first,
            one_wall=one.wall,
            wall=many.wall,
            asking=stats["last_answer"] - stats["first_call"],
            cpu_per_trial=max(0.0, many.cpu - one.cpu) / (size.count - 1),
            peak_mb=many.peak_mb,
            log_bytes=size_of(tool.log_files(job.folder)),
        )


def faults(tool: Tool, size: Size) -> Faults:
    """Run it against a server that fails now and then, and count what it made of that."""
    with _job(tool, size, LATENCY, *FAULTS, *_RETRY_AFTER) as job:
        command = tool.command(job)
        usage = Process(command, job.folder, job.folder / "output.txt").wait(_PATIENCE)
        outcome = None
        with suppress(FileNotFoundError, ValueError, IndexError):
            outcome = tool.outcome(job.folder)
        return Faults(usage.wall, _stats(job)["calls"], outcome, usage.code)


def killed(tool: Tool, size: Size) -> Killed:
    """Kill it when half of the answers are there, resume it, and count what was asked again."""
    with _job(tool, Size(size.count, KILL_CONCURRENCY), LATENCY, "--jitter", "0.5") as job:
        log = job.folder / "output.txt"
        process = Process(tool.command(job), job.folder, log)
        while process.running and _stats(job)["delivered"] < size.count // 2:
            time.sleep(0.01)
        process.kill()
        process.wait(_PATIENCE)
        finished = _stats(job)["delivered_prompts"]
        command = tool.resume(job)
        if command is None:
            return Killed(finished, None)
        run(command, job.folder, log, _PATIENCE)
        stats = _stats(job)
        return Killed(finished, stats["delivered"] - stats["delivered_prompts"])


def view(tool: Tool, size: Size) -> View | None:
    """Make a log of that size, start the viewer, and look at it in Chromium."""
    if type(tool).viewer is Tool.viewer:
        return None
    with _job(tool, size, 0.0) as job:
        log = job.folder / "output.txt"
        run(tool.command(job), job.folder, log, _PATIENCE)
        port = _free_port()
        found = tool.viewer(job, port)
        assert found is not None
        command, path, rows = found
        process = Process(command, job.folder, log)
        try:
            return asyncio.run(_look(f"http://127.0.0.1:{port}", path, rows, process.started))
        finally:
            process.kill()
            process.wait(_PATIENCE)


async def _look(site: str, path: str, rows: str, started: float) -> View:
    from playwright.async_api import async_playwright

    data = code = 0

    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=find_browser(), args=["--no-sandbox", "--disable-gpu"]
        )
        page = await browser.new_page(viewport={"width": 1400, "height": 1000})
        session = await page.context.new_cdp_session(page)
        kinds: dict[str, str] = {}

        def answered(event: Any) -> None:
            kinds[event["requestId"]] = event["type"]

        def loaded(event: Any) -> None:
            nonlocal data, code
            size = int(event["encodedDataLength"])
            if kinds.get(event["requestId"]) in ("Script", "Stylesheet", "Font", "Image"):
                code += size
            else:
                data += size

        session.on("Network.responseReceived", answered)
        session.on("Network.loadingFinished", loaded)
        await session.send("Network.enable")
        await asyncio.to_thread(_wait_for, site)
        await page.goto(f"{site}{path}")
        await page.locator(rows).first.wait_for(state="visible", timeout=180_000)
        seconds = time.monotonic() - started
        await page.wait_for_timeout(2000)  # what is still loading counts as bytes, not as time
        count = await page.locator(rows).count()
        await browser.close()
    return View(seconds, data, code, count)


def _wait_for(site: str) -> None:
    host, port = site.removeprefix("http://").split(":")
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        with suppress(OSError), socket.create_connection((host, int(port)), timeout=1):
            return
        time.sleep(0.05)
    raise TimeoutError(f"nothing listens at {site}")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@contextmanager
def _job(tool: Tool, size: Size, latency: float, *options: str) -> Iterator[Job]:
    folder = Path(tempfile.mkdtemp(prefix=f"rivals-{tool.name.split()[0]}-"))
    try:
        with model_server(latency, *options) as url:
            yield Job(folder, url, size.count, size.concurrency)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _stats(job: Job) -> Any:
    with urllib.request.urlopen(f"{job.url}/stats") as reply:
        return json.load(reply)
