"""Archives of files: packed so that equal files give equal bytes, and unpacked without leaving the folder."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import shutil
import stat
import struct
import subprocess
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Literal

from fairtrial.text.printable import clipped

IGNORED = frozenset({"__pycache__", ".pytest_cache"})  # derived from other files
_TIME = 1_577_836_800  # 2020-01-01: the same everywhere, and a date that every tool accepts
# What a repository or its author could have git do beyond reading it.
_INERT = ("-c", f"core.hooksPath={os.devnull}", "-c", "core.fsmonitor=false", "-c", "protocol.ext.allow=never")
_PROTOCOLS = "file:git:http:https:ssh"
_MAX_MEMBERS = 100_000
_LONGEST_NAME, _DEEPEST = 2_000, 100  # characters; folders within each other
_TAR_OVERHEAD = 2**26  # bytes, for headers
_DAMAGES = (
    *(OSError, EOFError, ValueError, RuntimeError),
    *(tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error),
)
_OPENERS: dict[bytes, Callable[[Path, Literal["rb"]], IO[bytes]]] = {
    b"\x1f\x8b": gzip.open,  # type: ignore[dict-item]
    b"BZ": bz2.open,
    b"\xfd7": lzma.open,
}
_ENDINGS = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")


class ArchiveError(Exception):
    """Files cannot be packed or unpacked; the message is one sentence."""


def pack(source: Path, max_bytes: int) -> bytes:
    """Return the archive of a folder, of one file, or of what is in an archive; raise ArchiveError if it is too large.

    Times and owners are left out, so that equal files give equal bytes on every machine.
    """
    if source.is_dir():
        return _pack_folder(source, max_bytes)
    if not source.is_file():
        raise ArchiveError(f"there is no file or folder {source}")
    if source.name.lower().endswith(_ENDINGS):
        return _packed_again(source, max_bytes)
    _check_size(source.stat().st_size, max_bytes, source)
    return write([(source.name, source)])


def pack_git(repository: str, ref: str, max_bytes: int, clone_into: Path) -> bytes:
    """Return the archive of a commit of a repository, without its history.

    It is made from a clone of our own, for git does what a repository is configured to do: a stranger's may name
    filters, hooks and other programs. A clone has the content, and none of that.
    """
    folder = clone_into
    if not folder.is_dir():
        _clone(repository, folder)
    else:
        _git("-C", str(folder), "fetch", "--quiet", "--force", "--prune", "--", repository, "+refs/*:refs/*")
    commit = _git("-C", str(folder), "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
    content = _git("-C", str(folder), "archive", "--format=tar", commit.decode().strip(), own_config=False)
    _check_size(len(content), max_bytes, repository)
    return _repacked(tarfile.open(fileobj=io.BytesIO(content)), max_bytes, repository)


def _clone(repository: str, folder: Path) -> None:
    """Clone a repository, or leave nothing behind: half a clone would be fetched into from then on."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as place:
        _git("clone", "--quiet", "--bare", "--template=", "--", repository, str(Path(place) / "clone"))
        with suppress(OSError):  # somebody else was quicker
            (Path(place) / "clone").rename(folder)


def _git(*arguments: str, own_config: bool = True) -> bytes:
    """Return what git answers; `own_config`: with the user's configuration, which knows how to reach repositories."""
    none = {} if own_config else {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    try:
        done = subprocess.run(
            ["git", *_INERT, *arguments],  # noqa: S607  # whichever git the user has
            check=False,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=600,
            env={**os.environ, "GIT_TERMINAL_PROMPT": "0", "GIT_ALLOW_PROTOCOL": _PROTOCOLS, **none},
        )
    except FileNotFoundError:
        raise ArchiveError("there is no program `git`: install it, or give the files as a folder") from None
    except subprocess.TimeoutExpired:
        raise ArchiveError("git took longer than 10 minutes") from None
    if done.returncode:
        reason = " ".join(done.stderr.decode("utf-8", "replace").split()) or "there is no such commit"
        raise ArchiveError(f"git: {reason}")
    return done.stdout


def entries(folder: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Yield everything in a folder in a fixed order, as (relative path, status); links are not followed."""
    with os.scandir(folder) as listing:
        items = sorted(listing, key=lambda item: item.name)
    for item in items:
        if item.name in IGNORED:
            continue
        status = item.stat(follow_symlinks=False)
        yield item.name, status
        if stat.S_ISDIR(status.st_mode):
            yield from ((f"{item.name}/{name}", inner) for name, inner in entries(Path(item.path)))


def write(items: list[tuple[str, Path]], *, texts: dict[str, bytes] | None = None, times: bool = False) -> bytes:
    """Return an archive of files, folders and links under these names, and of texts; with `times`, theirs."""
    with _Writer() as writer:
        for name, body in (texts or {}).items():
            writer.add_bytes(name, body)
        for name, path in items:
            writer.add_path(name, path, times=times)
    return writer.body


def replaced(body: bytes, texts: dict[str, bytes]) -> bytes:
    """Return an archive with other contents for some of its files."""
    with tarfile.open(fileobj=io.BytesIO(body)) as source, _Writer() as writer:
        for member in source:
            if (content := source.extractfile(member) if member.isreg() else None) is None:
                writer.add_other(member)
                continue
            new = texts.get(member.name, content.read())
            writer.add_bytes(member.name, new, executable=bool(member.mode & 0o100), time=int(member.mtime))
    return writer.body


class _Writer:
    """Writes an archive in which nothing depends on the machine or the moment. A context manager."""

    def __init__(self) -> None:
        self._buffer = io.BytesIO()
        self._packed = gzip.GzipFile(fileobj=self._buffer, mode="wb", mtime=0, compresslevel=6)
        self._archive = tarfile.open(fileobj=self._packed, mode="w", format=tarfile.PAX_FORMAT)  # noqa: SIM115

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, *_: object) -> None:
        self._archive.close()
        self._packed.close()

    @property
    def body(self) -> bytes:
        """The archive, once it is closed."""
        return self._buffer.getvalue()

    def add_bytes(self, name: str, body: bytes, *, executable: bool = False, time: int = _TIME) -> None:
        member = _member(name, 0o755 if executable else 0o644, time)
        member.size = len(body)
        self._archive.addfile(member, io.BytesIO(body))

    def add_other(self, source: tarfile.TarInfo) -> None:
        """Add a folder or a link as it is in another archive."""
        member = _member(source.name, 0o755)
        member.type, member.linkname = source.type, source.linkname
        self._archive.addfile(member)

    def add_path(self, name: str, path: Path, *, times: bool) -> None:
        """Add a file, a folder or a link from the disk; anything else is left out."""
        status = path.lstat()
        time = int(status.st_mtime) if times else _TIME
        member = _member(name, 0o755, time)
        if stat.S_ISLNK(status.st_mode):
            member.type, member.linkname = tarfile.SYMTYPE, str(path.readlink())
            self._archive.addfile(member)
        elif stat.S_ISDIR(status.st_mode):
            member.type = tarfile.DIRTYPE
            self._archive.addfile(member)
        elif stat.S_ISREG(status.st_mode):
            self.add_bytes(name, path.read_bytes(), executable=bool(status.st_mode & 0o100), time=time)


def _member(name: str, mode: int, time: int = _TIME) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.mode, member.mtime = mode, time
    return member


def _pack_folder(folder: Path, max_bytes: int) -> bytes:
    items, size = [], 0
    for name, status in entries(folder):
        size += status.st_size if stat.S_ISREG(status.st_mode) else 0
        _check_size(size, max_bytes, folder)
        items.append((name, folder / name))
    return write(items)


def _packed_again(path: Path, max_bytes: int) -> bytes:
    """Return the content of an archive from elsewhere in our form."""
    try:
        if path.name.lower().endswith(".zip"):
            with zipfile.ZipFile(path) as zipped:
                return _from_zip(zipped, max_bytes, path)
        with _unpacked_tar(path, max_bytes) as file, tarfile.open(fileobj=file, mode="r:") as archive:
            return _repacked(archive, max_bytes, path)
    except _DAMAGES as error:
        raise ArchiveError(f"{path} cannot be unpacked: {error or type(error).__name__}") from None


def _unpacked_tar(path: Path, max_bytes: int) -> IO[bytes]:
    """Return a tar file without compression, as long as its files may be.

    Otherwise every step back in it would begin at its start, and a header could be as long as the memory is.
    """
    with path.open("rb") as file:
        opener = _OPENERS.get(file.read(2), Path.open)
    left = 2 * max_bytes + _TAR_OVERHEAD
    plain: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  # the caller closes it
    with opener(path, "rb") as packed:
        while chunk := packed.read(2**20):
            left -= len(chunk)
            if left < 0:
                plain.close()
                _check_size(max_bytes + 1, max_bytes, path)
            plain.write(chunk)
    plain.seek(0)
    return plain


class _Allowed:
    """What is left of the size and number that files of an archive may have."""

    def __init__(self, max_bytes: int, source: Path | str) -> None:
        self._max_bytes, self._source = max_bytes, source
        self._size = self._members = 0

    def take(self, name: str, size: int) -> None:
        """Take room for a member; raise ArchiveError if there is none, or if its name or size cannot be one."""
        if size < 0:  # it would make room; not every Python's library refuses it
            raise ArchiveError(f"{self._source} cannot be unpacked: the size of {clipped(name, 100)} is below zero")
        self._size += size
        self._members += 1
        _check_size(self._size, self._max_bytes, self._source)
        if self._members > _MAX_MEMBERS:
            raise ArchiveError(f"{self._source} has more than {_MAX_MEMBERS:,} files: leave some out")
        _check_name(name)


def _from_zip(zipped: zipfile.ZipFile, max_bytes: int, source: Path) -> bytes:
    room = _Allowed(max_bytes, source)
    for item in zipped.infolist():
        room.take(item.filename, item.file_size)
    with _Writer() as writer:
        for item in sorted(zipped.infolist(), key=lambda item: item.filename):
            if not item.is_dir():
                executable = bool((item.external_attr >> 16) & 0o100)
                writer.add_bytes(item.filename, zipped.read(item), executable=executable)
    return writer.body


def _repacked(source: tarfile.TarFile, max_bytes: int, name: Path | str) -> bytes:
    room, members = _Allowed(max_bytes, name), []
    for member in source:
        room.take(member.name, member.size)
        members.append(member)
    room = _Allowed(max_bytes, name)  # once more, for a hard link is as large as what it is a link to
    with _Writer() as writer:
        for member in sorted(members, key=lambda member: member.name):
            if member.issym() or member.isdir():
                writer.add_other(member)
            elif (content := _content(source, member)) is not None:
                body = content.read()
                room.take(member.name, len(body))
                writer.add_bytes(member.name, body, executable=bool(member.mode & 0o100))
    return writer.body


def _content(source: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes] | None:
    """Return the content of a file or a hard link; None of what has none, such as a device."""
    try:
        return source.extractfile(member)
    except KeyError:
        raise ArchiveError(
            f"the archive has a hard link without its file: {member.name} is one to {member.linkname}"
        ) from None


def _check_size(size: int, max_bytes: int, source: Path | str) -> None:
    if size > max_bytes:
        raise ArchiveError(
            f"{source} has more than {max_bytes / 2**20:g} MB of files: leave some out, or raise `max_mb`"
        )


def unpack(body: bytes, folder: Path, prefix: str = "") -> None:
    """Unpack the members under a prefix into a folder; existing files are replaced, and nothing outside is touched.

    Links come last, and a file is never written through one: an archive of what an agent made may hold any.
    """
    root = folder.resolve()
    with tarfile.open(fileobj=io.BytesIO(body)) as archive:
        links = []
        for member in archive:
            name = member.name.removeprefix("./")
            if not name.startswith(prefix):
                continue
            name = name[len(prefix) :]
            if member.issym():
                links.append((name, member.linkname))
            elif member.isdir():
                if Path(name).parts:
                    _place(root, name, make_folder=True)
            elif member.isreg():
                _write_file(archive, member, _place(root, name))
        for name, linkname in links:
            _place(root, name).symlink_to(linkname)


def _place(root: Path, name: str, *, make_folder: bool = False) -> Path:
    """Return where a member goes, with its folder made; a file or link that is in its way is removed."""
    _check_name(name)
    parts = Path(name).parts
    if not parts:
        raise ArchiveError("the archive has a file outside of its folder: one without a name")
    path = root
    for part in parts if make_folder else parts[:-1]:
        path = path / part
        if path.is_symlink() or (path.exists() and not path.is_dir()):
            path.unlink()
        path.mkdir(exist_ok=True)
    if not make_folder:
        path = path / parts[-1]
        remove(path)
    return path


def _write_file(archive: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
    source = archive.extractfile(member)
    assert source is not None
    with source, path.open("wb") as file:
        shutil.copyfileobj(source, file)
    path.chmod(0o755 if member.mode & 0o100 else 0o644)
    os.utime(path, (member.mtime, member.mtime))


def _check_name(name: str) -> None:
    """Raise ArchiveError if a file of an archive would be outside of its folder, or cannot have this name."""
    parts = Path(name).parts
    if Path(name).is_absolute() or ".." in parts:
        raise ArchiveError(f"the archive has a file outside of its folder: {name[:200]}")
    if "\0" in name or len(name) > _LONGEST_NAME or len(parts) > _DEEPEST:
        raise ArchiveError(f"the archive has a file with a name that no file can have: {name[:40]!r} …")


def remove(path: Path) -> None:
    """Remove a file, a link or a folder, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
