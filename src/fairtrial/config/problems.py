"""Problems that come with fairtrial, as cases: the text is asked, problem and baseline travel along."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec

from fairtrial.config.document import SuiteEntry
from fairtrial.core.experiment import Case
from fairtrial.optim.catalogue import Selection, baselines, by_name, select
from fairtrial.optim.certify import check_solved
from fairtrial.optim.problem import Baseline, Problem
from fairtrial.optim.text import problem_text

CACHE = Path(".fairtrial/baselines")


def problem_cases(entry: SuiteEntry, first: int) -> list[Case]:
    """The chosen instances; baselines that neither ship nor were solved before are solved now."""
    problems = [by_name(name) for name in _several(entry.ids)] or select(
        Selection(
            family=_several(entry.family),
            n=_several(entry.n),
            difficulty=_several(entry.difficulty),
            count=entry.count,
            seed=entry.seed,
        )
    )
    found = baselines(problems, CACHE, time_limit=entry.time_limit, watch=_say)
    for baseline in found:
        check_solved(baseline)
    pairs = zip(problems, found, strict=True)
    return [_case(problem, baseline, position) for position, (problem, baseline) in enumerate(pairs, first)]


def _several(value: Any) -> tuple[Any, ...]:
    """One may be written without a list."""
    return tuple(value) if isinstance(value, list) else (value,)


def _case(problem: Problem, baseline: Baseline, position: int) -> Case:
    return Case(
        id=problem.id,
        input=problem_text(problem),
        tags=(f"n{problem.n}",),
        category=problem.family,
        difficulty=problem.difficulty,
        cluster=problem.family,
        scorer={"type": "optimisation"},
        metadata={"problem": msgspec.to_builtins(problem), "baseline": msgspec.to_builtins(baseline)},
        position=position,
    )


def _say(done: int, count: int) -> None:
    """Solving takes a while: whoever waits sees how far it is; in a log, a line for each."""
    if sys.stderr.isatty():
        bar = "█" * (20 * done // count)
        end = "\n" if done == count else ""
        sys.stderr.write(f"\rsolving baselines {bar:░<20} {done} of {count}{end}")
    else:
        sys.stderr.write(f"solving baselines: {done} of {count}\n")
    sys.stderr.flush()
