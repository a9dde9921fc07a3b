"""Files: sent with a question, or made while an answer is scored."""

from __future__ import annotations

import hashlib

import msgspec

_STARTS = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
    b"%PDF-": "application/pdf",
}


class File(msgspec.Struct, frozen=True, kw_only=True):
    """A file and its content, such as a screenshot."""

    name: str = ""
    media: str = "image/png"
    body: bytes

    @property
    def is_image(self) -> bool:
        """Whether it is an image."""
        return self.media.startswith("image/")


class Attachment(msgspec.Struct, frozen=True, kw_only=True):
    """A file that is sent with a case; its content is in the store, once for all cases."""

    name: str
    media: str
    sha256: str
    size: int


def attachment_of(file: File) -> Attachment:
    """Return what a case, a workspace or a skill says of a file whose content is in the store."""
    return Attachment(
        name=file.name, media=file.media, sha256=hashlib.sha256(file.body).hexdigest(), size=len(file.body)
    )


def media_of(body: bytes) -> str | None:
    """Return the media type of an image or a PDF by its first bytes; None if it is neither."""
    if body[:4] == b"RIFF" and body[8:12] == b"WEBP":
        return "image/webp"
    return next((media for start, media in _STARTS.items() if body.startswith(start)), None)
