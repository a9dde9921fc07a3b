"""Trials of a run, chosen by filters: as blocks to read, or as one JSON document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from shlex import quote
from typing import Any, NamedTuple

import click
from rich.cells import cell_len
from rich.text import Text

from fairtrial.analyse.run import Run
from fairtrial.analyse.stored_run import TrialRecord
from fairtrial.analyse.summary import ranked
from fairtrial.cli.console import Console
from fairtrial.cli.documents import print_json_with_list
from fairtrial.cli.options import in_store
from fairtrial.cli.tables import shortened
from fairtrial.core.errors import FairtrialError
from fairtrial.core.expected import show_expected
from fairtrial.core.formatting import number
from fairtrial.core.place import Place
from fairtrial.core.registry import nearest
from fairtrial.present.words.limits import trial_limit
from fairtrial.reports.json import trial_document
from fairtrial.store.browsing import positions_of
from fairtrial.store.case_kinds import KINDS, kinds_of_plan
from fairtrial.store.trial_query import TrialQuery, matching_trials
from fairtrial.text.printable import counted, one_line, printable

_MOST_SHOWN = 50
_INDENT = 13  # columns before a text
_LINES = 2  # of each text, unless the whole is asked for
_MOST_READ = 10_000  # characters of a text, to find these lines


class Filters(NamedTuple):
    """The filters of `fairtrial show`: which trials to show, and how many; scores are 0–100."""

    wrong: bool = False
    trials: bool = False
    arms: tuple[str, ...] = ()
    case_ids: tuple[str, ...] = ()
    category: tuple[str, ...] = ()
    difficulty: tuple[str, ...] = ()
    tag: tuple[str, ...] = ()
    below: float | None = None
    above: float | None = None
    failed: bool = False
    unscored: bool = False
    failures: bool = False
    limit: int | None = None
    full: bool = False

    @property
    def lists_trials(self) -> bool:
        """Return whether trials are asked for, by name or by any filter."""
        return any(self[:-2]) or self.below is not None or self.above is not None


class Found(NamedTuple):
    """The trials that match: their places, how many of them to show, and which arm's wrong answers they are."""

    places: Sequence[Place]
    filters: Filters
    best: str = ""

    def shown(self, most: int | None) -> Sequence[Place]:
        """Return the places to show: as many as asked for, else at most this many."""
        return self.places[: self.filters.limit or most]


def find_trials(run: Run, filters: Filters) -> Found:
    """Find the matching trials; a name that the run does not have is an error."""
    filters = filters._replace(arms=tuple(_whole_names(run, filters.arms)))
    _check(run, filters)
    best = _best_arm(run) if filters.wrong and not filters.arms else ""
    names = [arm.name for arm in run.plan_arms]
    below = filters.below if not filters.wrong else min(100.0, 100.0 if filters.below is None else filters.below)
    query = TrialQuery(
        arms=tuple(names.index(name) for name in filters.arms or ((best,) if best else ())),
        cases=filters.case_ids,
        category=filters.category,
        difficulty=filters.difficulty,
        tag=filters.tag,
        below=None if below is None else below / 100,
        above=None if filters.above is None else filters.above / 100,
        failed=filters.failed or filters.failures,
        unscored=filters.unscored or filters.failures,
        worst_first=filters.wrong,
    )
    return Found(matching_trials(run.store, run.record, query), filters, best)


def _whole_names(run: Run, names: Iterable[str]) -> Iterator[str]:
    """Yield the names of the arms that are meant; a condition means every arm with it."""
    known = {arm.name for arm in run.plan_arms}
    for name in names:
        own = [arm.name for arm in run.plan_arms if arm.condition.name == name]
        yield from [name] if name in known or not own else own


def _check(run: Run, filters: Filters) -> None:
    """Reject filters that contradict each other, and names of arms, cases and kinds that the run does not have."""
    by_score = filters.wrong or filters.below is not None or filters.above is not None
    if by_score and (filters.failed or filters.unscored or filters.failures):
        raise click.UsageError("trials without a score are neither wrong nor above or below a score: leave one out")
    known = {"arm": [arm.name for arm in run.plan_arms]}
    wanted = {"arm": filters.arms, **{kind: getattr(filters, kind) for kind in KINDS}}
    kinds = [kind for kind in KINDS if wanted[kind]]
    members = kinds_of_plan(run.store, run.plan.id, kinds) if kinds else {}
    known |= {kind: list(members.get(kind, ())) for kind in kinds}
    for what, names in wanted.items():
        for name in names:
            if name not in known[what]:
                raise FairtrialError(f"run {run.id} has no {what} `{name}`{nearest(name, known[what])}")
    for name in filters.case_ids:
        if not positions_of(run.store, run.plan.id, name):
            raise FairtrialError(f"run {run.id} has no case `{name}`; `fairtrial show --cases` lists them")


def _best_arm(run: Run) -> str:
    return ranked(run.arms)[0].arm


def print_trials(run: Run, found: Found) -> None:
    """Print the trials as blocks of lines that fit the terminal, and how many there are."""
    console = Console()
    total, shown = len(found.places), found.shown(_MOST_SHOWN)
    console.print(Text(printable(_heading(run, found)), style="bold"))
    repeats = any(arm.repeats > 1 for arm in run.plan_arms)
    for trial in run.trials_at(shown):
        console.print()
        _print_block(console, trial, repeats=repeats or trial.repeat > 1, full=found.filters.full)
    if not shown and found.filters.wrong:
        _print_nothing_wrong(console, run, found)
    elif not shown:
        console.print("no trial matches")
    elif total > len(shown):
        console.print(f"\n{len(shown)} of {counted(total, 'trial')}; --limit N shows more")
    else:
        console.print(f"\n{counted(total, 'trial')}; --trial ID shows one in full")


def _print_nothing_wrong(console: Any, run: Run, found: Found) -> None:
    """Say why there is no wrong answer, and whose there are."""
    arms = {arm.arm: arm for arm in ranked(run.arms)}
    whose = [found.best] if found.best else list(found.filters.arms)
    scored = any(arms[name].scored for name in whose)
    said = f"no answer of {', '.join(whose)} {'lost points' if scored else 'has a score'}"
    wrong = [arm.arm for arm in arms.values() if arm.scored and (arm.aggregate.mean or 0.0) < 1.0]
    if other := next((name for name in wrong if name not in whose), None):
        command = in_store(f"fairtrial show {run.record.number} --wrong --arm {quote(other)}")
        said += f"; of {other}: `{command}`"
    console.print(Text(printable(said)), soft_wrap=True)


def _heading(run: Run, found: Found) -> str:
    head = f"run {run.id} · {run.record.suite_name}"
    if not found.filters.wrong:
        return head
    whose = found.best or ", ".join(found.filters.arms)
    return f"{head} · wrong answers of {whose}{' (the best arm)' if found.best else ''}, worst first"


def _print_block(console: Any, trial: TrialRecord, *, repeats: bool, full: bool) -> None:
    score = number(trial.score) if trial.status == "scored" else trial.status
    repeat = f" #{trial.repeat}" if repeats else ""
    room = console.width - len(score) - len(repeat) - 15
    case = shortened(printable(trial.case_id), max(8, room - min(cell_len(trial.arm), room // 2)))
    arm = shortened(printable(trial.arm), max(8, room - cell_len(case)))
    head = Text.assemble(f" {trial.trial_id[:8]}  ", (case, "bold"), f"{repeat} · {arm}")
    head.append(" " * max(1, console.width - head.cell_len - len(score)))
    head.append(score, "bold" if trial.status == "scored" else "red")
    console.print(head, soft_wrap=True)
    reason = trial.failure_message or trial.unscored_message
    texts = {
        "question": trial.input,
        "expected": show_expected(trial.expected),
        "answer": trial.answer,
        "limit": trial_limit(trial) or None,
        "reason": reason,
        "note": None if reason else trial.notes,
    }
    for name, text in texts.items():
        if text or (name == "answer" and text is not None):
            _print_text(console, name, text or "(empty)", full=full)


def _print_text(console: Any, name: str, text: str, *, full: bool) -> None:
    """Print a named text, indented; without `full`, on one or two lines."""
    width = max(20, console.width - _INDENT)
    lines = printable(text).splitlines() if full else [one_line(text[:_MOST_READ])]
    wrapped = [piece for line in lines for piece in Text(line).wrap(console, width) or [Text("")]]
    if not full and len(wrapped) > _LINES:
        wrapped = wrapped[:_LINES]
        wrapped[-1].truncate(width - 1)
        wrapped[-1].append("…")
    for place, piece in enumerate(wrapped):
        piece.rstrip()
        console.print(Text.assemble((f"{name if place == 0 else '':>11}  ", "dim"), piece), soft_wrap=True)


def print_trial_documents(run: Run, head: dict[str, Any], found: Found) -> None:
    """Print one JSON document with the trials, one by one, so that none has to wait for all."""
    places = found.shown(None)
    trials: Iterable[dict[str, Any]] = map(trial_document, run.trials_at(places))
    print_json_with_list({**head, "matching_trials": len(found.places)}, "trials", trials)
