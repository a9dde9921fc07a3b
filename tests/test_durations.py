"""What a test costs is the processor time of its worker and of the processes that it starts, not time on the clock."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

BURN = "import time\nwhile time.process_time() < 0.5: pass"


@pytest.mark.parametrize(
    "workers", [[], ["-p", "xdist.plugin", "-n", "2", "--dist", "loadfile"]], ids=["here", "workers"]
)
def test_processes_count_and_waiting_does_not(tmp_path: Path, workers: list[str]) -> None:
    (tmp_path / "test_ended.py").write_text(
        f"import subprocess, sys\ndef test_one():\n    subprocess.run([sys.executable, '-c', {BURN!r}], check=True)\n"
    )
    (tmp_path / "test_lives.py").write_text(
        "import subprocess, sys, time\nimport pytest\n"
        "@pytest.fixture(scope='session')\n"
        "def server():\n"
        f"    command = [sys.executable, '-c', {BURN!r} + '\\nprint(flush=True)\\ninput()']\n"
        "    with subprocess.Popen(command, stdin=-1, stdout=-1) as process:\n"
        "        yield process\n"
        "        process.communicate(b'\\n')\n"
        "def test_two(server):\n    server.stdout.readline()\n"
        "def test_waits(server):\n    time.sleep(0.1)\n"
    )
    options = ["-q", "-p", "tests.durations", "--durations-to", "costs.json", "--disable-plugin-autoload", *workers]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "--rootdir", "."],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )
    costs = json.loads((tmp_path / "costs.json").read_text("utf-8"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert costs["test_ended.py::test_one"] >= 0.4 and costs["test_lives.py::test_two"] >= 0.4
    assert costs["test_lives.py::test_waits"] < 0.3
    assert list(costs.values()) == sorted(costs.values(), reverse=True)
    assert re.search(r"processor time: [1-9]\d* s in all", done.stdout)
    assert re.search(r"\d\.\d s  test_ended.py\n", done.stdout)


def test_the_file_of_the_last_run_is_not_taken_for_tests():
    """`--durations-to FILE` with a FILE that is there made pytest look for tests in it, and fail."""
    makefile = (Path(__file__).parents[1] / "Makefile").read_text("utf-8")
    assert "--durations-to=" in makefile and "--durations-to " not in makefile
