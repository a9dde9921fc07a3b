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


def junit(folder):
    """The counts of a JUnit file, and what it says about the gate."""
    (suite,) = ET.parse(folder / "out.xml").getroot().iter("testsuite")
    (gate,) = (case for case in suite.iter("testcase") if case.get("name") == "gate")
    counts = {name: int(suite.get(name)) for name in ("tests", "failures", "errors", "skipped")}
    return counts, gate.get("classname"), [(one.tag, one.get("message")) for one in gate]


@pytest.mark.slow
@pytest.mark.parametrize("workers", [(), ("-p", "xdist", "-n", "2")], ids=["alone", "xdist"])
def test_a_gate_over_the_session_is_a_test(tmp_path, workers):
    python = sys.executable if workers else forks.programs() / "python"

    def gated(least, *options):
        said = plain_session(
            tmp_path, f"fairtrial_min_score = {least}\n", "--junit-xml=out.xml", *options, *workers, python=python
        )
        return said, *junit(tmp_path)

    said, counts, suite, found = gated(99.9)
    assert said.returncode == 1 and "1 failed, 10 passed" in said.stdout, said.stdout
    assert counts == {"tests": 11, "failures": 1, "errors": 0, "skipped": 0} and suite == "fairtrial"
    ((tag, message),) = found
    assert tag == "failure" and message.startswith(
        "gate failed: mean 90.0 (95 % CI 55.5 to 99.7), n = 10, at least 99.9"
    )
    assert "0 of 100: test_own.py::test_many[0]: 'say 0', answered '0', expected 'x'" in message
    assert "FAILED fairtrial::gate - gate failed" in said.stdout and "test_many[1]" not in message

    said, counts, _, found = gated(50)
    assert said.returncode == 0 and "11 passed" in said.stdout, said.stdout
    assert counts == {"tests": 11, "failures": 0, "errors": 0, "skipped": 0} and not found
    assert "gate passed: mean 90.0 (95 % CI 55.5 to 99.7), n = 10, at least 50" in said.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("unsure", "code", "outcome"),
    [("", 1, "1 failed, 10 passed"), ("fail", 1, "1 failed, 10 passed"), ("skip", 0, "10 passed, 1 skipped"),
     ("pass", 0, "11 passed")],
)  # fmt: skip
def test_a_session_that_nobody_can_tell_about(tmp_path, unsure, code, outcome):
    ini = f"fairtrial_min_score = 90\n{f'fairtrial_unsure = {unsure}' if unsure else ''}\n"
    said = plain_session(tmp_path, ini, "--junit-xml=out.xml", python=forks.programs() / "python")
    assert said.returncode == code and outcome in said.stdout, said.stdout
    assert "gate cannot tell: mean 90.0" in said.stdout
    counts, _, found = junit(tmp_path)
    assert counts["failures"] == ("failed" in outcome) and counts["skipped"] == ("skipped" in outcome)
    assert all("gate cannot tell" in message for _, message in found)


@pytest.mark.slow
def test_no_selection_of_tests_opens_the_gate(tmp_path):
    def gated(*options):
        ini = "fairtrial_min_score = 99.9\n"
        return plain_session(tmp_path, ini, "-p", "cacheprovider", *options, python=forks.programs() / "python")

    said = gated()
    assert said.returncode == 1 and "1 failed, 10 passed" in said.stdout, said.stdout
    said = gated("--lf")  # only the gate failed: all questions are its test
    assert said.returncode == 1 and "1 failed, 10 passed" in said.stdout, said.stdout
    said = gated("-k", "2 or 3")
    assert "fairtrial::gate" in said.stdout and "n = 2, at least 99.9" in said.stdout, said.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ini", "says"),
    [
        ("fairtrial_min_score = 0.9", "in points from 0 to 100, not 0.9; did you mean 90?"),
        ("fairtrial_min_score = most", "is a number from 0 to 100, not `most`"),
        ("fairtrial_unsure = 101", "must be `fail`, `skip` or `pass`, not `101`"),
    ],
)
def test_a_gate_that_cannot_be_meant_is_refused_before_anything_is_asked(tmp_path, ini, says):
    said = plain_session(tmp_path, f"{ini}\n", python=forks.programs() / "python")
    assert said.returncode == pytest.ExitCode.USAGE_ERROR and says in said.stderr, said.stdout + said.stderr


@pytest.mark.slow
def test_a_session_that_was_stopped_is_not_passed(tmp_path):
    tests = f"{MANY}\ndef test_other():\n    assert False\n\ndef test_last(trial):\n    trial('say x', expected='x')\n"
    ini = "fairtrial_min_score = 50\n"
    said = plain_session(tmp_path, ini, "-x", python=forks.programs() / "python", tests=tests)
    assert said.returncode == 1 and "gate cannot tell: the session was stopped" in said.stdout, said.stdout


@pytest.mark.slow
def test_without_a_target_it_says_what_to_do(tmp_path):
    tests = "def test_it(trial):\n    trial('x', expected='x')\n"
    said = plain_session(tmp_path, "", "-c", os.devnull, python=forks.programs() / "python", tests=tests)
    assert "no target: set fairtrial_target" in said.stdout
