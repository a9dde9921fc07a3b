"""Progress of a run on stderr, and a clean stop on Ctrl-C."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from fairtrial.cli.axis import filled
from fairtrial.cli.console import Console
from fairtrial.cli.interrupts import installed
from fairtrial.cli.layout import LOUD, QUIET, joined_lines
from fairtrial.cli.tables import short_names
from fairtrial.core.answer import failure_words
from fairtrial.core.formatting import cost_fact, money
from fairtrial.core.money import total
from fairtrial.text.printable import counted

if TYPE_CHECKING:
    from rich.text import Text

    from fairtrial.engine.progress import ArmProgress, Progress
    from fairtrial.engine.watching import Session, Watch

_REFRESH = 0.2
_LOG_EVERY = 60.0  # seconds without a line in a log
_FIRST_LOG = 2.0  # a run that is over sooner needs no lines
_OTHER_LINES = 9  # of the display, besides those of the arms
_MIN_ARMS = 4
_STOP = "Ctrl-C stops and keeps everything"
_STOPPING = "stopping, and storing what has arrived; Ctrl-C again ends at once"
_ECHO = 4  # columns for the `^C` that a terminal writes: at the end of a full line it would begin another one
_SCORE_FROM, _SURE_FROM = 10, 20  # answers from which on a score is shown, and is no longer dim
_MIN_BAR, _MOST_BAR = 8, 60
_SCORE_WIDTH = len(" 100   99 to 100")


Part = tuple[int, int]  # the number of a run in its series, and the length of the series


def watcher(*, quiet: bool, part: Part | None = None) -> Watch:
    """Return a watch that shows a run's progress on stderr and turns Ctrl-C into a clean stop."""

    @asynccontextmanager
    async def watch(session: Session) -> AsyncIterator[None]:
        show = _show_nothing if quiet else (_show_live if sys.stderr.isatty() else _log_lines)
        display = asyncio.create_task(show(session, part))
        try:
            with installed().stopping_by(session.interrupt):
                yield
        finally:
            display.cancel()
            await asyncio.gather(display, return_exceptions=True)

    return watch


async def _show_nothing(session: Session, part: Part | None) -> None:
    await asyncio.Event().wait()


async def _show_live(session: Session, part: Part | None) -> None:
    from rich.live import Live
    from rich.text import Text

    console = Console(stderr=True)
    repeats = [max(1, arm.repeats) for arm in session.job.arms]
    budget = session.job.settings.budget_usd
    with Live(console=console, auto_refresh=False, transient=True) as live:
        while True:
            lines = live_lines(
                session.progress, console.page_width, console.height, part=part, repeats=repeats, budget=budget
            )
            live.update(Text("\n").join(lines), refresh=True)
            await asyncio.sleep(_REFRESH)


async def _log_lines(session: Session, part: Part | None) -> None:
    """Write a line for every tenth of the run and for every new kind of failure, for logs."""
    log = ProgressLog(session.progress, part, session.job.settings.budget_usd)
    while True:
        await asyncio.sleep(_REFRESH)
        for line in log.lines(time.monotonic()):
            sys.stderr.write(f"{line}\n")
        sys.stderr.flush()


class ProgressLog:
    """Says in lines how a run goes on: at every tenth of it, and where something new goes wrong."""

    def __init__(self, progress: Progress, part: Part | None = None, budget: float | None = None) -> None:
        self._progress, self._part, self._budget = progress, part, budget
        self._tenths = self._tenth()
        self._kinds: set[str] = set(progress.failures)
        self._last = progress.started
        self._store_waits = self._stopping = False

    def _tenth(self) -> int:
        return 10 * self._progress.done // max(1, self._progress.total)

    def lines(self, now: float) -> list[str]:
        """Return the lines to write now, if any."""
        progress = self._progress
        lines = self._changes()
        if now - progress.started < _FIRST_LOG:
            return lines
        new = [kind for kind in progress.failures if kind not in self._kinds]
        self._kinds.update(new)
        lines += [f"{progress.failures[kind]:,} {failure_words(kind)}" for kind in new]
        if self._tenth() > self._tenths or now - self._last >= _LOG_EVERY:
            self._tenths, self._last = self._tenth(), now
            lines.append(progress_line(progress, self._part, self._budget))
            lines += progress.held_back()
        return lines

    def _changes(self) -> list[str]:
        """Return what cannot wait: that the run is being stopped, and that it waits for its store."""
        stopping, self._stopping = self._stopping, self._progress.stopping
        waited, why = self._store_waits, self._progress.store.why()
        self._store_waits = bool(why)
        changes = [_STOPPING] if self._stopping and not stopping else []
        return [*changes, f"waiting: {why}"] if why and not waited else changes


def progress_line(progress: Progress, part: Part | None = None, budget: float | None = None) -> str:
    """Return the progress of a run in one line; in a series, the time left is that of the whole series."""
    cost = total(arm.cost for arm in progress.arms)
    runs_left = part[1] - part[0] if part else 0
    parts = [f"run {part[0]} of {part[1]}"] if part else []
    parts += [f"{progress.done:,} of {progress.total:,}{'+' if progress.growing else ''}"]
    parts += [f"{_rate(progress.rate)} a second"] if progress.rate >= 0.1 else []
    parts += [f"{60 * progress.rate:.1f} a minute"] if 0 < progress.rate < 0.1 else []
    parts += [_time_left(progress, runs_left)]
    if cost.charged or cost.unknown:
        limit = f" of {money(budget)}" if budget is not None and (cost.known or not cost.unknown) else ""
        parts.append(cost_fact(cost) + limit)
    return " · ".join(filter(None, parts))


def _rate(rate: float) -> str:
    return f"{rate:.1f}" if rate < 100 else f"{rate:,.0f}"


def _time_left(progress: Progress, runs_left: int) -> str:
    seconds = progress.seconds_left
    if seconds is None:
        return ""
    seconds += runs_left * progress.total / progress.rate
    minutes = round(seconds / 60)
    if seconds < 90:
        return f"{round(seconds)} s left"
    return f"{minutes} min left" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min left"


def live_lines(
    progress: Progress,
    width: int,
    height: int = 40,
    *,
    part: Part | None = None,
    repeats: list[int] | None = None,
    budget: float | None = None,
) -> list[Text]:
    """Return the display of a run that goes on: a bar for every arm, in the order of the suite, and what there is to
    know about the whole."""
    from rich.text import Text

    width = max(20, width - _ECHO)
    most = max(_MIN_ARMS, height - _OTHER_LINES)
    arms = progress.arms[:most]
    repeats = repeats or [1] * len(progress.arms)
    lines = [Text(f" {line}") for line in joined_lines(_title(progress, repeats), width)]
    lines += [Text("")] if lines else []
    lines += _arm_lines(arms, width, repeats)
    if len(progress.arms) > len(arms):
        lines.append(Text(f" and {len(progress.arms) - len(arms)} more arms", QUIET))
    lines.append(Text(""))
    lines += [Text(f" {line}") for line in joined_lines(progress_line(progress, part, budget).split(" · "), width)]
    lines += [Text(f" {line}", QUIET) for line in joined_lines(progress.held_back(), width)]
    lines += [Text(f" {line}", LOUD) for line in joined_lines(progress.reasons(), width)]
    lines.append(Text(f" {_STOPPING if progress.stopping else _STOP}", QUIET))
    for line in lines:
        line.truncate(width, overflow="ellipsis")
    return lines


def _title(progress: Progress, repeats: list[int]) -> list[str]:
    """Return the suite, the run, and how much there is to do."""
    if not progress.title:
        return []
    arms = counted(len(progress.arms), "arm")
    racing = [(arm, times) for arm, times in zip(progress.arms, repeats, strict=True) if arm.left is None]
    shapes = {(arm.total, times) for arm, times in racing}
    if len(shapes) > 1 or progress.growing:
        return [progress.title, arms]
    ((trials, times),) = shapes
    cases = f"{trials // times:,} case{'' if trials == times else 's'}"
    return [progress.title, " × ".join([cases, arms, *([f"{times} repeats"] if times > 1 else [])])]


def _arm_lines(arms: list[ArmProgress], width: int, repeats: list[int]) -> list[Text]:
    """Return a bar for each arm, with its score so far."""
    from rich.text import Text

    names = short_names([arm.name for arm in arms], max(12, width // 3))
    name_width = max(Text(name).cell_len for name in names)
    counts = [arm.left_words or f"{arm.done:,} of {arm.total:,}" for arm in arms]
    scores = [_score(arm, times) for arm, times in zip(arms, repeats, strict=False)]
    bad = [f"  {arm.failed + arm.unscored} ✗" if arm.failed + arm.unscored else "" for arm in arms]
    most = max(arm.total for arm in arms)
    widest = max(len(f"{most:,} of {most:,}"), *map(len, counts))  # so that the bars do not change while it runs
    rest = widest + _SCORE_WIDTH + max(map(len, bad)) + 5
    bar = min(_MOST_BAR, width - 2 - name_width - rest)
    lines = []
    for arm, name, count, score, lost in zip(arms, names, counts, scores, bad, strict=True):
        line = Text(f" {name}{' ' * (name_width - Text(name).cell_len)} ")
        if bar >= _MIN_BAR:
            drawn = filled(arm.done / max(1, arm.total if arm.left is None else most), bar)
            line.append(drawn.rstrip("░"))
            line.append("░" * (bar - len(drawn.rstrip("░"))), QUIET)
        line.append(f"  {count:>{widest}}")
        line.append(f"  {score:<{_SCORE_WIDTH}}", QUIET if arm.scored < _SURE_FROM else "")
        line.append(lost, LOUD)
        lines.append(line)
    return lines


def _score(arm: ArmProgress, repeats: int) -> str:
    """Return the score so far with its interval, in whole points; empty with few answers."""
    bounds = arm.interval(repeats)
    if arm.scored < _SCORE_FROM or arm.mean is None or bounds is None:
        return ""
    return f"{100 * arm.mean:>4.0f}   {100 * bounds[0]:.0f} to {100 * bounds[1]:.0f}"
