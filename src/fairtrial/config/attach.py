"""Files that are sent with cases: images and PDFs as such, text as part of the question.

Those at web addresses are fetched once, and kept in the cache folder.
"""

from __future__ import annotations

import hashlib
import re
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import NamedTuple
from urllib.parse import urlsplit

from fairtrial.core.file import Attachment, File, media_of
from fairtrial.core.folders import cache_folder, write_at_once
from fairtrial.core.trust import leave_out, may_run_code, within

_MAX_BYTES = 20 * 2**20  # what most providers accept
_MAX_TEXT = 2**20
_IS_ADDRESS = re.compile(r"https?://", re.IGNORECASE)
_SECONDS = 60


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
        if is_address(name) and not (fetch and may_run_code()) and not _copy_path(name).is_file():
            leave_out(_name_at(name))
            sha256 = hashlib.sha256(name.encode()).hexdigest()
            files.append(Attachment(name=_name_at(name), media="image/png", sha256=sha256, size=0))
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
    return _local_copy(name) if is_address(name) else within(folder, name)


def _shown(name: str) -> str:
    return _name_at(name) if is_address(name) else Path(name).name


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


def is_address(name: str) -> bool:
    """Return whether an attachment is at a web address."""
    return _IS_ADDRESS.match(name) is not None


def _name_at(address: str) -> str:
    """Return the name of the file at an address, without what may be a token behind it."""
    parts = urlsplit(address)
    return PurePosixPath(parts.path).name or parts.netloc


def _copy_path(address: str) -> Path:
    """Return where the local copy of the file at an address is, whether or not it exists yet."""
    return cache_folder() / "attachments" / hashlib.sha256(address.encode()).hexdigest()[:32]


def _local_copy(address: str) -> Path:
    """Return a local copy of the file at an address; raise ValueError if there is none and it cannot be fetched."""
    path = _copy_path(address)
    if not path.is_file():
        write_at_once(path, _fetch(address))
    return path


def _fetch(address: str) -> bytes:
    # Some servers refuse programs that do not say what they are.
    request = urllib.request.Request(address, headers={"User-Agent": "fairtrial"})  # noqa: S310 - http(s), see above
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS) as reply:  # noqa: S310
            body: bytes = reply.read(_MAX_BYTES + 1)
    except urllib.error.HTTPError as error:
        reason = f"the server says {error.code}"
    except (OSError, ValueError) as error:
        reason = str(getattr(error, "reason", error))
    else:
        if len(body) <= _MAX_BYTES:
            return body
        reason = f"it has more than {_MAX_BYTES >> 20} MB"
    raise ValueError(f"the attachment {_name_at(address)} cannot be fetched ({reason}): attach a file instead")
