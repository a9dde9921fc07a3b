"""Print what a campaign found when it found it: a long go may be cut off."""

from __future__ import annotations

import pytest


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed:
        print(f"\n{report.nodeid} ({report.when})\n{report.longreprtext}", flush=True)
