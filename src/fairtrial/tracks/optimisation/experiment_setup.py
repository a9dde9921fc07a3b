"""What an experiment on prompt styles was, for its methods section: all of it is read from the record of the run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec

from fairtrial.analyse.run import Run
from fairtrial.config.styles import added_words
from fairtrial.core.experiment import Case
from fairtrial.tracks.optimisation.problem import Baseline, OptimisationProblem
from fairtrial.tracks.optimisation.scorer import problem_of
from fairtrial.tracks.optimisation.verify import GapKind, gap_kind

_BATCH = 250


class StyleLength(msgspec.Struct, frozen=True, kw_only=True):
    """How many words a style adds to a problem: over its wordings, in the mean, at least and at most."""

    style: str
    wordings: int
    words: float
    fewest: int
    most: int


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """Problems, models, settings, seeds and versions."""

    problems: int
    families: list[str]
    sizes: list[int]
    difficulties: dict[str, int]
    seeds: list[int]  # of the problems that were made from one
    certified: int
    known: int  # problems that can be verified, rather than a baseline alone
    gaps: dict[GapKind, int]  # what the gap of 0–1 is, and of how many problems
    solvers: list[str]
    tolerance: str
    targets: list[str]
    params: dict[str, dict[str, Any]]  # as sent, by target
    styles: list[str]
    replayed: bool  # whether the answers came from files, a style each
    repeats: list[int]
    versions: dict[str, str]
    dataset_sha256: str
    suite_sha256: str
    made: str  # the day of the run


def setup_of(run: Run) -> Setup:
    """Return what was run."""
    problems: list[OptimisationProblem] = []
    baselines: list[Baseline] = []
    levels: Counter[str] = Counter()
    gaps: Counter[GapKind] = Counter()
    sizes: set[int] = set()
    for case in _cases(run):
        if "baseline" not in (case.metadata or {}):
            continue
        problem, baseline = problem_of(case)
        baselines.append(baseline)
        problems += [problem] if problem else []
        levels[case.difficulty or "not stated"] += 1
        sizes.add(problem.n if problem else len(baseline.x or ()))
        if baseline.status != "infeasible":
            gaps[gap_kind(baseline, known=problem is not None)] += 1
    context, arms = run.context, run.plan_arms
    replayed = all(arm.target.kind == "replay" for arm in arms)
    return Setup(
        problems=len(baselines),
        families=sorted({problem.family for problem in problems}),
        sizes=sorted(sizes),
        difficulties=dict(levels),
        seeds=sorted({problem.seed for problem in problems if problem.seed}),
        certified=sum(one.certified for one in baselines),
        known=len(problems),
        gaps=dict(gaps),
        solvers=sorted({f"{one.solver} {one.version}".strip() for one in baselines if one.certified}),
        tolerance=", ".join(f"{value:g}" for value in sorted({problem.tolerance for problem in problems})),
        targets=list(dict.fromkeys(arm.target.id for arm in arms)),
        params={} if replayed else {arm.target.id: run.sent(arm) or {} for arm in arms},
        styles=list(dict.fromkeys(arm.target.id if replayed else arm.condition.name for arm in arms)),
        replayed=replayed,
        repeats=sorted({arm.repeats for arm in arms}),
        versions={**context.get("packages", {}), "python": str(context.get("python", ""))},
        dataset_sha256=run.plan.dataset_sha256,
        suite_sha256=run.plan.suite_sha256,
        made=datetime.fromtimestamp(run.record.created_at, UTC).date().isoformat(),
    )


def _cases(run: Run) -> Iterator[Case]:
    for first in range(0, run.plan.case_count, _BATCH):
        yield from run.store.cases(run.plan.id, first, _BATCH)


def style_lengths(run: Run) -> list[StyleLength]:
    """Return how many words the styles of a run add to a problem; none for conditions that add no text of their own."""
    found = {}
    for arm in run.plan_arms:
        counts = [added_words(text) for text in arm.condition.prompts]
        if counts:
            found[arm.condition.name] = StyleLength(
                style=arm.condition.name,
                wordings=len(counts),
                words=sum(counts) / len(counts),
                fewest=min(counts),
                most=max(counts),
            )
    return list(found.values())
