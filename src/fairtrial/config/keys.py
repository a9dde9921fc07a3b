"""Keys from `.env` files: of the suite's folder and of the working folder, never from a folder above.

Such a file sets keys. An address in it is taken and named, since keys are sent there. Everything else in it is known
to the `${VAR}` of suites alone, and what chooses programs, libraries or ways through the network is not even that.
"""

from __future__ import annotations

import io
import os
import re
import stat
import warnings
from pathlib import Path
from typing import NamedTuple

from fairtrial.core.errors import FairtrialError
from fairtrial.core.secrets import is_credential
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
    """What a `.env` file says: what may be taken from it, and the names that are not."""

    path: Path
    values: dict[str, str]
    refused: list[str]

    @property
    def process_values(self) -> dict[str, str]:
        """What programs that are started may see: keys, and addresses."""
        return {name: value for name, value in self.values.items() if is_credential(name) or _ADDRESS.fullmatch(name)}

    @property
    def notices(self) -> list[str]:
        """What people should know of it before anything is sent."""
        new = [name for name in self.values if _ADDRESS.fullmatch(name) and name not in os.environ]
        return [f"{name} is taken from {self.path}: keys may be sent to that address" for name in new]


def env_files(folder: Path | None = None) -> list[EnvFile]:
    """The `.env` files that hold for suites of a folder, the one that goes before the other first."""
    places = dict.fromkeys(place.resolve() for place in (folder or Path(), Path()))
    return [file for place in places if (file := _read(place / _NAME))]


def variables_of(folder: Path | None = None) -> Variables:
    """The variables that suites of a folder can name: of the environment, else of `.env` files."""
    files = env_files(folder)
    values: dict[str, str] = {}
    for file in reversed(files):
        values |= file.values
        for notice in file.notices:
            warnings.warn(notice, stacklevel=2)
    return Variables(os.environ, values)


def _read(path: Path) -> EnvFile | None:
    try:
        link = path.lstat()
        if not path.is_file():  # a virtual environment, a pipe
            return None
        with path.open("rb") as file:
            _check(path, link, os.fstat(file.fileno()))
            text = file.read().decode("utf-8-sig")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not a text file in UTF-8"
        raise FairtrialError(f"{path} cannot be read: {reason}; mend it or move it away") from None
    from dotenv import dotenv_values

    found = {name: value for name, value in dotenv_values(stream=io.StringIO(text)).items() if value}
    refused = [name for name in found if _NEVER.fullmatch(name)]
    return EnvFile(path, {name: value for name, value in found.items() if name not in refused}, refused)


def _check(path: Path, link: os.stat_result, file: os.stat_result) -> None:
    """Whoever can write the file says which keys are used, and where they are sent."""
    if not hasattr(os, "geteuid"):  # Windows has other ways to say whose a file is
        return
    if {link.st_uid, file.st_uid} != {os.geteuid()}:
        raise FairtrialError(
            f"{path} belongs to somebody else, so no keys are taken from it: copy what you need into a file of your "
            "own, or set it in the environment"
        )
    if file.st_mode & stat.S_IWOTH or (file.st_mode & stat.S_IWGRP and not _own_group(file)):
        raise FairtrialError(f"{path} can be written by others, so no keys are taken from it: `chmod 600 {path}`")


def _own_group(file: os.stat_result) -> bool:
    """Whether a file's group is its owner alone, as where everybody has a group of one's own."""
    import grp
    import pwd

    try:
        owner, group = pwd.getpwuid(file.st_uid), grp.getgrgid(file.st_gid)
    except KeyError:
        return False
    return group.gr_name == owner.pw_name and set(group.gr_mem) <= {owner.pw_name}
