"""Ctrl-C when a command is over already: nothing that only we understand is said, and the exit code stays."""

import signal
import subprocess
import sys

import pytest

# The last things that a process does: what was registered for its end, and what the interpreter takes down.
LATE = {
    "at exit": "atexit.register(lambda: os.kill(os.getpid(), {number}))",
    "while a thread is waited for": "threading._register_atexit(lambda: os.kill(os.getpid(), {number}))",
}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
@pytest.mark.parametrize("moment", LATE)
@pytest.mark.parametrize(("argument", "code"), [("--version", 0), ("--no-such-option", 1)])
def test_a_command_that_is_over_cannot_be_interrupted(moment, number, argument, code):
    script = (
        f"import atexit, os, sys, threading\n{LATE[moment].format(number=int(number))}\n"
        f"sys.argv = ['fairtrial', {argument!r}]\nfrom fairtrial.cli.program import main\nmain()"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == code, ended.stderr
    assert "Traceback" not in ended.stderr and "KeyboardInterrupt" not in ended.stderr, ended.stderr
    assert ("fairtrial " in ended.stdout) == (code == 0)
