"""`secrets`: the agent cannot read what its check expects: in files, in the environment, in git, in /proc."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from fairtrial.agents.workspace.judging import is_test
from fairtrial.tracks.audit.bench import Bench
from fairtrial.tracks.audit.probe import Outcome, Probe
from fairtrial.tracks.audit.subject import Subject
from fairtrial.tracks.audit.trick import Left, Trick

_SEEN = ".seen-by-an-agent"
_SHORTEST = 6  # characters of an answer that cannot be there by accident
_LEAST = 16  # bytes of a file that cannot be the same by accident
_TELLING = re.compile(r"(answer|expected|solution|secret|golden|reference)", re.IGNORECASE)
_SCRIPT = """
{{
for place in {places}; do
  if head -c 1 "$place" >/dev/null; then echo "readable $place"; fi
done
if [ -d .git ]; then
  git -c safe.directory='*' rev-list --all --reflog --not HEAD | sed 's/^/commit /' | head -n 5
  git -c safe.directory='*' fsck --unreachable --no-reflogs --no-progress | grep ' commit ' | head -n 5
fi
env | sed 's/^/variable /'
for process in /proc/[0-9]*; do
  tr '\\0' '\\n' < "$process/environ" | sed 's/^/process /'
  tr '\\0' '\\n' < "$process/cmdline" | sed 's/^/process /'
done
}} > {seen} 2>/dev/null
exit 0
"""


class Secrets(Probe):
    """A scripted agent that knows where to look finds neither the check's files nor the answer nor the solution."""

    name: ClassVar = "secrets"

    async def look(self, subject: Subject, bench: Bench) -> Outcome:
        places = list(_places(subject, bench))
        words = " ".join(shlex.quote(str(place)) for place in places) or "''"
        left = await bench.act(subject, Trick("a look around", script=_SCRIPT.format(places=words, seen=_SEEN)))
        if left.problem:
            return Outcome("unchecked", left.problem)
        found = list(dict.fromkeys([*_in_workspace(subject), *_seen(subject, left, bench.suite.folder)]))
        return Outcome("finding", "; ".join(found[:3]), len(found), len(places)) if found else Outcome("sound")


def _places(subject: Subject, bench: Bench) -> Iterator[Path]:
    """Yield the files next to the suite that the agent must not read."""
    folder = bench.suite.folder
    names = [name for check in subject.checks() for name in _listed(check.get("files") or [])]
    names += [*(subject.solution.files if subject.solution else ())]
    names += [subject.solution.patch] if subject.solution and subject.solution.patch else []
    for name in names:
        place = (folder / name).resolve()
        yield from [place] if place.is_file() else sorted(path for path in place.rglob("*") if path.is_file())[:20]
    if subject.case.accepted and bench.suite.path is not None:
        yield bench.suite.path.resolve()


def _listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


def _in_workspace(subject: Subject) -> Iterator[str]:
    """Yield what the workspace has from the start, and should not."""
    hidden = {body.strip(): name for name, body in subject.hidden.items() if _telling(body) and not is_test(name)}
    solved = subject.solved.files if subject.solved is not None else {}
    right = {body.strip() for name, body in solved.items() if _telling(body)}
    for name, body in subject.start.items():
        if body.strip() in hidden:
            yield f"`{name}` in its workspace is the check's `{hidden[body.strip()]}`"
        elif body.strip() in right and solved.get(name, b"").strip() != body.strip():
            yield f"`{name}` in its workspace is a part of the solution"
        elif _TELLING.search(name) and any(text.encode() in body for text in _answers(subject)):
            yield f"`{name}` in its workspace has the answer"


def _telling(body: bytes) -> bool:
    return len(body.strip()) >= _LEAST


def _answers(subject: Subject) -> list[str]:
    return [text for text in subject.case.accepted if len(text) >= _SHORTEST and text not in subject.case.input]


def _seen(subject: Subject, left: Left, folder: Path) -> Iterator[str]:
    """Yield what the scripted agent has seen."""
    root = folder.resolve()
    for line in left.files.get(_SEEN, b"").decode("utf-8", "replace").splitlines():
        kind, _, rest = line.partition(" ")
        if kind == "readable":
            place = Path(rest)
            if subject.workspace is not None and subject.workspace.sandbox == "none":
                yield "there is no sandbox, so it can read the check's files next to the suite"
                continue
            yield f"`{place.relative_to(root) if place.is_relative_to(root) else place}` can be read"
        elif kind in ("commit", "unreachable"):
            yield "later commits are in its `.git`"
        elif kind in ("variable", "process") and any(text in rest for text in _answers(subject)):
            name = rest.partition("=")[0] if "=" in rest else "a command line"
            yield f"the answer is in {'its environment' if kind == 'variable' else '/proc'} (`{name[:40]}`)"
