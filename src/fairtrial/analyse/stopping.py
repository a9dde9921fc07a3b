"""What stopping early does to intervals: those of runs that are watched hold at any time, others at planned looks."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import msgspec

from fairtrial.analyse.asked import ENDED
from fairtrial.analyse.comparison import ANYTIME
from fairtrial.core.order import case_order
from fairtrial.core.settings import LookAgain, StopSpec
from fairtrial.stats import Aggregate, betting_sequence
from fairtrial.stats.looks import Look, ends_of_looks
from fairtrial.stats.mean import ALPHA
from fairtrial.store import Store, totals
from fairtrial.store.records import PlanRecord, RunRecord


class Adjust(NamedTuple):
    """How the aggregates of one arm allow for its run having been able to stop early."""

    alpha: float = ALPHA  # the level of intervals
    whenever: Callable[[Aggregate, Mapping[int, float], tuple[float, float]], Aggregate] | None = None

    def __call__(self, plain: Aggregate, means: Mapping[int, float], bounds: tuple[float, float]) -> Aggregate:
        """Return an aggregate, made at the level above, as it is valid whenever the run stopped.

        `means` are values by case position, `bounds` the limits of a value.
        """
        return plain if self.whenever is None else self.whenever(plain, means, bounds)


def adjustments(store: Store, record: RunRecord, plan: PlanRecord) -> Callable[[int], Adjust]:
    """Return how to adjust the aggregates of the arm at each position of a run."""
    settings = msgspec.json.decode(record.settings)
    if watched(stop_of(settings)):
        anytime = Adjust(whenever=partial(_in_order, record.order_key, plan.case_count))
        return lambda _: anytime
    looks = looks_reached(store, record.id, settings, plan.case_count)
    return lambda arm: Adjust(looks[arm].of_one_arm.nominal()) if arm in looks else Adjust()


def stop_of(settings: Mapping[str, Any]) -> StopSpec | None:
    """Return the rule by which a run may stop early."""
    return msgspec.convert(settings.get("stop"), StopSpec | None)


def watched(stop: StopSpec | None) -> bool:
    """Return whether a run may stop after any case: then bets decide."""
    return stop is not None and not stop.looks


def looks_reached(store: Store, run_id: str, settings: Mapping[str, Any], cases: int) -> dict[int, Look]:
    """Return which look each arm of a run has reached, by its position; empty if none are planned and none was before.

    Before the first planned look there is nothing to see yet: what is looked at all the same has the level of that one.
    """
    stop, before = stop_of(settings), again_of(settings)
    planned, shape = (stop.looks, stop.shape) if stop is not None and stop.looks else (1, "late")
    if planned == 1 and before is None:
        return {}
    ends, again = ends_of_looks(cases, planned), before.look if before else 1
    return {
        arm: Look(number=max(1, sum(end <= answered for end in ends)), planned=planned, shape=shape, again=again)
        for arm, answered in totals.answered_cases(store, run_id).items()
    }


def again_of(settings: Mapping[str, Any]) -> LookAgain | None:
    """Return which run that was looked at before a run extends."""
    return msgspec.convert(settings.get("again"), LookAgain | None)


def left_race(status: str, stop: StopSpec | None, looks: Mapping[int, Look]) -> dict[int, int]:
    """Return the look at which arms left a race that is over, by their positions; not those that left at its end."""
    if status not in ENDED or stop is None or not stop.race or stop.over:
        return {}
    last = max((look.number for look in looks.values()), default=0)
    return {arm: look.number for arm, look in looks.items() if look.number < last}


def strictest(one: Look | None, other: Look | None) -> Look | None:
    """Return the look with the lower level."""
    return min(filter(None, (one, other)), key=Look.nominal, default=None)


def whenever_stopped(
    plain: Aggregate,
    means: Mapping[int, float],
    order_key: str | None,
    case_count: int,
    bounds: tuple[float, float] = (0.0, 1.0),
    alpha: float = ALPHA,
) -> Aggregate:
    """Return the aggregate with the anytime-valid interval, and with the midpoint of that interval as its mean.

    `means` are values by case position; they are taken in the order of the run. The aggregate is returned unchanged if
    no scale bounds the values.
    """
    if not means or not all(map(math.isfinite, bounds)):
        return plain
    order_of = {position: number for number, position in enumerate(case_order(order_key, case_count))}
    values = [means[position] for position in sorted(means, key=lambda position: order_of[position])]
    sequence = betting_sequence(values, alpha=alpha, bounds=bounds)
    return msgspec.structs.replace(
        plain, mean=plain.mean if sequence.middle is None else sequence.middle, ci95=sequence.interval, method=ANYTIME
    )


def _in_order(
    order_key: str | None,
    case_count: int,
    plain: Aggregate,
    means: Mapping[int, float],
    bounds: tuple[float, float],
) -> Aggregate:
    return whenever_stopped(plain, means, order_key, case_count, bounds)
