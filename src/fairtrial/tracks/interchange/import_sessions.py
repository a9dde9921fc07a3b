"""Logs of agents' sessions become runs: every session is a trial, whose case is what its user said first."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, NamedTuple, get_args

from fairtrial.config import variables_of
from fairtrial.core import registry
from fairtrial.core.errors import FairtrialError
from fairtrial.core.score import Scale
from fairtrial.core.trace import Trace
from fairtrial.foreign.logs import LogFormat, LoggedSession
from fairtrial.foreign.misfit import MISFITS, reason_of
from fairtrial.foreign.results import Columns, Contestant, Log, Question, Sample
from fairtrial.foreign.source import Source
from fairtrial.store import Store
from fairtrial.text.printable import counted
from fairtrial.tracks.interchange.import_log import ImportChoice
from fairtrial.tracks.interchange.import_results import Import, import_one
from fairtrial.tracks.interchange.options import GroupBy
from fairtrial.tracks.interchange.values import name_of

_WORDS = 6  # of what the user said, in the id of a case
_MAX_WORDS = 48  # characters
_MOST_NAMED = 8  # kinds of what was not understood


class _File(NamedTuple):
    """A file with sessions, and its format."""

    source: Source
    format: str
    form: LogFormat
    companions: tuple[Source, ...]

    def sessions(self) -> Iterator[LoggedSession]:
        """Read its sessions."""
        try:
            yield from self.form.sessions(self.source)
        except MISFITS as error:
            raise FairtrialError(f"{self.source.path.name} cannot be read as a log: {reason_of(error)}") from error
        finally:
            self.source.release()


class _Group:
    """The sessions that make one run, as they were seen in a first look at the files: none of their events is kept."""

    def __init__(self) -> None:
        self.files: dict[int, float] = {}  # when the first of its sessions began, by the place of the file
        self.agents: Counter[tuple[str, str]] = Counter()
        self.folders: set[str] = set()
        self.names: set[str] = set()
        self.arms: dict[str, Contestant] = {}
        self.metrics: dict[str, None] = {}
        self.asked: dict[str, dict[str, None]] = {}  # the arms of each case
        self.unknown: Counter[str] = Counter()
        self.ids: list[str] = []
        self.sessions = self.cut = 0
        self.last = 0.0

    def see(self, place: int, form: str, session: LoggedSession) -> None:
        """Note what a session says of the whole, and in which format."""
        began = session.started_at or 0.0
        self.files[place] = min(began, self.files.get(place, began))
        self.agents[session.agent, session.version] += 1
        self.folders.add(session.folder)
        arm = arm_name(session)
        self.arms.setdefault(arm, _contestant(arm, session))
        self.asked.setdefault(case_of(session), {})[arm] = None
        self.metrics |= dict.fromkeys(session.scores)
        self.unknown.update(session.unknown)
        self.ids.append(f"{form} {session.id}")
        self.sessions += 1
        self.cut += bool(session.stopped)
        self.last = max(self.last, session.ended_at or began)


def import_logs(
    paths: Any,
    *,
    store: Store,
    form: str | None = None,
    group_by: GroupBy | None = None,
    score: str | None = None,
    scales: Mapping[str, Scale] | None = None,
) -> list[Import]:
    """Import the sessions in files and folders: one run, or one for each group."""
    files, notes = _files(paths, form)
    groups, more = _grouped(files, group_by)
    choice = ImportChoice(Columns(score=score), dict(scales or {}))
    variables = variables_of()
    logs = [_log(group, name, files, group_by, [*notes, *more]) for name, group in groups.items()]
    return [import_one(log, choice, store, variables) for log in sorted(logs, key=lambda log: log.created or 0.0)]


def sessions_in(paths: Any, form: str | None = None) -> Iterator[LoggedSession]:
    """Yield every session in files and folders that has a user, in the order of the files."""
    for file in _files(paths, form)[0]:
        yield from (session for session in file.sessions() if session.said)


# -- which files -----------------------------------------------------------------------------------


def _files(paths: Any, form: str | None) -> tuple[list[_File], list[str]]:
    """Return the files with sessions; and notes on the others."""
    found: list[_File] = []
    taken: set[Path] = set()
    unread: Counter[str] = Counter()
    named = [paths] if isinstance(paths, str | Path) else list(paths)
    forms: dict[str, LogFormat] = {form: registry.load("logs", form)} if form else registry.parts("logs")
    candidates = [one for path in map(Path, named) for one in _listed(path)]
    for path, by_name in candidates:
        if path.resolve() in taken:
            continue
        source = Source(path)
        recognised = _recognised(source, forms, by_name=by_name, unread=unread)
        if recognised is None:
            continue
        name, one = recognised
        companions = tuple(Source(other) for other in one.companions(source))
        taken |= {path.resolve(), *(other.path.resolve() for other in companions)}
        found.append(_File(source, name, one, companions))
        source.release()
    # A file may come before the one that it is read with.
    inner = {other.path.resolve() for file in found for other in file.companions}
    kept = [file for file in found if file.source.path.resolve() not in inner]
    if not kept:
        raise FairtrialError(f"{', '.join(map(str, named))}: no logs of sessions are there{_formats()}")
    notes = [f"{counted(count, 'file')} left out: {why}" for why, count in unread.items()]
    return kept, notes


def _listed(path: Path) -> Iterator[tuple[Path, bool]]:
    """Yield the files that a path stands for, and whether the user named them."""
    path = path.expanduser()
    if path.is_dir():
        yield from ((file, False) for file in sorted(path.rglob("*")) if file.is_file())
    elif path.is_file():
        yield path, True
    else:
        raise FairtrialError(f"{path} is not there: give a log or a folder with logs")


def _recognised(
    source: Source, forms: Mapping[str, LogFormat], *, by_name: bool, unread: Counter[str]
) -> tuple[str, LogFormat] | None:
    """Return the format of a file with its name; the only one that was chosen is that of every file that was named."""
    try:
        for name, one in forms.items():
            if (by_name and len(forms) == 1) or one.recognises(source):
                return name, one
    except (FairtrialError, *MISFITS):
        if by_name:
            raise
        unread["they cannot be read"] += 1
        return None
    if by_name:
        raise FairtrialError(f"{source.path.name} is not recognised as a log of sessions{_formats()}")
    return None


def _formats() -> str:
    names = ", ".join(name.replace("_", "-") for name in registry.listed("logs"))
    return f"; known are those of {names}: --format says which it is"


# -- which sessions belong together --------------------------------------------------------------


def _grouped(files: Sequence[_File], group_by: GroupBy | None) -> tuple[dict[str, _Group], list[str]]:
    groups: dict[str, _Group] = {}
    silent = 0
    for place, file in enumerate(files):
        for session in file.sessions():
            if not case_of(session):
                silent += 1
                continue
            groups.setdefault(_KEYS[group_by](session), _Group()).see(place, file.format, session)
    if not groups:
        raise FairtrialError("no session in these logs has a message of its user: nothing was imported")
    return groups, [f"{counted(silent, 'session')} without a message of a user left out"] if silent else []


_KEYS: dict[GroupBy | None, Callable[[LoggedSession], str]] = {
    None: lambda session: "",
    "cwd": lambda session: session.folder,
    "branch": lambda session: session.branch,
    "model": lambda session: session.model,
    "agent": lambda session: session.agent,
    "day": lambda session: _day(session.started_at),
}
assert set(_KEYS) - {None} == set(get_args(GroupBy))


def _day(seconds: float | None) -> str:
    try:
        return "" if seconds is None else datetime.fromtimestamp(seconds, UTC).date().isoformat()
    except (OverflowError, OSError, ValueError):
        return ""


def _base(folder: str) -> str:
    """Return the last part of a folder: the rest says where users keep their things."""
    kind = PureWindowsPath if "\\" in folder else PurePosixPath
    return name_of(kind(folder).name) if folder else ""


# -- one group as the log of a tool --------------------------------------------------------------


def _log(group: _Group, key: str, files: Sequence[_File], group_by: GroupBy | None, notes: list[str]) -> Log:
    order = [files[place] for place in sorted(group.files, key=lambda place: (group.files[place], place))]
    agents = {agent for agent, _ in group.agents}
    versions = {version for _, version in group.agents if version}
    folders = {_base(folder) for folder in group.folders} - {""}
    shown = _base(key) if group_by == "cwd" else name_of(key)
    name = shown or (next(iter(folders)) if len(folders) == 1 else "sessions")
    by_folder = len(folders) > 1

    def arms_of(case: str) -> tuple[str, ...]:
        return tuple(group.asked[case]) if len(group.asked[case]) < len(group.arms) else ()

    def samples() -> Iterator[Sample]:
        for file in order:
            for session in file.sessions():
                if case_of(session) and _KEYS[group_by](session) == key:
                    yield _sample(session, arms_of(case_of(session)), by_folder=by_folder)

    ids = hashlib.sha256("\n".join(sorted(group.ids)).encode()).hexdigest()
    return Log(
        tool=next(iter(agents)) if len(agents) == 1 else "agents",
        version=next(iter(versions)) if len(versions) == 1 else "",
        name=name if group_by in (None, "cwd") else f"sessions {name}",
        part=f"{group_by}: {ids[:12]}" if group_by else "",
        sources=tuple(source for file in order for source in (file.source, *file.companions)),
        samples=samples,
        arms=group.arms,
        metrics=tuple(group.metrics),
        primary="reward" if "reward" in group.metrics else next(iter(group.metrics), None),
        created=group.last or None,
        ended=group.last or None,
        lineage=ids,
        graded=bool(group.metrics),
        notes=[*notes, *_remarks(group)],
        missing=[] if group.metrics else ["scores"],
    )


def _remarks(group: _Group) -> Iterator[str]:
    if group.unknown:
        common = [f"{count} × {what}" for what, count in group.unknown.most_common(_MOST_NAMED)]
        more = sum(group.unknown.values()) - sum(count for _, count in group.unknown.most_common(_MOST_NAMED))
        rest = f", {more} of other kinds" if more else ""
        yield f"not understood and left out: {', '.join(common)}{rest}"
    if group.cut:
        yield f"{counted(group.cut, 'session')} without its end: import again once the session has ended"


def arm_name(session: LoggedSession) -> str:
    """Return the arm of a session: the agent and its model."""
    model = session.model.rsplit("/", 1)[-1] if session.agent == "opencode" else session.model
    return session.arm or name_of(f"{session.agent}:{model}" if model else session.agent)


def _contestant(arm: str, session: LoggedSession) -> Contestant:
    return Contestant(name=arm, model=name_of(session.model), provider=session.agent)


def case_of(session: LoggedSession) -> str:
    """Return the id of a session's case: its task, or the first words of its user; empty if it has neither."""
    if session.case:
        return session.case
    if not session.said:
        return ""
    text = session.said[0]
    words = "-".join(re.findall(r"[^\W_]+", text.lower())[:_WORDS])[:_MAX_WORDS].strip("-")
    return name_of(f"{words or 'session'}-{hashlib.sha256(text.encode()).hexdigest()[:6]}")


def _sample(session: LoggedSession, arms: tuple[str, ...], *, by_folder: bool) -> Sample:
    metadata = dict(session.metadata)
    turns = max((event.turn for event in session.events), default=1)
    where = {"folder": _base(session.folder), "branch": name_of(session.branch), "version": name_of(session.version)}
    trace: dict[str, Any] = Trace(events=session.events, session_id=session.id or None, turns=turns).as_dict()
    said = session.said
    return Sample(
        question=Question(
            id=case_of(session),
            input=said[0] if said else "",
            category=_base(session.folder) or None if by_folder else None,
            metadata=metadata,
            arms=arms,
        ),
        arm=arm_name(session),
        repeat=session.repeat,
        answer=None if session.failure else session.answer or "",
        failure=session.failure,
        scores=session.scores,
        notes=session.notes,
        usage=session.usage,
        latency_ms=session.worked_ms,
        cost_usd=session.cost_usd,
        finish_reason=session.finish_reason,
        model=session.model or None,
        trace={**trace, "session": {name: value for name, value in where.items() if value}},
        started_at=session.started_at,
    )
