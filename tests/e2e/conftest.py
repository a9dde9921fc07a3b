"""What tests through the command line share."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fairtrial.cli.main import _run

Cli = Callable[..., tuple[int, str, str]]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    """Run a command in this process: (exit code, stdout, stderr)."""

    def run(*args: object) -> tuple[int, str, str]:
        code = _run([str(arg) for arg in args])
        out, err = capsys.readouterr()
        return code, out, err

    return run


async def no_browser() -> list[None]:
    """What `doctor` finds out about the browser, where that is not the point: it would start one."""
    return []
