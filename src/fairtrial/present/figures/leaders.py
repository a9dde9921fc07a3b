"""Who leads: the forest of arms in board, every pair as a matrix, and score against cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from markupsafe import Markup

from fairtrial.analyse.comparison import Verdict
from fairtrial.analyse.leaderboard import Contender, Distance, Leaderboard
from fairtrial.analyse.summary import ArmSummary
from fairtrial.core.formatting import Scale, interval_words, milliseconds, money, signs
from fairtrial.core.many_arms import MOST_ARMS
from fairtrial.present.charts import Forest, ForestRow, Matrix, MatrixCell, Point, forest, matrix, scatter
from fairtrial.present.charts.marks import Interval, Tone, scaled
from fairtrial.present.charts.svg import safe, tag
from fairtrial.present.words.leaderboards import distance_words, rank_words
from fairtrial.present.words.verdicts import DECIDED, WORDS

_STRONG = 20.0  # points from which a cell is filled
_LOG_RATIO = 8.0  # between the largest and the smallest value, from which an axis is logarithmic
TONES: dict[Verdict, Tone] = {
    "better": "lead",
    "worse": "behind",
    "equivalent": "same",
    "cannot tell": "unsure",
    "depends on failures": "unsure",
}


def _nowhere(*_: str) -> str:
    return ""


class Links(NamedTuple):
    """Where arms, pairs and kinds of cases lead, and what else of a run has a page; nowhere in a report."""

    arm: Callable[[str], str] = _nowhere
    pair: Callable[[str, str], str] = _nowhere
    kind: Callable[[str, str], str] = _nowhere  # an attribute, and one of its values
    failed: str = ""
    unscored: str = ""
    compare: str = ""
    plan: str = ""
    variance: str = ""
    causes: str = ""


class _HasDifference(Protocol):
    @property
    def difference(self) -> float | None: ...
    @property
    def ci95(self) -> Interval | None: ...


class Figure(NamedTuple):
    """A chart with its name; one of several that a reader chooses between."""

    name: str
    html: Markup
    words: str = ""


def leaders(board: Leaderboard, arms: Mapping[str, ArmSummary], links: Links = Links()) -> Markup:  # noqa: B008  # immutable
    """Return the forest; `arms` are the summaries by label, for cost and latency."""
    scale = Scale(board.metric)
    first = board.places[0].label if len(board.places) > 1 else ""
    paid = any(arm.cost_usd for arm in arms.values())
    timed = any((arm.latency_ms.p50 or 0.0) >= 1 for arm in arms.values())
    names = (("$ / 1,000",) if paid else ()) + (("Median",) if timed else ())
    rows = [_row(one, board, arms.get(one.label), scale, links, first, paid=paid, timed=timed) for one in board.places]
    rows += [
        ForestRow(
            one.label,
            None,
            shown="–",
            bounds="never answered" if sum(one.failures.values()) == one.ended > 0 else "no score",
            href=links.arm(one.label),
            more=("",) * len(names),
        )
        for one in board.silent
    ]
    chart = Forest(
        rows[:MOST_ARMS],
        value_name=board.metric or "Score",
        more_names=names,
        within=None if board.metric else (0.0, 100.0),
        first=first,
        brackets=board.shown_brackets,
    )
    return safe(forest(chart)) + best_of(len(rows))


def best_of(arms: int) -> Markup:
    """Say how many of very many arms are drawn."""
    return (
        safe(tag("p", f"The best {MOST_ARMS} of {arms:,} arms are drawn.", class_="mute"))
        if arms > MOST_ARMS
        else Markup("")
    )


def _row(
    one: Contender, board: Leaderboard, arm: ArmSummary | None, scale: Scale, links: Links, first: str, *, paid: bool,
    timed: bool,
) -> ForestRow:  # fmt: skip
    distance = one.to_first
    shown = scale.plain(one.aggregate.mean)
    bounds = _bounds_words(one, board.metric)
    more = ((_per_thousand(arm),) if paid else ()) + (
        (milliseconds(arm.latency_ms.p50 if arm else None),) if timed else ()
    )
    return ForestRow(
        label=one.label,
        value=_times(one.aggregate.mean, scale),
        ci=scaled(one.aggregate.ci95, scale.factor),
        shown=signs(shown),
        bounds=bounds,
        rank=rank_words(one),
        href=links.arm(one.label),
        tip=_tip(one.label, f"{shown} (95 % CI {bounds})" if one.aggregate.ci95 else shown, _coverage(arm)),
        difference=_times(distance.difference, scale) if distance else None,
        difference_ci=scaled(distance.ci95, scale.factor) if distance else None,
        difference_words=_to_first(distance, board.metric),
        tone=TONES[distance.verdict] if distance else "",
        pair_href=links.pair(first, one.label) if distance else "",
        more=more,
        lead=one.label in board.front,
    )


def _bounds_words(one: Contender, metric: str) -> str:
    if one.aggregate.ci95 is None:
        return "one case" if one.aggregate.count == 1 else "–"
    return interval_words(one.aggregate.ci95, metric)


def _to_first(distance: Distance | None, metric: str) -> str:
    """Say how far an arm is from the first: `10.4 behind`, `0.5, too close to call`."""
    if distance is not None and distance.difference is not None and distance.verdict not in DECIDED:
        return f"{signs(Scale(metric).plain(abs(distance.difference)))}, {WORDS[distance.verdict]}"
    return distance_words(distance, metric)


def _coverage(arm: ArmSummary | None) -> str:
    return "" if arm is None else f"{arm.scored:,} of {arm.trials:,} scored"


def _tip(*lines: str) -> str:
    return "|".join(line.replace("|", "/") for line in lines if line)


def _per_thousand(arm: ArmSummary | None) -> str:
    if arm is None or arm.cost_usd is None or not arm.scored:
        return "unknown"
    each = 1000 * arm.cost_usd / arm.scored
    return "< 0.01" if 0 < each < 0.005 else f"{each:,.2f}"


def _times(value: float | None, scale: Scale) -> float | None:
    return None if value is None else scale.factor * value


def difference_row(
    label: str,
    metric: str,
    one: _HasDifference,
    *,
    tone: Tone,
    rank: str,
    href: str = "",
    margin: float | None = None,
) -> ForestRow:
    """Return a difference with its interval as a row of a small forest."""
    scale = Scale(metric)
    return ForestRow(
        label,
        _times(one.difference, scale),
        scaled(one.ci95, scale.factor),
        signs(scale.signed(one.difference)),
        interval_words(one.ci95, metric, margin) if one.ci95 else "",
        rank=rank,
        href=href,
        tone=tone,
    )


def pair_matrix(board: Leaderboard, links: Links = Links()) -> Markup:  # noqa: B008  # immutable
    """Return every pair, the arm of the row being placed above that of the column; nothing unless all are compared."""
    if not board.every_pair:
        return Markup("")
    labels = [one.label for one in board.places]
    rows = [
        [_cell(labels[a], labels[b], board, links) for b in range(a + 1, len(labels))] for a in range(len(labels) - 1)
    ]
    return safe(matrix(Matrix(labels, rows)))


def _cell(a: str, b: str, board: Leaderboard, links: Links) -> MatrixCell:
    distance, scale = board.distances[a][b], Scale(board.metric)
    difference = None if distance.difference is None else board.sign * distance.difference
    bounds = distance.ci95 if board.sign > 0 or distance.ci95 is None else (-distance.ci95[1], -distance.ci95[0])
    shown = signs(scale.signed(difference))
    interval = interval_words(bounds, board.metric, board.margin) if bounds else ""
    tip = _tip(f"{a} against {b}", f"{shown} (95 % CI {interval})" if interval else shown, WORDS[distance.verdict])
    strong = distance.verdict == "better" and not board.metric and abs(scale.factor * (difference or 0.0)) >= _STRONG
    return MatrixCell(TONES[distance.verdict], shown, interval, links.pair(a, b), tip, strong=strong)


def cost_figures(board: Leaderboard, arms: Mapping[str, ArmSummary], links: Links = Links()) -> list[Figure]:  # noqa: B008
    """Return the score against cost, latency and tokens, as far as they are known and differ."""
    if board.metric:
        return []
    leading = {one.label for one in board.leading}
    kinds: list[tuple[str, str, str, Callable[[ArmSummary], float | None], Callable[[float], str]]] = [
        ("Cost", "cost of 1,000 answers", "$", _thousand, money),
        ("Latency", "median seconds per answer", "", _seconds, lambda value: f"{value:.2g} s"),
        ("Tokens", "tokens written per answer", "", _tokens, lambda value: f"{value:,.0f}"),
    ]
    figures = []
    for name, axis, unit, value_of, shown in kinds:
        points = []
        for one in board.places:
            value = value_of(arms[one.label]) if one.label in arms else None
            if value is None or value <= 0:
                continue
            mean = 100 * (one.aggregate.mean or 0.0)
            bounds = scaled(one.aggregate.ci95, 100)
            tip = _tip(one.label, f"{mean:.1f} ({axis}: {shown(value)})")
            tone: Tone = "lead" if one.label in leading else ""
            points.append(Point(one.label, value, mean, bounds, links.arm(one.label), tip, tone))
        if len(points) < 2:
            continue
        log = max(point.x for point in points) / min(point.x for point in points) > _LOG_RATIO
        html = safe(scatter(points, x_name=axis, unit=unit, log=log))
        figures.append(Figure(name, html, _cheaper(points, leading) if name == "Cost" else ""))
    return figures


def _thousand(arm: ArmSummary) -> float | None:
    return None if arm.cost_usd is None or not arm.scored else 1000 * arm.cost_usd / arm.scored


def _seconds(arm: ArmSummary) -> float | None:
    return None if arm.latency_ms.p50 is None or arm.latency_ms.p50 < 1 else arm.latency_ms.p50 / 1000


def _tokens(arm: ArmSummary) -> float | None:
    return arm.completion_tokens / arm.scored if arm.scored and arm.completion_tokens else None


def _cheaper(points: Sequence[Point], leading: set[str]) -> str:
    """Name the leading arm that costs least, if it costs clearly less than the first."""
    led = [point for point in points if point.name in leading]
    if len(led) < 2:
        return ""
    cheapest = min(led, key=lambda point: point.x)
    saved = 1 - cheapest.x / led[0].x
    return f"{cheapest.name} costs {100 * saved:.0f} % less than {led[0].name}" if saved >= 0.05 else ""
