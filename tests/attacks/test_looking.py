"""Looking runs nothing: hostile suites through every command that only looks, watched by an audit hook."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from fairtrial.cli.main import _run
from fairtrial.core.trust import ASKING, may_run_code
from tests.attacks.suites import READING, RUNNING, SECRETS
from tests.attacks.watched import watching

ALL = {f"running {name}": files for name, files in RUNNING.items()} | {
    f"reading {name}": files for name, files in READING.items()
}


@pytest.fixture
def lay(tmp_path, monkeypatch):
    """Write a stranger's folder, with secrets beside it, and go there."""

    def write(files: dict[str, str]) -> Path:
        folder, outside = tmp_path / "theirs", tmp_path / "outside"
        outside.mkdir()
        for name, text in SECRETS.items():
            (outside / name).write_text(text.replace("CANARY", str(tmp_path / "canary")))
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if text.startswith("@link:"):
                path.symlink_to(text.removeprefix("@link:"))
            else:
                path.write_text(text.replace("CANARY", str(tmp_path / "canary")).replace("OUTSIDE", str(outside)))
        monkeypatch.chdir(folder)
        return folder

    return write


def look(folder: Path, *command: str) -> list[str]:
    """Return what a command did that it must not do."""
    with watching(folder, folder.parent / "cache", folder.parent / "home") as watched:
        _run(list(command))
    return watched.seen


@pytest.mark.parametrize("name", ALL)
def test_validate_runs_nothing(name, lay, tmp_path, capfd):
    folder = lay(ALL[name])
    for more in ((), ("--no-keys",), ("--json",)):
        assert look(folder, "validate", "suite.yaml", *more) == []
    assert not (tmp_path / "canary").exists()
    assert "top secret" not in "".join(capfd.readouterr())


def test_what_a_suite_names_is_checked_all_the_same(lay, capfd):
    lay({**RUNNING["a target in a file"]})
    assert _run(["validate", "suite.yaml"]) == 0
    suite = Path("suite.yaml")
    for wrong, words in (("evil.py:nothing", "has no function `nothing`"), ("gone.py:answer", "there is no file")):
        suite.write_text(suite.read_text().replace("evil.py:answer", wrong))
        assert _run(["validate", "suite.yaml"]) == 1
        assert words in capfd.readouterr().err
        suite.write_text(suite.read_text().replace(wrong, "evil.py:answer"))
    Path("evil.py").write_text("def answer(question, system, servers, more): pass")
    assert _run(["validate", "suite.yaml"]) == 1
    assert "asks for `more`, which a target is not given" in capfd.readouterr().err
    Path("evil.py").write_text("def answer(:")
    assert _run(["validate", "suite.yaml"]) == 1
    assert "evil.py cannot be imported: SyntaxError" in capfd.readouterr().err


def test_it_runs_when_told_so(lay, tmp_path, capfd):
    lay(RUNNING["a target in a file"])
    assert _run(["validate", "suite.yaml", "--run-code"]) == 0
    assert (tmp_path / "canary").exists()


@pytest.mark.parametrize("name", [name for name, files in RUNNING.items() if "evil.py" in files])
def test_the_attacks_work_where_code_may_run(name, lay, tmp_path, capfd):
    lay(RUNNING[name])
    _run(["validate", "suite.yaml", "--run-code", "--no-keys"])
    assert (tmp_path / "canary").exists(), capfd.readouterr()


def test_files_outside_are_read_when_told_so(lay, capfd):
    lay(READING["a dataset"])
    assert _run(["validate", "suite.yaml"]) == 1
    assert "outside of the suite's folder, where only a run reads: `fairtrial validate --run-code`" in (
        " ".join(capfd.readouterr().err.split())
    )
    assert _run(["validate", "suite.yaml", "--run-code"]) == 0


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no program git")
@pytest.mark.parametrize("way", ["filter", "fsmonitor", "hook", "pager", "upload"])
def test_a_repository_cannot_have_git_run_a_program(way, lay, tmp_path, capfd):
    folder = lay({"suite.yaml": RUNNING["a set-up"]["suite.yaml"]})
    canary, program = tmp_path / "canary", tmp_path / "program"
    program.write_text(f"#!/bin/sh\necho ran > {canary}\ncat\n")
    program.chmod(0o755)
    work = tmp_path / "work"
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]
    subprocess.run([*git, "init", "-q", str(work)], check=True)
    (work / "a.txt").write_text("content")
    (work / ".gitattributes").write_text("*.txt filter=x\n")
    subprocess.run([*git, "-C", str(work), "add", "."], check=True)
    subprocess.run([*git, "-C", str(work), "commit", "-qm", "one"], check=True)
    subprocess.run([*git, "clone", "-q", "--bare", str(work), str(folder / "fx.git")], check=True)
    settings = {
        "filter": ("filter.x.smudge", str(program)),
        "fsmonitor": ("core.fsmonitor", str(program)),
        "hook": ("core.hooksPath", str(tmp_path / "hooks")),
        "pager": ("core.pager", str(program)),
        "upload": ("uploadpack.packObjectsHook", str(program)),
    }
    subprocess.run([*git, "-C", str(folder / "fx.git"), "config", *settings[way]], check=True)
    (tmp_path / "hooks").mkdir()
    for hook in ("post-checkout", "reference-transaction", "post-index-change"):
        shutil.copy(program, tmp_path / "hooks" / hook)
    suite = folder / "suite.yaml"
    suite.write_text(
        '{"name": "s", "targets": [{"target": "command:x", "options": {"command": ["cat", "a.txt"]}}],'
        ' "scorer": "contains", "cases": [{"input": "?", "expected": "content"}],'
        ' "workspace": {"git": {"url": "fx.git", "ref": "HEAD"}}}'
    )
    assert look(folder, "validate", "suite.yaml") == []
    assert not canary.exists()
    assert _run(["run", "suite.yaml", "--quiet", "--store", str(tmp_path / "s.db")]) == 0
    assert not canary.exists()
    capfd.readouterr()


def test_commands_decide_and_restore():
    assert may_run_code()
    _run(["list"])
    assert may_run_code()
    assert "validate" not in ASKING
    assert "serve" not in ASKING
