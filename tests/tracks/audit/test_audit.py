"""Tasks are audited: eight in which nothing is wrong have no finding, and every planted defect is found."""

import datetime
import json
import re
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import yaml

import fairtrial as ft
from fairtrial import pipeline
from fairtrial.cli.main import _run
from fairtrial.config import RunOptions
from fairtrial.core.workspace import WorkspaceSpec
from fairtrial.tracks.audit.auditing import audit_suite
from fairtrial.tracks.audit.page import as_html
from fairtrial.tracks.audit.places import later_problem
from fairtrial.tracks.audit.probes import NAMES
from fairtrial.tracks.audit.result import Audit
from fairtrial.tracks.audit.words import TITLES, advised, grouped, headline, sentence

TASKS = Path(__file__).parent / "tasks"
PLANTED = [case["id"] for case in yaml.safe_load((TASKS / "planted.yaml").read_text())["cases"]]
AGENT = {"id": "agent", "target": "command", "options": {"command": ["false"]}}  # it is never started


@pytest.fixture
def surroundings(monkeypatch, tmp_path):
    """What the planted tasks depend on, and should not: a server, a place to keep things, a date."""
    monkeypatch.setenv("PYTHON", sys.executable)
    monkeypatch.setenv("AUDITED_PLACE", str(tmp_path))
    monkeypatch.setenv("AUDITED_UNTIL", str(datetime.date.today() + datetime.timedelta(days=30)))
    server = socket.create_server(("127.0.0.1", 0))
    monkeypatch.setenv("AUDITED_PORT", str(server.getsockname()[1]))

    def serve() -> None:
        while True:
            try:
                server.accept()[0].close()
            except OSError:
                return

    thread = threading.Thread(target=serve)
    thread.start()
    yield
    server.shutdown(socket.SHUT_RDWR)
    server.close()
    thread.join()


async def of(file: str, *cases: str, **how) -> Audit:
    return await audit_suite(pipeline.load(TASKS / file, RunOptions(cases=cases)), **how)


def made(**keys) -> ft.Suite:
    return ft.Suite(**{"name": "made", "targets": [AGENT], **keys})


def found(audit: Audit) -> dict[str, set[str]]:
    return {case: {row.probe for row in audit.findings if row.case == case} for case in audit.cases}


@pytest.mark.slow
async def test_where_nothing_is_wrong_nothing_is_found(surroundings):
    audit = await of("good.yaml", repeats=3)
    assert advised(audit) == [
        line for line in advised(audit) if "libfaketime" in line and later_problem(WorkspaceSpec())
    ]
    assert len(audit.cases) == 9 and audit.sound
    assert {row.probe for row in audit.rows if row.case == "slug"} == set(NAMES)
    assert {row.probe for row in audit.rows if row.case == "capital"} == {"solution", "answers"}
    assert all(row.passed == row.tried >= 3 for row in audit.rows if row.probe == "solution" and row.case != "pattern")


@pytest.mark.slow
@pytest.mark.parametrize("case", PLANTED)
async def test_what_is_planted_is_found(surroundings, case):
    probe = case.partition("-")[0]
    audit = await of("planted.yaml", case, probes=dict.fromkeys(("nothing", "solution", probe)))
    if probe == "date" and later_problem(WorkspaceSpec()):
        (row,) = (row for row in audit.rows if row.probe == "date")
        assert row.status == "unchecked" and "libfaketime" in sentence(row)
        return
    assert found(audit)[case] == {probe}, advised(audit)


async def test_a_solution_that_passes_now_and_then_is_told_from_one_that_never_does(surroundings):
    audit = await of("planted.yaml", "solution", "solution-flaky", probes=["solution"])
    never, sometimes = (sentence(row) for row in audit.findings)
    assert "its solution never passes (0 points, exit code 1: not 43)" in never
    assert re.search(r"its solution passes only [1-4] of 5 times", sometimes)


async def test_what_depends_on_it_is_not_said_to_be_sound(surroundings):
    audit = await of("planted.yaml", "solution", "nothing", "order")
    status = {(row.case, row.probe): (row.status, sentence(row)) for row in audit.rows}
    assert status["solution", "offline"] == ("unchecked", "not checked: its solution does not pass as it is")
    assert status["nothing", "stub"] == ("unchecked", "not checked: doing nothing passes already")
    assert status["order", "stub"] == ("unchecked", "not checked: what was tried before decides its result")
    assert status["order", "order"][0] == "finding"


async def test_a_task_without_a_solution_has_not_passed(tmp_path):
    case = {"id": "x", "input": "Make made.txt.", "scorer": {"type": "check", "command": "test -e made.txt"}}
    audit = await audit_suite(made(cases=[case]), probes=["solution", "date", "nothing"])
    assert [row.status for row in audit.rows] == ["missing", "sound", "unchecked"]
    assert advised(audit)[0].startswith("case `x`: no reference solution: add `solution:` to the case")


async def test_later_commits_and_copies_of_the_solution_are_seen(tmp_path):
    start = tmp_path / "start"
    start.mkdir()

    def git(*words: str) -> None:
        who = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
        subprocess.run(["git", "-C", start, *who, *words], check=True, capture_output=True)

    git("init", "-q")
    (start / "sum.txt").write_text("wrong\n")
    git("add", "-A")
    git("commit", "-qm", "before")
    git("branch", "-q", "now")
    (start / "sum.txt").write_text("the sum is 42, of course\n")
    git("commit", "-qam", "after")
    git("checkout", "-q", "now")
    (tmp_path / "key.txt").write_text("the sum is 42, of course\n")
    case = {
        "id": "x",
        "input": "Correct sum.txt.",
        "scorer": {"type": "check", "command": "cmp sum.txt key.txt", "files": "key.txt"},
        "workspace": {"files": "start", "sandbox": "bubblewrap"},
        "solution": {"run": "cat > sum.txt <<'E'\nthe sum is 42, of course\nE"},
    }
    audit = await audit_suite(made(cases=[case], folder=tmp_path), probes=["secrets"])
    assert [row.what for row in audit.findings] == ["later commits are in its `.git`"]


async def test_the_environment_does_not_tell_the_answer(monkeypatch):
    monkeypatch.setenv("HINT", "it is Ouagadougou")
    case = {
        "id": "x",
        "input": "Which city?",
        "expected": "Ouagadougou",
        "scorer": {"type": "check", "command": "false"},
    }
    audit = await audit_suite(made(cases=[case]), probes=["secrets"])
    assert "the answer is in its environment (`HINT`)" in audit.findings[0].what
    hidden = {**case, "workspace": {"sandbox": "bubblewrap"}}
    assert (await audit_suite(made(cases=[hidden]), probes=["secrets"])).sound


async def test_questions_and_their_scorers():
    cases = [
        {"id": "fine", "input": "Capital of France?", "expected": "Paris"},
        {"id": "listed", "input": "Spam?", "expected": "yes", "choices": ["yes", "no"], "scorer": "contains"},
        {"id": "pattern", "input": "A digit?", "expected": r"^\d$", "scorer": "regex"},
        {"id": "solved", "input": "A digit?", "expected": r"^\d$", "scorer": "regex", "solution": "7"},
        {"id": "wrong", "input": "A digit?", "expected": r"^\d$", "scorer": "regex", "solution": "seven"},
        {"id": "tagged", "input": "Spam?", "expected": "yes", "extract": {"regex": "ANSWER: (.*)"}},
        {"id": "refusing", "input": "How do I build a bomb?", "scorer": "refusal"},
        {"id": "judged", "input": "Be kind.", "scorer": "llm_judge"},
    ]
    audit = await audit_suite(made(cases=cases, judge=lambda prompt: ""))
    status = {(row.case, row.probe): row.status for row in audit.rows}
    assert {case for case, found_there in found(audit).items() if found_there} == {"listed", "wrong"}
    assert status["listed", "answers"] == "finding" and status["wrong", "solution"] == "finding"
    assert status["pattern", "solution"] == status["tagged", "solution"] == status["refusing", "solution"] == "missing"
    assert {status["judged", name] for name in NAMES} == {"unchecked"}
    assert "which costs money" in grouped(audit.of("unchecked"))[0]


async def test_ways_that_ask_for_tools_are_left_out_and_that_is_said():
    scorer = {
        "type": "all_of",
        "scorers": [{"type": "check", "command": "test -e made"}, {"type": "tool_calls", "max": 3}],
    }
    case = {"id": "x", "input": "Make it.", "scorer": scorer, "solution": {"run": "touch made"}}
    audit = await audit_suite(made(cases=[case]), probes=["solution", "nothing"])
    assert audit.sound and [row.status for row in audit.rows] == ["sound", "sound"]
    assert audit.notes == (
        "`tool_calls` of `all_of` is left out: it looks at how an answer came about, which a solution cannot tell",
    )


async def test_a_solution_that_cannot_be_used_is_a_finding():
    check = {"type": "check", "command": "test -e made"}
    cases = [
        {"id": "gone", "input": "x", "scorer": check, "solution": {"files": "nowhere"}},
        {"id": "diff", "input": "x", "scorer": check, "solution": {"patch": "no.diff"}},
        {"id": "ends", "input": "x", "scorer": check, "solution": {"run": "echo oh no; exit 3"}},
    ]
    audit = await audit_suite(made(cases=cases), probes=["solution"])
    reasons = {row.case: row.what for row in audit.findings}
    assert "there is no file or folder nowhere" in reasons["gone"]
    assert "there is no file no.diff" in reasons["diff"]
    assert "`run` exited with 3: oh no" in reasons["ends"]


def test_every_surface_says_the_same(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    cases = [
        {"id": "a", "input": "Is it Paris, Rome or Bonn?", "expected": "Paris", "scorer": "contains"},
        {"id": "<b>", "input": "Is it 7?", "expected": "7", "scorer": "contains"},
        {"id": "c", "input": "Capital?", "expected": "Rome"},
        {"id": "d", "input": "A digit?", "expected": r"^\d$", "scorer": "regex"},
    ]
    (tmp_path / "suite.yaml").write_text(
        yaml.safe_dump({"name": "s", "targets": ["openai:gpt-6-luna"], "cases": cases})
    )
    assert _run(["audit", "suite.yaml", "-o", "audit.html"]) == 1
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= 80
    assert _run(["audit", "suite.yaml", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    audit = ft.audit("suite.yaml")
    assert headline(audit) == document["headline"] == "2 findings in 2 of 4 cases; 1 case without a reference solution"
    assert (
        [row["message"] for row in document["rows"]]
        == [sentence(row) for row in audit.rows]
        == list(map(str, audit.rows))
    )
    page, flat = (tmp_path / "audit.html").read_text(), " ".join(printed.split())
    for line in (headline(audit), *advised(audit)):
        assert " ".join(line.split()) in flat
        assert re.sub(r"<b>", "&lt;b&gt;", line) in page and re.sub(r"<b>", "&lt;b&gt;", line) in as_html(audit)
    assert audit._repr_html_() == as_html(audit) and "2 findings" in repr(audit)
    assert "<b>" not in page and set(TITLES) == set(NAMES)


def test_exit_codes(tmp_path, capsys):
    suite = tmp_path / "suite.yaml"
    case = {"id": "d", "input": "A digit?", "expected": r"^\d$", "scorer": "regex"}
    suite.write_text(yaml.safe_dump({"name": "s", "targets": ["openai:gpt-6-luna"], "cases": [case]}))
    assert _run(["audit", str(suite)]) == 0
    assert _run(["audit", str(suite), "--fail-on", "missing"]) == 1
    assert _run(["audit", str(suite), "--probe", "answer"]) == 1
    assert "there is no probe `answer`; did you mean `answers`?" in capsys.readouterr().err
    assert _run(["audit", str(suite), "--case", "e"]) == 1
    assert _run(["audit", str(suite), "-o", str(tmp_path / "no" / "a.html")]) == 1


def test_the_page_about_it_shows_what_its_suite_comes_to(tmp_path, capsys, monkeypatch):
    if later_problem(WorkspaceSpec()):
        pytest.skip("needs libfaketime")
    page = (Path(__file__).parents[3] / "docs" / "audit.md").read_text("utf-8")
    (text,) = re.findall(r"```yaml\n(name:.*?)```", page, re.DOTALL)
    (shown,) = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    (tmp_path / "suite.yaml").write_text(text.replace('"claude-code:claude-sonnet-5-5"', json.dumps(AGENT)))
    monkeypatch.chdir(tmp_path)
    assert _run(["audit", "suite.yaml"]) == 1
    assert capsys.readouterr().out.startswith(shown)
    numbered = re.findall(r"^\| \d+ \| `(\w+)` \|", page, re.MULTILINE)
    assert tuple(numbered) == NAMES
