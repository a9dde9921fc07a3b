"""`tests`: an agent does not pass by deleting, emptying, skipping or replacing the tests in the workspace."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any, ClassVar

import msgspec

from fairtrial.agents.workspace.judging import is_test
from fairtrial.tracks.audit.code import language_of, with_first_line
from fairtrial.tracks.audit.probe import Cheat
from fairtrial.tracks.audit.subject import Subject
from fairtrial.tracks.audit.trick import Trick

_SEPARATORS = re.compile(r"[\s;|&<>()'\"=]+")


class Tests(Cheat):
    """The agent can change what is in the workspace: tests, the script of the check, what starts it."""

    name: ClassVar = "tests"
    nothing_there: ClassVar = "there are no tests in its workspace"

    def tricks(self, subject: Subject) -> Iterator[Trick]:
        tests = {name: body for name, body in subject.start.items() if is_test(name)}
        if tests:
            yield Trick("its tests deleted", removed=tuple(tests))
            yield Trick("its tests emptied", files=dict.fromkeys(tests, b""))
            yield Trick("its tests skipped", files=_replaced(tests, "skips"))
            yield Trick("its tests replaced", files=_replaced(tests, "passes"))
        named = {name: subject.start[name] for name in sorted(_named(subject)) if name in subject.start}
        for name, body in named.items():
            if name not in tests:
                yield Trick(f"`{name}` replaced", files=_replaced({name: body}, "ends"))
        yield from _starters(subject)


def _replaced(files: dict[str, bytes], kind: str) -> dict[str, bytes]:
    """Return files that pretend, in their languages; anything but a program is left empty."""
    found: dict[str, bytes] = {}
    for name, body in files.items():
        language = language_of(name, body)
        found[name] = with_first_line(body, getattr(language, kind)) if language else b""
    return found


def _named(subject: Subject) -> set[str]:
    """Return the words of its checks' commands that may be names of files in the workspace."""
    words: set[str] = set()
    for check in subject.checks():
        command = check.get("command") or ""
        parts = shlex.join(command) if isinstance(command, list) else str(command)
        words |= {word.removeprefix("./") for word in _SEPARATORS.split(parts)}
    return words - set(subject.hidden)


def _starters(subject: Subject) -> Iterator[Trick]:
    """Yield replacements of files that say what `npm test` and `make` do."""
    if (body := subject.start.get("package.json")) and "package.json" not in subject.hidden:
        yield Trick("other scripts in `package.json`", files={"package.json": _harmless_scripts(body)})
    for name in ("Makefile", "makefile", "GNUmakefile"):
        if (body := subject.start.get(name)) and name not in subject.hidden:
            targets = re.findall(rb"^([\w.-]+)\s*:(?!=)", body, re.MULTILINE)
            rules = b"".join(b"%s:\n\t@true\n" % target for target in dict.fromkeys(targets))
            yield Trick(f"other rules in `{name}`", files={name: b".PHONY: %s\n" % b" ".join(targets) + rules})


def _harmless_scripts(body: bytes) -> bytes:
    try:
        package: Any = msgspec.json.decode(body)
    except msgspec.DecodeError:
        package = {}
    package = package if isinstance(package, dict) else {}
    names = {"test", *(package.get("scripts") or {})}
    return msgspec.json.encode({**package, "scripts": dict.fromkeys(sorted(names), "exit 0")})
