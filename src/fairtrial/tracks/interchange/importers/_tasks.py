"""What importers of agents' tasks share: findings said once for all tasks that they concern, scripts, scorers."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from fairtrial.core.errors import FairtrialError
from fairtrial.core.variables import escape
from fairtrial.foreign.suites import NO_JUDGE, read_text

_MOST_NAMES = 3
AGENT = {"target": "claude-code", "options": {"tools": ["Bash", "Read", "Write", "Edit", "Glob", "Grep"]}}


def check_exists(place: Path) -> None:
    """Raise an error if there is no such file or folder."""
    if not place.exists():
        raise FairtrialError(f"{place} cannot be read: there is no such file or folder")


def as_written(value: Any) -> Any:
    """Return texts of others for a suite, as they are: they name no variables of the environment."""
    if isinstance(value, str):
        return escape(value)
    if isinstance(value, dict):
        return {key: as_written(item) for key, item in value.items()}
    return [as_written(item) for item in value] if isinstance(value, list) else value


class Findings:
    """What cannot be carried over, each thing once, with the tasks that it concerns."""

    def __init__(self) -> None:
        self._tasks: dict[str, list[str]] = {}

    def add(self, what: str, task: str = "") -> None:
        """Add something that a task (or, without one, the whole) has and that has no counterpart."""
        tasks = self._tasks.setdefault(what, [])
        if task and task not in tasks:
            tasks.append(task)

    def unknown(self, given: Iterable[str], known: Collection[str], what: str, task: str = "") -> None:
        """Add the keys that are not known; `what` has `{}` where their name belongs."""
        for key in sorted(set(given).difference(known)):
            self.add(what.format(key), task)

    def inside(self, folder: Path, name: str, task: str) -> Path | None:
        """Return a file of a task; None, which is a finding, if it is not in the task's folder, also by a link."""
        path = folder / name
        if path.resolve().is_relative_to(folder.resolve()):
            return path
        self.add("files outside of the folder of a task are not read: copy into it what you trust", task)
        return None

    def text_inside(self, folder: Path, name: str, task: str) -> str | None:
        """Return the text of a file of a task; None, which is a finding, if it is not in the task's folder."""
        path = self.inside(folder, name, task)
        return None if path is None else read_text(path)

    def listed(self) -> list[str]:
        """Return them as sentences."""
        return [f"{what}{_names(tasks)}" for what, tasks in self._tasks.items()]


def _names(tasks: list[str]) -> str:
    if not tasks:
        return ""
    more = f" and {len(tasks) - _MOST_NAMES} more" if len(tasks) > _MOST_NAMES else ""
    return f" ({', '.join(tasks[:_MOST_NAMES])}{more})"


def as_shell(script: str) -> str:
    """Return a script as shell commands: one in another language is written to a file first, and removed again."""
    first = script.lstrip().partition("\n")[0].strip()
    if not first.startswith("#!") or first.endswith(("/sh", "/bash", " sh", " bash")):
        return script.strip()
    lines = ["f=$(mktemp)", "cat > \"$f\" <<'FAIRTRIAL_END'", script.strip(), "FAIRTRIAL_END"]
    return "\n".join([*lines, 'chmod +x "$f"; "$f"; code=$?; rm -f "$f"; exit $code'])


def combined(scorers: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the one scorer that wants all of these."""
    if len(scorers) < 2:
        return next(iter(scorers), None)
    return {"type": "all_of", "scorers": scorers}


def needs_judge(scorers: Iterable[Any]) -> bool:
    """Return whether any of these scorers, or what is inside of them, is a judge."""
    return any(
        needs_judge(scorer if isinstance(scorer, list) else scorer.values())
        or (isinstance(scorer, dict) and scorer.get("type") == "llm_judge")
        for scorer in scorers
        if isinstance(scorer, list | dict)
    )


def with_judge(suite: dict[str, Any]) -> dict[str, Any]:
    """Return a suite with a judge to choose, if its cases need one."""
    if not needs_judge(case.get("scorer") for case in suite["cases"]):
        return suite
    return {**suite, "judge": {"target": NO_JUDGE}}
