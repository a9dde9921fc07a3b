"""Files: sent with a question, or made while an answer is scored."""

from __future__ import annotations

import msgspec


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
