"""Sessions that are kept on this machine, so that the next turn of a conversation can go on with them."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from fairtrial.core.folders import cache_folder

_KEPT_SECONDS = 14 * 24 * 3600  # that a session is kept after its last turn


def session_folder(session: str) -> Path | None:
    """Return the folder in which a session was held, or a new one for the first turn; None if it is gone."""
    if not session:
        return Path(tempfile.mkdtemp(prefix="claude-", dir=_sessions()))
    try:
        folder = _sessions() / (_sessions() / f"{Path(session).name}.session").read_text("utf-8")
    except OSError:
        return None
    return folder if folder.is_dir() else None


def keep_session(session: str, folder: Path) -> None:
    """Note in which folder a session was held."""
    (_sessions() / f"{session}.session").write_text(folder.name, "utf-8")
    os.utime(folder)


def forget_old_sessions() -> None:
    """Remove the sessions that have not been continued for a while."""
    for path in _sessions().iterdir():
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > _KEPT_SECONDS:
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def _sessions() -> Path:
    """Return the folder of the sessions that conversations go on with, which only this user can read."""
    place = cache_folder() / "sessions"
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    return place
