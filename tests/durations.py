"""What each test costs: the processor time of its worker and of every process that it started (`--durations-to FILE`).

Time on the clock says how busy a machine is; processor time says what could be saved.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

_SHOWN = 20
_BRIEF = 0.1  # seconds in which a test can have done little outside of its own process: to look takes milliseconds


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--durations-to", type=Path, help="write what each test costs in processor time into this file")


def pytest_configure(config: pytest.Config) -> None:
    if config.option.durations_to:
        config.pluginmanager.register(_Durations(config), "fairtrial-durations")


class _Durations:
    """Measures in each worker and adds up where the tests are shared out."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._seconds: Counter[str] = Counter()
        self._before = _spent()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        began, before = time.perf_counter(), time.process_time()
        result = yield
        own = time.process_time() - before
        spent = _spent() if time.perf_counter() - began > _BRIEF else self._before + own
        self._seconds[item.nodeid] += max(0, spent - self._before)
        self._before = spent
        return result

    def pytest_sessionfinish(self) -> None:
        if hasattr(self._config, "workeroutput"):
            self._config.workeroutput["durations"] = dict(self._seconds)

    @pytest.hookimpl(optionalhook=True)  # of xdist
    def pytest_testnodedown(self, node: Any) -> None:
        self._seconds.update(getattr(node, "workeroutput", {}).get("durations", {}))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Write all, show the most expensive."""
        if hasattr(self._config, "workeroutput"):
            return
        tests = {name: round(seconds, 3) for name, seconds in self._seconds.most_common()}
        self._config.option.durations_to.write_text(json.dumps(tests, indent=0), "utf-8")
        files: Counter[str] = Counter()
        for name, seconds in self._seconds.items():
            files[name.partition("::")[0]] += seconds
        terminalreporter.section(f"processor time: {sum(files.values()):.0f} s in all")
        for costs in (files, self._seconds):
            for name, seconds in costs.most_common(_SHOWN):
                terminalreporter.line(f"{seconds:7.1f} s  {name}")


def _spent() -> float:
    """Return the processor time of this process and of all below it, whether they have ended or not."""
    ticks: dict[int, float] = {}
    below: dict[int, list[int]] = {}
    processes = filter(str.isdecimal, os.listdir("/proc")) if os.path.isdir("/proc") else ()  # quicker than with paths
    for process in map(int, processes):
        try:
            with open(f"/proc/{process}/stat", "rb", buffering=0) as stat:
                fields = stat.read().rpartition(b")")[2].split()
        except OSError:  # it ended just now
            continue
        ticks[process] = sum(map(int, fields[11:15]))
        below.setdefault(int(fields[1]), []).append(process)
    if not ticks:
        return sum(os.times()[:4])
    total, waiting = 0.0, [os.getpid()]
    for process in waiting:
        total += ticks[process]
        waiting += below.get(process, [])
    return total / os.sysconf("SC_CLK_TCK")
