"""What should be known before a comparison is believed, said where people look at it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fairtrial.analyse.contestants import SCORE, Contestant, Field

_FEW_CASES = 20
_FEW_CLUSTERS = 10

Pairs = Sequence[tuple[Contestant, Contestant]]


def guidance(field: Field, pairs: Pairs, counts: Sequence[tuple[int, int]]) -> list[str]:
    """One sentence for each thing to mind; `counts` has the common cases and the units of every pair."""
    return [
        *_about_cases(field, counts),
        *_about_scores(pairs),
        *_about_runs(field),
        *_about_stopping(pairs),
        *_about_noise(pairs),
    ]


def _about_cases(field: Field, counts: Sequence[tuple[int, int]]) -> Iterator[str]:
    cases = [count for count, _ in counts if count]
    if not cases:
        return
    if not field.same_cases:
        shown = f"{min(cases)}" if min(cases) == max(cases) else f"{min(cases)} to {max(cases)}"
        yield f"The runs have different cases: compared on the {shown} that they have in common."
    if min(cases) < _FEW_CASES:
        yield f"Few cases ({min(cases)}): only large differences can show; `fairtrial power` says how many it takes."
    clusters = [units for count, units in counts if 0 < units < count]
    if clusters and min(clusters) < _FEW_CLUSTERS:
        yield f"Few clusters ({min(clusters)}): the interval is rougher than it looks."


def _about_scores(pairs: Pairs) -> Iterator[str]:
    if any(a.scored_by != b.scored_by for a, b in pairs):
        yield "Not all of these were scored in the same way (another scorer or judge): the difference may be theirs."
    a, b = max(pairs, key=lambda pair: abs(pair[0].coverage - pair[1].coverage))
    if abs(a.coverage - b.coverage) > 1e-9:
        low, high = (a, b) if a.coverage < b.coverage else (b, a)
        yield (
            f"Different coverage: {high.label} has a score for {100 * high.coverage:.0f} % of its trials, {low.label} "
            f"for {100 * low.coverage:.0f} %; where failures are no accident, look at the line that counts them as 0."
        )


def _about_runs(field: Field) -> Iterator[str]:
    for source in field.sources:
        for run in source.runs:
            if run.status not in ("completed", "stopped"):
                yield f"Run {run.id} is {run.status}: this is how things stand, not how they end."


def _about_stopping(pairs: Pairs) -> Iterator[str]:
    if any(one.stop is not None for pair in pairs for one in pair):
        same = all(a.source is b.source for a, b in pairs)
        kept = "verdict, interval and p hold whenever it stopped" if same else "across runs that is not accounted for"
        yield f"A run was allowed to stop as soon as its result was sure: {kept}; kinds of cases are only a hint."


def _about_noise(pairs: Pairs) -> Iterator[str]:
    people = dict.fromkeys(one for pair in pairs for one in pair)
    once = [
        one
        for one in people
        if one.judged and all(len(found) < 2 for found in one.values[SCORE].values()) and one.values[SCORE]
    ]
    if once:
        yield (
            "Judged by a model, with one answer a case: another run may differ by 5–10 points; "
            "--runs 3 or --repeats 3 shows by how much."
        )
