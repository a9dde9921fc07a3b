"""Built-in optimisation problems as cases: the text is the input; problem and baseline are metadata."""

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
    """Return the selected instances; baselines that are neither included nor cached are solved now."""
    problems = [by_name(name) for name in _as_tuple(entry.ids)] or select(
        Selection(
            family=_as_tuple(entry.family),
            n=_as_tuple(entry.n),
            difficulty=_as_tuple(entry.difficulty),
            count=entry.count,
            seed=entry.seed,
        )
    )
    solved = baselines(problems, CACHE, time_limit=entry.time_limit, watch=_show_progress)
    for baseline in solved:
        check_solved(baseline)
    pairs = zip(problems, solved, strict=True)
    return [_case(problem, baseline, position) for position, (problem, baseline) in enumerate(pairs, first)]


def _as_tuple(value: Any) -> tuple[Any, ...]:
    """Return a list as a tuple; a single value may be written without a list."""
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


def _show_progress(done: int, count: int) -> None:
    """Show the progress of solving, which takes a while: as a bar, or in a log as one line each."""
    if sys.stderr.isatty():
        bar = "█" * (20 * done // count)
        end = "\n" if done == count else ""
        sys.stderr.write(f"\rsolving baselines {bar:░<20} {done} of {count}{end}")
    else:
        sys.stderr.write(f"solving baselines: {done} of {count}\n")
    sys.stderr.flush()
