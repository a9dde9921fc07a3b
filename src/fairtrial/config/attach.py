"""Files that are sent with cases: images and PDFs as such, text as part of the question."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from fairtrial.config.web_files import copy_path, is_address, local_copy, name_at
from fairtrial.core.file import Attachment, File, media_of
from fairtrial.core.trust import leave_out, may_run_code, within

_MAX_BYTES = 20 * 2**20  # what most providers accept
_MAX_TEXT = 2**20


class Attached(NamedTuple):
    """What the files of a case add to it: files, and texts for its question."""

    files: tuple[Attachment, ...] = ()
    texts: tuple[str, ...] = ()

    def question(self, text: str) -> str:
        """Return the question with the texts in front of it."""
        return "\n\n".join((*self.texts, text))


def read_attached(names: Iterable[str], folder: Path, *, fetch: bool) -> Attached:
    """Read the files of a case; raise ValueError with what is wrong with one.

    Without `fetch`, a file at a web address that was not fetched before is taken for an image.
    """
    files: list[Attachment] = []
    texts: list[str] = []
    for name in names:
        if is_address(name) and not (fetch and may_run_code()) and not copy_path(name).is_file():
            leave_out(name_at(name))
            sha256 = hashlib.sha256(name.encode()).hexdigest()
            files.append(Attachment(name=name_at(name), media="image/png", sha256=sha256, size=0))
            continue
        media, text, sha256, size = _read(_path_of(name, folder))
        if text is None:
            files.append(Attachment(name=_shown(name), media=media, sha256=sha256, size=size))
        else:
            texts.append(f"{_shown(name)}:\n{text.strip()}")
    return Attached(tuple(files), tuple(texts))


def load_files(names: Iterable[str], folder: Path) -> Iterator[File]:
    """Yield images and PDFs with their content, one at a time."""
    for name in names:
        path = _path_of(name, folder)
        media, text, _, _ = _read(path)
        if text is None:
            yield File(name=_shown(name), media=media, body=path.read_bytes())


def _path_of(name: str, folder: Path) -> Path:
    return local_copy(name, _MAX_BYTES) if is_address(name) else within(folder, name)


def _shown(name: str) -> str:
    return name_at(name) if is_address(name) else Path(name).name


def _read(path: Path) -> tuple[str, str | None, str, int]:
    try:
        status = path.stat()
        if not path.is_file():
            raise ValueError(f"the attachment {path} is not a file")
        if status.st_size > _MAX_BYTES:
            size = status.st_size / 2**20
            raise ValueError(f"the attachment {path} has {size:.0f} MB: at most {_MAX_BYTES >> 20} MB can be sent")
        return _read_once(path, status.st_mtime_ns, status.st_size)
    except FileNotFoundError:
        raise ValueError(f"there is no file {path} to attach") from None
    except OSError as error:
        raise ValueError(f"the attachment {path} cannot be read: {error.strerror}") from None


@lru_cache(maxsize=4096)
def _read_once(path: Path, changed: int, size: int) -> tuple[str, str | None, str, int]:
    """Return the media type, the text of a text file, the hash and the size; once for every version of a file."""
    body = path.read_bytes()
    sha256 = hashlib.sha256(body).hexdigest()
    if (media := media_of(body)) is not None:
        return media, None, sha256, size
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise ValueError(f"the attachment {path} is neither an image (PNG, JPEG, GIF, WebP), nor a PDF, nor UTF-8 text")
    if size > _MAX_TEXT:
        raise ValueError(f"the attachment {path} is a text of {size / 2**20:.1f} MB: at most 1 MB can be sent")
    return "text/plain", text, sha256, size
