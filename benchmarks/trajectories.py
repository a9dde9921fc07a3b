"""Trials with thousands of events: what they take in the store, and how quick the page of a trial, of a run, and `show` are.

python -m benchmarks.trajectories [TRIALS [EVENTS]] writes benchmarks/TRAJECTORIES.md; by default 20 trials of 10,000.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.web import Server, Visit
from fairtrial import pipeline
from fairtrial.store import Store

_TRIALS, _EVENTS, _BAR_MS = 20, 10_000, 200
_STORE = ".fairtrial/fairtrial.db"
_PROGRAM = """\
import random

def answer(input):
    draws = random.Random(input)
    events = []
    for n in range({events} // 2):
        path, took = f"src/module_{{draws.randrange(400)}}.py", draws.random()
        text = " ".join(f"{{draws.getrandbits(40):x}}" for _ in range(draws.randrange(4, 40)))
        place = {{"turn": 1, "at": n / 2}}
        events.append({{"type": "call", "id": str(n), "tool": "read", "server": "files", "arguments": {{"path": path}}, **place}})
        failed = draws.random() < 0.01
        events.append({{"type": "result", "call": str(n), "text": text, "error": failed, "ms": round(900 * took, 1), **place}})
    return {{"text": "42" if draws.random() < 0.5 else "no", "trace": {{"events": events}}}}
"""
_SUITE = """\
name: {name}
targets: [{{id: one, target: "python:{name}.py:answer"}}, {{id: two, target: "python:{name}.py:answer"}}]
scorer: contains
concurrency: 2
dataset: {{path: cases.jsonl, input: q, expected: a, id: id}}
"""


async def fill(folder: Path, trials: int, events: int) -> dict[str, tuple[str, int]]:
    """Run the same cases without events and with them; return the run and the bytes of the store for each."""
    with (folder / "cases.jsonl").open("w") as file:
        file.writelines(f'{{"id": "c{n}", "q": "Question {n}", "a": "42"}}\n' for n in range(max(1, trials // 2)))
    found, before = {}, 0
    for name, count in (("plain", 0), ("events", events)):
        (folder / f"{name}.py").write_text(_PROGRAM.format(events=count))
        (folder / f"{name}.yaml").write_text(_SUITE.format(name=name))
        store = Store(str(folder / _STORE))
        run = await pipeline.arun(pipeline.load(folder / f"{name}.yaml"), store=store)
        store.close()
        size = sum(file.stat().st_size for file in (folder / ".fairtrial").glob("fairtrial.db*"))
        found[name], before = (run.id, size - before), size
    return found


async def visits(server: Server, run: str) -> dict[str, Visit]:
    """Visit the pages of a run twice; what counts is the second visit."""
    trial = f"/runs/{run}/cases/1/1/1"
    paths = {
        "the run": f"/runs/{run}",
        "its result": f"/runs/{run}/result",
        "a case": f"/runs/{run}/cases/1",
        "a trial": trial,
        "its steps in the middle": f"{trial}/steps?first=5000",
        "its errors": f"{trial}/steps?only=errors",
        "all its events as JSON": f"{trial}/events.json",
        "two trials side by side": f"{trial}/side-by-side?arm=2",
    }
    for path in paths.values():
        await server.visit(path)
    return {name: await server.visit(path) for name, path in paths.items()}


def commands(folder: Path, run: str) -> dict[str, float]:
    """Return the seconds of processor time that commands take."""
    found = {}
    for name, args in {
        "`show RUN`": ["show", run],
        "`show RUN CASE ARM`": ["show", run, "c0", "one"],
        "`show RUN --causes`": ["show", run, "--causes"],
    }.items():
        before = os.times()
        subprocess.run([sys.executable, "-m", "fairtrial", *args], cwd=folder, check=True, capture_output=True)
        after = os.times()
        found[name] = after.children_user + after.children_system - before.children_user - before.children_system
    return found


def _shown(visit: Visit) -> str:
    return f"{visit.processor:.0f} ms, {visit.size / 1000:.0f} kB"


async def measure(folder: Path, trials: int, events: int) -> str:
    """Return all numbers as Markdown."""
    started = time.perf_counter()
    runs = await fill(folder, trials, events)
    took = time.perf_counter() - started
    async with Server(folder) as server:
        pages = {name: await visits(server, run) for name, (run, _) in runs.items()}
    spent = {name: commands(folder, run) for name, (run, _) in runs.items()}
    page = max(pages["events"][name].processor for name in ("a trial", "its steps in the middle", "its errors"))
    per_trial = [size / trials / 1000 for _, size in runs.values()]
    rows = [f"| {name} | {_shown(pages['plain'][name])} | {_shown(pages['events'][name])} |" for name in pages["plain"]]
    rows += [
        f"| {name} | {1000 * spent['plain'][name]:.0f} ms | {1000 * spent['events'][name]:.0f} ms |"
        for name in spent["plain"]
    ]
    return "\n".join(
        [
            "# Trials with many events",
            "",
            f"`python -m benchmarks.trajectories {trials} {events}`: {trials:,} trials without events, and {trials:,} of "
            f"{events:,} events each, made in {took:.0f} s. In the store, a trial takes {per_trial[0]:.1f} kB without "
            f"events and {per_trial[1]:.0f} kB with them. The page of a trial and slices of its steps take at most "
            f"{page:.0f} ms of the processor (bar {_BAR_MS}) {'✓' if page < _BAR_MS else '✗'}.",
            "",
            "| processor time | without events | with events |",
            "| --- | --- | --- |",
            *rows,
            "",
        ]
    )


def main() -> None:
    """Measure, print and write down."""
    trials, events = (int(value) for value in [*sys.argv[1:], *map(str, (_TRIALS, _EVENTS)[len(sys.argv) - 1 :])])
    with tempfile.TemporaryDirectory() as folder:
        text = asyncio.run(measure(Path(folder), trials, events))
    sys.stdout.write(text)
    (Path(__file__).parent / "TRAJECTORIES.md").write_text(text)


if __name__ == "__main__":
    main()
