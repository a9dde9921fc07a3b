"""What callers may give: runs by name, suites as mappings or files, functions as scorers and judges."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairtrial import pipeline
from fairtrial.analyse.run import Run
from fairtrial.analyse.score_table import find_sources, read_scores, sources_of
from fairtrial.api.twins import async_twin
from fairtrial.config import RunOptions, Suite
from fairtrial.config.python import given_judge, given_scorer
from fairtrial.core.errors import FairtrialError
from fairtrial.core.experiment import ScorerSpec
from fairtrial.core.functions import Functions
from fairtrial.core.options import scorer_spec
from fairtrial.store import Store

if TYPE_CHECKING:
    from fairtrial.analyse.score_table import RunSource, ScoreTable


AnySuite = Suite | Mapping[str, Any] | str | Path
AnyRun = Run | str
AnyRuns = Run | str | Sequence[Run | str]
AnyScorer = str | Mapping[str, Any] | Callable[..., Any]
AnyJudge = str | Callable[..., Any]
FEWEST_POINTS = 0.2  # a smaller difference was meant as a share of 1


def load_given(suite: AnySuite, options: RunOptions | None) -> Suite:
    """Return a suite that is loaded, a mapping or a file as a suite."""
    if isinstance(suite, Suite):
        if options is not None:
            raise FairtrialError("this suite is loaded already: give `options` where it is loaded or made")
        return suite
    if isinstance(suite, Mapping):
        return Suite.from_dict({**suite}, options=options)
    return pipeline.load(suite, options, whole=False)


def open_given(run: AnyRun, store: str | None = None) -> Run:
    """Return a run that is open, or named."""
    return run if isinstance(run, Run) else open_run(run, store=store)


def first_run(name: str, store: str | None) -> Run:
    """Return the run with this name, or the first of the series with this name."""
    opened = Store(store, create=False)
    return Run(opened, opened.find_runs(name)[0])


def sources_given(runs: AnyRuns, store: str | None = None) -> list[RunSource]:
    """Return runs as sources; one name may be that of a series or a tag."""
    given = [runs] if isinstance(runs, Run | str) else list(runs)
    if not given:
        raise FairtrialError("no run is given")
    named = (
        find_sources([one for one in given if isinstance(one, str)], Store(store, create=False))
        if any(isinstance(one, str) for one in given)
        else []
    )
    return [*sources_of(one for one in given if isinstance(one, Run)), *named]


def scores_given(runs: AnyRuns, store: str | None) -> ScoreTable:
    """Return the scores of runs that are open, or named."""
    return read_scores(sources_given(runs, store))


def functions_of(suite: Suite | None, run: Run | None = None) -> Functions | None:
    """Return the functions of a suite; without one, of the suite that a run was made of in this process."""
    known = suite or getattr(run, "made_of", None)
    return known.functions if known is not None else None


def scorer_given(scorer: AnyScorer | None) -> tuple[ScorerSpec | None, dict[str, Any]]:
    """Return a scorer as it is written in suites, and the functions behind it."""
    if scorer is None:
        return None, {}

    spec, functions = given_scorer(scorer)
    return scorer_spec(spec), functions


def judge_given(judge: AnyJudge | None) -> tuple[str | None, Functions]:
    """Return the name of a judge, and the function behind it."""
    if judge is None:
        return None, {}

    return given_judge(judge)


def open_run(name: str = "latest", *, store: str | None = None) -> Run:
    """Open a stored run by its id, an unambiguous prefix of it, a tag, or `latest`."""
    return Run.find(name, Store(store, create=False))


aopen_run = async_twin(open_run)


def listed(value: float | Sequence[float]) -> list[float]:
    """Return one or several numbers as a list."""
    return list(value) if isinstance(value, Sequence) else [value]


def from_points(name: str, value: float, least: float) -> float:
    """Return points as a share of 1; refuse what looks like a share already."""
    if 0 < value < least or (name == "min_score" and value == least):
        raise FairtrialError(
            f"`{name}` is in points from 0 to 100, as on the command line: did you mean {100 * value:g}?"
        )
    return value / 100


def one_source(runs: AnyRuns, store: str | None) -> RunSource:
    """Return one run or series; refuse several."""
    sources = sources_given(runs, store)
    if len(sources) > 1:
        raise FairtrialError("a gate checks one run or one series at a time")
    return sources[0]
