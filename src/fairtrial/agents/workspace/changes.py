"""What an agent changed in its workspace: found by comparison with the start, packed, shown, and applied again."""

from __future__ import annotations

import difflib
import io
import os
import shutil
import stat
import tarfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from fairtrial.agents.workspace.archive import entries, remove, replaced, unpack, write
from fairtrial.core.types_in_threads import look_into

_SUMMARY = "changes.json"
_FILES = "files/"
_MAX_COPY = 2**20  # of one file whose first state is kept for the comparison
_MAX_COPIES = 64 * 2**20
_MAX_DIFF = 60_000  # characters of the diff that are kept
_MAX_LINES = 3000  # of a file whose diff is computed


class TooManyChangesError(Exception):
    """The changes are more than may be kept."""


class FileChanges(msgspec.Struct, frozen=True, kw_only=True):
    """The names of files that an agent added, modified and removed."""

    added: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


class WorkspaceDiff(NamedTuple):
    """The changes as an archive, and for display: names and a diff."""

    archive: bytes
    shown: dict[str, Any]


class _Mark(NamedTuple):
    """What shows whether a file has been touched; its change time cannot be set by programs."""

    kind: int
    mode: int
    size: int
    modified: int
    changed: int
    inode: int


class Start:
    """The state of a workspace before the agent works in it; small files are copied for the diff."""

    def __init__(self, folder: Path, copies: Path) -> None:
        self._folder, self._copies = folder, copies
        self._marks = {name: _mark(status) for name, status in entries(folder)}
        left = _MAX_COPIES
        for name, mark in self._marks.items():
            if stat.S_ISREG(mark.kind) and mark.size <= min(_MAX_COPY, left):
                left -= mark.size
                copy = copies / name
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(folder / name, copy)

    def compare(self, max_bytes: int) -> WorkspaceDiff:
        """Return what changed since then; raise TooLargeError beyond the limit."""
        marks = {name: _mark(status) for name, status in entries(self._folder)}
        added = [name for name in marks if name not in self._marks and not _special(marks[name])]
        modified = [name for name in marks if name in self._marks and self._differs(name, marks[name])]
        removed = [name for name in self._marks if name not in marks]
        size = sum(marks[name].size for name in (*added, *modified) if stat.S_ISREG(marks[name].kind))
        if size > max_bytes:
            raise TooManyChangesError(f"{size / 2**20:.1f} MB of changed files")
        shown = [name for name in added if not stat.S_ISDIR(marks[name].kind)]
        gone = [name for name in removed if not stat.S_ISDIR(self._marks[name].kind)]
        diff = _bounded(piece for name in sorted([*shown, *modified, *gone]) for piece in self._diff(name))
        changes = FileChanges(added=tuple(shown), modified=tuple(modified), removed=tuple(removed))
        items = [(f"{_FILES}{name}", self._folder / name) for name in (*added, *modified)]
        archive = write(items, texts={_SUMMARY: msgspec.json.encode(changes)}, times=True)
        return WorkspaceDiff(archive, {"added": shown, "modified": modified, "removed": gone, "diff": diff})

    def _differs(self, name: str, mark: _Mark) -> bool:
        before = self._marks[name]
        if mark == before or (stat.S_ISDIR(mark.kind) and stat.S_ISDIR(before.kind)):
            return False
        if mark.kind != before.kind or mark.mode != before.mode or mark.size != before.size:
            return not _special(mark)
        copy = self._copies / name
        return not copy.is_file() or copy.read_bytes() != (self._folder / name).read_bytes()

    def _diff(self, name: str) -> Iterator[str]:
        before, after = _lines(self._copies / name), _lines(self._folder / name)
        if before is None or after is None or max(len(before), len(after)) > _MAX_LINES:
            yield f"{name}: a binary or a large file, not shown"
            return
        labels = ("/dev/null" if not before else f"a/{name}"), ("/dev/null" if not after else f"b/{name}")
        yield from difflib.unified_diff(before, after, *labels, lineterm="")


def read_changes(archive: bytes) -> FileChanges:
    """Return what an archive of changes says about itself."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
        summary = packed.extractfile(_SUMMARY)
        assert summary is not None
        return msgspec.json.decode(summary.read(), type=FileChanges)


def apply_changes(archive: bytes, folder: Path) -> None:
    """Bring a workspace from its start to the state in which an agent left it."""
    for name in sorted(read_changes(archive).removed, reverse=True):
        path = folder / name
        if path.parent.resolve().is_relative_to(folder.resolve()):
            remove(path)
    unpack(archive, folder, _FILES)


def with_texts(archive: bytes, change: Callable[[str], str]) -> bytes:
    """Return the archive with a function applied to every text in it, such as one that hides secrets."""
    texts: dict[str, bytes] = {}
    with tarfile.open(fileobj=io.BytesIO(archive)) as source:
        for member in source:
            content = source.extractfile(member) if member.isreg() else None
            body = content.read() if content is not None else b""
            changed = _changed(body, change)
            if changed != body and member.name != _SUMMARY:
                texts[member.name] = changed
    return replaced(archive, texts) if texts else archive


def _changed(body: bytes, change: Callable[[str], str]) -> bytes:
    text = _text(body)
    return body if text is None else change(text).encode()


def _mark(status: os.stat_result) -> _Mark:
    kind = stat.S_IFMT(status.st_mode)
    executable = status.st_mode & 0o100
    return _Mark(kind, executable, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


def _special(mark: _Mark) -> bool:
    """Return whether something is neither a file, nor a folder, nor a link: sockets and the like are not kept."""
    return not (stat.S_ISREG(mark.kind) or stat.S_ISDIR(mark.kind) or stat.S_ISLNK(mark.kind))


def _lines(path: Path) -> list[str] | None:
    """Return the lines of a text file, none if there is no file, and None if it is something else."""
    if path.is_symlink():
        return [f"-> {path.readlink()}"]
    if not path.is_file():
        return []
    if path.stat().st_size > _MAX_COPY:
        return None
    text = _text(path.read_bytes())
    return None if text is None else text.splitlines()


def _text(body: bytes) -> str | None:
    try:
        return None if b"\0" in body else body.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _bounded(pieces: Iterable[str]) -> str:
    """Join lines as far as there is room for them."""
    lines, left = [], _MAX_DIFF
    for piece in pieces:
        left -= len(piece) + 1
        if left < 0:
            lines.append("… more was changed than is shown here")
            break
        lines.append(piece)
    return "\n".join(lines)


look_into(FileChanges)
