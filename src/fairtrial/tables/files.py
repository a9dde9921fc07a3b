"""The files of a table: one, or all that match a pattern."""

from __future__ import annotations

import glob
import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

from fairtrial.core.trust import within

_PATTERN = re.compile(r"[*?\[]")
_DIGITS = re.compile(r"(\d+)")


def is_pattern(path: str) -> bool:
    """Return whether a path stands for several files."""
    return bool(_PATTERN.search(path))


def find_files(path: str, folder: Path) -> list[Path]:
    """Return the files that a path or pattern stands for, sorted by name; numbers in names by their value."""
    exact = is_file(folder / path)
    if not is_pattern(path) or exact:
        return [within(folder, path)] if exact else []
    names = glob.glob(path, root_dir=folder, recursive=True)  # noqa: PTH207 - Path.glob refuses absolute patterns
    return [within(folder, name) for name in sorted(names, key=_natural) if (folder / name).is_file()]


def is_file(path: Path) -> bool:
    """Return whether there is a file; names that no file can have are those of none."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _natural(name: str) -> list[tuple[int, int, str]]:
    """Return a sort key by which part-2 comes before part-10."""
    parts = _DIGITS.split(name)
    return [(0, int(part), part) if part.isdigit() else (1, 0, part) for part in parts]


def sha256_of(file: Path) -> str:
    """Return the SHA-256 of a file's bytes."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def sha256_of_all(files: Sequence[Path], folder: Path) -> str:
    """Return the SHA-256 of one file's bytes, or of the names and hashes of several."""
    if len(files) == 1:
        return sha256_of(files[0])
    digest = hashlib.sha256()
    for file in files:
        name = file.relative_to(folder).as_posix() if file.is_relative_to(folder) else file.as_posix()
        digest.update(f"{name}\0{sha256_of(file)}\n".encode())
    return digest.hexdigest()
