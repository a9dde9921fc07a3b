"""`fairtrial compare`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from shlex import quote

from fairtrial.analyse.compare import compare
from fairtrial.analyse.comparison import Comparisons
from fairtrial.analyse.flips import Flip, biggest_flips
from fairtrial.analyse.planning import can_plan
from fairtrial.analyse.score_table import choose, find_sources, pooled, read_scores
from fairtrial.cli.compare_page import print_comparisons
from fairtrial.cli.console import Console
from fairtrial.cli.documents import print_json
from fairtrial.cli.layout import print_commands
from fairtrial.cli.options import (
    from_points,
    metric_key,
    run_in_command,
    runs_in_command,
)
from fairtrial.cli.start import open_store
from fairtrial.reports.json import comparison_document

_MOST_DETAILED = 60  # pairs; with more, nothing of their other tests is shown unless asked for


def compare_runs(
    runs: tuple[str, ...],
    arms: tuple[str, str] | None,
    metric: str | None,
    margin: float | None,
    largest: float | None,
    earlier: str | None,
    details: bool,
    plain: bool,
    store: str | None,
    as_json: bool,
) -> None:
    """Print the comparison of the arms of runs."""
    opened = open_store(store)
    scores = read_scores(pooled(find_sources(runs, opened), arms or ()))
    by = scores.primary if metric is None else metric_key(metric)
    pairs = choose(scores, arms or ())
    detailed = None if details or as_json or len(pairs) <= _MOST_DETAILED else 0
    comparisons = compare(
        scores,
        pairs,
        metric=by,
        margin=from_points(margin, by),
        largest=from_points(largest, by),
        earlier=read_scores(find_sources([earlier], opened)) if earlier else None,
        detailed=detailed,
    )
    if as_json:
        print_json(comparison_document(comparisons))
        return

    flips = biggest_flips(scores, *pairs[0], by) if len(pairs) == 1 else []
    print_comparisons(comparisons, flips=flips, details=details, plain=plain)
    sys.stdout.flush()
    unsure = not by and any(pair.verdict == "cannot tell" for pair in comparisons.pairs)
    plannable = unsure and can_plan(scores, pairs)
    _print_next(comparisons, runs, flips, arms or (), details=details, plannable=plannable)


def _print_next(
    comparisons: Comparisons,
    runs: Sequence[str],
    flips: Sequence[Flip],
    arms: Sequence[str],
    *,
    details: bool,
    plannable: bool,
) -> None:
    named = runs_in_command(runs)
    chosen = f" --arms {' '.join(map(quote, arms))}" if arms else ""
    first = comparisons.pairs[0]
    commands = []
    if flips and len(comparisons.run_ids) == 1:
        usual = (first.mean_a or 0.0) < (first.mean_b or 0.0)
        flip = next((flip for flip in flips if (flip.a < flip.b) == usual), flips[0])
        lower = first.a if flip.a < flip.b else first.b
        trial = run_in_command(runs[0] if runs else "latest", flip.case, lower)
        commands.append((f"fairtrial show {trial}", "the whole trial"))
    elif len(comparisons.pairs) > 1:
        best = next((pair for pair in comparisons.pairs if pair.verdict in ("better", "worse")), first)
        commands.append((f"fairtrial compare{named} --arms {quote(best.a)} {quote(best.b)}", "one pair, case by case"))
    if not details:
        many = len(comparisons.pairs) > _MOST_DETAILED
        what = f"every test of {len(comparisons.pairs):,} pairs; this takes a while" if many else "every test"
        commands.append((f"fairtrial compare{named}{chosen} --details", what))
    if plannable:
        commands.append((f"fairtrial power{named}{chosen} --delta 3", "how many cases for 3 points"))
    print_commands(Console(stderr=True), commands)
