"""The web page at scale: every page with 100,000 trials in the store, and a run that is watched while it goes on.

python -m benchmarks.web [TRIALS] writes benchmarks/WEB.md.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

from fairtrial import pipeline
from fairtrial.analyse import Run
from fairtrial.config import parse_suite
from fairtrial.store import Store
from fairtrial.webpage.browser import find_browser

_KINDS = ("math", "logic", "geo", "history")
_LEVELS = ("easy", "medium", "hard")
_MOST_MS, _MOST_KB = 200, 300
_TOKEN = "a-token-for-measuring"
_KNOWN = {"authorization": f"Bearer {_TOKEN}"}


def suite(folder: Path, trials: int) -> str:
    """Five arms, two repeats, so many cases that it comes to that many trials."""
    with (folder / "cases.jsonl").open("w") as file:
        for number in range(trials // 10):
            case = {"id": f"c{number}", "q": f"Question {number}: how much is {number} and {number % 97}?"}
            case |= {"a": str(number + number % 97), "cat": _KINDS[number % 4], "level": _LEVELS[number % 3]}
            file.write(json.dumps(case) + "\n")
    arms = "\n".join(
        f"  - {{id: arm-{n}, target: mock:arm-{n}, options: {{answer: 'I think that it is {n}, or perhaps {n * 7}.', "
        f"seed: {n}, faults: {{refused: 0.02}}}}}}"
        for n in range(5)
    )
    columns = "id: id, input: q, expected: a, category: cat, difficulty: level"
    return (
        f"name: large\ntargets:\n{arms}\nscorer: numeric\nrepeats: 2\nconcurrency: 50\n"
        f"dataset: {{path: cases.jsonl, {columns}}}\n"
    )


def addresses(run: str) -> list[str]:
    own = ["", "?page=100", "?show=failed", "?show=unscored", "?show=differing", "?show=claims", "?show=disagreeing"]
    own += ["?sort=spread&descending=True", "?sort=2", "?text=777", "?category=geo&difficulty=hard", "/cases/500"]
    own += ["/cases/500/3/2", "/cases/500/3/2?show=failed", "/share", "/label", "/vote", "/board", "/pages"]
    rest = ["/", "/suites", "/suites/edit?file=large.yaml", "/new", "/runs", f"/compare?runs={run}"]
    rest += [f"/compare?runs={run}&a=arm-0&b=arm-1", "/board", "/judges", "/code", "/optimisation"]
    return [*rest, *(f"/runs/{run}{end}" for end in own)]


def fetch(address: str) -> tuple[float, int]:
    """Milliseconds on the server, and bytes."""
    with urllib.request.urlopen(urllib.request.Request(address, headers={"accept": "text/html", **_KNOWN})) as reply:
        return float(reply.headers["server-timing"].split("=")[1]), len(reply.read())


class Server:
    """`fairtrial serve` as people start it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def __aenter__(self) -> str:
        started = time.perf_counter()
        self.process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "fairtrial", "serve", "--port", "0"),
            cwd=self._folder,
            env={**os.environ, "FAIRTRIAL_TOKEN": _TOKEN},
            stderr=asyncio.subprocess.PIPE,
        )
        assert self.process.stderr is not None
        line = (await self.process.stderr.readline()).decode()
        self.seconds = time.perf_counter() - started
        return line.split()[4].rstrip("/")

    async def __aexit__(self, *_: object) -> None:
        self.process.terminate()
        await self.process.wait()


async def pages(folder: Path, run: str) -> list[str]:
    """First and later visits of every page, while the analysis of the run is being worked out and afterwards."""
    lines = ["| page | first | again | once the analysis is there | kB |", "| --- | --- | --- | --- | --- |"]
    server = Server(folder)
    async with server as site:
        await asyncio.sleep(2)
        early = {path: [await asyncio.to_thread(fetch, site + path) for _ in range(2)] for path in addresses(run)}
        started = time.perf_counter()
        for path in (f"/runs/{run}/numbers", f"/runs/{run}/verdicts", f"/compare?runs={run}&wait=1", "/board?wait=1"):
            await asyncio.to_thread(fetch, site + path)
        waited = time.perf_counter() - started
        late = {path: await asyncio.to_thread(fetch, site + path) for path in addresses(run)}
    worst = max(ms for found in early.values() for ms, _ in found)
    worst = max(worst, *(ms for ms, _ in late.values()))
    largest = max(size for _, size in late.values()) / 1000
    for path, found in early.items():
        shown = path.replace(run, "RUN")
        lines.append(
            f"| `{shown}` | {found[0][0]:.0f} ms | {found[1][0]:.0f} ms | {late[path][0]:.0f} ms | {late[path][1] / 1000:.0f} |"
        )
    verdict = "✓" if worst < _MOST_MS and largest < _MOST_KB else "✗"
    head = [
        f"Started in {server.seconds:.1f} s. Slowest page {worst:.0f} ms (bar {_MOST_MS}), largest {largest:.0f} kB "
        f"(bar {_MOST_KB}) {verdict}. Summary and every pair's comparison were worked out beside them in {waited:.0f} s, once.",
        "",
    ]
    return head + lines


async def live(folder: Path) -> list[str]:
    """The same run without the page, and with a page that watches it."""
    text = (
        "name: live\ntargets:\n  - {id: a, target: mock:a, options: {answer: one two three, latency_ms: 100}}\n"
        "  - {id: b, target: mock:b, options: {answer: one two four, latency_ms: 100}}\nscorer: exact\nconcurrency: 50\n"
        "dataset: {path: live.jsonl, input: q, expected: a}\n"
    )
    (folder / "live.yaml").write_text(text)
    (folder / "live.jsonl").write_text(
        "".join(json.dumps({"q": f"Q{n}", "a": "one two three"}) + "\n" for n in range(3000))
    )
    os.utime(folder / "live.yaml")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "fairtrial", "run", "live.yaml", "-q", "--store", "alone.db", cwd=folder
    )
    await process.wait()
    record = Run.find("latest", Store(str(folder / "alone.db"))).record
    alone = (record.ended_at or 0.0) - record.created_at
    from playwright.async_api import Error, async_playwright

    async with Server(folder) as site, async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=find_browser(), args=["--no-sandbox", "--disable-gpu"]
        )
        page = await browser.new_page(extra_http_headers=_KNOWN)
        await page.goto(f"{site}/new?file=live.yaml")
        await page.get_by_role("button", name="Run", exact=True).click()
        await page.wait_for_url("**/runs/*")
        run = page.url.rsplit("/", 1)[1]
        await page.evaluate(
            "() => { window.gaps = []; let last = performance.now(); const tick = (now) => { window.gaps.push(now - last);"
            " last = now; requestAnimationFrame(tick); }; requestAnimationFrame(tick); }"
        )
        times: list[float] = []
        gaps: list[float] = []
        while True:
            for path in (f"/runs/{run}", "/runs", f"/runs/{run}/cases/1/1/1"):
                started = time.perf_counter()
                await asyncio.to_thread(fetch, site + path)
                times.append(1000 * (time.perf_counter() - started))
            try:
                gaps += await page.evaluate("() => (window.gaps ?? []).splice(0)")
                if await page.locator(".badge.running").count() == 0:
                    break
            except Error:
                break  # the run is over, and the page shows its results
            await asyncio.sleep(0.5)
        await browser.close()
    record = Store(str(folder / ".fairtrial/fairtrial.db")).run_of_id(run)
    watched = (record.ended_at or 0.0) - record.created_at
    trials = 6000
    cuts = statistics.quantiles(times, n=20)
    return [
        "| what | measured |",
        "| --- | --- |",
        f"| {trials} trials without the page | {alone:.1f} s, {trials / alone:.0f} trials/s |",
        f"| the same, started in the page and watched in Chromium, with three more pages every half second | {watched:.1f} s, "
        f"{trials / watched:.0f} trials/s, {watched / alone:.2f} × |",
        f"| pages meanwhile, wall, median and 95 % | {statistics.median(times):.0f} ms, {cuts[18]:.0f} ms ({len(times)} pages) |",
        f"| frames of the watching page: median and longest gap | {statistics.median(gaps):.0f} ms, {max(gaps):.0f} ms |",
    ]


async def main(trials: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "large.yaml").write_text(suite(folder, trials))
        loaded = parse_suite((folder / "large.yaml").read_text(), file="large.yaml", folder=folder)
        store = Store(str(folder / ".fairtrial/fairtrial.db"))
        started = time.perf_counter()
        run = await pipeline.arun(loaded, store=store)
        print(f"{trials} trials stored in {time.perf_counter() - started:.0f} s", file=sys.stderr)
        lines: list[Any] = await pages(folder, run.id)
        watched = await live(folder)
    text = "\n".join(
        [
            "# The web page at scale",
            "",
            f"Measured by `python -m benchmarks.web` with {trials} trials in the store (5 arms, 2 repeats), in one run.",
            "",
            *lines,
            "",
            "## A run at about 500 trials a second",
            "",
            *watched,
            "",
        ]
    )
    (Path(__file__).parent / "WEB.md").write_text(text)
    print(text)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000))
