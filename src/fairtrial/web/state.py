"""What a server keeps for the person who runs it, in a folder that nobody else can read."""

from __future__ import annotations

import html
import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_KEY_BYTES = 32


def state_folder() -> Path:
    """The user's folder for such things; RuntimeError where there is none."""
    root = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(root) / "fairtrial"


def cookie_key() -> bytes:
    """The key of the cookies, the same after a restart, so that nobody is thrown out by it.

    Where it cannot be kept, or others could have read it, there is a new one.
    """
    try:
        path = state_folder() / "cookie-key"
        return _own_key(path) or _new_key(path)
    except (OSError, RuntimeError):
        return secrets.token_bytes(_KEY_BYTES)


def _own_key(path: Path) -> bytes | None:
    try:
        with path.open("rb") as file:
            state, key = os.fstat(file.fileno()), file.read(_KEY_BYTES + 1)
    except FileNotFoundError:
        return None
    private = not hasattr(os, "geteuid") or (state.st_uid == os.geteuid() and not state.st_mode & 0o077)
    return key if private and len(key) == _KEY_BYTES else None


def _new_key(path: Path) -> bytes:
    key = secrets.token_bytes(_KEY_BYTES)
    _made(path.parent)
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as partial:  # for us alone, whole or not at all
        partial.write(key)
    Path(partial.name).replace(path)
    return key


@contextmanager
def redirect_file(link: str) -> Iterator[str]:
    """The address of a file that leads to a link: as an argument of the browser, the link would show in `ps`."""
    with tempfile.TemporaryDirectory(prefix="fairtrial-", dir=_made(state_folder())) as folder:
        path = Path(folder) / "open.html"
        shown = html.escape(link)
        page = (
            f'<meta charset="utf-8"><meta http-equiv="refresh" content="0; url={shown}"><a href="{shown}">fairtrial</a>'
        )
        path.write_text(page, "utf-8")
        yield path.as_uri()


def _made(folder: Path) -> Path:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder
