"""A task as it is audited: a case, what scores it, what it starts with, and what is hidden from the agent."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from fairtrial.agents.workspace.archive import ArchiveError, entries, pack
from fairtrial.config import Suite
from fairtrial.core.experiment import Arm, Case, ScorerSpec
from fairtrial.core.ids import canonical_json
from fairtrial.core.options import build_scorer
from fairtrial.core.scorer import Scorer
from fairtrial.core.solution import Solution, solution_of
from fairtrial.core.workspace import WorkspaceSpec
from fairtrial.tracks.audit.trick import Left

_LARGEST = 2**20  # bytes of a file that is looked into
_MOST = 1000  # files
_LARGEST_CHECK = 200 * 2**20
_OF_TRACES = frozenset({"tool_calls", "trajectory", "latency", "cost"})  # of how it was done, not of what


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """A case under the arms that are scored alike."""

    case: Case
    arm: Arm  # one of them, with the scorer that is audited
    scorer: Scorer
    spec: ScorerSpec
    workspace: WorkspaceSpec | None  # None: a question, whose answer is a text
    several: bool = False  # whether other arms are scored in another way
    left_out: tuple[str, ...] = ()  # parts of the scorer that look at how it was done
    mark: float = 1.0  # the score from which an answer passes
    refusing: bool = False  # whether it may be right to refuse
    labels: tuple[str, ...] = ()  # the right answers of all cases, where they are few
    hidden: Mapping[str, bytes] = {}  # the check's own files, by their names in the workspace
    start: Mapping[str, bytes] = {}  # what the agent starts with
    solved: Left | None = None  # what the solution leaves
    made: Mapping[str, bytes] = {}  # what the check itself leaves in the workspace, once the solution has passed

    @property
    def solution(self) -> Solution | None:
        """What the case names as its solution."""
        return solution_of(self.case)

    def checks(self) -> list[dict[str, Any]]:
        """Return the `check` scorers within its scorer."""
        return list(_checks(self.spec))


def subjects_of(suite: Suite) -> Iterator[Subject]:
    """Yield every case, once for each way in which it is scored."""
    labels = _labels(suite)
    for case in suite.cases():
        found: dict[bytes, Subject] = {}
        for arm in suite.arms:
            if arm.is_asked(case.targets, case.conditions):
                one = _subject(suite, case, arm, labels)
                found.setdefault(canonical_json([one.spec, msgspec.to_builtins(one.workspace)]), one)
        for one in found.values():
            yield msgspec.structs.replace(one, several=len(found) > 1)


def _subject(suite: Suite, case: Case, arm: Arm, labels: tuple[str, ...]) -> Subject:
    spec, left_out = _of_results(arm.scorer_of(case))
    scorer = build_scorer(spec)
    workspace = (arm.workspace_of(case) or WorkspaceSpec()) if scorer.needs_workspace() else None
    own = msgspec.structs.replace(case, scorer=spec, repeats=1)
    gate = suite.settings.gate
    return Subject(
        case=own,
        arm=arm,
        scorer=scorer,
        spec=spec,
        workspace=workspace,
        left_out=left_out,
        mark=gate.pass_score / 100 if gate is not None else 1.0,
        refusing=suite.settings.on_refusal == "right" or '"refusal"' in canonical_json(spec).decode(),
        labels=labels,
        hidden=_hidden(spec, suite.folder),
    )


def _of_results(spec: ScorerSpec) -> tuple[ScorerSpec, tuple[str, ...]]:
    """Return a scorer without the parts that look at how an answer came about, which a solution cannot tell."""
    parts = spec.get("scorers")
    if spec.get("type") != "all_of" or not isinstance(parts, list):
        return spec, ()
    names = [part if isinstance(part, str) else str(part.get("type")) for part in parts]
    kept = [part for part, name in zip(parts, names, strict=True) if name not in _OF_TRACES]
    if not kept or len(kept) == len(parts):
        return spec, ()
    return {**spec, "scorers": kept}, tuple(name for name in names if name in _OF_TRACES)


def of_traces(subject: Subject) -> bool:
    """Return whether its scorer looks at nothing but how an answer came about."""
    return subject.spec.get("type") in _OF_TRACES


def _checks(spec: Any) -> Iterator[dict[str, Any]]:
    if isinstance(spec, dict):
        if spec.get("type") == "check":
            yield spec
        for value in spec.values():
            yield from _checks(value)
    elif isinstance(spec, list):
        for item in spec:
            yield from _checks(item)


def _hidden(spec: ScorerSpec, folder: Path) -> dict[str, bytes]:
    """Return the files of its checks; those that cannot be read are found by running the check."""
    found: dict[str, bytes] = {}
    for check in _checks(spec):
        names = check.get("files") or []
        for name in [names] if isinstance(names, str) else names:
            try:
                found |= contents(pack(folder / name, _LARGEST_CHECK))
            except (ArchiveError, OSError):
                continue
    return found


def _labels(suite: Suite) -> tuple[str, ...]:
    """Return the right answers of all cases if they are a few that come again and again, as in a classification."""
    counts: dict[str, int] = {}
    for case in suite.cases():
        for text in case.accepted[:1]:
            counts[text] = counts.get(text, 0) + 1
            if len(counts) > 20:
                return ()
    return tuple(counts) if len(counts) > 1 and sum(counts.values()) >= 2 * len(counts) else ()


def contents(body: bytes, prefix: str = "") -> dict[str, bytes]:
    """Return the files in an archive that are not too large, by their names without the prefix."""
    found: dict[str, bytes] = {}
    with tarfile.open(fileobj=io.BytesIO(body)) as packed:
        for member in packed:
            if member.isreg() and member.size <= _LARGEST and member.name.startswith(prefix) and len(found) < _MOST:
                file = packed.extractfile(member)
                found[member.name.removeprefix(prefix)] = file.read() if file else b""
    return found


def files_in(folder: Path) -> dict[str, bytes]:
    """Return the files of a folder that are not too large; of a repository only what is checked out."""
    found: dict[str, bytes] = {}
    for name, status in entries(folder):
        path = folder / name
        if name.startswith(".git/") or path.is_symlink() or not path.is_file():
            continue
        if status.st_size <= _LARGEST and len(found) < _MOST:
            found[name] = path.read_bytes()
    return found


def references(subject: Subject) -> tuple[Left, ...]:
    """Return what is known to be right: what its solution leaves, or the expected answers; empty if nothing is."""
    if subject.solved is not None:
        return (subject.solved,)
    if subject.workspace is not None or not _says_what_is_right(subject):
        return ()
    return tuple(map(Left, subject.case.accepted))


def _says_what_is_right(subject: Subject) -> bool:
    """Return whether `expected` is itself a right answer: a pattern and what is forbidden are not."""
    return subject.scorer.needs_expected() and not subject.scorer.forbids() and subject.spec.get("type") != "regex"
