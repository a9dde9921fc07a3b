"""Progress of a run on stderr, and a clean stop on Ctrl-C."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from fairtrial.analyse.wording.runs import money
from fairtrial.core.money import total

if TYPE_CHECKING:
    from rich.table import Table

    from fairtrial.engine.progress import Progress
    from fairtrial.engine.watching import Session, Watch

_REFRESH = 0.2
_LOG_EVERY = 15.0
_MAX_ARMS = 12
_ECHO = 4  # columns for the `^C` that a terminal writes: at the end of a full line it would begin another one


Part = tuple[int, int]  # the number of a run in its series, and the length of the series


def watcher(*, quiet: bool, part: Part | None = None) -> Watch:
    """Return a watch that shows a run's progress on stderr and turns Ctrl-C into a clean stop."""

    @asynccontextmanager
    async def watch(session: Session) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()
        signals = (signal.SIGINT, signal.SIGTERM)
        for number in signals:
            with suppress(NotImplementedError):  # not available on Windows, where Ctrl-C raises KeyboardInterrupt
                loop.add_signal_handler(number, session.interrupt)
        show = _show_nothing if quiet else (_show_live if sys.stderr.isatty() else _log_lines)
        display = asyncio.create_task(show(session.progress, part))
        try:
            yield
        finally:
            display.cancel()
            await asyncio.gather(display, return_exceptions=True)
            for number in signals:
                with suppress(NotImplementedError):
                    loop.remove_signal_handler(number)

    return watch


async def _show_nothing(progress: Progress, part: Part | None) -> None:
    await asyncio.Event().wait()


async def _show_live(progress: Progress, part: Part | None) -> None:
    from rich.live import Live

    from fairtrial.cli.console import Console

    console = Console(stderr=True)
    with Live(console=console, auto_refresh=False, transient=True) as live:
        while True:
            live.update(progress_table(progress, console.width, part), refresh=True)
            await asyncio.sleep(_REFRESH)


async def _log_lines(progress: Progress, part: Part | None) -> None:
    """Write one line at intervals, for logs."""
    last = time.monotonic()
    while True:
        await asyncio.sleep(_REFRESH)
        if time.monotonic() - last >= _LOG_EVERY:
            last = time.monotonic()
            sys.stderr.write(f"{progress_line(progress, part)}\n")
            sys.stderr.flush()


def progress_line(progress: Progress, part: Part | None = None) -> str:
    """Return the progress of a run in one line; in a series, the time left is that of the whole series."""
    failed = sum(arm.failed + arm.unscored for arm in progress.arms)
    cost = total(arm.cost for arm in progress.arms)
    runs_left = part[1] - part[0] if part else 0
    parts = [f"run {part[0]} of {part[1]}"] if part else []
    parts += [
        f"{progress.done}/{progress.total}{'+' if progress.growing else ''} trials",
        f"{progress.rate:.1f}/s",
        f"{_time_left(progress, runs_left)} left",
    ]
    parts += [f"{failed} without a score"] if failed else []
    parts += [money(cost)] if cost.charged or cost.unknown else []
    parts += [progress.note] if progress.note else []
    parts += ["waiting: another program has locked the store"] if progress.locked else []
    return " · ".join(parts)


def _time_left(progress: Progress, runs_left: int) -> str:
    seconds = progress.seconds_left
    if seconds is None:
        return "?"
    seconds += runs_left * progress.total / progress.rate
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def progress_table(progress: Progress, width: int, part: Part | None = None) -> Table:
    """Return a table with the progress of every arm, and of the whole run below."""
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 1), show_header=False, expand=True)
    table.add_column(overflow="ellipsis", no_wrap=True, max_width=max(12, width // 3))
    table.add_column(ratio=1, min_width=8)
    for _ in range(3):
        table.add_column(justify="right", no_wrap=True)
    for arm in progress.arms[:_MAX_ARMS]:
        bad = arm.failed + arm.unscored
        table.add_row(
            Text(arm.name),
            ProgressBar(total=max(1, arm.total), completed=arm.done),
            f"{arm.done}/{arm.total}",
            "" if arm.mean is None else f"{100 * arm.mean:.1f}",
            Text(f"{bad} ✗", style="red") if bad else "",
        )
    grid = Table.grid(expand=True)
    grid.width = max(20, width - _ECHO)
    grid.add_row(table)
    if len(progress.arms) > _MAX_ARMS:
        grid.add_row(Text(f" and {len(progress.arms) - _MAX_ARMS} more arms", style="dim"))
    grid.add_row(Text(f" {progress_line(progress, part)}", style="dim"))
    return grid
