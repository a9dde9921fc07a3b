"""`fairtrial run --watch`: a saved change runs again what it affects, and nothing else."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fairtrial.cli.main import _run
from fairtrial.core.errors import FairtrialError
from fairtrial.store import Store

SUITE = """\
name: watched
targets: ["python:agent.py:answer"]
prompts: {plain: "{{ input }}", long: {file: long.md}}
scorer: contains
cases:
  - {input: Capital of France?, expected: Paris}
  - {input: Capital of Italy?, expected: Rome}
"""
AGENT = """\
from helper import known

def answer(question, system, servers):
    with open({asked!r}, "a") as file:
        file.write(question + "\\n")
    return known(question)
"""


def until(true, what: str) -> None:
    deadline = time.monotonic() + 240
    while not true():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def completed(store: Path) -> int:
    try:
        return sum(run.status == "completed" for run in Store(str(store), create=False).runs())
    except FairtrialError:
        return 0


@pytest.mark.slow
def test_a_saved_change_runs_again_what_it_affects(tmp_path):
    asked, store = tmp_path / "asked.txt", tmp_path / "s.db"
    (tmp_path / "suite.yaml").write_text(SUITE)
    (tmp_path / "long.md").write_text("Please: {{ input }}")
    (tmp_path / "agent.py").write_text(AGENT.format(asked=str(asked)))
    (tmp_path / "helper.py").write_text("def known(question):\n    return 'Paris'\n")
    command = [sys.executable, "-m", "fairtrial", "run", "suite.yaml", "--watch", "--store", str(store)]
    process = subprocess.Popen(
        command, cwd=tmp_path, env=os.environ | {"PYTHONUNBUFFERED": "1"}, stderr=subprocess.PIPE, text=True
    )
    try:
        until(lambda: completed(store) == 1, "the first run")
        assert len(asked.read_text().splitlines()) == 4
        _wait_for(process, "watching 5 files")
        (tmp_path / "long.md").write_text("Kindly: {{ input }}")
        _wait_for(process, "long.md changed")
        until(lambda: completed(store) == 2, "the second run")
        assert sorted(asked.read_text().splitlines()[4:]) == ["Kindly: Capital of France?", "Kindly: Capital of Italy?"]
        _wait_for(process, "watching 5 files")
        (tmp_path / "helper.py").write_text(
            "def known(question):\n    return 'Paris' if 'France' in question else 'Rome'\n"
        )
        until(lambda: completed(store) == 3, "the third run")
        assert len(asked.read_text().splitlines()) == 10  # a function's code is part of what answers
        _wait_for(process, "watching 5 files")
        (tmp_path / "suite.yaml").write_text(SUITE.replace("scorer", "scorrer"))
        _wait_for(process, "unknown key")
        (tmp_path / "suite.yaml").write_text(SUITE.replace("Rome", "Roma"))
        until(lambda: completed(store) == 4, "the run after the mistake")
        assert len(asked.read_text().splitlines()) == 10  # only the scores changed
        _wait_for(process, "watching 5 files")
        process.send_signal(signal.SIGINT)
        assert process.wait(240) == 0
    finally:
        process.kill()
        process.wait()


def _wait_for(process: subprocess.Popen, words: str) -> None:
    assert process.stderr is not None
    for line in process.stderr:
        if words in line:
            return
    raise AssertionError(f"it ended without saying: {words}")


@pytest.mark.parametrize("others", [["--runs", "3"], ["--dry-run"], ["--stop-when", "decided"]])
def test_what_makes_no_sense_with_it_is_said(tmp_path, capsys, others):
    assert _run(["run", str(tmp_path / "suite.yaml"), "--watch", *others]) == 1
    assert "--watch cannot be combined" in capsys.readouterr().err
