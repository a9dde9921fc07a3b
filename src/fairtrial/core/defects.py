"""A defect of ours, or of a plug-in: a file about it that can be sent, and one sentence that says so.

The file is private, and has no key in it: neither those that the environment and `.env` files hold, nor what looks like
one. The same defect has the same file.
"""

from __future__ import annotations

import hashlib
import platform
import re
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from fairtrial.core import registry
from fairtrial.core.folders import cache_folder
from fairtrial.core.private import write_private
from fairtrial.core.secrets import without_keys
from fairtrial.text.printable import clipped, one_line

_LONGEST, _LONGEST_REASON = 200_000, 300
_LOGIN = re.compile(r"://[^/@\s]*@")


class Defect(NamedTuple):
    """What went wrong, in a few words and as a traceback; in which plug-in; the file, if it could be written."""

    reason: str
    traceback: str
    plugin: str
    file: Path | None

    def sentence(self) -> str:
        """Say what happened and what to do."""
        where = f" in the plug-in `{self.plugin}`" if self.plugin else ""
        if self.file is None:
            what = "please report it (FAIRTRIAL_DEBUG=1 shows the traceback)"
        elif self.plugin:
            what = f"please send {self.file} to its authors, or remove it: pip uninstall {self.plugin}"
        else:
            what = f"please report it with {self.file}, which has no keys in it (FAIRTRIAL_DEBUG=1 shows the traceback)"
        return f"internal error{where}: {self.reason}; {what}"


def defect_of(error: BaseException, command: Sequence[str], hide: Callable[[str], str]) -> Defect:
    """Write a file about an error that nothing foresaw; `hide` removes the keys that are known."""

    def hidden(text: str) -> str:
        return without_keys(hide(_LOGIN.sub("://[login hidden]@", text)), "[key hidden]")[0]

    plugin = blamed(error)
    reason = clipped(one_line(hidden(f"{type(error).__name__}: {error}")), _LONGEST_REASON)
    shown = hidden("".join(traceback.format_exception(error)))
    if len(shown) > _LONGEST:
        shown = f"{shown[: _LONGEST // 2]}\n…\n{shown[-_LONGEST // 2 :]}"
    facts = {
        "fairtrial": _version(),
        "Python": sys.version,
        "platform": platform.platform(),
        "plug-ins": ", ".join(registry.plugins()) or "none",
        "command": hidden(" ".join(map(repr, command))),
        "in": f"the plug-in {plugin}" if plugin else "fairtrial",
    }
    text = "".join(f"{name}: {one_line(fact)}\n" for name, fact in facts.items()) + f"\n{shown}"
    return Defect(reason, shown, plugin, _written(text, _identity(error)))


def blamed(error: BaseException) -> str:
    """Return the plug-in whose code failed; empty if it was ours."""
    for frame, _ in reversed(list(traceback.walk_tb(error.__traceback__))):
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if package == "fairtrial":
            return ""
        if plugin := registry.plugin_of(package):
            return plugin
    return ""


def _identity(error: BaseException) -> str:
    places = [f"{frame.f_code.co_filename}:{line}" for frame, line in traceback.walk_tb(error.__traceback__)]
    return hashlib.sha256(repr((type(error).__name__, places[-5:])).encode()).hexdigest()[:12]


def _written(text: str, name: str) -> Path | None:
    try:
        path = cache_folder() / "defects" / f"{name}.txt"
        write_private(path, text.encode("utf-8", "backslashreplace"))
    except (OSError, RuntimeError):
        return None  # no home, no room: the sentence stands without it
    return path


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version  # only a defect needs it

    try:
        return str(version("fairtrial"))
    except PackageNotFoundError:
        return "not installed"
