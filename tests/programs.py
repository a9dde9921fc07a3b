"""The programs of agents, and public MCP servers, that tests start: `python -m tests.programs` installs them, outside of the repository.

They are in the folder that TESTS_PROGRAMS names, or in the user's cache. A test whose program is not there is skipped, or
fails if REQUIRE_AGENTS is set.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

_MACHINE = "arm64" if platform.machine() in ("aarch64", "arm64") else "x64"
_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fairtrial-tests" / "programs"
FOLDER = Path(os.environ.get("TESTS_PROGRAMS") or _CACHE)


class Program(NamedTuple):
    """A package of npm, and where its program is in there."""

    package: str
    version: str
    path: str

    @property
    def folder(self) -> Path:
        return FOLDER / f"{Path(self.path).name}-{self.version}"


PROGRAMS = {
    "codex": Program("@openai/codex", "0.166.0", ".bin/codex"),
    "gemini-cli": Program("@google/gemini-cli", "0.61.0", ".bin/gemini"),
    "opencode": Program(f"opencode-linux-{_MACHINE}", "1.18.18", f"opencode-linux-{_MACHINE}/bin/opencode"),
}
PROGRAMS |= {  # public MCP servers
    f"server-{name}": Program(f"@modelcontextprotocol/server-{name}", "2026.8.31", f".bin/mcp-server-{name}")
    for name in ("everything", "filesystem", "memory")
}


def find(name: str) -> Path | None:
    """The path of a program, if it is installed."""
    program = PROGRAMS[name]
    path = program.folder / "node_modules" / program.path
    return path if path.exists() else None


def needed(name: str) -> str:
    """The path of a program; the test is skipped if it is not installed."""
    import pytest

    path = find(name)
    if path is None:
        reason = f"{name} is not installed: python -m tests.programs"
        if os.environ.get("REQUIRE_AGENTS"):
            pytest.fail(reason)
        pytest.skip(reason)
    return str(path)


def install() -> int:
    """Install all at the same time: most of it is waiting for the network."""
    missing = [program for name, program in PROGRAMS.items() if find(name) is None]
    quiet = ["--no-audit", "--no-fund", "--no-save", "--ignore-scripts", "--omit=dev", "--loglevel=error"]
    running = []
    for program in missing:
        program.folder.mkdir(parents=True, exist_ok=True)
        what = ["npm", "install", "--prefix", str(program.folder), *quiet, f"{program.package}@{program.version}"]
        running.append(subprocess.Popen(what, stdout=subprocess.DEVNULL))
    return max([process.wait() for process in running], default=0)


if __name__ == "__main__":
    sys.exit(install())
