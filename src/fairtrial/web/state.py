"""Server state kept for its user, in a folder that only this user can read."""

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
    """Return the user's state folder; raise RuntimeError if there is no home folder."""
    root = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(root) / "fairtrial"


def cookie_key() -> bytes:
    """Return the cookie key, the same after a restart, so that a restart signs no one out.

    If it cannot be stored, or others could have read it, return a new one.
    """
    try:
        path = state_folder() / "cookie-key"
        return _stored_key(path) or _new_key(path)
    except (OSError, RuntimeError):
        return secrets.token_bytes(_KEY_BYTES)


def _stored_key(path: Path) -> bytes | None:
    try:
        with path.open("rb") as file:
            state, key = os.fstat(file.fileno()), file.read(_KEY_BYTES + 1)
    except FileNotFoundError:
        return None
    private = not hasattr(os, "geteuid") or (state.st_uid == os.geteuid() and not state.st_mode & 0o077)
    return key if private and len(key) == _KEY_BYTES else None


def _new_key(path: Path) -> bytes:
    key = secrets.token_bytes(_KEY_BYTES)
    _private_folder(path.parent)
    with tempfile.NamedTemporaryFile(
        dir=path.parent, delete=False
    ) as partial:  # readable by us alone, and replaced atomically
        partial.write(key)
    Path(partial.name).replace(path)
    return key


@contextmanager
def redirect_file(link: str) -> Iterator[str]:
    """Yield the address of a file that redirects to a link: as a browser argument, the link would show in `ps`."""
    with tempfile.TemporaryDirectory(prefix="fairtrial-", dir=_private_folder(state_folder())) as folder:
        path = Path(folder) / "open.html"
        url = html.escape(link)
        page = f'<meta charset="utf-8"><meta http-equiv="refresh" content="0; url={url}"><a href="{url}">fairtrial</a>'
        path.write_text(page, "utf-8")
        yield path.as_uri()


def _private_folder(folder: Path) -> Path:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder
