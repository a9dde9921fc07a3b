"""Files that are there as a whole or not at all, and for their owner alone where they are private.

What models answered is private until the user says otherwise. Whoever is killed while writing leaves what was there.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

_FILE, _FOLDER, _SHARED = 0o600, 0o700, 0o666  # less what the user's mask takes


def opener(path: str, flags: int) -> int:
    """Open a file, as `opener` of `open`: a new one is private, one that is there keeps its mode."""
    return os.open(path, flags, _FILE)


@contextmanager
def replacing(path: Path, *, private: bool = True) -> Iterator[IO[bytes]]:
    """Open a file next to `path`, whose place it takes if nothing is raised; a mode that was there stays.

    A pipe, or anything else that is not an ordinary file, is written itself.
    """
    place = Path(os.path.realpath(path))  # a link stays one
    if place.exists() and not place.is_file():
        with place.open("wb") as itself:
            yield itself
        return
    partial = place.with_name(f".{secrets.token_hex(8)}.part")
    mode = _FILE if private else _SHARED
    try:
        with open(partial, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            yield file
            file.flush()
            if place.exists():
                os.fchmod(file.fileno(), place.stat().st_mode & 0o777)
            os.fsync(file.fileno())  # otherwise a power cut may leave an empty file in the place of the old one
        partial.replace(place)
    finally:
        partial.unlink(missing_ok=True)


def write_private(path: Path, body: bytes) -> None:
    """Write a file, and its folders if need be."""
    make_private(path.parent)
    with replacing(path) as file:
        file.write(body)


def write_shared(path: Path, text: str) -> None:
    """Write a file that others may read too, such as a suite; its folder is there."""
    with replacing(path, private=False) as file:
        file.write(text.encode())


def make_private(folder: Path) -> None:
    """Make a folder, with those above it; what is there already stays as it is."""
    if not folder.is_dir():
        make_private(folder.parent)
        folder.mkdir(mode=_FOLDER, exist_ok=True)


def replace_private(new: Path, place: Path) -> None:
    """Move a finished file to its place: private, or with the mode of what was there."""
    new.chmod(place.stat().st_mode & 0o777 if place.is_file() else _FILE)
    new.replace(place)
