"""The verdict on two arms in words: the one place that words it, for every surface.

A sentence always has the better arm as its subject, or the one that is ahead so far, and gives its lead: the difference
turned so that it is positive where the subject is better, whatever the metric and however the arms were named.
JSON documents keep the names of verdicts; what users read is in `WORDS`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from fairtrial.analyse.comparison import opposite
from fairtrial.core.formatting import Scale, interval_words, signs
from fairtrial.text.printable import counted

if TYPE_CHECKING:
    from fairtrial.analyse.comparison import Comparison, Verdict
    from fairtrial.analyse.leaderboard import Leaderboard
    from fairtrial.stats.breakpoint import Breakpoint, Stated
    from fairtrial.stats.units import Interval

WORDS: dict[Verdict, str] = {
    "better": "better",
    "worse": "worse",
    "equivalent": "equivalent",
    "cannot tell": "too close to call",
    "depends on failures": "depends on failures",
}
GLYPHS: dict[Verdict, str] = {
    "better": "▲",
    "worse": "▼",
    "equivalent": "≈",
    "cannot tell": "?",
    "depends on failures": "?",
}
DECIDED = ("better", "worse", "equivalent")
_ROUNDING = 1e-6
_WHOLE_POINTS = 3  # from here on, a sentence gives whole points


class Piece(NamedTuple):
    """A piece of a sentence: the name of an arm, which a page can link, or the words between names."""

    text: str
    arm: str = ""  # the arm that this piece names


class Lead(NamedTuple):
    """By how much one arm is ahead of another: positive where it is better, negative where it is worse."""

    one: str
    other: str
    verdict: Verdict  # on `one`
    lead: float | None
    bounds: Interval | None
    cases: int  # that both have
    metric: str
    lower_is_better: bool
    here: Lead | None = None  # on the only case, where the answers are the sample

    def turned(self) -> Lead:
        """Return the lead of the other arm."""
        return self._replace(
            here=self.here and self.here.turned(),
            one=self.other,
            other=self.one,
            verdict=opposite(self.verdict),
            lead=None if self.lead is None else -self.lead,
            bounds=None if self.bounds is None else (-self.bounds[1], -self.bounds[0]),
        )


def lead_of(pair: Comparison) -> Lead:
    """Return the lead of the better arm of a pair, or of the one that is ahead so far."""
    there = Lead(
        pair.a, pair.b, pair.verdict, pair.difference, pair.ci95, pair.count, pair.metric, pair.lower_is_better
    )
    if (found := pair.on_this_case) is not None:
        here = there._replace(verdict=found.verdict, lead=found.test.difference, bounds=found.test.ci95)
        there = there._replace(here=here)
    return _ahead_first(_as_lead(there))


def lead_between(board: Leaderboard, one: str, other: str) -> Lead:
    """Return the lead of an arm over another one, in this order."""
    found = board.distance(one, other)
    there = Lead(one, other, found.verdict, found.difference, found.ci95, found.count, board.metric, board.sign < 0)
    if (own := found.here) is not None:
        there = there._replace(here=there._replace(verdict=own.verdict, lead=own.difference, bounds=own.ci95))
    return _as_lead(there)


def _as_lead(there: Lead) -> Lead:
    """Turn a difference of values into a lead: where lower is better, the sign changes."""
    if not there.lower_is_better:
        return there
    return there._replace(
        lead=None if there.lead is None else -there.lead,
        bounds=None if there.bounds is None else (-there.bounds[1], -there.bounds[0]),
        here=there.here and _as_lead(there.here),
    )


def _ahead_first(lead: Lead) -> Lead:
    behind = lead.verdict == "worse" or (lead.verdict != "better" and (lead.lead or 0.0) < 0)
    return lead.turned() if behind else lead


def verdict_parts(lead: Lead, margin: float | None = None, failed: int = 0) -> list[Piece]:
    """State the verdict on two arms in one sentence, in pieces."""
    lead = _ahead_first(lead)
    one, other, on = Piece(lead.one, lead.one), Piece(lead.other, lead.other), on_words(lead)
    both = [one, Piece(" and "), other]
    if lead.lead is None:
        return [*both, Piece(" have no cases in common.")]
    if lead.verdict == "better":
        by, after = (" better", f"{on} by {amount(lead)}") if lead.metric else (f" {amount(lead)} better", "")
        return [one, Piece(f" is{by} than "), other, Piece(f"{after}{bounds_words(lead)}.")]
    if lead.verdict == "equivalent":
        return [*both, Piece(f" are equivalent{on} within {margin_words(margin, lead.metric)}{_signed(lead)}.")]
    if lead.verdict == "depends on failures":
        which = f"the {counted(failed, 'failed trial')}" if failed else "the trials that failed"
        said = f"{on} depends on {which}; without them, it is ahead by {amount(lead)}{_signed(lead)}."
        return [Piece("Whether "), one, Piece(" is better than "), other, Piece(said)]
    return [*both, Piece(f" are too close to call{on}: "), *_so_far(lead)]


def _so_far(lead: Lead) -> list[Piece]:
    """Describe two arms that are too close to call."""
    if lead.cases == 1:
        return [Piece("there is only one case."), *(_here(lead.here) if lead.here else ())]
    if not round(lead.lead or 0.0, 12):
        return [Piece(f"they are level{_signed(lead)}.")]
    return [Piece(lead.one, lead.one), Piece(f" is ahead by {amount(lead, whole=False)}{_signed(lead)}.")]


def _here(lead: Lead) -> list[Piece]:
    """Compare two arms on the only case, over their answers to it."""
    lead = _ahead_first(lead)
    said = " On this case, "
    if not round(lead.lead or 0.0, 12):
        return [Piece(f"{said}they are level{_signed(lead)}.")]
    how = "better" if lead.verdict == "better" else "ahead"
    bounds = bounds_words(lead) if how == "better" else _signed(lead)
    by = amount(lead, whole=how == "better")
    return [Piece(said), Piece(lead.one, lead.one), Piece(f" is {how} by {by}{bounds}.")]


def pair_parts(pair: Comparison, margin: float | None = None) -> list[Piece]:
    """State the verdict on a pair, in pieces."""
    return verdict_parts(lead_of(pair), margin)


def pair_sentence(pair: Comparison, margin: float | None = None) -> str:
    """State the verdict on a pair in one sentence."""
    return joined(pair_parts(pair, margin))


def unless_words(ahead: str, found: Breakpoint, metric: str, other: str = "") -> str:
    """Say what nobody can tell for the scale's sake alone; rounded so that it still holds."""
    scale = Scale(metric)
    grain = scale.factor * 10.0**scale.digits
    most = math.floor(found.points * grain + _ROUNDING) / grain
    worst = math.ceil(found.worst_seen * grain - _ROUNDING) / grain
    than = f" than {other}" if other else ""
    unit = "" if metric else " points"
    return (
        f"{ahead} is better{than}, unless some case can lose more than {_short(scale, most)}{unit}; "
        f"the worst here lost {_short(scale, worst)}."
    )


def stated_words(stated: Stated | None, metric: str) -> str:
    """Say that verdicts count on no case differing by more than what was stated, or why they do not."""
    if stated is None:
        return ""
    scale, unit = Scale(metric), "" if metric else " points"
    most, seen = (f"{scale.factor * value:g}" for value in (stated.largest, stated.seen))
    if not stated.holds:
        return f"A case differs by {seen}{unit}, more than the {most} that the suite states: nothing counts on that."
    return f"This counts on no case differing by more than {most}{unit}, as stated."


def _short(scale: Scale, value: float) -> str:
    """Format a number without a decimal that is 0."""
    shown = signs(scale.plain(value))
    return shown.rstrip("0").rstrip(".") if "." in shown else shown


def joined(parts: Sequence[Piece]) -> str:
    """Return the text of a sentence that was made in pieces."""
    return "".join(part.text for part in parts)


def on_words(lead: Lead) -> str:
    """Say what arms are compared by: nothing for the score, ` on latency_ms (lower is better)`."""
    return metric_words(lead.metric, lower_is_better=lead.lower_is_better)


def metric_words(metric: str, *, lower_is_better: bool) -> str:
    """Name a metric with its direction where that is not the usual one; the score needs no name."""
    if not metric:
        return ""
    return f" on {metric}{' (lower is better)' if lower_is_better else ''}"


def margin_words(margin: float | None, metric: str) -> str:
    """Give a margin: `3 points`, `0.5`."""
    scale = Scale(metric)
    return f"{signs(f'{scale.factor * (margin or 0.0):g}')}{'' if metric else scale.unit}"


def amount(lead: Lead, *, whole: bool = True) -> str:
    """Give the size of a lead: `10 points`, `0.4 points`, `1 point`, `0.120`; large ones as whole points."""
    digits = _sentence_digits(lead) if whole else Scale(lead.metric).digits
    shown = _digits([abs(lead.lead or 0.0)], lead.metric, digits)[0]
    return f"{shown}{'' if lead.metric else ' point' if shown == '1' else ' points'}"


def bounds_words(lead: Lead) -> str:
    """Give the interval of a decided lead: ` (95 % CI 5 to 15)`."""
    if lead.bounds is None:
        return ""
    shown = _digits(lead.bounds, lead.metric, _sentence_digits(lead))
    return f" (95 % CI {shown[0]} to {shown[1]})"


def _signed(lead: Lead) -> str:
    return "" if lead.bounds is None else f" (95 % CI {interval_words(lead.bounds, lead.metric)})"


def _sentence_digits(lead: Lead) -> int:
    scale = Scale(lead.metric)
    return 0 if not lead.metric and abs(lead.lead or 0.0) * scale.factor >= _WHOLE_POINTS else scale.digits


def _digits(values: Sequence[float], metric: str, digits: int) -> list[str]:
    """Format values with at least this many digits, and with as many as it takes to keep each on its side of 0."""
    factor = Scale(metric).factor
    exact = [factor * value for value in values]
    while digits < 9 and any((round(value, digits) == 0) != (value == 0) for value in exact):
        digits += 1
    return [signs(f"{round(value, digits) + 0.0:.{digits}f}") for value in exact]
