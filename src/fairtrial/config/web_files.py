"""Attachments at web addresses: fetched once, and kept in the cache folder."""

from __future__ import annotations

import hashlib
import os
import re
import urllib.error
import urllib.request
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from fairtrial.core.folders import cache_folder

_IS_ADDRESS = re.compile(r"https?://", re.IGNORECASE)
_SECONDS = 60


def is_address(name: str) -> bool:
    """Return whether an attachment is at a web address."""
    return _IS_ADDRESS.match(name) is not None


def name_at(address: str) -> str:
    """Return the name of the file at an address, without what may be a token behind it."""
    parts = urlsplit(address)
    return PurePosixPath(parts.path).name or parts.netloc


def copy_path(address: str) -> Path:
    """Return where the local copy of the file at an address is, whether or not it exists yet."""
    return cache_folder() / "attachments" / hashlib.sha256(address.encode()).hexdigest()[:32]


def local_copy(address: str, max_bytes: int) -> Path:
    """Return a local copy of the file at an address; raise ValueError if there is none and it cannot be fetched."""
    path = copy_path(address)
    if not path.is_file():
        body = _fetch(address, max_bytes)
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(f".{os.getpid()}")
        partial.write_bytes(body)
        partial.replace(path)
    return path


def _fetch(address: str, max_bytes: int) -> bytes:
    # Some servers refuse programs that do not say what they are.
    request = urllib.request.Request(address, headers={"User-Agent": "fairtrial"})  # noqa: S310 - http(s), see above
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS) as reply:  # noqa: S310
            body: bytes = reply.read(max_bytes + 1)
    except urllib.error.HTTPError as error:
        reason = f"the server says {error.code}"
    except (OSError, ValueError) as error:
        reason = str(getattr(error, "reason", error))
    else:
        if len(body) <= max_bytes:
            return body
        reason = f"it has more than {max_bytes >> 20} MB"
    raise ValueError(f"the attachment {name_at(address)} cannot be fetched ({reason}): attach a file instead")
