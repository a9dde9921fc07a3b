"""The page with the tables: ratios to the bare loop of the same round, and where others are better."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import msgspec

from benchmarks.rivals.experiments import KILL_CONCURRENCY, LATENCY, Faults, Killed, Size, Speed, View
from benchmarks.rivals.tool import Tool

Row = Sequence[str]


class Numbers(msgspec.Struct, kw_only=True):
    """What was measured of one tool; a round that failed is missing."""

    version: str
    speeds: dict[int, Speed] = {}
    faults: Faults | None = None
    killed: Killed | None = None
    view: View | None = None


class Measured:
    """One tool and its numbers."""

    def __init__(self, tool: Tool, numbers: Numbers) -> None:
        self.tool, self.numbers = tool, numbers
        self.version, self.speeds = numbers.version, numbers.speeds

    @property
    def faults(self) -> Faults | None:
        """What it made of faults."""
        return self.numbers.faults

    @property
    def killed(self) -> Killed | None:
        """What it asked again after a kill."""
        return self.numbers.killed

    @property
    def view(self) -> View | None:
        """Its viewer."""
        return self.numbers.view


def text(measured: Sequence[Measured], size: Size, rounds: int, viewer: int, load: tuple[float, float]) -> str:
    """Return the page."""
    parts = [
        "# Against other tools",
        "",
        f"Written by `make bench-rivals` on {datetime.now(UTC):%Y-%m-%d}: every tool in an environment of its own, all of "
        f"them against one scripted model server that answers after {LATENCY * 1000:.0f} ms. {size.count:,} different "
        f"questions, {size.concurrency} at once. {_machine()}; load average {load[0]:.1f} to {load[1]:.1f} meanwhile, "
        "so only ratios count: each tool is divided by the bare loop of the same round, tools take turns, and the table "
        f"has medians of {rounds} rounds.",
        "",
        "Reading and checking the questions, asking, scoring and storing are all included; the bare loop only asks.",
        "",
    ]
    if any(one.speeds for one in measured):
        parts += _speed_part(measured, size)
    if any(one.faults for one in measured):
        parts += _faults_part(measured, size)
    if any(one.killed for one in measured):
        parts += _killed_part(measured, size)
    if any(one.view for one in measured):
        parts += _view_part(measured, viewer)
    return "\n".join([*parts, *_better_part(measured), *_how_part(measured)])


def _machine() -> str:
    return (
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores shared with the server, "
        f"Python {platform.python_version()}"
    )


def _table(head: Row, rows: Sequence[Row]) -> list[str]:
    lines = ["| " + " | ".join(head) + " |", "| --- |" + " ---: |" * (len(head) - 1)]
    return [*lines, *("| " + " | ".join(row) + " |" for row in rows), ""]


def _speed_part(measured: Sequence[Measured], size: Size) -> list[str]:
    floor = measured[0]

    def ratio(one: Measured, value: Callable[[Speed], float]) -> str:
        shares = [value(one.speeds[n]) / value(floor.speeds[n]) for n in one.speeds if n in floor.speeds]
        return f"{statistics.median(shares):.1f} ×" if shares else "–"

    rows = [
        (
            one.tool.name,
            ratio(one, lambda speed: speed.wall),
            ratio(one, lambda speed: speed.asking),
            f"{_median(one, lambda speed: 1000 * speed.cpu_per_trial):.1f} ms",
            f"{_median(one, lambda speed: speed.peak_mb):.0f} MB",
            f"{_median(one, lambda speed: speed.first_request):.1f} s",
            _bytes(_median(one, lambda speed: speed.log_bytes) / size.count) if one is not floor else "–",
        )
        for one in measured
        if one.speeds
    ]
    ideal = size.count / size.concurrency * LATENCY
    bare = _median(floor, lambda speed: speed.asking)
    head = ("", "whole run", "asking", "CPU per trial", "peak memory", "until the first request", "log per trial")
    return [
        "## Speed, memory, start-up",
        "",
        "*Whole run* is the process from start to end, *asking* the time from the first request to the last answer by the "
        "server's clock, which leaves start-up and end out; both as multiples of the bare loop's "
        f"(whose asking took {bare:.1f} s, ideal {ideal:.1f} s). CPU per trial is what a run takes beyond one with a single "
        "question. Memory is that of the whole process tree.",
        "",
        *_table(head, rows),
    ]


def _faults_part(measured: Sequence[Measured], size: Size) -> list[str]:
    rows = []
    for one in measured:
        if one.faults is None:
            continue
        found, outcome = one.faults, one.faults.outcome
        if outcome is None:
            rows.append((one.tool.name, "–", "–", "–", f"{size.count}", f"{found.calls}", f"{found.wall:.0f} s"))
            continue
        missing = max(0, size.count - outcome.total)
        numbers = (outcome.right, outcome.wrong, outcome.failed, missing, found.calls)
        rows.append((one.tool.name, *(f"{number}" for number in numbers), f"{found.wall:.0f} s"))
    head = ("", "right", "scored as wrong", "recorded as failed", "not recorded", "calls", "wall")
    return [
        "## Faults",
        "",
        "The server refuses 5 % of the calls with 429 (Retry-After 1 s), answers 2 % with 500, resets 1 % of the connections "
        f"and gives 1 % empty answers. All {size.count:,} questions can be answered rightly, so whatever is scored as wrong "
        "is the fault's doing, not the model's.",
        "",
        *_table(head, rows),
    ]


def _killed_part(measured: Sequence[Measured], size: Size) -> list[str]:
    rows = []
    for one in measured:
        if one.killed is None:
            continue
        again = one.killed.again
        shown = "cannot resume: all of them" if again is None else f"{again}"
        rows.append((one.tool.name, f"{one.killed.finished}", shown))
    return [
        "## Killed in the middle and resumed",
        "",
        f"{KILL_CONCURRENCY} at once, `kill -9` when about half of {size.count:,} answers were delivered, then the tool's own way to go on. What is asked "
        "again is counted by the server: answers that it had sent before the kill, also those that the tool had not read yet.",
        "",
        *_table(("", "answers before the kill", "of these asked again"), rows),
    ]


def _view_part(measured: Sequence[Measured], viewer: int) -> list[str]:
    rows = [
        (
            one.tool.name,
            f"{one.view.seconds:.1f} s",
            _bytes(one.view.data_bytes),
            _bytes(one.view.code_bytes),
            f"{one.view.rows}",
        )
        for one in measured
        if one.view
    ]
    head = ("", "start to visible rows", "data", "scripts, styles, fonts", "rows in the page")
    return [
        f"## The viewer with {viewer:,} results",
        "",
        "From the start of the viewer's server until Chromium shows rows of results, and the bytes that were sent for it. Each was "
        "started once: the times depend on the load at that moment, the bytes do not. "
        "lm-eval, pydantic-evals and DeepEval have no viewer on this machine.",
        "",
        *_table(head, rows),
    ]


def _better_part(measured: Sequence[Measured]) -> list[str]:
    """Say by the numbers where another tool is ahead of ours."""
    ours = next((one for one in measured if one.tool.name == "fairtrial"), None)
    if ours is None:
        return []
    ahead = {one.tool.name: _ahead(one, ours) for one in measured[1:] if one is not ours}
    lines = [f"- **{name}**: {'; '.join(parts)}." for name, parts in ahead.items() if parts]
    found = lines or ["In none of the numbers above."]
    return [
        "## Where others are better",
        "",
        "By the numbers above:",
        "",
        *found,
        "",
        "And in what is not measured here: inspect-ai has sandboxes for agents' tools, many more ready-made benchmarks and "
        "agents, and a log viewer with every event of a transcript; lm-eval has hundreds of published tasks and runs "
        "models of its own with log-likelihoods; promptfoo has red-teaming and many more providers and assertions; "
        "DeepEval has dozens of ready-made judge metrics; pydantic-evals traces every span of an agent with "
        "OpenTelemetry.",
        "",
    ]


def _ahead(one: Measured, ours: Measured) -> list[str]:
    """Return the numbers that are lower than ours; in all of them, lower is better."""
    numbers: list[tuple[str, float, float]] = []
    if one.speeds and ours.speeds:
        numbers += [(what, _median(one, value), _median(ours, value)) for what, value in _COMPARED]
    if one.view and ours.view:
        numbers.append(("time to visible rows", one.view.seconds, ours.view.seconds))
        numbers.append(("bytes of data in the viewer", one.view.data_bytes, ours.view.data_bytes))
    found = [f"{what} ({theirs / mine:.2f} × ours)" for what, theirs, mine in numbers if theirs < mine]
    again = [None if killed is None else killed.again for killed in (one.killed, ours.killed)]
    if again[0] is not None and again[1] is not None and again[0] < again[1]:
        found.append(f"calls repeated after a kill ({again[0]} against {again[1]})")
    return found


_COMPARED: tuple[tuple[str, Callable[[Speed], float]], ...] = (
    ("the whole run", lambda speed: speed.wall),
    ("asking", lambda speed: speed.asking),
    ("CPU per trial", lambda speed: speed.cpu_per_trial),
    ("peak memory", lambda speed: speed.peak_mb),
    ("time until the first request", lambda speed: speed.first_request),
    ("size of the log", lambda speed: speed.log_bytes),
)


def _how_part(measured: Sequence[Measured]) -> list[str]:
    lines = [f"- {one.tool.name} {one.version}: {one.tool.note}." for one in measured]
    return [
        "## How it was done",
        "",
        *lines,
        "",
        "The experiments and one file per tool are in `benchmarks/rivals/`; `python -m benchmarks.rivals --help` has sizes "
        "and parts. Where a choice was open, the one that the tool's documentation shows was taken, and the quicker of two. "
        "If a tool can be used better than here, that is a bug of this page.",
        "",
    ]


def _median(one: Measured, value: Callable[[Speed], float]) -> float:
    return statistics.median(value(speed) for speed in one.speeds.values())


def _bytes(count: float) -> str:
    if count >= 1e6:
        return f"{count / 1e6:.1f} MB"
    return f"{count / 1e3:.1f} kB" if count >= 1000 else f"{count:.0f} B"
