"""The pytest fixture `trial`, in sessions of their own."""

import os
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest

from tests import forks

TESTS = """
import pytest

def echo(input):
    return input.rpartition(" ")[2]

@pytest.mark.parametrize(("question", "answer"), [("say Paris", "Paris"), ("say Rome", "rome")])
def test_capital(trial, question, answer):
    asked = trial(question, expected=answer)
    assert asked.answer in question and asked.score == 100 and asked.run.status == "completed"

def test_wrong(trial):
    trial("say Lyon", expected="Paris", repeats=2)

@pytest.mark.trial(target=echo, scorer=lambda response: 0.5)
class TestGraded:
    def test_enough(self, trial):
        assert trial("say x", min_score=40).score == 50

    def test_too_little(self, trial):
        trial("say x", min_score=60)

@pytest.mark.trial(target=lambda q: 1 / 0)
def test_a_failure_is_no_score(trial):
    trial("say x", expected="x", check=False, retry={"attempts": 1})

async def nothing(): ...
"""
INI = "[pytest]\nfairtrial_target = python:answering:echo\n"


def session(folder, ini="", *options, tests=TESTS, python=sys.executable):
    (folder / "answering.py").write_text("def echo(input):\n    return input.rpartition(' ')[2]\n")
    (folder / "test_own.py").write_text(tests)
    (folder / "pytest.ini").write_text(INI + ini)
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def plain_session(folder, ini, *options, **settings):
    """Ten questions, without the plug-ins of others, which take as long to import as the questions to answer."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
        return session(folder, ini, "-p", "fairtrial.pytest_plugin", *options, **{"tests": MANY, **settings})


@pytest.mark.slow
def test_questions_feel_like_tests(tmp_path):
    said = session(tmp_path, "", "--junit-xml=out.xml")
    assert "3 passed" in said.stdout and "3 failed" in said.stdout, said.stdout
    assert "score 0 of 100, at least 100, over 2 answers" in said.stdout and "answer:   Lyon" in said.stdout
    assert "score 50 of 100, at least 60" in said.stdout and "raised ZeroDivisionError" in said.stdout
    found = {
        case.get("name"): {one.get("name"): one.get("value") for one in case.iter("property")}
        for case in ET.parse(tmp_path / "out.xml").iter("testcase")
    }
    assert found["test_wrong"]["fairtrial.score"] == "0.0" and found["test_wrong"]["fairtrial.answers"] == "2"
    assert found["test_enough"]["fairtrial.run"]


MANY = """
import pytest

@pytest.mark.parametrize("n", range(10))
def test_many(trial, n):
    trial(f"say {n}", expected=str(n) if n else "x")
"""


@pytest.mark.slow
def test_a_gate_over_the_session(tmp_path):
    said = plain_session(tmp_path, "fairtrial_min_score = 50\n", "-p", "xdist", "-n", "2")
    assert "10 passed" in said.stdout and said.returncode == 0, said.stdout
    assert "gate passed: mean 90.0, 95% CI [" in said.stdout and "n = 10, at least 50" in said.stdout
    python = forks.programs() / "python"
    said = plain_session(tmp_path, "", "--fairtrial-min-score=99.9", python=python)
    assert said.returncode == 1 and "gate failed: mean 90.0" in said.stdout, said.stdout
    said = plain_session(tmp_path, "", "--fairtrial-min-score=90", python=python)
    assert said.returncode == 1 and "gate cannot tell" in said.stdout
    unsure = "fairtrial_unsure = pass\nfairtrial_min_score = 90\n"
    assert plain_session(tmp_path, unsure, python=python).returncode == 0


@pytest.mark.slow
def test_without_a_target_it_says_what_to_do(tmp_path):
    tests = "def test_it(trial):\n    trial('x', expected='x')\n"
    said = plain_session(tmp_path, "", "-c", os.devnull, python=forks.programs() / "python", tests=tests)
    assert "no target: set fairtrial_target" in said.stdout
