"""The web page at scale: every page with 100,000 trials in the store, when it is painted, and a run that is watched.

python -m benchmarks.web [TRIALS [FOLDER]] writes benchmarks/WEB.md; a folder that was filled before is used again.
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
from typing import NamedTuple

from benchmarks.web_store import addresses, fill, waited_for
from fairtrial.analyse.run import Run
from fairtrial.reports.export import export
from fairtrial.reports.site import write_site
from fairtrial.store import Store
from fairtrial.webpage.browser import find_browser

_MOST_MS, _MOST_KB, _MOST_PAINT = 200, 300, 1000
_TOKEN = "a-token-for-measuring"
_KNOWN = {"authorization": f"Bearer {_TOKEN}"}
_PAINTED = "() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null"
_LOADED = "() => performance.getEntriesByType('resource').length"


class Visit(NamedTuple):
    """What one request took: milliseconds of processor time of the server and on the clock, and bytes."""

    processor: float
    clock: float
    size: int


class Server:
    """`fairtrial serve` as people start it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def __aenter__(self) -> Server:
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
        self.address = line.split()[4].rstrip("/")
        return self

    async def __aexit__(self, *_: object) -> None:
        self.process.terminate()
        await self.process.wait()

    def processor_ms(self) -> float:
        """Return the processor time of all threads so far (Linux); other processes do not count."""
        tasks = Path(f"/proc/{self.process.pid}/task").glob("*/schedstat")
        return sum(int(file.read_text().split()[0]) for file in tasks) / 1e6

    async def at_rest(self) -> None:
        """Wait until nothing is worked out in the background."""
        before = -1.0
        while (now := self.processor_ms()) - before > 1:
            before = now
            await asyncio.sleep(0.1)

    async def visit(self, path: str) -> Visit:
        """Fetch a page while nothing else is asked for."""
        await self.at_rest()
        before = self.processor_ms()
        clock, size = await asyncio.to_thread(fetch, self.address + path)
        return Visit(self.processor_ms() - before, clock, size)


def fetch(address: str) -> tuple[float, int]:
    """Milliseconds on the server's clock, and bytes."""
    with urllib.request.urlopen(urllib.request.Request(address, headers={"accept": "text/html", **_KNOWN})) as reply:
        return float(reply.headers["server-timing"].split("=")[1]), len(reply.read())


async def pages(server: Server, runs: dict[str, str]) -> list[str]:
    """First and later visits of every page, while the analysis of the run is being worked out and afterwards."""
    names = {run: name.upper() for name, run in runs.items()}
    early = {path: [await server.visit(path) for _ in range(2)] for path in addresses(runs)}
    started = time.perf_counter()
    for path in waited_for(runs):
        await asyncio.to_thread(fetch, server.address + path)
    waited = time.perf_counter() - started
    visits = {path: [*found, await server.visit(path)] for path, found in early.items()}
    worst = max(one.processor for found in visits.values() for one in found)
    slowest = max(one.clock for found in visits.values() for one in found)
    largest = max(one.size for found in visits.values() for one in found) / 1000
    verdict = "✓" if worst < _MOST_MS and largest < _MOST_KB else "✗"
    lines = [
        f"Started in {server.seconds:.1f} s. The most that a page takes of the processor is {worst:.0f} ms (bar {_MOST_MS}), the "
        f"largest page has {largest:.0f} kB (bar {_MOST_KB}) {verdict}. On the clock of this machine, which had other work to do, "
        f"the slowest took {slowest:.0f} ms. What pages show later was worked out beside them in {waited:.0f} s, once.",
        "",
        "Each visit: processor time of the server, and time on the clock.",
        "",
        "| page | first | again | once the analysis is there | kB |",
        "| --- | --- | --- | --- | --- |",
    ]
    for path, found in visits.items():
        shown = path
        for run, name in names.items():
            shown = shown.replace(run, name)
        times = " | ".join(f"{one.processor:.0f} / {one.clock:.0f} ms" for one in found)
        lines.append(f"| `{shown}` | {times} | {found[-1].size / 1000:.0f} |")
    return lines


async def paints(server: Server, runs: dict[str, str], folder: Path) -> list[str]:
    """When a browser paints the pages that people open first, by its own clock; it knows nothing of the site yet."""
    from playwright.async_api import async_playwright

    run = f"/runs/{runs['large']}"
    paths = [
        "/",
        run,
        f"/compare?runs={runs['large']}&a=arm-0&b=arm-1",
        f"{run}/vote?by=ada",
        "/board",
        "/suites",
        "/plan",
    ]
    small = Run(
        Store(str(folder / ".fairtrial/fairtrial.db")),
        Store(str(folder / ".fairtrial/fairtrial.db")).run_of_id(runs["support"]),
    )
    export(small, folder / "report.html")
    write_site([small], folder / "site")
    shown = {path.replace(runs["large"], "LARGE"): server.address + path for path in paths}
    shown |= {"the report of 1,000 trials, a file": (folder / "report.html").as_uri()}
    shown |= {"its site, from a disk": (folder / "site" / "index.html").as_uri()}
    lines = ["| page | first paint | files beside it |", "| --- | --- | --- |"]
    latest = 0.0
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=find_browser(), args=["--no-sandbox", "--disable-gpu"]
        )
        for name, address in shown.items():
            times = []
            for _ in range(3):
                context = await browser.new_context(extra_http_headers=_KNOWN if address.startswith("http") else {})
                page = await context.new_page()
                await page.goto(address)
                await page.wait_for_function(_PAINTED)
                times.append(float(await page.evaluate(_PAINTED)))
                files = await page.evaluate(_LOADED)
                await context.close()
            latest = max(latest, min(times))
            lines.append(f"| `{name}` | {min(times):.0f} ms | {files} |")
        await browser.close()
    verdict = "✓" if latest < _MOST_PAINT else "✗"
    return [
        f"First contentful paint, the best of three, latest {latest:.0f} ms (bar {_MOST_PAINT}) {verdict}.",
        "",
        *lines,
    ]


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

    async with Server(folder) as server, async_playwright() as playwright:
        site = server.address
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
            " last = now; requestAnimationFrame(tick); }; requestAnimationFrame(tick); window.moved = 0; new PerformanceObserver((list) =>"
            " list.getEntries().forEach((one) => { window.moved += one.value; })).observe({type: 'layout-shift', buffered: true}); }"
        )
        times: list[float] = []
        gaps: list[float] = []
        moved = 0.0
        while True:
            for path in (f"/runs/{run}", "/runs", f"/runs/{run}/cases/1/1/1"):
                started = time.perf_counter()
                await asyncio.to_thread(fetch, site + path)
                times.append(1000 * (time.perf_counter() - started))
            try:
                gaps += await page.evaluate("() => (window.gaps ?? []).splice(0)")
                moved = max(moved, await page.evaluate("() => window.moved ?? 0"))
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
        f"| layout shift of the watching page, all in all | {moved:.3f} |",
    ]


async def main(trials: int, folder: Path) -> None:
    known = folder / "runs.json"
    started = time.perf_counter()
    if not known.exists():
        known.write_text(json.dumps(await fill(folder, trials)))
        print(f"{trials} trials stored in {time.perf_counter() - started:.0f} s", file=sys.stderr)
    runs = json.loads(known.read_text())
    async with Server(folder) as server:
        await asyncio.sleep(2)
        visited = await pages(server, runs)
        painted = await paints(server, runs, folder)
    watched = await live(folder)
    text = "\n".join(
        [
            "# The web page at scale",
            "",
            f"Measured by `python -m benchmarks.web` with a run of {trials:,} trials in the store (5 arms, 2 repeats, answers of 500 "
            "characters) beside small runs of every kind.",
            "",
            *visited,
            "",
            "## In the browser",
            "",
            *painted,
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
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    if len(sys.argv) > 2:
        asyncio.run(main(number, Path(sys.argv[2])))
    else:
        with tempfile.TemporaryDirectory() as name:
            asyncio.run(main(number, Path(name)))
