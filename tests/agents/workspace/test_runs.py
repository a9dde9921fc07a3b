"""Agents at work: a folder for every trial, what they changed is kept with their answers, and checks look at it."""

import gzip
import shutil
import sqlite3
import sys
from pathlib import Path

import pytest

from fairtrial import pipeline
from fairtrial.agents.workspace.changes import read_changes
from fairtrial.cli.main import _run
from fairtrial.core.errors import ProblemsError
from fairtrial.store.files import stored_changes
from fairtrial.workflows.resume import arescore, aresume
from tests.scripted import Say

PYTHON = sys.executable
FACTS = str(Path(__file__).parents[2] / "servers" / "facts.py")
AGENT = """
import os, sys, pathlib
task = sys.stdin.read()
here = pathlib.Path.cwd()
assert os.environ["FAIRTRIAL_WORKSPACE"] == str(here)
exec(task, {"here": here, "case": os.environ["FAIRTRIAL_CASE_ID"], "os": os, "sys": sys, "pathlib": pathlib})
"""


@pytest.fixture
def agent(tmp_path) -> dict:
    """A program whose tasks are Python."""
    (tmp_path / "agent.py").write_text(AGENT)
    return {"id": "agent", "target": "command", "options": {"command": [PYTHON, "agent.py"]}}


def check(command: str, **more) -> dict:
    return {"type": "check", "command": command, **more}


@pytest.mark.slow
async def test_ten_at_once_write_the_same_names_and_nothing_is_mixed(run_suite, agent, tmp_path):
    (tmp_path / "start").mkdir()
    (tmp_path / "start" / "notes.txt").write_text("start\n")
    task = (
        "assert sorted(path.name for path in here.iterdir()) == ['notes.txt', 'set-up.txt'], list(here.iterdir())\n"
        "(here / 'answer.txt').write_text(case)\n"
        "with (here / 'notes.txt').open('a') as file: file.write(case)\n"
        "print((here / 'answer.txt').read_text(), (here / 'notes.txt').read_text().split())"
    )
    script = 'test "$(cat answer.txt)" = "$FAIRTRIAL_CASE_ID" && grep -qx "$FAIRTRIAL_CASE_ID" notes.txt'
    run = await run_suite(
        targets=[agent],
        workspace={"files": "start", "setup": "echo ready > set-up.txt"},
        scorer=check(script),
        cases=[{"id": f"case-{number}", "input": task} for number in range(10)],
        concurrency=10,
    )
    trials = list(run.trials())
    assert run.status == "completed", [trial.failure_message for trial in trials]
    assert [trial.score for trial in trials] == [1.0] * 10
    assert [trial.answer for trial in trials] == [f"{trial.case_id} ['start', '{trial.case_id}']" for trial in trials]
    assert all(f"+{trial.case_id}" in trial.trace["workspace"]["diff"] for trial in trials)
    assert (tmp_path / "start" / "notes.txt").read_text() == "start\n"


async def test_without_a_word_about_it_a_program_has_an_empty_folder_of_its_own(run_suite, agent, tmp_path):
    shared = {**agent, "id": "shared", "options": {"command": [PYTHON, "agent.py"], "cwd": "."}}
    shared["options"]["env"] = {"FAIRTRIAL_WORKSPACE": str(tmp_path)}
    task = "print(list(here.iterdir()) == [], (here / 'agent.py').exists())"
    run = await run_suite(targets=[agent, shared], cases=[{"input": task, "expected": "True False"}])
    assert [trial.answer for trial in run.trials()] == ["True False", "False True"]


async def test_scored_again_without_the_files(run_suite, agent, tmp_path, store):
    for folder, name, text in (("start", "a.txt", "one"), ("own", "b.txt", "two"), ("tests", "t.sh", "exit 0")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_text(text)
    task = "(here / 'c.txt').write_text('three'); (here / 'a.txt').unlink(); (here / 't.sh').write_text('exit 1'); print(1)"
    run = await run_suite(
        targets=[agent],
        workspace={"files": ["start", "own"]},
        scorer=check("sh t.sh && ls", files="tests"),
        cases=[{"id": "x", "input": task}],
    )
    (trial,) = run.trials()
    assert trial.score == 1.0 and trial.details["check"]["output"].split() == ["b.txt", "c.txt", "t.sh"]
    shutil.rmtree(tmp_path / "start")
    again = await arescore(run.id, store=store, scorer=check("cat b.txt c.txt; test ! -e a.txt && test ! -e d"))
    (trial,) = again.trials()
    assert trial.score == 1.0 and trial.details["check"]["output"] == "twothree"


async def test_an_answer_whose_score_was_lost_is_scored_from_what_is_stored(run_suite, agent, store, tmp_path):
    (tmp_path / "flag").write_text("")
    run = await run_suite(
        targets=[agent],
        scorer=check("cat made.txt"),
        cases=[{"id": "x", "input": "(here / 'made.txt').write_text('kept'); print('done')"}],
    )
    assert run.status == "completed"
    with sqlite3.connect(store.path) as connection:  # as if the process had been killed before it scored
        connection.execute("DELETE FROM scores")
        connection.execute("UPDATE runs SET status = 'interrupted'")
    (tmp_path / "agent.py").write_text("raise SystemExit('asked again')")
    (trial,) = (await aresume(run.id, store=store)).trials()
    assert trial.score == 1.0 and trial.details["check"]["output"] == "kept" and trial.attempts == 1


@pytest.mark.slow
async def test_failures_have_reasons_and_are_no_scores(run_suite, agent):
    cases = [
        {"id": "set-up", "input": "", "workspace": {"setup": ["echo oops >&2; exit 3"]}},
        {"id": "slow", "input": "", "workspace": {"setup": "sleep 60", "timeout": 0.2}},
        {"id": "large", "input": "(here / 'big').write_bytes(b'x' * 2**21)", "workspace": {"max_mb": 1}},
        {"id": "crash", "input": "(here / 'part.txt').write_text('half'); raise SystemExit('gave up')"},
        {"id": "hangs", "input": "(here / 'part.txt').write_text('half'); import time; time.sleep(600)"},
        {"id": "check-hangs", "input": "", "scorer": check("sleep 60", timeout=0.2)},
        {"id": "check-missing", "input": "", "scorer": check(["no-such-program"])},
        {"id": "check-range", "input": "", "scorer": check("""echo '{"score": 101}'""")},
    ]
    run = await run_suite(
        targets=[agent],
        workspace={"keep": "failed"},
        scorer=check("true"),
        cases=cases,
        timeout=20,
        concurrency=8,
        on_limit="fail",
    )
    trials = {trial.case_id: trial for trial in run.trials()}
    reasons = {
        "set-up": "setup `echo oops >&2; exit 3` exited with 3: oops",
        "slow": "setup `sleep 60` took longer than 0.2 s",
        "large": "too large: 2.0 MB of changed files, at most 1 MB",
        "crash": "exited with 1: gave up",
        "hangs": "no answer within 20 s",
    }
    for name, reason in reasons.items():
        assert trials[name].score is None and reason in trials[name].failure_message, trials[name].failure_message
    assert {trials[name].failure_kind for name in ("set-up", "slow", "large")} == {"workspace"}
    for name in ("crash", "hangs"):  # what they had done is kept
        assert "+half" in trials[name].trace["workspace"]["diff"]
    assert "longer than 0.2 s" in trials["check-hangs"].unscored_message
    assert "cannot be run" in trials["check-missing"].unscored_message
    assert "101" in trials["check-range"].unscored_message
    kept = run.kept_workspace(trials["crash"])
    assert kept is not None and (kept / "part.txt").read_text() == "half"


@pytest.mark.slow
async def test_what_is_kept_on_disk(run_suite, agent):
    cases = [{"id": word, "input": f"(here / 'said').write_text('{word}')"} for word in ("right", "wrong")]
    for keep, kept in (("none", []), ("failed", ["wrong"]), ("all", ["right", "wrong"])):
        run = await run_suite(
            targets=[agent], workspace={"keep": keep}, scorer=check("grep -q right said"), cases=cases
        )
        folders = {trial.case_id: run.kept_workspace(trial) for trial in run.trials()}
        assert sorted(name for name, folder in folders.items() if folder) == kept
        assert all((folder / "said").read_text() == name for name, folder in folders.items() if folder)
        assert all(folder.stat().st_mode & 0o077 == 0 for folder in folders.values() if folder)


async def test_every_attempt_starts_afresh(run_suite, tmp_path):
    (tmp_path / "fn.py").write_text(
        "import pathlib\n"
        "def agent(input, workspace):\n"
        "    folder = pathlib.Path(workspace)\n"
        "    seen = sorted(path.name for path in folder.iterdir())\n"
        "    tried = pathlib.Path(__file__).with_name('tried')\n"
        "    (folder / 'mark').write_text('x')\n"
        "    if not tried.exists():\n"
        "        tried.write_text('')\n"
        "        return ''\n"
        "    return ' '.join(seen) or 'nothing'\n"
        "def look(workspace, trace, response):\n"
        "    return (workspace / 'mark').read_text() == 'x' and trace['workspace']['added'] == ['mark']\n"
    )
    run = await run_suite(
        targets=["python:fn.py:agent"], scorer={"type": "python", "function": "fn.py:look"}, cases=[{"input": "go"}],
        retry={"empty_wait": 0},
    )  # fmt: skip
    (trial,) = run.trials()
    assert (trial.answer, trial.attempts, trial.score) == ("nothing", 2, 1.0), trial.failure_message


async def test_a_conversation_goes_on_in_the_same_files(run_suite, tmp_path, store):
    (tmp_path / "fn.py").write_text(
        "import pathlib\n"
        "def agent(input, workspace):\n"
        "    file = pathlib.Path(workspace) / 'log'\n"
        "    file.write_text((file.read_text() if file.exists() else '') + input)\n"
        "    if input == 'b' and not pathlib.Path(__file__).with_name('go').exists():\n"
        "        file.write_text('spoilt')\n"
        "        raise RuntimeError('not yet')\n"
        "    return file.read_text()\n"
    )
    case = {"id": "talk", "turns": ["a", "b", "c"], "expected": "abc"}
    run = await run_suite(targets=["python:fn.py:agent"], cases=[case])
    assert run.status == "incomplete"
    (tmp_path / "go").write_text("")
    (trial,) = (await aresume(run.id, store=store, mode="retry")).trials()
    assert (trial.answer, trial.score) == ("abc", 1.0), trial.failure_message
    assert read_changes(stored_changes(store, run.id, next(iter(run.placed_trials(0, 1)))[0]).body).added == ("log",)


@pytest.mark.slow
async def test_an_answer_from_the_cache_brings_its_changes(run_suite, agent, tmp_path):
    keys = {
        "targets": [agent], "workspace": {"setup": "true"}, "scorer": check("cat made"),
        "cases": [{"id": "x", "input": "(here / 'made').write_text('once')"}], "cache": True,
    }  # fmt: skip
    first = await run_suite(**keys)
    second = await run_suite(**keys)
    (trial,) = second.trials()
    assert first.id != second.id and trial.cached and trial.details["check"]["output"] == "once"
    keys["workspace"] = {"setup": "echo other > other"}  # another start, another trial
    assert not next(iter((await run_suite(**keys)).trials())).cached


@pytest.mark.slow
async def test_values_of_variables_in_files_are_not_stored(run_suite, agent, store, monkeypatch, tmp_path):
    monkeypatch.setenv("SHOP_TOKEN", "tok-4711-violet-9283")
    agent["options"]["env"] = {"TOKEN": "${SHOP_TOKEN}"}
    run = await run_suite(
        targets=[agent],
        scorer=check("grep -q '^tok-4711.violet-9283 [$][{]HOME[}]$' token.txt"),
        cases=[{"id": "x", "input": "(here / 'token.txt').write_text(os.environ['TOKEN'] + ' $' + '{HOME}\\n')"}],
    )
    (trial,) = run.trials()
    assert trial.score == 1.0, trial.notes
    body = stored_changes(store, run.id, next(iter(run.placed_trials(0, 1)))[0]).body
    assert b"4711-violet" not in gzip.decompress(body) and b"${SHOP_TOKEN}" in gzip.decompress(body)
    store.close()
    assert b"4711-violet" not in Path(store.path).read_bytes()
    again = await arescore(run.id, store=run.store, scorer=check("grep -q 4711.violet token.txt"))
    assert next(iter(again.trials())).score == 1.0


@pytest.mark.slow
async def test_a_server_is_given_the_folder_where_it_asks_for_it(run_suite, model, tmp_path):
    known = 'return f"The {topic} is 4711."'
    work = "Path(sys.argv[1], 'asked').write_text(topic); return Path(sys.argv[1], 'code.txt').read_text()"
    (tmp_path / "server.py").write_text(Path(FACTS).read_text().replace(known, work))
    (tmp_path / "start").mkdir()
    (tmp_path / "start/code.txt").write_text("4711")
    await model()
    run = await run_suite(
        targets=["tool-agent:openai:m"],
        mcp_servers={"files": {"command": PYTHON, "args": ["server.py", "{{ workspace }}"]}},
        conditions={"c": {"mcp": ["files"]}},
        workspace={"files": "start"},
        scorer={"type": "all_of", "scorers": [check("test -s asked"), "contains"]},
        cases=[{"input": "What is the code?", "expected": "4711"}],
    )
    (trial,) = run.trials()
    assert trial.score == 1.0, trial.failure_message or trial.notes


@pytest.mark.slow
async def test_claude_code_works_in_it(run_suite, model, monkeypatch, tmp_path):
    (tmp_path / "start").mkdir()
    (tmp_path / "start/story.txt").write_text("once\n")

    def script(turn) -> Say:
        if not turn.results:
            return Say("", (("Bash", {"command": "echo upon >> story.txt; cp story.txt copy.txt"}),))
        return Say("Done.")

    await model(script)
    run = await run_suite(
        targets=[{"target": "claude-code:claude-test-1", "options": {"tools": ["Bash"]}}],
        workspace={"files": "start"},
        scorer=check("diff story.txt copy.txt && grep -q upon copy.txt"),
        cases=[{"id": "s", "input": "Go on."}],
    )
    (trial,) = run.trials()
    assert trial.score == 1.0, trial.failure_message or trial.notes
    assert trial.trace["workspace"]["modified"] == ["story.txt"] and trial.trace["tool_calls"][0]["tool"] == "Bash"


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ({"workspace": {"files": "nowhere"}}, "there is no file or folder"),
        ({"workspace": {"git": "nowhere"}}, "git"),
        ({"workspace": {"file": "x"}}, "unknown key; did you mean `files`"),
        ({"workspace": {"sandbox": "docker"}}, "needs an `image`"),
        ({"workspace": {"network": "http://"}}, "is not the address of a host"),
        ({"workspace": {"sandbox": "bubblewrap", "read": "nowhere"}}, "to read in the sandbox"),
        ({"scorer": {"type": "check"}}, "`command` is missing"),
        ({"scorer": {"type": "check", "command": "true", "files": "nowhere"}}, "for the check"),
        ({"scorer": {"type": "check", "command": "true"}, "targets": ["mock:echo"]}, "works in no folder"),
        ({"workspace": {"sandbox": "bubblewrap"}, "targets": ["python:fn.py:f"]}, "no sandbox can hold it"),
        ({"workspace": {"sandbox": "bubblewrap", "network": "model"}}, "name the hosts instead"),
    ],
)
def test_what_is_wrong_is_found_before_the_run(write_suite, agent, tmp_path, keys, reason, monkeypatch):
    monkeypatch.setattr("fairtrial.agents.workspace.sandbox._bubblewrap_problem", str)
    (tmp_path / "fn.py").write_text("def f(input): return input\n")
    path = write_suite(**{"targets": [agent], "cases": [{"input": "x", "expected": "y"}], **keys})
    with pytest.raises(ProblemsError) as error:
        pipeline.load(path)
    assert reason in " ".join(problem.message for problem in error.value.problems)


def test_the_nearest_word_wins_key_by_key(write_suite, agent, tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).write_text(name)
    path = write_suite(
        targets=[{**agent, "workspace": {"keep": "all"}}],
        conditions={"c": {"workspace": {"setup": "true"}}},
        workspace={"files": "a", "keep": "failed", "max_mb": 7},
        cases=[{"id": "own", "input": "x", "workspace": {"files": "b"}}, {"id": "none", "input": "y"}],
        scorer=check("true"),
    )
    suite = pipeline.load(path)
    (arm,) = suite.arms
    own, none = (arm.workspace_of(case) for case in suite.cases())
    assert (own.keep, own.setup, own.max_mb) == ("all", ("true",), 7.0) == (none.keep, none.setup, none.max_mb)
    assert [file.name for file in own.files] == ["b"] and [file.name for file in none.files] == ["a"]
    before = suite.plan_id, suite.dataset_sha256
    (tmp_path / "b" / "b").write_text("changed")
    changed = pipeline.load(path)
    assert changed.dataset_sha256 != before[1] and changed.plan_id != before[0]


@pytest.mark.slow
def test_servers_and_hot_judges_are_looked_at_before_a_run(write_suite, capsys):
    path = write_suite(
        targets=["python:json:dumps"],
        mcp_servers={"facts": {"command": PYTHON, "args": [FACTS]}},
        conditions={"c": {"mcp": ["facts"]}},
        scorer="llm_judge",
        judge={"target": "mock:echo", "temperature": 0.7},
    )
    assert _run(["validate", str(path), "--servers"]) == 0
    printed = capsys.readouterr()
    assert "facts (" in printed.out and "lookup" in printed.out
    assert "has a temperature of 0.7" in printed.err
    broken = write_suite(
        targets=["python:json:dumps"],
        mcp_servers={"facts": {"command": "sh", "args": ["-c", "echo oops >&2; exit 1"]}},
        conditions={"c": {"mcp": ["facts"]}},
    )
    assert _run(["validate", str(broken), "--servers"]) == 1
    assert "oops" in capsys.readouterr().err
    assert _run(["validate", str(broken), "--servers", "--json"]) == 1
    assert "oops" in capsys.readouterr().out


@pytest.mark.slow
def test_a_trial_is_shown_with_what_changed(agent, write_suite, capsys, store):
    task = "(here / 'made.txt').write_text('violet'); print('done')"
    path = write_suite(
        targets=[agent], workspace={"keep": "all"}, scorer=check("cat made.txt"), cases=[{"id": "x", "input": task}]
    )
    address = ["--store", f"sqlite:///{store.path}"]
    assert _run(["run", str(path), "--quiet", *address]) == 0
    capsys.readouterr()
    assert _run(["show", "latest", "x", "agent", *address]) == 0
    shown = capsys.readouterr().out
    assert "1 added" in shown and "+violet" in shown and "kept in" in shown
    assert _run(["report", "latest", "-o", "report.html", *address]) == 0
    kept = next((Path(store.path).parent / "workspaces").iterdir())
    assert _run(["delete", "latest", "--yes", *address]) == 0
    assert not kept.exists()
