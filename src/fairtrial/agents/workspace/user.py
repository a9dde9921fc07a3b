"""A separate user for every sandbox that root starts: one without any other use, which owns only its folders."""

from __future__ import annotations

import os
import secrets
import shutil
import stat
import sys
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

_FIRST, _COUNT = 0x70000000, 2**24  # numbers of users that no system gives to anybody
_NEEDED = (0, 6, 7, 21)  # capabilities to give files away, to become somebody else, and to mount


@lru_cache
def can_change_user() -> bool:
    """Return whether we are root in a way that lets programs become another user."""
    if sys.platform != "linux" or not _is_root() or shutil.which("setpriv", path="/usr/bin:/bin") is None:
        return False
    status = Path("/proc/self/status").read_text().splitlines()
    capabilities = next((int(line.split()[1], 16) for line in status if line.startswith("CapEff:")), 0)
    return all(capabilities >> number & 1 for number in _NEEDED) and _is_mapped(_FIRST + _COUNT)


def _is_mapped(user: int) -> bool:
    """Return whether a user exists here: in the namespaces of some containers only a few do."""
    ranges = [line.split() for line in Path("/proc/self/uid_map").read_text().splitlines()]
    return any(int(first) <= user < int(first) + int(count) for first, _, count in ranges)


def own_user(folder: Path) -> int:
    """Return the user of a folder's sandbox: the one that it was given to, or a new one."""
    owner = folder.stat().st_uid
    return owner if _FIRST <= owner < _FIRST + _COUNT else _FIRST + secrets.randbelow(_COUNT)


def give(folder: Path, user: int) -> None:
    """Give a folder and all that is in it to a user; links are not followed."""
    for _, folders, files, handle in os.fwalk(folder):
        for name in (*folders, *files):
            if os.stat(name, dir_fd=handle, follow_symlinks=False).st_uid != user:
                os.chown(name, user, user, dir_fd=handle, follow_symlinks=False)
    if folder.stat().st_uid != user:
        os.chown(folder, user, user)


def _is_root() -> bool:
    return sys.platform != "win32" and os.geteuid() == 0


def give_to_sandbox(folder: Path) -> None:
    """Give a folder to the user of its sandbox, if that will have one of its own."""
    if _is_root():
        with suppress(OSError):
            give(folder, own_user(folder))


def take_back(folder: Path) -> None:
    """Take a folder back from the user of its sandbox."""
    if _is_root():
        with suppress(OSError):
            give(folder, os.getuid())


def others_may_read(path: Path) -> bool:
    """Return whether every user may read a file or a folder that is there."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return True  # it is not there, and will not be read
    if stat.S_ISDIR(mode):
        return mode & 0o005 == 0o005
    return bool(mode & 0o004) or stat.S_ISSOCK(mode)
