"""`make bench-size`: every command and every page on one large run; writes benchmarks/SIZE.md.

python -m benchmarks.size [--trials N] [--engine] [--folder FOLDER] [--commands NAME…] [--skip commands|pages]

The run is made up, which takes minutes; with --engine it is really run with mock targets, which takes longer. A folder
that has a store already is measured as it is.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from benchmarks.rivals.process import Usage, run
from benchmarks.rivals.tool import Command
from benchmarks.size.fill import fill
from benchmarks.size.suite import ARMS, write_suite
from benchmarks.web import Server, Visit, fetch
from benchmarks.web_store import addresses_of_one
from fairtrial.analyse.run import Run
from fairtrial.store import Store
from fairtrial.store.browsing import stored_trials

REPEATS = 2
RESULTS = Path(__file__).parent.parent / "SIZE.md"
MOST_PAGE_MS, MOST_COMPARE_SECONDS = 300, 10
_PATIENCE = 7200.0
_INCOMPLETE = 2
COMMANDS = {
    "list": ["list"],
    "show": ["show"],
    "show --trials": ["show", "--trials"],
    "compare": ["compare"],
    "compare --arms": ["compare", "--arms", "arm-0", "arm-1"],
    "rank": ["rank"],
    "power": ["power"],
    "variance": ["variance"],
    "gate": ["gate", "--min-score", "80"],
    "report": ["report", "-o", "report.html"],
    "export jsonl": ["export", "-o", "trials.jsonl"],
    "export csv": ["export", "-o", "trials.csv"],
    "export parquet": ["export", "-o", "trials.parquet"],
}


class Page(NamedTuple):
    """A first visit, and one when the analyses are there."""

    path: str
    first: Visit
    later: Visit


def made(folder: Path, trials: int, *, engine: bool) -> list[str]:
    """Make the run unless there is a store, and say what that took."""
    store_file = folder / ".fairtrial/fairtrial.db"
    if store_file.exists():
        return []
    suite = write_suite(folder, trials // (ARMS * REPEATS), REPEATS)
    started = time.monotonic()
    if engine:
        usage = _fairtrial(folder, ["run", suite.name, "--quiet"], (0, _INCOMPLETE))
        speed = f"{trials / usage.wall:,.0f} trials/s"
        return [f"| `run` with mock targets | {_took(usage)} | {speed} |", _size_line(store_file, trials)]
    store = Store(str(store_file))
    fill(store, suite)
    store.close()
    return [f"| made up, not run | {time.monotonic() - started:.0f} s | |", _size_line(store_file, trials)]


def _size_line(file: Path, trials: int) -> str:
    size = file.stat().st_size
    return f"| store | {size / 1e6:.0f} MB | {size / trials:.0f} bytes a trial |"


def _took(usage: Usage) -> str:
    return f"{usage.wall:.1f} s, {usage.cpu:.1f} s of processor, {usage.peak_mb:.0f} MB"


def _fairtrial(folder: Path, arguments: list[str], allowed: tuple[int, ...] = (0,)) -> Usage:
    command = Command([sys.executable, "-m", "fairtrial", *arguments], allowed=allowed)
    return run(command, folder, folder / "output.txt", _PATIENCE)


def commands(folder: Path, names: list[str]) -> Iterator[str]:
    """Run these commands on the latest run."""
    for name in names:
        arguments = COMMANDS[name]
        usage = _fairtrial(folder, arguments)
        bar = ""
        if name == "compare":
            bar = f"bar {MOST_COMPARE_SECONDS} s {'✓' if usage.cpu <= MOST_COMPARE_SECONDS else '✗'}"
        print(f"{name}: {_took(usage)}", file=sys.stderr, flush=True)
        yield f"| `{name}` | {_took(usage)} | {bar} |"


async def pages(folder: Path, run_id: str) -> list[Page]:
    """Visit every page, wait for the analyses that are worked out beside them, and visit all of them again."""
    async with Server(folder) as server:
        paths = addresses_of_one(run_id, "size.yaml")
        first = {path: await server.visit(path) for path in paths}
        for path in (f"/runs/{run_id}/result", f"/runs/{run_id}/details", f"/compare?runs={run_id}&wait=1"):
            await asyncio.to_thread(fetch, server.address + path)
        later = {path: await server.visit(path) for path in paths}
    return [Page(path.replace(run_id, "RUN"), first[path], later[path]) for path in paths]


def page_lines(visited: list[Page]) -> list[str]:
    """Return the table of pages."""
    visits = [visit for page in visited for visit in (page.first, page.later)]
    wall, cpu = max(visit.clock for visit in visits), max(visit.processor for visit in visits)
    verdict = "✓" if cpu < MOST_PAGE_MS else "✗"
    rows = [
        f"| `{page.path}` | {page.first.clock:.0f} ms | {page.first.processor:.0f} ms | {page.later.clock:.0f} ms | "
        f"{page.later.processor:.0f} ms | {page.later.size / 1000:.0f} |"
        for page in visited
    ]
    return [
        f"Slowest page {wall:.0f} ms on the server, of which it worked at most {cpu:.0f} ms (bar {MOST_PAGE_MS}) {verdict}: the "
        "rest is waiting for a processor that others use. Analyses that take longer are worked out beside the pages.",
        "",
        "| page | first | worked | again | worked | kB |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
        *rows,
        "",
    ]


@contextmanager
def _folder(chosen: Path | None) -> Iterator[Path]:
    if chosen is not None:
        chosen.mkdir(parents=True, exist_ok=True)
        yield chosen.resolve()
        return
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def main() -> None:
    """Read the command line, measure, write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=1_000_000)
    parser.add_argument("--engine", action="store_true", help="run the suite instead of making results up")
    parser.add_argument("--folder", type=Path, help="keep the store here, or measure the one that is here")
    parser.add_argument("--commands", nargs="+", choices=COMMANDS, default=list(COMMANDS), metavar="NAME")
    parser.add_argument("--skip", nargs="+", choices=("commands", "pages"), default=[])
    parser.add_argument("--page", type=Path, default=RESULTS, help="what is written")
    options = parser.parse_args()
    with _folder(options.folder) as folder:
        lines = made(folder, options.trials, engine=options.engine)
        store = Store(str(folder / ".fairtrial/fairtrial.db"), create=False)
        latest = Run.find("latest", store)
        trials = stored_trials(store, latest.id)
        store.close()
        lines += [] if "commands" in options.skip else commands(folder, options.commands)
        visited = [] if "pages" in options.skip else asyncio.run(pages(folder, latest.id))
    text = "\n".join(
        [
            "# One large run",
            "",
            f"Measured {datetime.now(UTC):%Y-%m-%d} by `make bench-size` on {platform.system()} {platform.machine()}, "
            f"Python {platform.python_version()}, {os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f} at the end: "
            f"{trials:,} trials of one run in SQLite ({ARMS} arms, {REPEATS} repeats). Memory is that of the whole process tree.",
            "",
            "| what | measured | |",
            "| --- | --- | --- |",
            *lines,
            "",
            *(page_lines(visited) if visited else []),
        ]
    )
    options.page.write_text(text, "utf-8")
    print(text)


if __name__ == "__main__":
    main()
