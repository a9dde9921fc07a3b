"""Two versions of a server, a description or a skill, on a page or in a report: words, texts, and use by tool."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from fairtrial.analyse.offer_rates import RateChange, RateKind
from fairtrial.analyse.version_gains import VersionGain
from fairtrial.present.charts import ForestRow, small_forest
from fairtrial.present.charts.marks import Tone, scaled
from fairtrial.present.charts.svg import safe
from fairtrial.present.figures.leaders import Figure, Links
from fairtrial.present.words.versions import (
    change_cells,
    rest_words,
    shown_changes,
    text_lines,
    version_sentence,
    without_server,
)

_GOOD: frozenset[RateKind] = frozenset(("chosen", "arguments", "success", "valid", "recall"))
_BAD: frozenset[RateKind] = frozenset(("mistaken", "unneeded", "forbidden", "false_fires"))


class VersionView(NamedTuple):
    """A pair of versions: whether the later one is better, what was changed, and how tools and skills were used."""

    words: str
    href: str  # the comparison of the two arms, if there is a page of it
    lines: list[str]
    figure: Figure | None
    rest: str


def version_view(gain: VersionGain, metric: str, links: Links) -> VersionView:
    """Return what is shown of a pair of versions."""
    changes = shown_changes(gain)
    rows = [_row(change, without_server(changes)) for change in changes]
    html = small_forest(rows, name=f"{gain.arm} against {gain.baseline}", number_name="Points", zero=0.0)
    return VersionView(
        version_sentence(gain, metric),
        links.pair(gain.arm, gain.baseline),
        text_lines(gain.what),
        Figure("How tools and skills were used", safe(html)) if rows else None,
        rest_words(gain),
    )


def _row(change: RateChange, short: Callable[[str], str]) -> ForestRow:
    name, share, before, after, shown, bounds = change_cells(change, short)
    label = f"{name}: {share}"
    value, interval = 100 * (change.difference or 0.0), scaled(change.ci95, 100)
    return ForestRow(label, value, interval, shown, bounds, rank=f"{before} → {after}", tone=_tone(change))


def _tone(change: RateChange) -> Tone:
    if not change.differs:
        return "unsure"
    more = (change.difference or 0.0) > 0
    if change.kind in _GOOD:
        return "lead" if more else "behind"
    return ("behind" if more else "lead") if change.kind in _BAD else "same"
