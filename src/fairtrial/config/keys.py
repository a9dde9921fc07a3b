"""Keys from `.env` files in the suite's folder and the working directory, never from parent folders.

Such files set keys. Addresses in them are used once the user has confirmed them, since keys are sent there. All other
variables are visible only to `${VAR}` in suites, and variables that select programs, libraries or network routes are
ignored.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import stat
import warnings
from pathlib import Path
from typing import NamedTuple

import msgspec

from fairtrial.core.errors import FairtrialError
from fairtrial.core.folders import cache_folder, write_at_once
from fairtrial.core.providers import address_variables
from fairtrial.core.secrets import is_private
from fairtrial.core.trust import may_run_code
from fairtrial.core.variables import Variables

_NAME = ".env"
_NEVER = re.compile(
    r"(?!.*_(?:KEY|TOKEN|SECRET|PASSWORD)$)"
    r"(?:PATH|HOME|SHELL|IFS|ENV|TMPDIR|TEMP|TMP|USER|LOGNAME|PWD|OLDPWD|EDITOR|VISUAL|PAGER|BROWSER|DISPLAY|LESSOPEN"
    r"|(?:LD|DYLD|NODE|NPM_CONFIG|JAVA|_JAVA|JDK_JAVA|GIT|SSH|PIP|UV|XDG|PLAYWRIGHT|OPENSSL|BASH|SSL|FAIRTRIAL)_.*"
    r"|PYTHON.*|PERL5.*|RUBY(?:LIB|OPT)|GCONV_PATH|SSLKEYLOGFILE|.*_PROXY|.*_CA_BUNDLE)",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r".*_(?:BASE_URL|API_BASE|ENDPOINT|API_URL)", re.IGNORECASE)


class EnvFile(NamedTuple):
    """The content of a `.env` file: the values that may be used, and the names of those refused."""

    path: Path
    values: dict[str, str]
    refused: list[str]
    unconfirmed: dict[str, str] = {}  # addresses that nobody has confirmed yet, by the names of their variables

    @property
    def process_values(self) -> dict[str, str]:
        """The values passed to child processes: keys and addresses."""
        return {n: value for n, value in self.values.items() if is_private(n, value) or _is_address(n)}

    @property
    def notices(self) -> list[str]:
        """Messages for the user before anything is sent."""
        addresses = [name for name in self.values if _is_address(name) and name not in os.environ]
        return [f"{name} is taken from {self.path}: keys may be sent to that address" for name in addresses]

    def check(self) -> None:
        """Raise if it has an address that is not confirmed: a stranger's file could have keys sent anywhere."""
        for name, address in self.unconfirmed.items():
            raise FairtrialError(
                f"{self.path} sets {name} to {address}, and your keys would be sent there: add --env-addresses once to "
                "confirm it, or set it in the environment"
            )


def _is_address(name: str) -> bool:
    return _ADDRESS.fullmatch(name) is not None or name in address_variables()


def env_files(folder: Path | None = None, *, confirm: bool = False) -> list[EnvFile]:
    """Return the `.env` files for suites in a folder, in order of precedence; `confirm` the addresses in them."""
    folders = dict.fromkeys(path.resolve() for path in (folder or Path(), Path()))
    files = [file for path in folders if (file := _read(path / _NAME))]
    if confirm and any(file.unconfirmed for file in files):
        _remember({_identity(file.path, *item) for file in files for item in file.unconfirmed.items()})
        return env_files(folder)
    return files


def _confirmed() -> set[str]:
    try:
        return set(msgspec.json.decode(_confirmations().read_bytes(), type=list[str]))
    except (OSError, msgspec.DecodeError):
        return set()


def _remember(addresses: set[str]) -> None:
    write_at_once(_confirmations(), msgspec.json.encode(sorted(_confirmed() | addresses)))


def _confirmations() -> Path:
    return cache_folder() / "confirmed-addresses.json"


def _identity(path: Path, name: str, address: str) -> str:
    return hashlib.sha256("\0".join((str(path), name, address)).encode()).hexdigest()


def variables_of(folder: Path | None = None, *, placeholders: bool = False) -> Variables:
    """Return the variables that suites in a folder can use: from the environment, else from `.env` files.

    With `placeholders`, those that are not set have a value all the same.
    """
    files = env_files(folder)
    values: dict[str, str] = {}
    for file in reversed(files):
        if may_run_code():
            file.check()
        values |= file.values
        for notice in file.notices:
            warnings.warn(notice, stacklevel=2)
    return Variables(os.environ, values, placeholders=placeholders)


def hide_keys(text: str) -> str:
    """Remove every key that is known from a text about an error: whatever the error was, this must not fail."""
    try:
        files = env_files()
    except (OSError, FairtrialError):
        files = []
    return Variables(os.environ, {name: value for file in files for name, value in file.values.items()}).hide(text)


def _read(path: Path) -> EnvFile | None:
    try:
        link = path.lstat()
        if not path.is_file():  # a virtual environment, a pipe
            return None
        with path.open("rb") as file:
            _check_owner(path, link, os.fstat(file.fileno()))
            text = file.read().decode("utf-8-sig")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not a UTF-8 text file"
        raise FairtrialError(f"{path} cannot be read: {reason}; fix the file or move it away") from None
    from dotenv import dotenv_values

    values = {name: value for name, value in dotenv_values(stream=io.StringIO(text)).items() if value}
    refused = [name for name in values if _NEVER.fullmatch(name)]
    known = _confirmed()
    unconfirmed = {
        name: value
        for name, value in values.items()
        if _is_address(name) and name not in os.environ and _identity(path, name, value) not in known
    }
    usable = {name: value for name, value in values.items() if name not in refused and name not in unconfirmed}
    return EnvFile(path, usable, refused, unconfirmed)


def _check_owner(path: Path, link: os.stat_result, file: os.stat_result) -> None:
    """Refuse a file that others can write: its content decides which keys are used and where they are sent."""
    if not hasattr(os, "geteuid"):  # Windows expresses file ownership differently
        return
    if {link.st_uid, file.st_uid} != {os.geteuid()}:
        raise FairtrialError(
            f"{path} belongs to another user, so no keys are taken from it: copy what you need into your own file, "
            "or set it in the environment"
        )
    if file.st_mode & stat.S_IWOTH or (file.st_mode & stat.S_IWGRP and not _own_group(file)):
        raise FairtrialError(f"{path} is writable by other users, so no keys are taken from it: run `chmod 600 {path}`")


def _own_group(file: os.stat_result) -> bool:
    """Return whether the owner is the only member of a file's group, as on systems with per-user groups."""
    import grp
    import pwd

    try:
        owner, group = pwd.getpwuid(file.st_uid), grp.getgrgid(file.st_gid)
    except KeyError:
        return False
    return group.gr_name == owner.pw_name and set(group.gr_mem) <= {owner.pw_name}
