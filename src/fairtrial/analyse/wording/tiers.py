"""The headline of a run: who leads, and how sure that is. The same words in the terminal, reports and web pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from fairtrial.analyse.wording.comparisons import Scale

if TYPE_CHECKING:
    from fairtrial.analyse.comparison import Comparison, Verdict
    from fairtrial.analyse.tiers import Contender, Distance, Tiers

GLYPHS: dict[Verdict, str] = {
    "better": "▲",
    "worse": "▼",
    "equivalent": "≈",
    "cannot tell": "?",
    "depends on failures": "?",
}
_MOST_NAMES = 3  # of the leading arms in the headline; the others are counted
_WHOLE_POINTS = 3  # from here on, a sentence gives whole points


class Part(NamedTuple):
    """A piece of a headline; the name of an arm, or the words between names."""

    text: str
    arm: str = ""  # the arm that this piece names


def headline(tiers: Tiers) -> str:
    """Say who leads, and how far the next is behind, in one sentence."""
    return "".join(part.text for part in headline_parts(tiers))


def headline_parts(tiers: Tiers) -> list[Part]:
    """Return the headline in pieces, so that a page can link the arms that it names."""
    if not tiers.tiers:
        return [Part("No answer has a score yet.")]
    leading, behind = tiers.tiers[0], tiers.next_tier
    first = leading[0]
    if len(tiers.places) == 1:
        return [arm_part(first), Part(f" scores {_alone(first, tiers)}.")]
    by = f" by {tiers.metric}" if tiers.metric else ""
    if len(leading) == 1:
        assert behind is not None
        distance = tiers.distances[first.label][behind.label]
        if len(tiers.places) == 2:
            words = f" is {_amount(distance, tiers)} better than "
            return [
                arm_part(first),
                Part(words),
                arm_part(behind),
                Part(f"{by}{_bounds(distance, tiers)}."),
            ]
        next_arm = [Part("; "), arm_part(behind), Part(f", the next, is {_amount(distance, tiers)} behind")]
        return [arm_part(first), Part(f" leads{by}"), *next_arm, Part(f"{_bounds(distance, tiers)}.")]
    if behind is None:
        return _all_level(tiers, by)
    distance = tiers.distances[first.label][behind.label]
    return [
        *name_parts(leading),
        Part(f" lead{by} and {_undecided(leading, tiers)}; "),
        arm_part(behind),
        Part(f" is {_amount(distance, tiers)} behind{_bounds(distance, tiers)}."),
    ]


def _all_level(tiers: Tiers, by: str) -> list[Part]:
    """Say that no arm is behind the first one."""
    leading = tiers.tiers[0]
    if len(leading) > 2:
        verdicts = {distance.verdict for others in tiers.distances.values() for distance in others.values()}
        if verdicts == {"equivalent"}:
            return [Part(f"All {len(leading)} arms are equivalent{by}, within {_margin(tiers)}.")]
        if verdicts & {"better", "worse"}:
            return [*name_parts(leading), Part(f" lead{by} and {_undecided(leading, tiers)}.")]
        return [Part(f"None of the {len(leading)} arms can be told apart{by} yet.")]
    distance = tiers.distances[leading[0].label][leading[1].label]
    if distance.verdict == "depends on failures":
        which = "one failed trial" if tiers.failed == 1 else f"{tiers.failed} failed trials"
        middle = Part(f"Whether {leading[0].label} is better than {leading[1].label}{by} depends on the {which}")
        return [middle, Part(f"{_bounds(distance, tiers)}.")]
    return [
        *name_parts(leading),
        Part(f" {_undecided(leading, tiers)}{by}{_difference(distance, tiers)}."),
    ]


def _undecided(leading: Sequence[Contender], tiers: Tiers) -> str:
    """Say why the leading arms share a tier."""
    verdicts = {
        tiers.distances[one.label][other.label].verdict
        for place, one in enumerate(leading)
        for other in leading[place + 1 :]
    }
    if verdicts == {"equivalent"}:
        return f"are equivalent within {_margin(tiers)}"
    return "cannot be told apart"


class Labelled(Protocol):
    """An arm of a ranking, whatever it is ranked by."""

    @property
    def label(self) -> str: ...


def arm_part(arm: Labelled) -> Part:
    """Return the name of an arm as a piece of a headline."""
    return Part(arm.label, arm.label)


def name_parts(arms: Sequence[Labelled]) -> list[Part]:
    """Return the names of the leading arms: `a and b`, `a, b and c`, `a, b and 4 more`."""
    shown = [arm_part(arm) for arm in arms]
    if len(arms) > _MOST_NAMES:
        shown = [*shown[:2], Part(f"{len(arms) - 2} more")]
    parts: list[Part] = []
    for place, name in enumerate(shown):
        between = "" if place == 0 else " and " if place == len(shown) - 1 else ", "
        parts += [Part(between), name] if between else [name]
    return parts


def _margin(tiers: Tiers) -> str:
    scale = Scale(tiers.metric)
    return f"{signs(f'{scale.factor * (tiers.margin or 0.0):g}')}{scale.unit}"


def _alone(contender: Contender, tiers: Tiers) -> str:
    """Give the score of the only arm."""
    scale, numbers = Scale(tiers.metric), contender.aggregate
    value = f"{scale.plain(numbers.mean)}{f' by {tiers.metric}' if tiers.metric else ''}"
    if numbers.ci95 is None:
        return f"{value} on {'one case' if numbers.count == 1 else f'{numbers.count} cases'}"
    return f"{value} (95 % CI {interval_words(numbers.ci95, tiers.metric)})"


def _amount(distance: Distance, tiers: Tiers) -> str:
    return _points(distance.difference or 0.0, tiers.metric)


def _bounds(distance: Distance, tiers: Tiers) -> str:
    return _positive(distance.ci95, tiers.metric, _sentence_digits(distance.difference or 0.0, tiers.metric))


def _difference(distance: Distance, tiers: Tiers) -> str:
    """Give an undecided difference: ` (0.5 points between them, 95 % CI −3.8 to 4.8)`."""
    if distance.difference is None:
        return ": they have no cases in common"
    scale = Scale(tiers.metric)
    if distance.count == 1:
        return ": there is only one case"
    bounds = "" if distance.ci95 is None else f", 95 % CI {interval_words(distance.ci95, tiers.metric)}"
    return f" ({scale.plain(abs(distance.difference))}{scale.unit} between them{bounds})"


def _points(difference: float, metric: str) -> str:
    """Give the size of a decided difference: `10 points`, `0.4 points`, `1 point`, `0.120 in latency_s`."""
    shown = _digits([abs(difference)], metric, _sentence_digits(difference, metric))[0]
    unit = Scale(metric).unit
    return f"{shown}{unit.removesuffix('s') if shown == '1' and not metric else unit}"


def _sentence_digits(difference: float, metric: str) -> int:
    scale = Scale(metric)
    return 0 if not metric and abs(difference) * scale.factor >= _WHOLE_POINTS else scale.digits


def _digits(values: Sequence[float], metric: str, digits: int) -> list[str]:
    """Format values with at least so many digits, and with as many as it takes to keep each on its side of 0."""
    factor = Scale(metric).factor
    exact = [factor * value for value in values]
    while digits < 9 and any((round(value, digits) == 0) != (value == 0) for value in exact):
        digits += 1
    return [signs(f"{round(value, digits) + 0.0:.{digits}f}") for value in exact]


def interval_words(bounds: tuple[float, float], metric: str = "", margin: float | None = None) -> str:
    """Format an interval as in a table: `79.7 to 87.6`, with the digits that show on which side of 0 a limit lies."""
    return Scale(metric).words(bounds, margin)


def distance_words(distance: Distance | None, metric: str = "") -> str:
    """Say how far an arm is from the first one, in a table: `10.4 behind`, `0.5 apart`."""
    if distance is None or distance.difference is None:
        return ""
    shown = signs(Scale(metric).plain(abs(distance.difference)))
    words = {"worse": "behind", "better": "ahead", "equivalent": "apart, equivalent"}
    return f"{shown} {words.get(distance.verdict, 'apart')}"


def tier_words(tiers: Tiers, number: int) -> str:
    """Name a tier by its distance to the first arm: `10 to 12 points behind, cannot be told apart`."""
    tier = tiers.tiers[number]
    several = f", {_undecided(tier, tiers)}" if len(tier) > 1 else ""
    if number == 0:
        return f"Leading{several}"
    scale = Scale(tiers.metric)
    distances = [abs(one.to_first.difference or 0.0) for one in tier if one.to_first is not None]
    shown = [f"{scale.factor * distance:.{0 if not tiers.metric else scale.digits}f}" for distance in distances]
    ends = sorted({shown[distances.index(min(distances))], shown[distances.index(max(distances))]}, key=float)
    unit = " point" if ends == ["1"] and not tiers.metric else scale.unit
    return f"{' to '.join(ends)}{unit} behind{several}"


def pair_sentence(pair: Comparison, margin: float | None = None) -> str:
    """State the verdict on two arms in one sentence, as the headline of a run does."""
    scale = Scale(pair.metric)
    by = f" by {pair.metric}" if pair.metric else ""
    if pair.difference is None:
        return f"{pair.a} and {pair.b} have no cases in common."
    if pair.verdict in ("better", "worse"):
        amount = _points(pair.difference, pair.metric)
        return f"{pair.a} is {amount} {pair.verdict} than {pair.b}{by}{_pair_bounds(pair)}."
    if pair.verdict == "equivalent":
        within = f"{scale.factor * (margin or 0.0):g}{scale.unit}"
        return f"{pair.a} and {pair.b} are equivalent{by} within {within}{_signed(pair.ci95, pair.metric)}."
    if pair.verdict == "depends on failures":
        return f"Whether {pair.a} is better than {pair.b}{by} depends on the trials that failed."
    between = f" ({scale.plain(abs(pair.difference))}{scale.unit} between them{_signed(pair.ci95, pair.metric, ', ')})"
    return f"{pair.a} and {pair.b} cannot be told apart{by}{between}."


def moved_words(arm: str, suite: str, pair: Comparison) -> str:
    """Say how an arm moved: `claude-haiku lost 7 points on support-qa since the run before (95 % CI 1 to 13)`."""
    verb = "gained" if pair.verdict == "better" else "lost"
    amount = _points(pair.difference or 0.0, pair.metric)
    return f"{arm} {verb} {amount} on {suite} since the run before{_pair_bounds(pair)}"


def _pair_bounds(pair: Comparison) -> str:
    """Give the interval of a decided difference without signs."""
    return _positive(pair.ci95, pair.metric, _sentence_digits(pair.difference or 0.0, pair.metric))


def _positive(bounds: tuple[float, float] | None, metric: str, digits: int) -> str:
    """Give the interval of a decided difference without its sign: ` (95 % CI 5 to 15)`."""
    if bounds is None:
        return ""
    low, high = (-bounds[1], -bounds[0]) if bounds[1] < 0 else bounds
    shown = _digits([low, high], metric, digits)
    return f" (95 % CI {shown[0]} to {shown[1]})"


def _signed(bounds: tuple[float, float] | None, metric: str, before: str = " (") -> str:
    if bounds is None:
        return ""
    return f"{before}95 % CI {interval_words(bounds, metric)}{')' if before == ' (' else ''}"


def basis_words(pair: Comparison, margin: float | None = None) -> str:
    """Say what a verdict is based on, in one or two sentences without a p-value."""
    cases = f"{pair.count:,} {'case has' if pair.count == 1 else 'cases have'} a score from both."
    family = f" The interval holds for all {pair.comparisons} pairs together (Holm)." if pair.comparisons > 1 else ""
    scale = Scale(pair.metric)
    smallest = (
        f" These cases show differences of {scale.plain(pair.detectable)}{scale.unit} or more."
        if pair.verdict == "cannot tell" and pair.detectable is not None
        else ""
    )
    within = f" Differences below {scale.plain(margin)}{scale.unit} do not matter here." if margin is not None else ""
    return f"On cases like these. {cases}{family}{smallest}{within}"


def standing_words(tiers: Tiers) -> tuple[str, str]:
    """Return the glyph and the words for how the first arm stands: `▲ ahead by 8.1`, `? a tie of 3`."""
    leading, behind = tiers.tiers[0], tiers.next_tier
    if len(tiers.places) == 1:
        return "", "the only arm"
    if len(leading) == 1 and behind is not None:
        ahead = tiers.distances[leading[0].label][behind.label].difference
        return GLYPHS["better"], f"ahead by {Scale(tiers.metric).plain(abs(ahead or 0.0))}"
    if _undecided(leading, tiers).startswith("are equivalent"):
        return GLYPHS["equivalent"], "equivalent"
    return GLYPHS["cannot tell"], "a tie" if len(leading) == 2 else f"a tie of {len(leading)}"


def rank_words(contender: Contender) -> str:
    """Format the ranks that an arm may have: `1`, `1–2`."""
    if contender.rank == contender.worst_rank:
        return str(contender.rank)
    return f"{contender.rank}–{contender.worst_rank}"


def settle_words(tiers: Tiers) -> str:
    """Say what would settle the tie of the first two arms; empty where it is settled."""
    leading = tiers.tiers[0] if tiers.tiers else []
    if len(leading) < 2:
        return ""
    distance = tiers.distances[leading[0].label][leading[1].label]
    if distance.verdict in ("equivalent", "depends on failures"):
        return ""
    scale = Scale(tiers.metric)
    parts = []
    if tiers.detectable is not None:
        shown = f"{scale.plain(tiers.detectable)}{scale.unit}"
        cases = "1 case shows" if distance.count == 1 else f"{distance.count:,} cases show"
        parts.append(f"{cases} differences of {shown} or more.")
    if tiers.to_settle is not None:
        delta, cases_needed = tiers.to_settle
        unit = "point" if scale.factor * delta == 1 else "points"
        names = f"{leading[0].label} and {leading[1].label}"
        parts.append(f"To see {scale.factor * delta:g} {unit} between {names} takes about {cases_needed:,} cases.")
    return " ".join(parts)


def signs(text: str) -> str:
    """Write a minus sign as typographers do."""
    return text.replace("-", "−")
