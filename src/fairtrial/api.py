"""The library's verbs, for people who write Python: thin, synchronous where that is what people expect."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, overload

from fairtrial import pipeline
from fairtrial.analyse import Run
from fairtrial.config import Suite, judge_named, variables_of
from fairtrial.core.accepted import case_problems, score_answer
from fairtrial.core.errors import FairtrialError
from fairtrial.core.experiment import Case, ScorerSpec, read_expected
from fairtrial.core.options import build_scorer
from fairtrial.core.score import Score, ScoreContext, Unscored
from fairtrial.judging.calibration import Calibration
from fairtrial.stats import Aggregate
from fairtrial.store import Store
from fairtrial.workflows.calibrate import acalibrate
from fairtrial.workflows.resume import arescore, aresume

if TYPE_CHECKING:
    from fairtrial.analyse.comparison import Comparison, Comparisons
    from fairtrial.analyse.series import MultiRun
    from fairtrial.stats import RunMeansTest

T = TypeVar("T")


def wait_for(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, also where a loop is already running (a notebook)."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


async def arun(suite: Suite | str | Path, *, store: str | None = None) -> Run:
    """Run a suite, given as loaded or as a path; the result is in the store."""
    if not isinstance(suite, Suite):
        suite = pipeline.load(suite)
    return await pipeline.arun(suite, store=Store(store))


def run(suite: Suite | str | Path, *, store: str | None = None) -> Run:
    """Run a suite, given as loaded or as a path; the result is in the store."""
    return wait_for(arun(suite, store=store))


def open_run(name: str = "latest", *, store: str | None = None) -> Run:
    """A stored run: by id, by an unambiguous prefix of it, or the latest."""
    return Run.find(name, Store(store, create=False))


def resume(run: Run) -> Run:
    """Go on with a run that was stopped; no finished call is repeated."""
    return wait_for(aresume(run.id, store=run.store))


def retry(run: Run) -> Run:
    """Try the failed trials of a run again."""
    return wait_for(aresume(run.id, store=run.store, mode="retry"))


def rescore(run: Run, scorer: str | ScorerSpec | None = None, *, judge: str | None = None) -> Run:
    """Score the stored answers of a run anew, with another scorer or another judge."""
    spec = {"type": scorer} if isinstance(scorer, str) else scorer
    return wait_for(arescore(run.id, scorer=spec, judge=judge, store=run.store))


def score(scorer: str, *, response: str, expected: Any = None, input: str = "", **options: Any) -> Score | Unscored:
    """Score one answer: `score("numeric", response="about 42", expected=42, tolerance=0.01)`.

    `expected` is a text, a number, a mapping (compared as JSON), or a list of those, any of which is right.
    """
    case = Case(id="case", input=input, expected=read_expected(expected))
    built = build_scorer({"type": scorer, **options})
    problems = list(case_problems(built, case, Path()))
    if problems:
        raise FairtrialError("; ".join(problems))
    return wait_for(score_answer(built, ScoreContext(response=response, case=case, folder=Path())))


def calibrate(
    judge: str,
    *,
    samples: str | Path | None = None,
    scorer: str | ScorerSpec | None = None,
    runs: int = 1,
    store: str | None = None,
) -> Calibration:
    """See what a judge makes of answers whose worth is known: samples, summary, rating, recommendation."""
    variables = variables_of()
    spec = judge_named(judge, variables, Path())
    work = acalibrate(
        spec,
        scorer={"type": scorer} if isinstance(scorer, str) else scorer,
        samples=Path(samples) if samples else None,
        runs=runs,
        variables=variables,
        store=Store(store),
    )
    return wait_for(work)


def aggregate(run: Run) -> dict[str, Aggregate]:
    """Every arm's mean, deviation, extremes, count, weight and interval; scores are 0–1."""
    return {arm.arm: arm.aggregate for arm in run.arms}


def multi_run(runs: Sequence[Run]) -> dict[str, MultiRun]:
    """Every arm over several runs of one plan: run ids, scores, mean, deviation, extremes and interval."""
    from fairtrial.analyse.series import over_runs

    return over_runs(runs)


def compare_models(runs: Sequence[Run], a: str, b: str) -> RunMeansTest | None:
    """Two arms by their run means (pooled Student t); None with fewer than two runs of either.

    It holds for these very cases. Whether one is better on cases like these is another question.
    """
    from fairtrial.analyse.series import compare_run_means

    return compare_run_means(runs, a, b)


@overload
def compare(
    runs: Run | Sequence[Run],
    a: str,
    b: str,
    *,
    metric: str | None = None,
    margin: float | None = None,
    largest: float | None = None,
) -> Comparison: ...
@overload
def compare(
    runs: Run | Sequence[Run],
    a: None = None,
    b: None = None,
    *,
    metric: str | None = None,
    margin: float | None = None,
    largest: float | None = None,
) -> Comparisons: ...
def compare(
    runs: Run | Sequence[Run],
    a: str | None = None,
    b: str | None = None,
    *,
    metric: str | None = None,
    margin: float | None = None,
    largest: float | None = None,
) -> Comparison | Comparisons:
    """Which of two arms is better on the cases that both have, or that nobody can tell; scores and margin are 0–1.

    With two names, that pair, over all runs that have them; without, every pair. The runs of a series count as one.
    Without a metric, by the one that the suite calls primary, or by the score (""). `largest` is the largest difference
    that a case can show, where that is less than the scale allows.
    """
    from fairtrial.analyse.compare import compare as compared
    from fairtrial.analyse.score_table import choose, pooled, read_scores, sources_of

    if (a is None) != (b is None):
        raise FairtrialError("name two arms, or none")
    names = () if a is None or b is None else (a, b)
    scores = read_scores(pooled(sources_of(runs), names))
    found = compared(scores, choose(scores, names), metric=metric, margin=margin, largest=largest)
    return found.pairs[0] if names else found
