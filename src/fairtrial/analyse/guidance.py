"""What should be known before a comparison is believed, said where arms look at it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fairtrial.analyse.comparison import ANYTIME, Comparison
from fairtrial.analyse.score_table import SCORE, ArmScores, ScoreTable

_FEW_CASES = 20
_FEW_CLUSTERS = 10

Pairs = Sequence[tuple[ArmScores, ArmScores]]


def guidance(scores: ScoreTable, pairs: Pairs, found: Sequence[Comparison], metric: str = SCORE) -> list[str]:
    """One sentence for each thing to mind."""
    return [
        *_about_cases(scores, [(pair.count, pair.units) for pair in found]),
        *_about_method(found),
        *_about_weights(scores, pairs, metric),
        *_about_scores(scores, pairs),
        *_about_runs(scores),
        *_about_stopping(pairs, found),
        *_about_noise(pairs),
    ]


def _about_cases(scores: ScoreTable, counts: Sequence[tuple[int, int]]) -> Iterator[str]:
    cases = [count for count, _ in counts if count]
    if not cases:
        return
    if not scores.same_cases:
        shown = f"{min(cases)}" if min(cases) == max(cases) else f"{min(cases)} to {max(cases)}"
        yield f"The runs have different cases: compared on the {shown} that they have in common."
    if min(cases) < _FEW_CASES:
        yield f"Few cases ({min(cases)}): only large differences can show; `fairtrial power` says how many it takes."
    clusters = [units for count, units in counts if 0 < units < count]
    if clusters and min(clusters) < _FEW_CLUSTERS:
        yield f"Few clusters ({min(clusters)}): only large differences can show."


def _about_method(found: Sequence[Comparison]) -> Iterator[str]:
    """Which interval it is, where that is not the usual one."""
    if any(pair.method.startswith("bounded") for pair in found):
        yield (
            "Few cases, or few of them, make the difference: its interval allows for what other cases could show "
            "(bounded by the scale). `--largest POINTS` narrows it where no case can differ by more than that."
        )
    if any(pair.rough for pair in found):
        yield "Few cases carry this difference, and no scale says what others could show: its interval is rough."
    corrected = [pair for pair in found if pair.labels]
    if corrected:
        least = min(pair.labels for pair in corrected)
        yield f"People's labels (on {least} cases) correct what the judges said of both."


def _about_weights(scores: ScoreTable, pairs: Pairs, metric: str) -> Iterator[str]:
    if scores.uneven_facts:
        yield (
            f"{scores.uneven_facts} cases have another weight or cluster in another run: those of the run named first "
            "count."
        )
    if not scores.clusters and len(set(scores.weights.values())) == 1:
        return
    for a, b in pairs:
        common = scores.common(a, b, metric)
        if common.plain or len(common.keys) < 2:
            continue
        sizes: dict[str, float] = {}
        for key, weight in zip(common.clusters or common.keys, common.weights, strict=True):
            sizes[key] = sizes.get(key, 0.0) + float(weight)
        worth = sum(sizes.values()) ** 2 / sum(size**2 for size in sizes.values())
        if worth < 0.6 * len(sizes):
            what = "clusters" if common.clusters else "cases"
            yield (
                f"A few {what} carry most of the weight: {len(sizes)} count as {worth:.0f}; "
                "the interval allows for that."
            )
            return


def _about_scores(scores: ScoreTable, pairs: Pairs) -> Iterator[str]:
    if any(_scored_otherwise(a, b) for a, b in pairs):
        yield "Not all of these were scored in the same way (another scorer or judge): the difference may be theirs."
    a, b = max(pairs, key=lambda pair: abs(pair[0].coverage - pair[1].coverage))
    if abs(a.coverage - b.coverage) > 1e-9:
        low, high = (a, b) if a.coverage < b.coverage else (b, a)
        failures = "; --details shows what the failures could change" if a.failed or b.failed else ""
        yield (
            f"Different coverage: {high.label} has a score for {100 * high.coverage:.0f} % of its trials, {low.label} "
            f"for {100 * low.coverage:.0f} %{failures}."
        )


def _scored_otherwise(a: ArmScores, b: ArmScores) -> bool:
    if a.judges != b.judges and (a.judges or b.judges) and a.source is not b.source:
        return True
    return any(a.scorers[case] != b.scorers[case] for case in a.scorers.keys() & b.scorers.keys())


def _about_runs(scores: ScoreTable) -> Iterator[str]:
    for source in scores.sources:
        for run in source.runs:
            if run.status not in ("completed", "stopped"):
                yield f"Run {run.id} is {run.status}: this is how things stand, not how they end."


def _about_stopping(pairs: Pairs, found: Sequence[Comparison]) -> Iterator[str]:
    stopping = [pair for (a, b), pair in zip(pairs, found, strict=True) if a.stop is not None or b.stop is not None]
    if not stopping:
        return
    if all(pair.method == ANYTIME for pair in stopping):
        yield (
            "A run was allowed to stop as soon as its result was sure: interval and p hold whenever it stopped, and "
            "the difference is the middle of the interval. Among runs that stop early it is still too large on "
            "average; kinds of cases and other tests are only a hint."
        )
    else:
        yield (
            "A run was allowed to stop as soon as its result was sure, and here nothing accounts for that (several "
            "runs, weights, or a metric without a scale): the difference is too large on average, its interval too "
            "narrow."
        )


def _about_noise(pairs: Pairs) -> Iterator[str]:
    arms = dict.fromkeys(one for pair in pairs for one in pair)
    once = [
        one
        for one in arms
        if one.judges and one.values[SCORE] and all(len(found) < 2 for found in one.values[SCORE].values())
    ]
    if once:
        yield (
            "Judged by a model, with one answer a case: how far another run would differ is not known; "
            "--repeats 3 or --runs 3 measures it."
        )
