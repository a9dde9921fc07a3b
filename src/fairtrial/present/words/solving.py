"""Words about what solving takes: of an arm, and of two."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from fairtrial.core.formatting import money, number, span
from fairtrial.text.printable import counted, significant

if TYPE_CHECKING:
    from fairtrial.analyse.solving import PerSolved, SolvingBoth
    from fairtrial.analyse.summary import ArmSummary
    from fairtrial.stats.solving import SolveTimes, Within


def cost_cell(arm: ArmSummary) -> str:
    """Return the cost per solved trial for a table: `$0.12`, `≥ $0.12`, or `> $3.40` if none was solved."""
    solving = arm.solving
    if solving is None or solving.cost_usd is None:
        return "–"
    return _amount(solving.cost_usd, money)


def is_worth_a_column(arm: ArmSummary) -> bool:
    """Return whether an arm is an agent whose solved trials cost something."""
    return arm.solving is not None and arm.solving.agent and arm.solving.cost_usd is not None


def solving_lines(arm: ArmSummary) -> list[str]:
    """Say what solving takes an agent: cost, tokens and time."""
    solving = arm.solving
    if solving is None or not solving.agent or not (solving.cost_usd or solving.tokens or arm.limits):
        return []
    of = f"{solving.solved:,} of {counted(solving.trials, 'trial')} solved ({solved_words(solving.least)})"
    parts = [("cost", solving.cost_usd, money), ("tokens", solving.tokens, _tokens)]
    lines = [f"{what} per solved trial: {_whole(one, shown)}" for what, one, shown in parts if one is not None]
    lines += [f"time to solve: {_times(solving.seconds)}"] if solving.seconds is not None else []
    return [f"{lines[0]}; {of}", *lines[1:]] if lines else [of]


def solved_words(least: float) -> str:
    """Say what counts as solved."""
    return "full marks" if least >= 1 else f"{number(least).removesuffix('.0')} of 100 or more"


def _tokens(value: float) -> str:
    return f"{value:,.0f}"


def _amount(one: PerSolved, shown: Callable[[float], str]) -> str:
    if one.value is None:
        return f"> {shown(one.total)}"
    return f"{'≥ ' if one.unknown else ''}{shown(one.value)}"


def _whole(one: PerSolved, shown: Callable[[float], str]) -> str:
    if one.value is None:
        return f"more than {shown(one.total)}, which solved none"
    if one.ci95 is None:
        return _amount(one, shown)
    return f"{_amount(one, shown)} (95 % CI {shown(one.ci95[0])} to {shown(one.ci95[1])})"


def _times(times: SolveTimes) -> str:
    shares = ", ".join(_share(within) for within in times.within)
    bounds = "" if times.ci95 is None else f" (95 % CI {_seconds(times.ci95[0])} to {_seconds(times.ci95[1])})"
    # An unsolved trial counts with all the time that there was.
    return f"{shares}; {_seconds(times.mean)}{bounds} on average, at {_seconds(times.horizon)} for what was not solved"


def _share(within: Within) -> str:
    return f"{100 * within.share:.0f} % within {_seconds(within.seconds)}"


def _seconds(value: float) -> str:
    return f"{significant(value, 2)} s" if value < 10 else span(value)


def both_line(a: str, b: str, both: SolvingBoth | None) -> list[str]:
    """Compare what a solved trial costs two arms: `a solved trial costs x $0.12 and y $0.30: 0.40 times as much`."""
    if both is None:
        return []
    costs = f"a solved trial costs {a} {money(both.a)} and {b} {money(both.b)}"
    bounds = "" if both.ci95 is None else f" (95 % CI {' to '.join(significant(one, 2) for one in both.ci95)})"
    return [f"{costs}: {significant(both.ratio, 2)} times as much{bounds}, {counted(both.count, 'case')}"]
