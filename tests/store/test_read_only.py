"""Stores where nothing can be written: on a read-only medium, or in a folder of somebody else. They can be read."""

import json
import os
import shlex
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

from fairtrial.cli.main import _run
from fairtrial.store import Store
from tests import forks
from tests.conftest import numbered

STORE = ".fairtrial/fairtrial.db"
TWO = [{"id": name, "target": "mock:x", "options": {"answer": f"{name} 42"}} for name in ("good", "poor")]
READING = (
    ["list"],
    ["show", "latest", "--json"],
    ["show", "latest", "--trials"],
    ["compare", "latest", "--json"],
    ["export", "latest", "-o", "{out}/run.csv"],
    ["export", "latest", "-o", "{out}/run.html"],
    ["store", "check"],
)
WRITING = (
    ["run", "suite.yaml", "--quiet"],
    ["rescore", "latest", "--scorer", "exact"],
    ["tag", "latest", "mine"],
    ["delete", "latest", "--yes"],
)


@pytest.fixture
def folder(tmp_path, write_suite, monkeypatch):
    """A folder with a run in its store."""
    monkeypatch.chdir(tmp_path)
    suite = write_suite(targets=TWO, scorer="contains", cases=numbered(3, "good"))
    if suite.name != "suite.yaml":
        shutil.copy(suite, "suite.yaml")
    assert _run(["run", "suite.yaml", "--quiet"]) == 0
    return tmp_path


@pytest.fixture
def read_only(folder, monkeypatch, tmp_path_factory):
    """The same, on what everybody sees as a read-only medium; root may write anywhere else."""
    state = {path: path.stat().st_mtime_ns for path in (folder / ".fairtrial").rglob("*")}
    real, touch, mkdir = os.access, Path.touch, Path.mkdir

    def refuse(change):
        def changed(path, *args, **options):
            if path.resolve().is_relative_to(folder):
                raise OSError(30, "Read-only file system", str(path))
            return change(path, *args, **options)

        return changed

    def access(path, mode, **options):
        return not (mode & os.W_OK and Path(path).resolve().is_relative_to(folder)) and real(path, mode, **options)

    monkeypatch.setattr(os, "access", access)
    monkeypatch.setattr(Path, "touch", refuse(touch))
    monkeypatch.setattr(Path, "mkdir", refuse(mkdir))
    yield tmp_path_factory.mktemp("out")
    assert {path: path.stat().st_mtime_ns for path in (folder / ".fairtrial").rglob("*")} == state


@pytest.mark.parametrize("command", READING, ids=lambda command: " ".join(command[:2]))
def test_it_is_read(read_only, command, capsys):
    assert _run([part.format(out=read_only) for part in command]) == 0
    assert "error" not in capsys.readouterr().err


@pytest.mark.parametrize("command", WRITING, ids=lambda command: " ".join(command[:2]))
def test_whoever_writes_is_told_in_one_sentence(read_only, command, capsys):
    assert _run(command) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "cannot be written" in said and "internal" not in said


def test_reading_does_not_change_how_a_file_is_written(folder):
    """A store that somebody has put into one file, for a read-only medium, stays as it is."""
    with closing(sqlite3.connect(STORE)) as connection:
        assert connection.execute("PRAGMA journal_mode=DELETE").fetchone() == ("delete",)
    before = Path(STORE).read_bytes()
    assert _run(["list"]) == 0 and _run(["store", "check"]) == 0
    assert Path(STORE).read_bytes() == before
    assert _run(["tag", "latest", "mine"]) == 0
    assert Path(STORE).read_bytes()[18:20] == b"\2\2"  # it has a log again


def test_a_store_of_an_earlier_version_says_that_it_has_to_be_upgraded(folder, monkeypatch, capsys):
    with closing(sqlite3.connect(STORE)) as connection:
        connection.execute("UPDATE meta SET value = '17' WHERE key = 'schema'")
        connection.commit()
    monkeypatch.setattr(os, "access", lambda *_, **__: False)
    shutil.rmtree(".fairtrial/locks")
    Path(".fairtrial/locks").touch()
    assert _run(["list"]) == 1
    assert "earlier fairtrial" in capsys.readouterr().err


# -- another user, and a real mount ------------------------------------------------------------------

NOBODY = 65534
needs_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can act as another user"
)


@pytest.fixture
def theirs(folder):
    """A copy of the folder that everybody can find: those of pytest are for its user only."""
    with tempfile.TemporaryDirectory() as made:
        yield Path(shutil.copytree(folder, f"{made}/theirs"))


def as_nobody(folder, *command):
    """Run a command as a user to whom nothing belongs, who may look into this folder."""
    for path in (folder.parent, folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    drop = f"import os\nos.setgroups([])\nos.setgid({NOBODY})\nos.setuid({NOBODY})\n"
    return forks.run(*command, "--store", folder / STORE, program=drop + forks.PROGRAM)


@needs_root
def test_a_store_of_another_owner_is_read_and_left_alone(theirs):
    for command in (["list"], ["show", "latest", "--json"], ["compare", "latest", "--json"], ["store", "check"]):
        done = as_nobody(theirs, *command)
        assert done.returncode == 0, done.stderr
    done = as_nobody(theirs, "tag", "latest", "mine")
    assert done.returncode == 1 and "cannot be written" in done.stderr and done.stderr.count("\n") == 1
    assert [path.name for path in (theirs / ".fairtrial").iterdir() if path.is_file()] == ["fairtrial.db"]


@needs_root
def test_a_store_that_its_owner_is_writing_is_read_with_its_log(theirs):
    """With a run in progress: it is called running, and rows that are only in the log are read."""
    store = Store(str(theirs / STORE))
    (run,) = store.runs()
    with store.lease(run.id) as lease:
        lease.set_run(status="running", reason="in the log")
        done = as_nobody(theirs, "show", "latest", "--json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["status"] == "running" and "in the log" in done.stdout
        assert as_nobody(theirs, "store", "check").returncode == 0
    store.close()


@needs_root
def test_a_log_that_cannot_be_read_is_never_left_out(folder, theirs):
    """It was left by a process that was killed, and came to the medium without its index."""
    with closing(sqlite3.connect(STORE)) as connection:
        connection.execute("UPDATE runs SET reason = 'in the log'")
        connection.commit()
        shutil.copy(f"{STORE}-wal", theirs / f"{STORE}-wal")
    for command in (["list"], ["store", "check"]):
        done = as_nobody(theirs, *command)
        assert done.returncode == 1 and "fairtrial.db-wal" in done.stderr and "copy both files" in done.stderr
        assert done.stderr.count("\n") == 1


@needs_root
def test_a_folder_that_cannot_be_looked_into_is_said(theirs):
    (theirs / ".fairtrial").chmod(0o700)
    drop = f"import os\nos.setgroups([])\nos.setuid({NOBODY})\n"
    theirs.parent.chmod(0o755)
    for command in (["list"], ["store", "check"]):
        done = forks.run(*command, "--store", theirs / STORE, program=drop + forks.PROGRAM)
        assert done.returncode == 1 and "permission" in done.stderr.lower() and "internal" not in done.stderr


@needs_root
@pytest.mark.slow
def test_a_read_only_mount_is_read(theirs):
    """What the system says there, and what SQLite does, is not what a test could pretend."""
    if shutil.which("unshare") is None:
        pytest.skip("needs unshare")
    program = shlex.quote(str(Path(sys.executable).with_name("fairtrial")))
    place, store = shlex.quote(str(theirs)), shlex.quote(str(theirs / STORE))
    mount = f"mount --bind {place} {place} && mount -o remount,bind,ro {place} || exit 77"
    for command, code in (("list", 0), ("show latest", 0), ("store check", 0), ("tag latest mine", 1)):
        script = f"{mount}; exec {program} {command} --store {store}"
        done = subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, text=True, check=False)
        if done.returncode == 77:
            pytest.skip(f"nothing can be mounted here: {done.stderr}")
        assert done.returncode == code, done.stderr
        assert code == 0 or ("cannot be written" in done.stderr and done.stderr.count("\n") == 1)
