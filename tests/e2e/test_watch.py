"""`fairtrial run --watch`: a saved change runs again what it affects, and nothing else."""

import signal
from pathlib import Path

import pytest

from fairtrial.cli.main import _run
from fairtrial.store import Store
from tests import forks

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


def completed(store: Path) -> int:
    return sum(run.status == "completed" for run in Store(str(store), create=False).runs())


@pytest.mark.slow
def test_a_saved_change_runs_again_what_it_affects(tmp_path):
    asked, store = tmp_path / "asked.txt", tmp_path / "s.db"
    (tmp_path / "suite.yaml").write_text(SUITE)
    (tmp_path / "long.md").write_text("Please: {{ input }}")
    (tmp_path / "agent.py").write_text(AGENT.format(asked=str(asked)))
    (tmp_path / "helper.py").write_text("def known(question):\n    return 'Paris'\n")
    # The process that watches and those that run are forks of one that has imported everything.
    program = f"import sys\nsys.executable = {str(forks.programs() / 'python')!r}\n{forks.PROGRAM}"
    process = forks.start("run", "suite.yaml", "--watch", "--store", store, program=program)
    try:
        _wait_for(process, "watching 5 files")
        assert completed(store) == 1 and len(asked.read_text().splitlines()) == 4
        (tmp_path / "long.md").write_text("Kindly: {{ input }}")
        _wait_for(process, "long.md changed")
        _wait_for(process, "watching 5 files")
        assert completed(store) == 2
        assert sorted(asked.read_text().splitlines()[4:]) == ["Kindly: Capital of France?", "Kindly: Capital of Italy?"]
        (tmp_path / "helper.py").write_text(
            "def known(question):\n    return 'Paris' if 'France' in question else 'Rome'\n"
        )
        _wait_for(process, "watching 5 files")
        assert completed(store) == 3
        assert len(asked.read_text().splitlines()) == 10  # a function's code is part of what answers
        (tmp_path / "suite.yaml").write_text(SUITE.replace("scorer", "scorrer"))
        _wait_for(process, "unknown key")
        _wait_for(process, "watching 4 files")  # which others it would name, nobody knows
        (tmp_path / "suite.yaml").write_text(SUITE.replace("Rome", "Roma"))
        _wait_for(process, "watching 5 files")
        assert completed(store) == 4  # the mistake was none
        assert len(asked.read_text().splitlines()) == 10  # only the scores changed
        process.send_signal(signal.SIGINT)
        assert process.wait(240) == 0
    finally:
        process.kill()
        process.wait()


def _wait_for(process: forks.Process, words: str) -> None:
    for line in process.stderr:
        if words in line.decode():
            return
    raise AssertionError(f"it ended without saying: {words}")


@pytest.mark.parametrize("others", [["--runs", "3"], ["--dry-run"], ["--stop-when", "decided"]])
def test_what_makes_no_sense_with_it_is_said(tmp_path, capsys, others):
    assert _run(["run", str(tmp_path / "suite.yaml"), "--watch", *others]) == 1
    assert "--watch cannot be combined" in capsys.readouterr().err
