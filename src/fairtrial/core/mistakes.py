"""Errors of the system that are not defects: what it refused, in one sentence.

They are raised wherever files are opened and space runs out; the last resort of every surface asks here before it takes
an error for a defect.
"""

from __future__ import annotations

import errno
import os

from fairtrial.text.printable import clipped, one_line

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
_OF_A_FILE = (  # that someone named, moved, locked or unplugged
    errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.EIO,
    errno.EBUSY, errno.ETXTBSY, errno.ENXIO, errno.ENOTEMPTY, errno.EEXIST, errno.ESTALE,
)  # fmt: skip
_NUL = ("embedded null byte", "embedded null character")
_LONGEST_NAME = 120


def sentence_of(error: BaseException) -> str:
    """Return what an error of the system means for people; empty if it is a defect."""
    if isinstance(error, OSError):
        return _of_system(error)
    if isinstance(error, ValueError) and str(error) in _NUL:
        return "the name of a file has a NUL character in it, which no system allows: remove it"
    return lacking_of(error)


def lacking_of(error: BaseException) -> str:
    """Say of what the machine has, or lets this process have, there is too little; empty if that is not it."""
    number = error.errno if isinstance(error, OSError) else None
    if number in (errno.EMFILE, errno.ENFILE):
        return "this process may not open more files: allow it more (see `ulimit -n`)"
    if number == errno.ENOMEM or isinstance(error, MemoryError):
        return "there is too little memory for this process: give it more, or use a lower --concurrency"
    if number == errno.EAGAIN or (isinstance(error, RuntimeError) and "start new thread" in str(error)):
        return "no more threads or processes can be started: allow more of them, or more memory (see `ulimit -a`)"
    return ""


def _of_system(error: OSError) -> str:
    name = _shown(error.filename)
    if error.errno in _NO_ROOM:
        return f"{name or 'what this command prints or stores'} cannot be written: {error.strerror}"
    if error.errno == errno.ENOENT and not _has_folder():
        return "the folder in which this was started is not there any more: go to another one, and start it there"
    if error.errno == errno.ENAMETOOLONG:
        return f"the name {name or 'of a file'} is longer than the system allows: choose a shorter one"
    if error.errno in _OF_A_FILE and name:
        return f"{name} cannot be used: {error.strerror}"
    return lacking_of(error)


def _shown(name: object) -> str:
    text = os.fsdecode(name) if isinstance(name, bytes) else name if isinstance(name, str) else ""
    return clipped(one_line(text), _LONGEST_NAME)


def _has_folder() -> bool:
    try:
        return bool(os.getcwd())  # noqa: PTH109  # Path.cwd() is the same, and this file is read at every error
    except FileNotFoundError:
        return False
