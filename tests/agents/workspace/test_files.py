"""Archives and changes: what is packed comes back, whatever it is, and nothing gets out of its folder."""

import errno
import io
import os
import shutil
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairtrial.agents.workspace.archive import ArchiveError, pack, pack_git, unpack
from fairtrial.agents.workspace.changes import Start, TooManyChangesError, apply_changes, read_changes, with_texts
from fairtrial.agents.workspace.making import _move

_MB = 2**20
_NAMES = st.sampled_from(["a", "b", "sub/a", "sub/deep/c", "x.txt", "ünï"])
_CONTENTS = st.one_of(st.binary(max_size=40), st.text(max_size=40).map(str.encode))


def tree(folder: Path) -> dict[str, object]:
    """Everything in a folder: contents of files, targets of links, None for folders."""
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = ("link", str(path.readlink()))
        else:
            found[name] = (path.read_bytes(), bool(path.stat().st_mode & 0o100)) if path.is_file() else None
    return found


def write(folder: Path, files: dict[str, bytes]) -> Path:
    for name, body in files.items():
        path = folder / name
        if any(parent.is_file() for parent in path.parents) or path.is_dir():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)
    return folder


def emptied(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(files=st.dictionaries(_NAMES, _CONTENTS, max_size=5))
def test_what_is_packed_comes_back_and_equal_files_give_equal_bytes(tmp_path_factory, files):
    folder = write(tmp_path_factory.mktemp("one"), files)
    again = write(tmp_path_factory.mktemp("other"), dict(reversed(files.items())))
    os.utime(again, (1, 1))
    packed = pack(folder, _MB)
    assert packed == pack(again, _MB)
    unpacked = tmp_path_factory.mktemp("unpacked")
    unpack(packed, unpacked)
    assert tree(unpacked) == tree(folder)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    before=st.dictionaries(_NAMES, _CONTENTS, max_size=5),
    after=st.dictionaries(_NAMES, _CONTENTS, max_size=5),
    removed=st.sets(_NAMES),
    linked=st.booleans(),
)
def test_changes_bring_the_start_to_where_the_agent_left_it(tmp_path_factory, before, after, removed, linked):
    base = tmp_path_factory.mktemp("base")
    folder = write(emptied(base / "work"), before)
    other = write(emptied(base / "other"), before)
    start = Start(folder, base / "copies")
    for name in removed:
        path = folder / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    write(folder, after)
    if linked and not (folder / "link").exists():
        (folder / "link").symlink_to("/etc/hostname")
    comparison = start.compare(_MB)
    apply_changes(comparison.archive, other)
    assert tree(other) == tree(folder)
    changes = read_changes(comparison.archive)
    changed = {name for name, body in tree(folder).items() if body is not None}
    assert set(changes.added) | set(changes.modified) <= changed
    assert not set(changes.removed) & set(tree(folder))


def test_untouched_and_rewritten_files_are_no_changes(tmp_path):
    folder = write(tmp_path / "work", {"a": b"one", "b": b"two"})
    start = Start(folder, tmp_path / "copies")
    (folder / "a").write_bytes(b"one")
    os.utime(folder / "b", (5, 5))
    (folder / "__pycache__").mkdir()
    assert start.compare(_MB).shown == {"added": [], "modified": [], "removed": [], "diff": ""}


def test_the_diff_and_its_limits(tmp_path):
    folder = write(tmp_path / "work", {"a.txt": b"one\ntwo\n", "old": b"gone\n", "pic": b"\0\1"})
    start = Start(folder, tmp_path / "copies")
    (folder / "a.txt").write_text("one\nthree\n")
    (folder / "pic").write_bytes(b"\0\2")
    (folder / "old").unlink()
    (folder / "run.sh").write_text("echo\n")
    (folder / "run.sh").chmod(0o755)
    os.mkfifo(folder / "pipe")
    shown = start.compare(_MB).shown
    assert (shown["added"], shown["modified"], shown["removed"]) == (["run.sh"], ["a.txt", "pic"], ["old"])
    lines = shown["diff"].splitlines()
    assert {"-two", "+three", "-gone", "+echo", "pic: a binary or a large file, not shown"} <= set(lines)
    with pytest.raises(TooManyChangesError, match="MB of changed files"):
        start.compare(3)
    write(folder, {f"many/{number}": b"x\n" * 400 for number in range(200)})
    assert "more was changed than is shown" in start.compare(_MB).shown["diff"][-60:]


def test_secrets_are_replaced_in_texts_and_come_back(tmp_path):
    folder = emptied(tmp_path / "work")
    start = Start(folder, tmp_path / "copies")
    write(folder, {"key.txt": b"the key is sk-123", "bytes": b"\0sk-123"})
    archive = start.compare(_MB).archive
    hidden = with_texts(archive, lambda text: text.replace("sk-123", "${KEY}"))
    assert with_texts(archive, str) is archive
    unpack(hidden, emptied(tmp_path / "seen"), "files/")
    assert (tmp_path / "seen/key.txt").read_text() == "the key is ${KEY}"
    assert with_texts(hidden, lambda text: text.replace("${KEY}", "sk-123")) == archive


def _tar(*members: tuple[str, str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for kind, name, body in members:
            member = tarfile.TarInfo(name)
            if kind == "link":
                member.type, member.linkname = tarfile.SYMTYPE, body.decode()
                archive.addfile(member)
            else:
                member.size = len(body)
                archive.addfile(member, io.BytesIO(body))
    return buffer.getvalue()


@pytest.mark.parametrize("name", ["../out", "/tmp/out", "a/../../out", ""])
def test_names_outside_of_the_folder_are_refused(tmp_path, name):
    with pytest.raises(ArchiveError, match="outside"):
        unpack(_tar(("file", name, b"x")), emptied(tmp_path / "in"))
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_nothing_is_written_through_a_link(tmp_path):
    outside, inside = emptied(tmp_path / "outside"), emptied(tmp_path / "inside")
    (inside / "tests").symlink_to(outside)
    (inside / "check.py").symlink_to(outside / "check.py")
    unpack(_tar(("file", "tests/a", b"x"), ("file", "check.py", b"y"), ("link", "way", b"../outside")), inside)
    assert not list(outside.iterdir())
    assert (inside / "tests/a").read_bytes() == b"x" and not (inside / "check.py").is_symlink()
    unpack(_tar(("link", "tests", b"../outside"), ("file", "tests/b", b"z")), inside)
    assert not list(outside.iterdir())


def test_archives_and_single_files(tmp_path):
    folder = write(tmp_path / "folder", {"a": b"1", "sub/b": b"2"})
    with zipfile.ZipFile(tmp_path / "f.zip", "w") as zipped:
        for path in (folder / "a", folder / "sub/b"):
            zipped.write(path, path.relative_to(folder))
    with tarfile.open(tmp_path / "f.tar.gz", "w:gz") as archive:
        archive.add(folder, ".")
    for name in ("f.zip", "f.tar.gz"):
        unpack(pack(tmp_path / name, _MB), emptied(tmp_path / "out"))
        assert tree(tmp_path / "out") == tree(folder), name
    unpack(pack(folder / "a", _MB), emptied(tmp_path / "out"))
    assert tree(tmp_path / "out") == {"a": (b"1", False)}
    (tmp_path / "broken.zip").write_bytes(b"no")
    for wrong, reason in (("broken.zip", "cannot be unpacked"), ("none", "there is no file")):
        with pytest.raises(ArchiveError, match=reason):
            pack(tmp_path / wrong, _MB)
    with pytest.raises(ArchiveError, match="more than"):
        pack(folder, 1)


def test_a_commit_of_a_repository(tmp_path):
    origin = write(tmp_path / "origin", {"a": b"old"})
    git = ["git", "-C", str(origin), "-c", "user.name=n", "-c", "user.email=e@example.com"]
    subprocess.run([*git[:3], "init", "-q"], check=True)
    for text in ("old", "new"):
        (origin / "a").write_text(text)
        subprocess.run([*git, "add", "-A"], check=True)
        subprocess.run([*git, "commit", "-qm", text], check=True)
    for repository in (str(origin), f"file://{origin}"):
        for ref, text in (("HEAD", "new"), ("HEAD~1", "old")):
            unpack(pack_git(repository, ref, _MB, tmp_path / "clone"), emptied(tmp_path / "out"))
            assert tree(tmp_path / "out") == {"a": (text.encode(), False)}
    for wrong in ("no-such-branch", "--help"):
        with pytest.raises(ArchiveError, match="git"):
            pack_git(str(origin), wrong, _MB, tmp_path / "clone")
    with pytest.raises(ArchiveError, match="git"):
        pack_git(str(tmp_path / "nowhere"), "HEAD", _MB, tmp_path / "other-clone")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes in folders")
def test_a_folder_with_a_pipe_is_kept_on_another_disk_without_it(tmp_path, monkeypatch):
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.txt").write_text("a")
    os.mkfifo(tmp_path / "work" / "pipe")

    def other_disk(*_):
        raise OSError(errno.EXDEV, "another disk")

    monkeypatch.setattr(os, "rename", other_disk)
    _move(tmp_path / "work", tmp_path / "kept" / "work")
    assert [path.name for path in (tmp_path / "kept" / "work").iterdir()] == ["a.txt"]
