"""Files that are sent with cases: the latest ones are kept, because all arms get the same."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from fairtrial.core.file import Attachment, File

_KEPT_BYTES = 64 * 2**20


class FileCache:
    """Keeps the latest files that were loaded."""

    def __init__(self, load: Callable[[Attachment], Awaitable[File]]) -> None:
        self._load = load
        self._files: dict[str, File] = {}

    async def get(self, attachment: Attachment) -> File:
        """Return a file that is sent with a case."""
        if attachment.sha256 not in self._files:
            file = await self._load(attachment)
            self._files[attachment.sha256] = file
            while len(self._files) > 1 and sum(len(kept.body) for kept in self._files.values()) > _KEPT_BYTES:
                del self._files[next(iter(self._files))]
            return file
        return self._files[attachment.sha256]
