"""Files and folders for their owner alone: what models answered is private, until the user says otherwise."""

from __future__ import annotations

import os
from pathlib import Path

_FILE, _FOLDER = 0o600, 0o700


def opener(path: str, flags: int) -> int:
    """Open a file, as `opener` of `open`: a new one is private, one that is there keeps its mode."""
    return os.open(path, flags, _FILE)


def write_private(path: Path, body: bytes) -> None:
    """Write a file, and its folders if need be."""
    make_private(path.parent)
    with open(path, "wb", opener=opener) as file:
        file.write(body)


def make_private(folder: Path) -> None:
    """Make a folder, with those above it; what is there already stays as it is."""
    if not folder.is_dir():
        make_private(folder.parent)
        folder.mkdir(mode=_FOLDER, exist_ok=True)


def replace_private(new: Path, place: Path) -> None:
    """Move a finished file to its place: private, or with the mode of what was there."""
    new.chmod(place.stat().st_mode & 0o777 if place.is_file() else _FILE)
    new.replace(place)
