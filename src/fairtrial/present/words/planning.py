"""Power and variance in words, shared by the terminal and notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairtrial.core.formatting import money, number
from fairtrial.core.looks import LOOKS
from fairtrial.text.printable import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairtrial.analyse.planned_looks import WithLooks
    from fairtrial.analyse.planning import PairPower
    from fairtrial.analyse.variance import Advice, ArmVariance

NEEDED = "cases needed to detect"
LOOKS_FOR = "looking for"
ROUGH = (
    " These numbers are rough: few cases account for the spread, and if other cases can show more than these did, more "
    "are needed."
)
VARIANCE_COLUMNS = ("arm", "std. error", "cases", "repeats", "judge", "best repeats")
_SPEND_ON = {
    "cases": "more cases",
    "repeats": "more repeats of the same cases",
    "judgements": "more judgements of the same answers (`panel: {judgements: N}`)",
}
_NO_ADVICE = {
    "nothing_varies": "nothing varies: every case has the same score",
    "noise_unknown": "one answer per case cannot separate the model's noise from differences between cases: use 3 "
    "repeats",
}


def in_words(advice: Advice) -> str:
    """Return what to spend the next dollar on."""
    if advice.what in _NO_ADVICE:
        return _NO_ADVICE[advice.what]
    return f"spend on {_SPEND_ON[advice.what]}: that reduces the uncertainty most for its price"


def power_line(pair: PairPower, power: float) -> str:
    """Say what the cases at hand can detect."""
    if pair.detectable is None:
        return f"{pair.count} cases are too few to detect any difference."
    return (
        f"{pair.count} cases with {pair.repeats:.3g} repeat{'s' if pair.repeats != 1 else ''} detect a true difference "
        f"of {number(pair.detectable)} points or more in {_how_often(power)} runs.{ROUGH if pair.rough else ''}"
    )


def _how_often(power: float) -> str:
    """Return a probability in everyday words: `4 of 5`, or `90 % of`."""
    return "4 of 5" if round(power, 6) == 0.8 else f"{100 * power:g} % of"


def power_table(pair: PairPower) -> tuple[tuple[str, ...], list[list[str]]]:
    """Return the columns and rows of the cases needed, by difference and repeats."""
    columns = (NEEDED, *(counted(repeats, "repeat") for repeats, _ in pair.cases_needed[0][1]))
    rows = [
        [f"{100 * delta:g} point{'' if delta == 0.01 else 's'}", *(f"{cases:,}" for _, cases in needed)]
        for delta, needed in pair.cases_needed
    ]
    return columns, rows


def looks_line(planned: int, power: float) -> str:
    """Say what a plan with looks is."""
    return (
        f"With {planned} looks (`run --looks{'' if planned == LOOKS else f' {planned}'}`), which find the "
        f"difference in {_how_often(power)} runs too, this many cases are asked at most, and on average:"
    )


def looks_table(plans: Sequence[WithLooks]) -> tuple[tuple[str, ...], list[list[str]]]:
    """Return the columns and rows of plans with looks, by difference."""
    priced = any(plan.usd is not None for plan in plans)
    columns = (LOOKS_FOR, "at most", "on average", "if it is twice that", "if there is none", *(["cost"] * priced))
    rows = [
        [
            f"{100 * plan.difference:g} point{'' if plan.difference == 0.01 else 's'}",
            f"{plan.cases:,}",
            *(f"{round(plan.cases * share):,}" for share in (plan.share, plan.share_if_twice, plan.share_if_none)),
            *([money(plan.usd)] * priced),
        ]
        for plan in plans
    ]
    return columns, rows


def variance_cells(arm: ArmVariance) -> list[str]:
    """Return the cells of one arm's row."""
    parts = arm.components
    shares = {name: "unknown" if share is None else f"{100 * share:.0f} %" for name, share in arm.shares.items()}
    judge = shares["judge"] if parts.judge is not None else "–"
    best = "–" if arm.best_repeats is None else f"{max(1, round(arm.best_repeats))}"
    if parts.case == 0 and parts.repeat:
        best = "many"  # the cases do not differ, so only repeats reduce the uncertainty
    return [arm.label, number(arm.std_err, 2), shares["case"], shares["repeat"], judge, best]


def steps_line(arm: ArmVariance) -> str:
    """Describe what the price of one more answer to every case would buy."""
    price = f"{arm.calls} more {'call' if arm.calls == 1 else 'calls'}" if arm.cost_usd is None else money(arm.cost_usd)
    words = {"cases": "{:.0f} more cases", "repeats": "one more repeat", "judgements": "{:.1f} more judgements each"}
    options = [f"{words[step.what].format(step.more)} → {number(step.std_err, 2)}" for step in arm.steps]
    return f"standard error {number(arm.std_err, 2)}; with {price}: {', or '.join(options)}"
