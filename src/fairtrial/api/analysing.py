"""What a run says: comparisons, ranks, plans, gates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, overload

from fairtrial.analyse.compare import compare as compare_scores
from fairtrial.analyse.gate import Terms, gate_spec, terms_of
from fairtrial.analyse.gate import gate as check
from fairtrial.analyse.items import analyse_cases, choose_cases
from fairtrial.analyse.planning import DELTAS, plan_power
from fairtrial.analyse.rank import rank as rank_arms
from fairtrial.analyse.run import Run
from fairtrial.analyse.score_table import choose, pooled, read_scores
from fairtrial.analyse.series import compare_run_means, over_runs
from fairtrial.analyse.tool_report import tool_report
from fairtrial.analyse.variance import Variance, arm_variances
from fairtrial.api.given import (
    FEWEST_POINTS,
    AnyRun,
    AnyRuns,
    from_points,
    listed,
    one_source,
    open_given,
    scores_given,
    sources_given,
)
from fairtrial.api.twins import async_twin
from fairtrial.core.amounts import check_amount
from fairtrial.core.errors import FairtrialError
from fairtrial.stats import Aggregate
from fairtrial.store import Store
from fairtrial.workflows.baselines import GateBaseline, baseline_for

if TYPE_CHECKING:
    from fairtrial.analyse.comparison import Comparison, Comparisons
    from fairtrial.analyse.gate import Gate
    from fairtrial.analyse.items import CaseAnalysis
    from fairtrial.analyse.planning import Power
    from fairtrial.analyse.rank import Ranking
    from fairtrial.analyse.series import MultiRun
    from fairtrial.analyse.tool_report import ToolReport
    from fairtrial.stats import RunMeansTest


def rank(
    runs: AnyRuns = "latest",
    *,
    by: Literal["scores", "verdicts", "votes", "both"] | None = None,
    metric: str | None = None,
    control_style: bool = False,
    store: str | None = None,
) -> Ranking:
    """Rank the arms on their common cases, with the range of ranks that the comparisons leave open.

    `by` is where ratings come from; by default, the first available of verdicts, votes and scores.
    """
    return rank_arms(scores_given(runs, store), metric=metric, by=by, control_style=control_style)


def power(
    runs: AnyRuns = "latest",
    *,
    delta: float | Sequence[float] | None = None,
    margin: float | Sequence[float] = (),
    arms: tuple[str, str] | None = None,
    power: float = 0.8,
    looks: int = 0,
    store: str | None = None,
) -> Power:
    """Estimate how many cases or repeats are needed to detect a difference; `delta` and `margin` are in points of 100.

    With `looks`, also of how many a run with that many planned looks asks on average.
    The numbers allow for the uncertainty of the spread measured in the runs: the fewer cases, the more are needed.
    """
    scores = scores_given(runs, store)
    deltas = DELTAS if delta is None else [from_points("delta", one, FEWEST_POINTS) for one in listed(delta)]
    margins = [from_points("margin", one, FEWEST_POINTS) for one in listed(margin)]
    return plan_power(scores, choose(scores, arms or ()), deltas=deltas, margins=margins, beta=1 - power, looks=looks)


def variance(run: AnyRun = "latest", *, case_cost: float = 1.0, store: str | None = None) -> Variance:
    """Show where the uncertainty of a run's means comes from, and where the next dollar helps most."""
    opened = open_given(run, store)
    return Variance(run_id=opened.id, arms=arm_variances(opened, case_cost=case_cost))


def tools(run: AnyRun = "latest", *, store: str | None = None) -> ToolReport:
    """Show whether the MCP servers, tools and skills of a run help, what they cost, and how agents used them."""
    return tool_report(open_given(run, store))


def gate(
    run: AnyRuns = "latest",
    *,
    min_score: float | None = None,
    against: AnyRuns | None = None,
    margin: float | None = None,
    min_coverage: float | None = None,
    arms: Sequence[str] = (),
    metric: str = "",
    these_cases: bool = False,
    store: str | None = None,
) -> Gate:
    """Pass or fail a run; the result is true only if it passed: `assert ft.gate(run, min_score=80)`.

    `min_score`, `margin` and `min_coverage` are in points of 100, as on the command line; a metric is on its own scale.
    A minimum is met when the whole 95 % interval is above it; a regression against another run is ruled out when the
    whole interval of the difference lies above −margin. `result` is `passed`, `failed` or `cannot tell`. `against` may
    also be `branch:main`, `commit:3f2a`, `file:baseline.db.gz`, `notes:` or `auto`; if there is no such run, nobody can
    tell. At least 95 % of the trials must have a score, unless `min_coverage` says otherwise. The suite's `gate`
    applies too, including its baseline.
    """
    source = one_source(run, store)
    given = Terms(
        min_score=min_score if min_score is None or metric else from_points("min_score", min_score, 1.0),
        margin=margin if margin is None or metric else from_points("margin", margin, FEWEST_POINTS),
        min_coverage=None if min_coverage is None else min_coverage / 100,
        metric=metric,
        arms=tuple(arms),
        these_cases=these_cases,
    )
    own = {"min_score": min_score, "margin": margin, "min_coverage": min_coverage}
    terms = terms_of(source.runs[0], given, named=frozenset(name for name, value in own.items() if value is not None))
    spec = gate_spec(source.runs[0])
    named = against if against is not None else spec.against if spec else None
    if isinstance(named, str):
        opened = source.runs[0].store if store is None else Store(store, create=False)
        baseline = baseline_for(named, opened, source.runs[0])
    else:
        baseline = GateBaseline(None if named is None else one_source(named, store), "")
    return check(source, baseline.source, terms, baseline=baseline.words)


@overload
def cases(runs: AnyRuns = "latest", *, subset: None = None, store: str | None = None) -> CaseAnalysis: ...


@overload
def cases(runs: AnyRuns = "latest", *, subset: int, store: str | None = None) -> list[str]: ...


def cases(runs: AnyRuns = "latest", *, subset: int | None = None, store: str | None = None) -> CaseAnalysis | list[str]:
    """Analyse the cases themselves: which are hard, do not separate the arms, or probably have a wrong expected answer.

    With `subset`, returns the ids of this many cases that represent all of them.
    """
    scores = scores_given(runs, store)
    return analyse_cases(scores) if subset is None else choose_cases(scores, subset)


def aggregate(run: Run) -> dict[str, Aggregate]:
    """Return each arm's mean, standard deviation, minimum, maximum, count, weight and interval; scores are 0–1."""
    return {arm.arm: arm.aggregate for arm in run.arms}


def multi_run(runs: Sequence[Run]) -> dict[str, MultiRun]:
    """Return each arm's run ids, scores, mean, standard deviation, minimum, maximum and interval over several runs."""
    return over_runs(runs)


def compare_models(runs: Sequence[Run], a: str, b: str) -> RunMeansTest | None:
    """Compare two arms by their run means (pooled Student t); None with fewer than two runs of either.

    The result holds for these exact cases. It does not say which arm is better on similar cases.
    """
    return compare_run_means(runs, a, b)


@overload
def compare(
    runs: AnyRuns,
    a: str,
    b: str,
    *,
    metric: str | None = None,
    margin: float | None = None,
    largest: float | None = None,
    store: str | None = None,
) -> Comparison: ...


@overload
def compare(
    runs: AnyRuns,
    a: None = None,
    b: None = None,
    *,
    metric: str | None = None,
    margin: float | None = None,
    largest: float | None = None,
    store: str | None = None,
) -> Comparisons: ...


def compare(
    runs: AnyRuns,
    a: str | None = None,
    b: str | None = None,
    *,
    metric: str | None = None,
    margin: float | None = None,
    largest: float | None = None,
    store: str | None = None,
) -> Comparison | Comparisons:
    """Compare arms on the cases they share; the verdict may be that nobody can tell. Scores and margin are 0–1.

    With two names, compares that pair over all runs that have both; without names, every pair. The runs of a series
    count as one. The metric defaults to the suite's primary metric, else the score (""). `largest` is the largest
    possible difference on a case, if that is less than the scale allows.
    """
    if (a is None) != (b is None):
        raise FairtrialError("give two arms, or none")
    names = () if a is None or b is None else (a, b)
    check_amount("margin", margin, positive=True)
    check_amount("largest", largest, positive=True)
    scores = read_scores(pooled(sources_given(runs, store), names))
    comparisons = compare_scores(scores, choose(scores, names), metric=metric, margin=margin, largest=largest)
    return comparisons.pairs[0] if names else comparisons


arank = async_twin(rank)
apower = async_twin(power)
avariance = async_twin(variance)
atools = async_twin(tools)
agate = async_twin(gate)
acases = async_twin(cases)
aaggregate = async_twin(aggregate)
amulti_run = async_twin(multi_run)
acompare_models = async_twin(compare_models)
acompare = async_twin(compare)
