"""How checks are run so that what they check cannot decide them: who runs them, and what they find in a workspace."""

from __future__ import annotations

import os
import re
import secrets
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from fairtrial.agents.processes.process import Ended
from fairtrial.agents.workspace.archive import entries, pack, remove, unpack
from fairtrial.agents.workspace.changes import FileChanges
from fairtrial.agents.workspace.settings_of_tests import HAVE_SETTINGS, without_agents
from fairtrial.core.types_in_threads import look_into

_CHECKING = Path(__file__).with_name("checking")
_REFEREE = _CHECKING / "referee.py"
_PYTHON = re.compile(r"(python|pypy)[\d.]*")
_OF_SHELLS = re.compile(r"[|&;<>()$`*?\[\]#~%{}!\n]")  # what a shell does more with than to pass it on
_WITH_VALUE = ("-W", "-X")
_BY_SHELL = "'''exec' "
_MAX_FILES = 200 * 2**20
_MOST_NOTED = 5
_LONGEST_SETTINGS = 2**20
_PROCESSES = Path("/proc")
_MOST_STEPS = 1000  # in following a link
# What decides how tests are run, and is no work that anybody asks for.
_OF_TESTS = frozenset(
    [
        *("conftest.py", "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml"),
        *("sitecustomize.py", "usercustomize.py"),
    ]
)
_TEST = re.compile(r"(^|/)(tests?/|test_[^/]*$|[^/]*_test\.\w+$|[^/]*\.(test|spec)\.\w+$|conftest\.py$)")
_USUAL_TARGETS = ("/usr/", "/bin/", "/lib", "/opt/")


class CheckVerdict(msgspec.Struct, frozen=True):
    """What a check in Python came to, in its own words."""

    code: int | None  # None: it became another program
    report: dict[str, Any] | None = None
    left: str = ""  # the agent's file that ended it
    replaced: str = ""  # by the agent's code


class Judged(NamedTuple):
    """How a check ended: its exit code, its own score, what was written, and what made it no check at all."""

    code: int
    report: dict[str, Any] | None
    output: str
    errors: str
    foul: str


class Refereed(NamedTuple):
    """A command line that is run by the referee, and the word by which its verdict is known."""

    command: list[str]
    word: str

    def judge(self, ended: Ended) -> Judged:
        """Read the verdict; what the agent's code wrote and how it ended the process count for nothing."""
        told = [line.removeprefix(self.word) for line in ended.output.split("\n") if line.startswith(self.word)]
        output = "\n".join(line for line in ended.output.split("\n") if not line.startswith(self.word)).strip()
        if not told:
            foul = "" if ended.code else "the check was ended before it was finished, by what it looked at"
            return Judged(ended.code, None, output, ended.errors, foul)
        verdict = msgspec.json.decode(told[0], type=CheckVerdict)
        code = ended.code if verdict.code is None else verdict.code
        foul = f"{verdict.left} ended the check before it was finished" if verdict.left and code == 0 else ""
        foul = f"what the check looked at has replaced {verdict.replaced}" if verdict.replaced else foul
        report = verdict.report or (printed_score(output) if code == 0 else None)
        return Judged(code, report, output, ended.errors, foul)


def judge_plainly(ended: Ended) -> Judged:
    """Read what a check printed that is run by a shell: a score counts if it also succeeded."""
    return Judged(ended.code, None if ended.code else printed_score(ended.output), ended.output, ended.errors, "")


def printed_score(output: str) -> dict[str, Any] | None:
    """Return the JSON object in the last line, if it has a score."""
    try:
        report = msgspec.json.decode(output.rstrip().rpartition("\n")[2])
    except msgspec.DecodeError:
        return None
    return report if isinstance(report, dict) and has_score(report) else None


def has_score(report: dict[str, Any]) -> bool:
    """Return whether an object has a score that is a number."""
    return isinstance(report.get("score"), int | float) and not isinstance(report["score"], bool)


class CheckFolder:
    """The files of a check: a copy of their own, and one over the workspace in which it runs."""

    def __init__(self, workspace: Path, changes: FileChanges) -> None:
        self._workspace = workspace
        self.own, self._start = workspace.parent / "check", workspace.parent / "start"
        self.listed = workspace.parent / "changed"
        self._changes = changes
        self._noticed: list[str] = []

    def fill(self, sources: Sequence[Path]) -> None:
        """Put the check's files in place, and what an agent left to mislead it aside."""
        self.own.mkdir()
        for source in sources:
            body = pack(source, _MAX_FILES)
            unpack(body, self.own)
            unpack(body, self._workspace)
        agents = set(self._changes.added) | set(self._changes.modified)
        brought = set(self.brought())
        self._noticed += [f"{name} of the agent was replaced by the check's" for name in sorted(agents & brought)]
        self._note_changed_tests(agents - brought)
        if brought:
            self._set_aside(agents - brought)
            self._set_settings_aside(agents - brought)
        self._remove_links(agents - brought, brought)
        self._note_names(agents - brought)
        self.listed.write_text("\0".join(sorted(agents - brought)), "utf-8", errors="surrogateescape")

    def brought(self) -> list[str]:
        """Return the names of the check's own files."""
        return [name for name, status in entries(self.own) if not (self.own / name).is_dir()]

    def fixed(self) -> tuple[Path, ...]:
        """Return the check's files in the workspace, which must not change while it runs."""
        return tuple(self._workspace / name for name in self.brought() if not (self.own / name).is_symlink())

    def tampered(self) -> str:
        """Return which of the check's files was changed while it ran; empty if none was."""
        for name in self.brought():
            here, own = self._workspace / name, self.own / name
            if own.is_symlink():
                continue
            if here.is_symlink() or not here.is_file() or here.read_bytes() != own.read_bytes():
                return name
        return ""

    def noticed(self) -> list[str]:
        """Return what an agent left that a check should not be misled by, each in a few words."""
        more = len(self._noticed) - _MOST_NOTED
        return self._noticed[:_MOST_NOTED] + ([f"and {more} more"] if more > 0 else [])

    def _note_changed_tests(self, names: set[str]) -> None:
        before = [name for name in (*self._changes.modified, *self._changes.removed) if is_test(name)]
        for name in sorted(before):
            if name in names or name in self._changes.removed:
                self._noticed.append(f"{name} was {'changed' if name in names else 'removed'} by the agent")

    def _set_aside(self, names: set[str]) -> None:
        """Bring files that decide how tests run back to what they were before the agent."""
        for name in sorted(name for name in names if Path(name).name in _OF_TESTS):
            place, before = self._workspace / name, self._start / name
            if place.parent.resolve().is_relative_to(self._workspace.resolve()):
                remove(place)
                if before.is_file():
                    shutil.copyfile(before, place)
                self._noticed.append(f"{name} of the agent was set aside")

    def _set_settings_aside(self, names: set[str]) -> None:
        """Bring what other files say about how tests run back to what it was, and leave the rest of them alone."""
        for name in sorted(name for name in names if Path(name).name in HAVE_SETTINGS):
            place, before = self._workspace / name, self._start / name
            if not place.is_file():
                continue
            earlier = before.read_text("utf-8", errors="surrogateescape") if before.is_file() else None
            text = place.read_bytes()[: _LONGEST_SETTINGS + 1].decode("utf-8", "surrogateescape")
            kept = None if len(text) > _LONGEST_SETTINGS else without_agents(name, text, earlier)
            if kept == text:
                continue
            remove(place)
            if kept is not None:
                place.write_text(kept, "utf-8", errors="surrogateescape")
            elif earlier is not None:
                shutil.copyfile(before, place)
            self._noticed.append(f"what {name} of the agent says about pytest was set aside")

    def _remove_links(self, names: set[str], brought: set[str]) -> None:
        """Remove links to the check's files, which would make what it expects the agent's answer."""
        root = self._workspace.resolve()
        hidden = {root / name for name in brought}
        folders = {
            parent for path in hidden for parent in path.parents if parent != root and parent.is_relative_to(root)
        }
        for name in sorted(names):
            place = self._workspace / name
            if not place.is_symlink():
                continue
            target = _resolved(place)
            if _through_processes(place):
                place.unlink()
                self._noticed.append(f"{name} was a link by way of /proc, and was removed")
            elif target in hidden or target in folders or target == root or target.is_relative_to(self.own.resolve()):
                place.unlink()
                self._noticed.append(f"{name} was a link to what belongs to the check, and was removed")
            elif not target.is_relative_to(root) and not str(target).startswith(_USUAL_TARGETS):
                self._noticed.append(f"{name} is a link to {target}")

    def _note_names(self, names: set[str]) -> None:
        places = {".", *(str(Path(name).parent) for name in self.brought())}
        for name in sorted(names):
            path = Path(name)
            module = path.stem if path.suffix == ".py" and str(path.parent) in places else path.parent.name
            package = path.name == "__init__.py" and str(path.parent.parent) in places
            if module in sys.stdlib_module_names and (package or str(path.parent) in places) and path.suffix == ".py":
                self._noticed.append(f"{name} is named like a module of Python, and is not imported in its place")


def is_test(name: str) -> bool:
    """Return whether a file in a workspace is a test, by its name."""
    return _TEST.search(name) is not None


def _resolved(link: Path) -> Path:
    try:
        return link.resolve()
    except (OSError, RuntimeError):  # a circle
        return link


def _through_processes(link: Path) -> bool:
    """Return whether a link leads through /proc, where it is another place for every process that follows it."""
    left, place = list(reversed(link.parts[1:])), Path("/")
    for _ in range(_MOST_STEPS):
        if not left or place == _PROCESSES:
            break
        part = left.pop()
        place = place.parent if part == ".." else place / part
        if place.is_symlink() and place != _PROCESSES:
            target = place.readlink()
            left += reversed(target.parts[1:] if target.is_absolute() else target.parts)
            place = Path("/") if target.is_absolute() else place.parent
    return place == _PROCESSES


def refereed(command: str | Sequence[str], folder: CheckFolder, workspace: Path, *, local: bool) -> Refereed | None:
    """Return a check in Python as the referee runs it; None for any other, and for one that is the agent's own program.

    `local`: the programs of this machine are those of the sandbox.
    """
    words = _words(command)
    if not words:
        return None
    flags, main = _split(words)
    if not main or (main[0] not in ("-m", "-c") and not _is_checks(main[0], folder, workspace)):
        return None
    program = words[0] if _is_python(words[0]) else _interpreter(words[0]) if local else None
    if program is None:
        return None
    arguments = [str(workspace), str(folder.own), str(folder.listed), *main]
    return Refereed([program, *flags, str(_REFEREE), *arguments], secrets.token_hex(16))


def _is_python(program: str) -> bool:
    return _PYTHON.fullmatch(Path(program).name) is not None


def _words(command: str | Sequence[str]) -> list[str]:
    """Return the words of a command that needs no shell."""
    if not isinstance(command, str):
        return list(command)
    if _OF_SHELLS.search(command):
        return []
    try:
        words = shlex.split(command)
    except ValueError:
        return []
    return words if words and "=" not in words[0] else []


def _split(words: list[str]) -> tuple[list[str], list[str]]:
    """Return the options of Python, and what it is to run: `-m MODULE …`, `-c CODE …` or `SCRIPT …`; else nothing."""
    if Path(words[0]).name in ("pytest", "py.test"):
        return [], ["-m", "pytest", *words[1:]]
    if not _is_python(words[0]):
        return [], []
    flags: list[str] = []
    rest = words[1:]
    while rest and rest[0].startswith("-") and rest[0] not in ("-m", "-c", "-"):
        if rest[0] in ("-i", "-h", "-V", "--version", "--help") or rest[0][-1] in "mc":
            return [], []
        count = 2 if rest[0] in _WITH_VALUE else 1
        flags, rest = flags + rest[:count], rest[count:]
    enough = len(rest) > 1 if rest[:1] in (["-m"], ["-c"]) else rest[:1] != ["-"]
    return flags, rest if enough else []


def _is_checks(script: str, folder: CheckFolder, workspace: Path) -> bool:
    """Return whether a script is the check's, or was in the workspace before the agent."""
    path = (workspace / script).resolve()
    if not path.is_relative_to(workspace.resolve()):
        return True
    name = str(path.relative_to(workspace.resolve()))
    return name not in folder.listed.read_text("utf-8", errors="surrogateescape").split("\0")


def _interpreter(program: str) -> str | None:
    """Return the Python that a script such as `pytest` is started by."""
    found = shutil.which(program)
    try:
        with Path(found or "").open("rb") as file:
            first, second = (file.readline(1000).decode("utf-8", "replace") for _ in range(2))
    except OSError:
        return None
    words = first[2:].split() if first.startswith("#!") else []
    if words == ["/bin/sh"] and second.startswith(_BY_SHELL):  # as installers write it if the path has a blank
        words = shlex.split(second.removeprefix(_BY_SHELL))[:1]
    return words[0] if len(words) == 1 and _is_python(words[0]) else None


def check_variables(folder: CheckFolder, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a check: no program and no module of the workspace comes before those of this machine."""
    programs = [place for place in environment.get("PATH", os.defpath).split(os.pathsep) if Path(place).is_absolute()]
    modules = [place for place in environment.get("PYTHONPATH", "").split(os.pathsep) if Path(place).is_absolute()]
    return {
        "PATH": os.pathsep.join(programs),
        "PYTHONPATH": os.pathsep.join([str(_CHECKING), *modules]),
        "FAIRTRIAL_CHANGED": str(folder.listed),
    }


def files_of_checks(folder: CheckFolder) -> tuple[Path, ...]:
    """Return what a check reads outside the workspace."""
    return (_CHECKING, folder.own, folder.listed)


look_into(CheckVerdict)
