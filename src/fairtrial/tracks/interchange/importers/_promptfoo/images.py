"""Images that are in a variable as base64, which are written into files next to the suite."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from typing import NamedTuple

from fairtrial.core.file import media_of

FOLDER = "promptfoo_files"
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
    media = media_of(body)
    if media is None:
        return None
    return Image(f"{FOLDER}/{hashlib.sha256(body).hexdigest()[:12]}.{media.rpartition('/')[2]}", body)
