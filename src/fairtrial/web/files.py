"""The suite files of the served folder: found, read and written there and nowhere else."""

from __future__ import annotations

import hashlib
import os
import re
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from fairtrial.core.errors import FairtrialError
from fairtrial.core.experiment import INPUT
from fairtrial.core.private import write_shared

_ENDINGS = (".yaml", ".yml")
_SKIPPED = {"node_modules", "__pycache__", "site-packages", "venv", "dist", "build"}
_MAX_DEPTH = 4
_MAX_FILES = 500
_MAX_BYTES = 20 * 2**20
_TARGETS_KEY = re.compile(r"^targets\s*:", re.MULTILINE)
_CASES_KEY = re.compile(r"^(cases|dataset|suite)\s*:", re.MULTILINE)
_NAME_KEY = re.compile(r"^name[ \t]*:(.*)$", re.MULTILINE)
_ALLOWED = re.compile(r"[\w][\w .\-/]*\.ya?ml")


class SuiteFile(NamedTuple):
    """A suite on disk: its path, its name and when it was changed."""

    path: str
    name: str
    changed: float


def suite_files(folder: Path) -> list[SuiteFile]:
    """Return every suite in a folder and its subfolders, newest first."""
    suites: list[SuiteFile] = []
    for place, folders, names in os.walk(folder):
        here = Path(place)
        depth = len(here.relative_to(folder).parts)
        folders[:] = sorted(f for f in folders if not f.startswith(".") and f not in _SKIPPED and depth < _MAX_DEPTH)
        for name in sorted(names):
            if (
                name.lower().endswith(_ENDINGS)
                and not name.startswith(".")
                and (file := _suite_file(here / name, folder))
            ):
                suites.append(file)
        if len(suites) >= _MAX_FILES:
            break
    return sorted(suites, key=lambda file: -file.changed)


def _suite_file(path: Path, folder: Path) -> SuiteFile | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    name = _suite_name(path, stat.st_mtime_ns, stat.st_size)
    return None if name is None else SuiteFile(path.relative_to(folder).as_posix(), name, stat.st_mtime)


@lru_cache(maxsize=4 * _MAX_FILES)
def _suite_name(path: Path, changed: int, size: int) -> str | None:
    """Return the name of a suite; None if the file is not one. Unchanged files are not read again."""
    if size > _MAX_BYTES:
        return None
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    if not _TARGETS_KEY.search(text) or not _CASES_KEY.search(text):
        return None
    name = _NAME_KEY.search(text)
    return (_scalar(name[1]) if name else "") or path.stem


def _scalar(text: str) -> str:
    """Return the value after a YAML key without its quotes and comment."""
    text = text.strip()
    if text[:1] in ("'", '"') and (end := text.find(text[0], 1)) > 0:
        return text[1:end]
    return text.partition(" #")[0].strip()


def path_of(folder: Path, name: str) -> Path:
    """Return the path of a suite file in the folder; raise FairtrialError for any other name."""
    allowed = _ALLOWED.fullmatch(name) and not any(part.startswith(".") for part in Path(name).parts)
    if not allowed or not (folder / name).resolve().is_relative_to(folder):
        raise FairtrialError(
            f"`{name}` is not a suite file: its name must end in .yaml, stay in this folder, "
            "and use letters, digits, - and _"
        )
    return (folder / name).resolve()


def read(folder: Path, name: str) -> str:
    """Return the text of a suite."""
    try:
        return path_of(folder, name).read_text("utf-8")
    except FileNotFoundError:
        raise FairtrialError(f"the file `{name}` no longer exists") from None
    except (OSError, UnicodeDecodeError) as error:
        raise FairtrialError(f"cannot read `{name}`: {error}") from None


def fingerprint(text: str) -> str:
    """Return a hash by which a change of the file on disk is detected."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def write(folder: Path, name: str, text: str, *, before: str | None) -> str:
    """Write a suite atomically; `before` is the fingerprint of the text it replaces, None for a new file."""
    path = path_of(folder, name)
    text = text.replace("\r\n", "\n")
    if before is None and path.exists():
        raise FairtrialError(f"the file `{name}` already exists: choose another name")
    if before is not None and (not path.exists() or fingerprint(path.read_text("utf-8")) != before):
        raise FairtrialError(
            f"`{name}` was changed on disk since you opened it: reload to see how, or overwrite it with your text"
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_shared(path, text)
    except OSError as error:
        raise FairtrialError(f"cannot write `{name}`: {error.strerror}") from None
    return fingerprint(text)


def create(folder: Path, name: str, text: str) -> str:
    """Write a new suite, under a similar name if there is one already, and return its name."""
    name = free_name(folder, name) if path_of(folder, name).exists() else name
    write(folder, name, text, before=None)
    return name


def style_files(folder: Path) -> list[str]:
    """Return the files of prompt styles right in a folder or in one below it: they say where the problem goes."""
    found = []
    for path in sorted([*folder.glob("*.y*ml"), *folder.glob("*/*.y*ml")])[:_MAX_FILES]:
        parts = path.relative_to(folder).parts
        if any(part.startswith(".") or part in _SKIPPED for part in parts) or path.stat().st_size > _MAX_BYTES:
            continue
        with suppress(OSError, UnicodeDecodeError):
            text = path.read_text("utf-8")
            if INPUT.search(text) and not _TARGETS_KEY.search(text):
                found.append(path.relative_to(folder).as_posix())
    return found


def free_name(folder: Path, name: str) -> str:
    """Return a similar name that no file has yet."""
    stem, ending = path_of(folder, name).relative_to(folder).as_posix().rsplit(".", 1)
    for number in range(2, 1000):
        if not (folder / f"{stem}-{number}.{ending}").exists():
            return f"{stem}-{number}.{ending}"
    raise FairtrialError("there are too many copies of this suite: delete some first")
