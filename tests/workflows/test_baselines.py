"""The baseline of a gate, found by branch, tag, commit, file and note; and kept there."""

import subprocess

import pytest
import yaml
from click.testing import CliRunner

from fairtrial.analyse.score_table import sources_of
from fairtrial.cli.main import cli
from fairtrial.core.errors import FairtrialError
from fairtrial.workflows.baselines import NoBaselineError, find_baseline, keep_baseline
from tests.analyse.test_compare import arm, cases


@pytest.fixture
def git(tmp_path):
    def call(*args):
        identity = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main")
        done = subprocess.run(["git", *identity, *args], cwd=tmp_path, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    call("init", "-q")
    return call


@pytest.fixture
def commit(git, tmp_path):
    def make(text):
        (tmp_path / "prompt.md").write_text(text)
        git("add", "prompt.md")
        git("commit", "-qm", text)
        return git("rev-parse", "HEAD")

    return make


@pytest.mark.slow
async def test_by_branch_tag_commit_file_and_note(run_suite, git, commit, store, tmp_path):
    def runs():
        return run_suite(targets=[arm("m", 8, 10)], cases=cases(10))

    def found(name):
        return [run.id for run in find_baseline(name, store, change).runs]

    one = commit("one")
    first = await runs()
    assert first.context["git"] == {"commit": one, "branch": "main", "changed": False}
    git("tag", "v1")
    commit("two")
    second = await runs()
    git("checkout", "-qb", "newer")
    commit("far ahead")
    await runs()  # on another branch
    git("checkout", "-q", "-b", "feature", one)
    commit("a change")
    change = await runs()
    assert found("branch:main") == [first.id]  # `two` is newer, but this change does not come after it
    assert found("tag:v1") == found(f"commit:{one[:8]}") == [first.id]
    store.set_tag("golden", second.id)
    assert found("tag:golden") == found("golden") == [second.id]
    # Changed files are no version of their commit, and a commit is not compared with itself.
    (tmp_path / "prompt.md").write_text("not committed")
    dirty = await runs()
    assert dirty.context["git"]["changed"]
    git("checkout", "-q", "prompt.md")
    again = await runs()
    for run in (change, again):
        with pytest.raises(NoBaselineError, match="no run for branch:feature; there are runs of: newer, main"):
            find_baseline("branch:feature", store, run)

    kept = keep_baseline(sources_of(second)[0], str(tmp_path / "kept" / "base.db.gz"))
    other = find_baseline(f"file:{kept}", store, change)
    assert [run.id for run in other.runs] == [second.id] and other.runs[0].store.path != store.path
    assert other.runs[0].summary().arms[0].scored == 10
    assert "push it with" in keep_baseline(sources_of(first)[0], "notes", tmp_path)
    noted = find_baseline("notes:", store, change, tmp_path)
    assert [run.id for run in noted.runs] == [first.id] and noted.label == f"notes:{one[:12]}"


async def test_none_yet_is_said(run_suite, git, commit, store, tmp_path):
    commit("one")
    run = await run_suite(targets=[arm("m", 8, 10)], cases=cases(10))
    for name, says in {
        "branch:main": "no run for branch:main",
        "file:none.db": "there is no file none.db",
        "notes:": "no earlier commit up to HEAD has a note; fetch them with",
    }.items():
        with pytest.raises(NoBaselineError, match=says):
            find_baseline(name, store, run)
    (tmp_path / "broken.db.gz").write_bytes(b"not packed")
    with pytest.raises(FairtrialError, match="is not a packed baseline"):
        find_baseline("file:broken.db.gz", store, run)


@pytest.mark.slow
def test_a_blocked_run_is_not_kept(git, commit, tmp_path, monkeypatch):
    """Else the same command would pass the second time, against itself."""
    monkeypatch.chdir(tmp_path)

    def write(wrong):
        answers = {f"c{n}": "x" for n in range(wrong)}
        suite = {
            "name": "s",
            "targets": [{"id": "bot", "target": "mock:x", "options": {"answers": answers, "answer": "42"}}],
            "gate": {"margin": 40},
            "cases": [{"id": f"c{n}", "input": f"case {n}", "expected": "42"} for n in range(30)],
        }
        (tmp_path / "suite.yaml").write_text(yaml.safe_dump(suite))

    def change(wrong):
        write(wrong)
        git("add", "suite.yaml")
        return commit(f"{wrong} are wrong")

    def gated(*args):
        shown = CliRunner().invoke(cli, ["gate", "suite.yaml", "-q", *args], standalone_mode=False)
        return shown, f"{shown.stdout}{shown.stderr}{shown.exception or ''}"

    good = change(0)
    shown, text = gated("--keep", "notes")
    assert shown.return_value == 0 and "kept as a baseline: the git note of" in text, text
    change(30)
    for _ in range(2):
        shown, text = gated("--against", "notes:", "--keep", "notes")
        assert shown.return_value == 100 and "not kept as a baseline: the gate blocked it" in text, text
    assert git("notes", "--ref", "fairtrial", "list").split()[1:] == [good]
    change(1)
    for _ in range(2):  # its own note is no baseline of the second
        shown, text = gated("--against", "notes:", "--keep", "notes")
        assert shown.return_value == 0 and f"notes:{good[:12]}" in text, text
    write(2)
    shown, text = gated("--keep", str(tmp_path / "base.db.gz"))
    assert "its files differed from the commit" in text
    assert not (tmp_path / "base.db.gz").exists()


async def test_an_interrupted_run_in_a_file_is_no_baseline(run_suite, store, tmp_path):
    first = await run_suite(targets=[arm("m", 8, 10)], cases=cases(10))
    broken = await run_suite(targets=[arm("m", 8, 10)], cases=cases(10))
    run = await run_suite(targets=[arm("m", 8, 10)], cases=cases(10))
    store.set_run(broken.id, status="interrupted")
    found = find_baseline(f"file:{store.path}", store, run)
    assert [one.id for one in found.runs] == [first.id]
