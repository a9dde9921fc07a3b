"""Sentences and table cells about a ranking, for the terminal and reports."""

from __future__ import annotations

from fairtrial.analyse.rank import RankedArm, Ranking, Style
from fairtrial.core.formatting import Scale, interval_words, signs
from fairtrial.core.many_arms import MOST_ARMS
from fairtrial.present.words.leaderboards import first_parts
from fairtrial.present.words.verdicts import joined
from fairtrial.text.printable import counted

COLUMNS = ("rank", "arm", "score", "95 % CI", "rating", "rating 95 % CI", "Elo")
_BY = {
    "scores": "scores, case by case",
    "verdicts": "judges' verdicts on pairs",
    "votes": "people's votes",
    "both": "judges' verdicts and people's votes on pairs",
}
# A limit this far from the middle means that, in a resample, an arm only wins or only loses: there is no bound.
_FAR = 1000.0


def ranking_headline(ranking: Ranking) -> str:
    """Say what was ranked and what the ratings are based on."""
    on = f", on {counted(ranking.cases, 'common case')}" if ranking.cases else ""
    if ranking.by_pairs:
        return f"ranked by {_BY[ranking.by]}{on}"
    pairs = "each arm and the first" if len(ranking.places) > MOST_ARMS else "every pair"
    rated = any(place.elo is not None for place in ranking.places)
    ratings = f"; ratings from {_BY[ranking.by]}{on}" if rated else on
    return f"{ranking.metric or 'score'}, with ranks from the verdicts of `compare` on {pairs}{ratings}"


def ranking_verdict(ranking: Ranking) -> str:
    """Say who is first by votes or verdicts, or who may be."""
    leading = [place for place in ranking.places if place.rank == 1]
    return joined(first_parts(leading, len(ranking.places), f" by {_BY[ranking.by]}"))


def ranked_cells(place: RankedArm, metric: str) -> list[str]:
    """Return one arm as a table row, in the order of COLUMNS."""
    scale, numbers, bounds = Scale(metric), place.aggregate, place.rating_ci95
    interval = "n = 1" if numbers.ci95 is None else interval_words(numbers.ci95, metric)
    return [
        rank_words(place),
        place.label,
        scale.plain(numbers.mean),
        interval,
        "–" if place.rating is None else f"{place.rating:.0f}",
        "–" if bounds is None else f"{_rating(bounds[0])} to {_rating(bounds[1])}",
        "–" if place.elo is None else f"{place.elo:.0f}",
    ]


def rating_cells(place: RankedArm) -> tuple[str, str]:
    """Return a rating and its interval as a figure shows them: `1042`, `1010 to 1077`."""
    bounds = place.rating_ci95
    return (
        "–" if place.rating is None else f"{place.rating:.0f}",
        "" if bounds is None else f"{_rating(bounds[0])} to {_rating(bounds[1])}".replace("-", "−"),
    )


def rank_words(place: RankedArm) -> str:
    """Return the rank, or the range of ranks that are possible: `1` or `1–3`."""
    return str(place.rank) if place.rank == place.worst_rank else f"{place.rank}–{place.worst_rank}"


def style_line(style: Style) -> str:
    """Say how many rating points a style feature is worth to those who judged."""
    bounds = f" (95 % CI {_points(style.ci95[0])} to {_points(style.ci95[1])})" if style.ci95 else ""
    return f"{style.name}: one standard deviation more is worth {_points(style.points)} points{bounds}"


def _rating(value: float) -> str:
    return f"{value:.0f}" if abs(value - 1000) < _FAR else "∞" if value > 0 else "−∞"


def _points(value: float) -> str:
    return signs(f"{value:+.0f}") if abs(value) < _FAR else "+∞" if value > 0 else "−∞"
