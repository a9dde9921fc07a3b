"""Ask more of a run that a gate cannot decide about, until it can or the money is spent.

Every round is one more run of the same plan in the same series: more answers to the same cases. As many are bought as
would be enough by what is known so far; then the gate looks again. Looking several times would turn 5 % errors into
many more; so the first look has the level 4 %, each later one half of what is left, and all looks together err in 5 %
of gates at most, however many there are and whatever made one stop (union bound). A round that was interrupted is
finished first: nothing is paid for twice.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from fairtrial.analyse.gate import Terms, gate
from fairtrial.analyse.gate_result import Gate
from fairtrial.analyse.run import Run
from fairtrial.analyse.score_table import RunSource
from fairtrial.analyse.stored_run import StoredRun
from fairtrial.core.errors import FairtrialError
from fairtrial.core.ids import new_id
from fairtrial.engine.job import HERE, Where
from fairtrial.engine.watching import Watch
from fairtrial.stats.looks import level_of_another_look
from fairtrial.store import Store, ledger
from fairtrial.store.records import RunRecord
from fairtrial.workflows.resume import aresume, next_run, series_size

_ENDED = ("completed", "stopped")
_MOST_ROUNDS = 20
_HELPED = ("category", "guard", "minimum")  # checks that more answers may decide; nobody knows how many


class Bought(NamedTuple):
    """What came of it: the last look, how many rounds were asked, what they cost, and why it ended."""

    gate: Gate
    rounds: int
    usd: float
    ended: str
    series: str


async def abuy_until_sure(
    run: StoredRun,
    against: RunSource,
    terms: Terms,
    *,
    budget_usd: float,
    watch: Callable[[int], Watch | None] = lambda _: None,
    where: Where = HERE,
) -> Bought:
    """Ask all cases again, round by round, as long as the gate cannot tell, the budget lasts, and it would help."""
    store = run.store
    if run.record.origin is not None:
        raise FairtrialError("a run of another tool cannot be continued here: --until-sure needs a run of fairtrial")
    series = _series_of(store, run)
    first = _first_runs(store.series_of(series))
    before_usd = sum(ledger.spent(store, record.id).charged for record in first)
    overrides = {"budget_usd": before_usd + budget_usd, "cache": False}
    while True:
        records = store.series_of(series)
        number = len(records) - len(first)
        if number and records[-1].status not in _ENDED:
            last = await aresume(records[-1].id, store=store, overrides=overrides, watch=watch(number), where=where)
            records[-1] = last.record
        finished = [record for record in records if record in first or record.status in _ENDED]
        spent = ledger.charged(store, run.id, series) - before_usd
        price = (before_usd + spent) / len(records)
        halted = _halted(records[-1], whole=len(finished) == len(records), price=price, left=budget_usd - spent)
        goal = _goal_of(records)
        if len(finished) >= goal.runs or halted:
            look = goal.look + 1
            source = RunSource(run.id, tuple(Run(store, record) for record in finished))
            looked = await asyncio.to_thread(gate, source, against, _at_look(terms, look))
            rounds = len(finished) - len(first)
            if ended := _why_end(looked, rounds) or halted:
                return Bought(looked, rounds, spent, ended, series)
            goal = Goal(look, min(_enough(looked, len(finished)), len(first) + _MOST_ROUNDS))
        facts = {"until_sure": {"look": goal.look, "runs": goal.runs}}
        await next_run(store, records[0], len(records) + 1, overrides, None, watch(number + 1), where, facts)


class Goal(NamedTuple):
    """How often the gate has looked, and how many runs there must be before it looks again."""

    look: int
    runs: int


def _goal_of(records: Sequence[RunRecord]) -> Goal:
    """Return what was decided when the last round was begun, which is recorded with it."""
    stored = msgspec.json.decode(records[-1].context).get("until_sure")
    return Goal(0, len(records)) if stored is None else Goal(stored["look"], stored["runs"])


def _enough(looked: Gate, runs: int) -> int:
    """Return how many runs would be enough for the checks that more answers can decide, at least one more."""
    wanted = [runs * one.repeats / one.now for one in looked.settle if one.repeats is not None]
    return max([runs + 1, *(math.ceil(each) for each in wanted)])


def _halted(last: RunRecord, *, whole: bool, price: float, left: float) -> str:
    """Return why no further round can be bought; empty if one can."""
    if not whole:
        return f"the last round is {last.status}: {last.reason or 'some trials failed'}"
    if price > left:
        return f"another round costs about ${price:.2f}, and ${max(0.0, left):.2f} of the budget is left"
    return ""


def _at_look(terms: Terms, look: int) -> Terms:
    return msgspec.structs.replace(terms, level=level_of_another_look(look))


def _series_of(store: Store, run: StoredRun) -> str:
    """Return the series of a run; a run of its own becomes the first of one."""
    if run.record.series_id is not None:
        return run.record.series_id
    series = new_id()
    with store.lease(run.id) as lease:
        lease.set_run(series_id=series)
    return series


def _first_runs(records: Sequence[RunRecord]) -> list[RunRecord]:
    """Return the runs that there were before the first round: one, or as many as the series was planned with."""
    return list(records[: max(1, series_size(records[:1]))])


def _why_end(looked: Gate, rounds: int) -> str:
    """Return why no further round would be of use; empty if one would."""
    if looked.result != "cannot tell":
        return "decided"
    undecided = [check for check in looked.checks if check.result == "cannot tell"]
    helped = {(one.name, one.arm) for one in looked.settle if one.repeats is not None}
    if not any((check.name, check.arm) in helped or check.name.startswith(_HELPED) for check in undecided):
        return "more answers to these cases would not decide it"
    return f"{rounds} rounds did not decide it" if rounds >= _MOST_ROUNDS else ""
