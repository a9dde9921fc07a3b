"""Images that stand in a variable as base64, which are written into files beside the suite."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from typing import NamedTuple

FOLDER = "promptfoo_files"
_STARTS = {b"\x89PNG\r\n\x1a\n": "png", b"\xff\xd8\xff": "jpg", b"GIF8": "gif", b"%PDF-": "pdf"}
_DATA_URL = re.compile(r"data:[\w/+.-]+;base64,")


class Image(NamedTuple):
    """An image, and the name of its file."""

    name: str
    body: bytes


def image_in(value: str) -> Image | None:
    """Return the image in a text; None if there is none."""
    text = "".join(_DATA_URL.sub("", value.strip(), count=1).split())
    try:
        body = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    kind = next((kind for start, kind in _STARTS.items() if body.startswith(start)), None)
    if body[:4] == b"RIFF" and body[8:12] == b"WEBP":
        kind = "webp"
    return Image(f"{FOLDER}/{hashlib.sha256(body).hexdigest()[:12]}.{kind}", body) if kind else None
