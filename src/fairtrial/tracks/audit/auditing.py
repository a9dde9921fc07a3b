"""Auditing a suite: every case meets every probe, in an order in which none spoils another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence

import msgspec

from fairtrial.agents.workspace.making import WorkspaceError
from fairtrial.config import Suite
from fairtrial.core.errors import FairtrialError
from fairtrial.core.registry import nearest
from fairtrial.tracks.audit.bench import Bench
from fairtrial.tracks.audit.probe import Outcome, Probe
from fairtrial.tracks.audit.probes import NAMES, PROBES
from fairtrial.tracks.audit.probes.nothing import Nothing
from fairtrial.tracks.audit.probes.order import AFTER_SOLUTION, Order
from fairtrial.tracks.audit.probes.solution import SolutionProbe
from fairtrial.tracks.audit.result import Audit, AuditRow
from fairtrial.tracks.audit.subject import Subject, of_traces, subjects_of

REPEATS = 5
AT_ONCE = 4
SECONDS = 300.0
Done = Callable[[int, int], None]  # how many rows there are so far, and how many there will be


async def audit_suite(
    suite: Suite,
    *,
    probes: Sequence[str] = (),
    skip: Sequence[str] = (),
    repeats: int = REPEATS,
    at_once: int = AT_ONCE,
    seconds: float = SECONDS,
    done: Done | None = None,
) -> Audit:
    """Try every case in every way, without asking a target. `done` is called with how far it is."""
    chosen = [kind(repeats) for kind in PROBES if kind.name in _names(probes, skip)]
    subjects = list(subjects_of(suite))
    async with Bench(suite, at_once=at_once, seconds=seconds) as bench:
        work = _Work(bench, chosen, done, len(subjects) * len(chosen))
        room = asyncio.Semaphore(at_once)
        prepared = await asyncio.gather(*(work.case(one, room) for one in subjects))
        for one in reversed(prepared):
            await work.last(one)
    notes = sorted({note for one in prepared for note in _notes(one)})
    rows = sorted(work.rows, key=lambda row: (row[0], NAMES.index(row[1].probe)))
    return Audit(
        suite=suite.name,
        probes=tuple(probe.name for probe in chosen),
        rows=tuple(row for _, row in rows),
        notes=tuple(notes),
    )


def _names(probes: Iterable[str], skip: Iterable[str]) -> set[str]:
    for name in (*probes, *skip):
        if name not in NAMES:
            raise FairtrialError(f"there is no probe `{name}`{nearest(name, list(NAMES))}")
    names = set(probes or NAMES) - set(skip)
    if not names:
        raise FairtrialError("no probe is left: name one that is not left out")
    return names


def _notes(subject: Subject) -> Iterable[str]:
    if subject.left_out:
        names = ", ".join(f"`{name}`" for name in dict.fromkeys(subject.left_out))
        yield f"{names} of `all_of` is left out: it looks at how an answer came about, which a solution cannot tell"


class _Work:
    """The rows so far, and what decides which probes are worth trying."""

    def __init__(self, bench: Bench, probes: Sequence[Probe], done: Done | None, total: int) -> None:
        self._bench, self._probes, self._done, self._total = bench, probes, done, total
        self.rows: list[tuple[int, AuditRow]] = []
        self._found: dict[tuple[int, str], dict[str, Outcome]] = {}

    async def case(self, subject: Subject, room: asyncio.Semaphore) -> Subject:
        """Try a case in every way that does not depend on other cases; return what it was tried with."""
        async with room:
            if reason := _cannot(subject):
                self._add(subject, {probe.name: Outcome("unchecked", reason) for probe in self._probes})
                return subject
            try:
                subject = await self._prepared(subject)
            except WorkspaceError as error:
                broken = Outcome("finding", f"cannot be tried: {error}")
                others = Outcome("unchecked", "its workspace cannot be made")
                self._add(subject, {one.name: others for one in self._probes} | {self._probes[0].name: broken})
                return subject
            first = await self._tried(subject, {}, (Nothing,))
            first |= await self._tried(subject, first, (SolutionProbe,))
            first |= await self._again(subject, first)
            subject = await self._watched(subject, first)
            rest = [type(one) for one in self._probes if not isinstance(one, Nothing | SolutionProbe | Order)]
            await self._tried(subject, first, rest)
        return subject

    async def _prepared(self, subject: Subject) -> Subject:
        start = await self._bench.start_of(subject)
        solution = subject.solution
        usable = solution is not None and (subject.workspace is not None or solution.answer)
        solved = await self._bench.solve(subject) if usable else None
        return msgspec.structs.replace(subject, start=start, solved=solved)

    async def _again(self, subject: Subject, first: dict[str, Outcome]) -> dict[str, Outcome]:
        """See whether the solution has left something behind by which everything passes from then on."""
        nothing, solution = first.get("nothing"), first.get("solution")
        if nothing is None or solution is None or nothing.status != "sound" or not solution.passed:
            return {}
        again = await Nothing(1).look(subject, self._bench)
        if again.status != "finding" or not again.passed:
            return {}
        found = {"order": again._replace(what=AFTER_SOLUTION)}
        self._add(subject, found if any(isinstance(one, Order) for one in self._probes) else {})
        return found

    async def _watched(self, subject: Subject, first: dict[str, Outcome]) -> Subject:
        """Return a case with what its check leaves behind."""
        solution = first.get("solution")
        if subject.solved is None or subject.workspace is None or (solution is not None and not solution.passed):
            return subject
        return msgspec.structs.replace(subject, made=await self._bench.made_by_check(subject, subject.solved))

    async def _tried(
        self, subject: Subject, first: dict[str, Outcome], kinds: Sequence[type[Probe]]
    ) -> dict[str, Outcome]:
        """Try a case in these ways; return what came of it."""
        own = [probe for probe in self._probes if isinstance(probe, tuple(kinds)) and probe.concerns(subject)]
        outcomes = await asyncio.gather(*(self._outcome(probe, subject, first) for probe in own))
        found = {probe.name: outcome for probe, outcome in zip(own, outcomes, strict=True)}
        self._add(subject, found)
        return found

    async def _outcome(self, probe: Probe, subject: Subject, first: dict[str, Outcome]) -> Outcome:
        nothing, solution, order = first.get("nothing"), first.get("solution"), first.get("order")
        if order is not None and order.status == "finding":
            return Outcome("unchecked", "what was tried before decides its result")
        if probe.needs_solution:
            if subject.solved is None:
                return Outcome("unchecked", "there is no reference solution")
            if subject.solved.problem or (solution is not None and solution.status == "finding"):
                return Outcome("unchecked", "its solution does not pass as it is")
        elif nothing is not None and nothing.status == "finding" and nothing.passed:
            return Outcome("unchecked", "doing nothing passes already")
        return await probe.look(subject, self._bench)

    async def last(self, subject: Subject) -> None:
        """Try what comes when all others were tried."""
        found = self._found.get(_key(subject), {})
        if not any(one.name not in found and isinstance(one, Order) for one in self._probes):
            return
        nothing = found.get("nothing")
        if nothing is not None and nothing.passed and subject.workspace is not None:
            self._add(subject, {"order": Outcome("unchecked", "doing nothing passes already")})
            return
        await self._tried(subject, found, (Order,))

    def _add(self, subject: Subject, outcomes: dict[str, Outcome]) -> None:
        self._found.setdefault(_key(subject), {}).update(outcomes)
        for name, one in outcomes.items():
            arm = subject.arm.name if subject.several else ""
            row = AuditRow(case=subject.case.id, probe=name, arm=arm, **one._asdict())
            self.rows.append((subject.case.position, row))
        if self._done is not None:
            self._done(len(self.rows), self._total)


def _key(subject: Subject) -> tuple[int, str]:
    return subject.case.position, subject.arm.name


def _cannot(subject: Subject) -> str:
    """Return why a case cannot be audited; empty if it can."""
    if subject.scorer.needs_judge() or subject.scorer.embedders():
        return "its scorer asks a model, which costs money"
    if subject.scorer.looks:
        return "its scorer opens pages in a browser"
    return "its scorer looks at how an answer came about" if of_traces(subject) else ""
