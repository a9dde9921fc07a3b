"""Archives and repositories of strangers: packed and unpacked within limits, in a folder, or refused in a sentence."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import resource
import struct
import subprocess
import tarfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from fairtrial.agents.workspace.archive import ArchiveError, pack, pack_git, unpack

LIMIT = 2**20
MOST = 20.0  # seconds of the processor's time; each takes a small part of it
BOMB = 100 * LIMIT
GROWTH = 2 * BOMB // 2**10  # kilobytes of memory


def _tar(*members: tarfile.TarInfo | tuple[str, bytes], **options: object) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", **options) as archive:  # type: ignore[call-overload]
        for member in members:
            if isinstance(member, tuple):
                info = tarfile.TarInfo(member[0])
                info.size = len(member[1])
                archive.addfile(info, io.BytesIO(member[1]))
            else:
                archive.addfile(member)
    return buffer.getvalue()


def _member(name: str, kind: bytes, target: str = "", size: int = 0) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, target, size
    return info


def _zip(*files: tuple[str, bytes], packing: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", packing) as archive:
        for name, body in files:
            archive.writestr(zipfile.ZipInfo(name), body, packing)
    return buffer.getvalue()


def _header(name: str, kind: bytes, size: int) -> bytes:
    return _member(name, kind, size=size).tobuf(tarfile.GNU_FORMAT)


def _overlapping() -> bytes:
    """A zip file whose directory names one packed file many times."""
    once = _zip(("a", bytes(LIMIT)))
    at = once.rfind(b"PK\x01\x02")
    end = once.rfind(b"PK\x05\x06")
    entry = once[at:end]
    count = 2000
    tail = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, count, count, len(entry) * count, at, 0)
    return once[:at] + entry * count + tail


def _encrypted() -> bytes:
    body = bytearray(_zip(("a", b"text")))
    body[6] |= 1
    body[body.rfind(b"PK\x01\x02") + 8] |= 1
    return bytes(body)


def _unknown_method() -> bytes:
    body = bytearray(_zip(("a", b"text" * 100)))
    body[8:10] = struct.pack("<H", 99)
    at = body.rfind(b"PK\x01\x02")
    body[at + 10 : at + 12] = struct.pack("<H", 99)
    return bytes(body)


_LINKS = [_member(f"l{number}", tarfile.LNKTYPE, "file") for number in range(1000)]
# What is refused, and what the sentence says.
REFUSED: dict[str, tuple[str, Callable[[], bytes], str]] = {
    "a dangling hard link": ("a.tar", lambda: _tar(_member("b", tarfile.LNKTYPE, "a")), "hard link without its file"),
    "a hard link to itself": ("a.tar", lambda: _tar(_member("a", tarfile.LNKTYPE, "a")), "hard link without its file"),
    "a hard link outside": ("a.tar", lambda: _tar(_member("a", tarfile.LNKTYPE, "/etc/passwd")), "hard link without"),
    "many hard links to one file": ("a.tar", lambda: _tar(("file", bytes(LIMIT // 2)), *_LINKS), "more than 1 MB"),
    "an absolute name": ("a.tar", lambda: _tar(("/etc/x", b"x")), "outside of its folder"),
    "a name that climbs": ("a.tar", lambda: _tar(("a/../../x", b"x")), "outside of its folder"),
    "a climbing folder": ("a.tar", lambda: _tar(_member("../x", tarfile.DIRTYPE)), "outside of its folder"),
    "an absolute name in a zip": ("a.zip", lambda: _zip(("/etc/x", b"x")), "outside of its folder"),
    "a climbing name in a zip": ("a.zip", lambda: _zip(("../x", b"x")), "outside of its folder"),
    "a deep name": ("a.tar", lambda: _tar(("a/" * 900 + "x", b"x")), "no file can have"),
    "a long name": ("a.tar", lambda: _tar(("a" * 5000, b"x")), "no file can have"),
    "a long name in a zip": ("a.zip", lambda: _zip(("a" * 50_000, b"x")), "no file can have"),
    "a bomb": ("a.tar.gz", lambda: gzip.compress(_tar(("a", bytes(BOMB)))), "more than 1 MB"),
    "a bomb of bz2": ("a.tar.bz2", lambda: bz2.compress(_tar(("a", bytes(BOMB)))), "more than 1 MB"),
    "a bomb of xz": ("a.tar.xz", lambda: lzma.compress(_tar(("a", bytes(BOMB))), preset=0), "more than 1 MB"),
    "a bomb in a zip": ("a.zip", lambda: _zip(("a", bytes(BOMB))), "more than 1 MB"),
    "a header that is a bomb": (
        "a.tgz",
        lambda: gzip.compress(_header("a", tarfile.XHDTYPE, BOMB) + bytes(BOMB)),
        "",
    ),
    "a long name that is a bomb": (
        "a.tgz",
        lambda: gzip.compress(_header("a", tarfile.GNUTYPE_LONGNAME, BOMB) + bytes(BOMB)),
        "",
    ),
    "files over each other": ("a.zip", _overlapping, "more than 1 MB"),
    "many files": ("a.tar.gz", lambda: gzip.compress(_header("a", tarfile.REGTYPE, 0) * 100_001, 1), "100,000 files"),
    "a size that is not there": ("a.tar", lambda: _header("a", tarfile.REGTYPE, 2**40), "more than 1 MB"),
    "a size below zero": ("a.tar", lambda: _header("a", tarfile.REGTYPE, -5), "cannot be unpacked"),
    "a size that makes room": (
        "a.tar", lambda: _header("a", tarfile.REGTYPE, -(2**40)) + _header("b", tarfile.REGTYPE, 2**21), ""),
    "nothing": ("a.tar", lambda: b"", "cannot be unpacked"),
    "no archive": ("a.zip", lambda: b"PK\x03\x04 not a zip", "cannot be unpacked"),
    "a cut archive": ("a.tar.gz", lambda: gzip.compress(_tar(("a", bytes(range(256)) * 99)))[:-20], "cannot be unpacked"),
    "a damaged archive": ("a.tar.gz", lambda: gzip.compress(b"x" * 10_000)[:30] + b"\xff" * 50, "cannot be unpacked"),
    "a damaged zip": ("a.zip", lambda: _zip(("a", b"text" * 999)).replace(b"\x00PK\x01", b"\x01PK\x01")[50:], "cannot be"),
    "an encrypted zip": ("a.zip", _encrypted, "cannot be unpacked"),
    "an unknown packing": ("a.zip", _unknown_method, "cannot be unpacked"),
}  # fmt: skip
# What is taken, without what is no file.
TAKEN: dict[str, tuple[str, Callable[[], bytes]]] = {
    "devices": ("a.tar", lambda: _tar(_member("d", tarfile.CHRTYPE), _member("b", tarfile.BLKTYPE), ("ok", b"ok"))),
    "pipes": ("a.tar", lambda: _tar(_member("p", tarfile.FIFOTYPE), ("ok", b"ok"))),
    "a link outside": ("a.tar", lambda: _tar(_member("l", tarfile.SYMTYPE, "/etc"), ("ok", b"ok"))),
    "a file through a link": ("a.tar", lambda: _tar(_member("l", tarfile.SYMTYPE, "../out"), ("l/x", b"x"), ("ok", b"ok"))),
    "a link over a file": ("a.tar", lambda: _tar(("l", b"x"), _member("l", tarfile.SYMTYPE, "../out"), ("ok", b"ok"))),
    "a link to itself": ("a.tar", lambda: _tar(_member("l", tarfile.SYMTYPE, "l"), ("ok", b"ok"))),
    "a file twice": ("a.tar", lambda: _tar(("ok", b"no"), ("ok", b"ok"))),
    "rights of root": ("a.tar", lambda: _tar(_with_mode("s", 0o6777), ("ok", b"ok"))),
    "a link in a zip": ("a.zip", lambda: _zip(("l", b"/etc/passwd"), ("ok", b"ok"))),
    "files from the last to the first": (
        "a.tar.gz",
        lambda: gzip.compress(_tar(*((f"f{9999 - n:04}", b"x") for n in range(3000)), ("ok", b"ok"))),
    ),
}  # fmt: skip


def _with_mode(name: str, mode: int) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.mode = mode
    return info


class _Bounded:
    """Time and memory that something may take."""

    def __enter__(self) -> None:
        self._start = time.process_time()
        self._memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    def __exit__(self, *_: object) -> None:
        assert time.process_time() - self._start < MOST
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - self._memory < GROWTH


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_in_a_sentence(tmp_path: Path, name: str) -> None:
    file, make, said = REFUSED[name]
    path = tmp_path / file
    path.write_bytes(make())
    with _Bounded(), pytest.raises(ArchiveError) as caught:
        pack(path, LIMIT)
    assert said in str(caught.value) and "\n" not in str(caught.value) and len(str(caught.value)) < 600


@pytest.mark.parametrize("name", TAKEN)
def test_nothing_is_written_outside(tmp_path: Path, name: str) -> None:
    file, make = TAKEN[name]
    path, folder, outside = tmp_path / file, tmp_path / "folder", tmp_path / "out"
    path.write_bytes(make())
    folder.mkdir()
    outside.mkdir()
    with _Bounded():
        unpack(pack(path, LIMIT), folder)
    assert (folder / "ok").read_bytes() == b"ok"
    assert list(outside.iterdir()) == []
    for made in folder.rglob("*"):
        assert made.is_symlink() or made.is_file() or made.is_dir()
        assert made.is_symlink() or not made.stat().st_mode & 0o6022


def _git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "protocol.file.allow=always")
    subprocess.run(["git", *identity, "-C", str(folder), *arguments], check=True, capture_output=True)


def _repository(folder: Path, canary: Path, kind: str) -> None:
    folder.mkdir()
    _git(folder, "init", "-q", "-b", "main")
    (folder / "file").write_text("text")
    (folder / ".gitattributes").write_text("* filter=x diff=x merge=x export-subst\n" if kind == "filters" else "")
    if kind == "a link":
        (folder / "link").symlink_to("/etc")
    _git(folder, "add", "-A")
    _git(folder, "commit", "-qm", "first")
    touch = f"touch {canary}"
    settings = {
        "filters": {"filter.x.smudge": touch, "filter.x.clean": touch, "filter.x.process": touch, "diff.x.command": touch},
        "a monitor": {"core.fsmonitor": touch},
        "a pager": {"core.pager": touch, "core.editor": touch, "core.sshCommand": touch},
        "an upload": {"uploadpack.packObjectsHook": touch},
        "aliases": {"alias.archive": f"!{touch}", "alias.rev-parse": f"!{touch}"},
        "tar": {"tar.tar.command": touch, "tar.tgz.command": touch, "gpg.program": touch},
    }  # fmt: skip
    for name, value in settings.get(kind, {}).items():
        _git(folder, "config", name, value)
    if kind == "hooks":
        for hook in ("post-checkout", "post-update", "pre-receive", "reference-transaction", "pre-auto-gc"):
            path = folder / ".git" / "hooks" / hook
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"#!/bin/sh\n{touch}\n")
            path.chmod(0o755)


@pytest.mark.parametrize("kind", ["filters", "a monitor", "a pager", "an upload", "aliases", "tar", "hooks", "a link"])
def test_a_repository_starts_nothing(tmp_path: Path, kind: str) -> None:
    canary, folder = tmp_path / "canary", tmp_path / "made"
    _repository(tmp_path / "theirs", canary, kind)
    canary.unlink(missing_ok=True)  # what it took to make it
    folder.mkdir()
    unpack(pack_git(str(tmp_path / "theirs"), "main", LIMIT, tmp_path / "clone"), folder)
    assert (folder / "file").read_text() == "text"
    assert not canary.exists()


@pytest.mark.parametrize(
    ("address", "ref"),
    [
        ("ext::sh -c 'touch CANARY'", "main"),
        ("--upload-pack=touch CANARY", "main"),
        ("-c core.sshCommand='touch CANARY'", "main"),
        ("ssh://-oProxyCommand=touch CANARY/x", "main"),
        ("REPOSITORY", "--output=CANARY"),
        ("REPOSITORY", "--remote=ext::touch CANARY"),
    ],
)  # fmt: skip
def test_an_address_is_no_command(tmp_path: Path, address: str, ref: str) -> None:
    canary = tmp_path / "canary"
    _repository(tmp_path / "theirs", canary, "")
    address, ref = (
        part.replace("CANARY", str(canary)).replace("REPOSITORY", str(tmp_path / "theirs")) for part in (address, ref)
    )
    with pytest.raises(ArchiveError):
        pack_git(address, ref, LIMIT, tmp_path / "clone")
    assert not canary.exists()
