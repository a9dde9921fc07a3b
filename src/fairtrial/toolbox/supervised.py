"""How to start a program so that it goes with us."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
from pathlib import Path

from fairtrial.core.experiment import McpServer

_SUPERVISOR = str(Path(__file__).with_name("supervisor.py"))


def supervised(*command: str) -> list[str]:
    """The command that starts this command on a leash."""
    if sys.platform == "win32":  # no exec there: the program would be a child of the leash
        return list(command)
    # Isolated and without site packages: nothing is read but this one file.
    return [sys.executable, "-I", "-S", _SUPERVISOR, *command]


def supervised_config(server: McpServer) -> dict[str, object]:
    """A server's configuration for an agent that starts it by itself."""
    config = server.as_config()
    if server.transport == "stdio":
        config["command"], *config["args"] = supervised(server.command, *server.args)
        # An agent announces the folder it works in, and servers of files would take it instead of their own folders.
        config["env"] = {**config["env"], "FAIRTRIAL_HIDE": "roots"}
        if folder := config.pop("cwd", None):  # agents have no word for it; the leash has
            config["env"]["FAIRTRIAL_CWD"] = folder
    return config


def write_wrapper(path: Path, program: str) -> Path:
    """A script that is the program on a leash, for libraries that want one file to start."""
    path.write_text(f'#!/bin/sh\nexec {shlex.join(supervised(program))} "$@"\n', "utf-8")
    path.chmod(0o700)
    return path


def own_folder(prefix: str) -> Path:
    """A temporary folder that only we can read; what processes that were killed have left behind is removed."""
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
