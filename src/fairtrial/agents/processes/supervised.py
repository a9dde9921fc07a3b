"""Start programs under a supervisor, so that they end when fairtrial ends."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fairtrial.core.experiment import McpServer

SUPERVISOR = Path(__file__).with_name("supervisor.py")
WATCH = "FAIRTRIAL_WATCH"  # the variable that tells it what a program may take


def supervised(*command: str) -> list[str]:
    """Return the command that starts this command under the supervisor."""
    if sys.platform == "win32":  # Windows has no exec: the program would be a child of the supervisor
        return list(command)
    # Isolated and without site packages: only this one file is loaded.
    return [sys.executable, "-I", "-S", str(SUPERVISOR), *command]


def supervised_config(server: McpServer, notes: Path | None = None, keep: Iterable[str] = ()) -> dict[str, Any]:
    """Return a server's configuration for an agent that starts the server itself.

    The calls that reach it are written to the file `notes`. Of the agent's environment it sees the variables `keep`, or
    whatever the agent passes on.
    """
    config = server.as_config()
    if server.transport == "stdio":
        config["command"], *config["args"] = supervised(server.command, *server.args)
        config["env"] = dict(config["env"])
        if names := [*keep]:
            config["env"]["FAIRTRIAL_KEEP"] = ",".join((*names, *server.env))
        if not server.roots:
            # An agent announces its working folder, and file servers would use that instead of their own folders.
            config["env"]["FAIRTRIAL_HIDE"] = "roots"
        if notes is not None:
            config["env"]["FAIRTRIAL_NOTES"] = str(notes)
        if folder := config.pop("cwd", None):  # agents have no setting for it; the supervisor has
            config["env"]["FAIRTRIAL_CWD"] = folder
    return config


def write_wrapper(path: Path, *command: str) -> Path:
    """Write a script that runs the command under the supervisor, for libraries that need a single executable file."""
    path.write_text(f'#!/bin/sh\nexec {shlex.join(supervised(*command))} "$@"\n', "utf-8")
    path.chmod(0o700)
    return path


def private_temp_folder(prefix: str) -> Path:
    """Create a temporary folder that only this user can read; remove those left behind by killed processes."""
    for old in Path(tempfile.gettempdir()).glob(f"{prefix}-*-*"):
        process = old.name.removeprefix(f"{prefix}-").partition("-")[0]
        if process.isdigit() and not _alive(int(process)):
            shutil.rmtree(old, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"{prefix}-{os.getpid()}-"))


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True
