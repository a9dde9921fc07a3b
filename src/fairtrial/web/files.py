"""The suites in the folder that is served: found, read and written there and nowhere else."""

from __future__ import annotations

import hashlib
import os
import re
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from fairtrial.core.errors import FairtrialError

_ENDINGS = (".yaml", ".yml")
_SKIPPED = {"node_modules", "__pycache__", "site-packages", "venv", "dist", "build"}
_DEEPEST = 4
_MOST = 500
_LARGEST = 20 * 2**20
_LOOKS_LIKE = re.compile(r"^targets\s*:", re.MULTILINE)
_CASES = re.compile(r"^(cases|dataset|suite)\s*:", re.MULTILINE)
_NAME = re.compile(r"^name[ \t]*:(.*)$", re.MULTILINE)
_ALLOWED = re.compile(r"[\w][\w .\-/]*\.ya?ml")


class SuiteFile(NamedTuple):
    """A suite on disk: where it is, what it is called, and when it was changed."""

    path: str
    name: str
    changed: float


def suite_files(folder: Path) -> list[SuiteFile]:
    """Every suite below a folder, newest first."""
    found: list[SuiteFile] = []
    for place, folders, names in os.walk(folder):
        here = Path(place)
        depth = len(here.relative_to(folder).parts)
        folders[:] = sorted(f for f in folders if not f.startswith(".") and f not in _SKIPPED and depth < _DEEPEST)
        for name in sorted(names):
            if name.lower().endswith(_ENDINGS) and not name.startswith(".") and (file := _look(here / name, folder)):
                found.append(file)
        if len(found) >= _MOST:
            break
    return sorted(found, key=lambda file: -file.changed)


def _look(path: Path, folder: Path) -> SuiteFile | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    name = _suite_name(path, stat.st_mtime_ns, stat.st_size)
    return None if name is None else SuiteFile(path.relative_to(folder).as_posix(), name, stat.st_mtime)


@lru_cache(maxsize=4 * _MOST)
def _suite_name(path: Path, changed: int, size: int) -> str | None:
    """What a suite is called; None for what is none. A file that has not changed is not read again."""
    if size > _LARGEST:
        return None
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    if not _LOOKS_LIKE.search(text) or not _CASES.search(text):
        return None
    name = _NAME.search(text)
    return (_scalar(name[1]) if name else "") or path.stem


def _scalar(text: str) -> str:
    """A value as it stands behind its key, without its quotes and a comment."""
    text = text.strip()
    if text[:1] in ("'", '"') and (end := text.find(text[0], 1)) > 0:
        return text[1:end]
    return text.partition(" #")[0].strip()


def path_of(folder: Path, name: str) -> Path:
    """The file of that name below the folder; anything else is refused."""
    allowed = _ALLOWED.fullmatch(name) and not any(part.startswith(".") for part in Path(name).parts)
    if not allowed or not (folder / name).resolve().is_relative_to(folder):
        raise FairtrialError(
            f"`{name}` is no suite file: a name ends in .yaml, stays in this folder, and has letters, digits, - and _"
        )
    return (folder / name).resolve()


def read(folder: Path, name: str) -> str:
    """A suite's text."""
    try:
        return path_of(folder, name).read_text("utf-8")
    except FileNotFoundError:
        raise FairtrialError(f"there is no file `{name}` any more") from None
    except (OSError, UnicodeDecodeError) as error:
        raise FairtrialError(f"`{name}` cannot be read: {error}") from None


def fingerprint(text: str) -> str:
    """By which one sees that somebody else has changed a file meanwhile."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def write(folder: Path, name: str, text: str, *, before: str | None) -> str:
    """Write a suite, whole or not at all; `before` is the fingerprint of what it replaces, None for a new file."""
    path = path_of(folder, name)
    text = text.replace("\r\n", "\n")
    if before is None and path.exists():
        raise FairtrialError(f"there is a file `{name}` already: choose another name")
    if before is not None and (not path.exists() or fingerprint(path.read_text("utf-8")) != before):
        raise FairtrialError(
            f"`{name}` was changed on disk since you opened it: reload to see how, or write over it with your text"
        )
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(text, "utf-8")
        partial.replace(path)
    except OSError as error:
        raise FairtrialError(f"`{name}` cannot be written: {error.strerror}") from None
    finally:
        partial.unlink(missing_ok=True)
    return fingerprint(text)


def free_name(folder: Path, name: str) -> str:
    """A name like this one that no file has."""
    stem, ending = path_of(folder, name).relative_to(folder).as_posix().rsplit(".", 1)
    for number in range(2, 1000):
        if not (folder / f"{stem}-{number}.{ending}").exists():
            return f"{stem}-{number}.{ending}"
    raise FairtrialError("there are too many copies of this suite already")
