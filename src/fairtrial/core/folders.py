"""Where things of the user are that belong to no project: what can be fetched again, and what they have set."""

from __future__ import annotations

import os
from pathlib import Path

from fairtrial.core.private import replacing


def cache_folder() -> Path:
    """Return FAIRTRIAL_CACHE_DIR, or the user's cache folder; raise RuntimeError if there is no home folder."""
    if own := os.environ.get("FAIRTRIAL_CACHE_DIR"):
        return Path(own)
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "fairtrial"


def write_at_once(path: Path, body: bytes) -> None:
    """Write a file, and its folder if need be, so that no other process sees a part of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path, private=False) as file:
        file.write(body)


def settings_folder() -> Path:
    """Return the folder of the user's settings; raise RuntimeError if there is no home folder."""
    root = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(root) / "fairtrial"
