"""Optimisation problems as cases: the text is the input; problem and baseline are metadata."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec

from fairtrial.config.document import SuiteEntry
from fairtrial.core.experiment import Case
from fairtrial.core.trust import leave_out, may_run_code, within
from fairtrial.tracks.optimisation.answer_folder import read_instances
from fairtrial.tracks.optimisation.catalogue import (
    ProblemSelection,
    baselines,
    by_name,
    known_baseline,
    matching,
    select,
)
from fairtrial.tracks.optimisation.certify import check_solved
from fairtrial.tracks.optimisation.problem import Baseline, OptimisationProblem
from fairtrial.tracks.optimisation.problem_files import find_problems
from fairtrial.tracks.optimisation.program import program_text
from fairtrial.tracks.optimisation.solving import later
from fairtrial.tracks.optimisation.text import problem_text

CACHE = Path(".fairtrial/baselines")


def problem_cases(entry: SuiteEntry, first: int, folder: Path) -> list[Case]:
    """Return the selected instances; baselines that are neither included nor cached are solved now."""
    cases = _problem_cases(entry, first, folder)
    if not entry.partial_credit:
        return cases
    return [msgspec.structs.replace(case, scorer={**(case.scorer or {}), "partial_credit": True}) for case in cases]


def _problem_cases(entry: SuiteEntry, first: int, folder: Path) -> list[Case]:
    if entry.answers is not None:
        return answer_cases(within(folder, entry.answers), first, entry.time_limit)
    problems = _selected(entry, folder)
    solved = _solved(problems, entry.time_limit)
    pairs = zip(problems, solved, strict=True)
    cases = [_case(problem, baseline, position) for position, (problem, baseline) in enumerate(pairs, first)]
    if entry.answer == "code":
        cases = [_asking_for_code(case, problem, entry) for case, problem in zip(cases, problems, strict=True)]
    if len({problem.family for problem in problems}) > 1:
        return cases
    # One cluster has no interval. Within one family, its problems are the sample, each with its other wordings.
    groups = [problem.group for problem in problems]
    return [msgspec.structs.replace(case, cluster=group) for case, group in zip(cases, groups, strict=True)]


def _solved(problems: list[OptimisationProblem], time_limit: float) -> list[Baseline]:
    """Return the baselines of problems; who only looks takes what is known, and starts no solver."""
    if not may_run_code() and not later.get():
        known = [known_baseline(problem, CACHE) or Baseline.unknown(problem, 0.0) for problem in problems]
        for baseline in known:
            if baseline.status == "unknown":
                leave_out(f"the baseline of {baseline.problem}")
        return known
    solved = baselines(problems, CACHE, time_limit=time_limit, watch=show_progress)
    for baseline in solved:
        check_solved(baseline)
    return solved


def answer_cases(folder: Path, first: int, time_limit: float) -> list[Case]:
    """Return the instances of a folder of answers; without a problem, the baseline is all that a case has."""
    instances = read_instances(folder)
    problems = [one.problem for one in instances if one.problem is not None]
    solved = {one.problem: one for one in _solved(problems, time_limit)}
    cases = []
    for position, one in enumerate(instances, first):
        baseline = solved.get(one.name, one.reference)
        assert baseline is not None
        if one.problem is None:
            check_solved(baseline)
            cases.append(_case_without_problem(one.name, baseline, position))
        else:
            cases.append(_case(one.problem, baseline, position))
    return cases


def _case_without_problem(name: str, baseline: Baseline, position: int) -> Case:
    return Case(
        id=name,
        input=f"An optimisation problem of which only the baseline is known: {name}",
        tags=(f"n{len(baseline.x or ())}",),
        category=name,
        cluster=name,
        scorer={"type": "optimisation"},
        metadata={"baseline": msgspec.to_builtins(baseline)},
        position=position,
    )


def _selected(entry: SuiteEntry, folder: Path) -> list[OptimisationProblem]:
    """Return the problems of the files if there are any, else the named ones, else the matching built-in ones."""
    selection = ProblemSelection(
        family=_as_tuple(entry.family),
        n=_as_tuple(entry.n),
        difficulty=_as_tuple(entry.difficulty),
        count=entry.count,
        seed=entry.seed,
    )
    if entry.problems:
        own = find_problems(list(_as_tuple(entry.problems)), folder)
        return matching(own, selection, ids=_as_tuple(entry.ids))
    return [by_name(name) for name in _as_tuple(entry.ids)] or select(selection)


def _as_tuple(value: Any) -> tuple[Any, ...]:
    """Return a list as a tuple; a single value may be written without a list."""
    return tuple(value) if isinstance(value, list) else (value,)


def _case(problem: OptimisationProblem, baseline: Baseline, position: int) -> Case:
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


def _asking_for_code(case: Case, problem: OptimisationProblem, entry: SuiteEntry) -> Case:
    """Return a case that asks for a program in place of the numbers; it is scored by what the program returns."""
    limits = {"seconds": entry.seconds, "memory_mb": entry.memory_mb}
    room = {"cpu": 1.0}  # a program for each processor: more at once would only be slower
    scorer = {"type": "optimisation", "answer": "code", "sandbox": entry.sandbox, "resources": room, **limits}
    return msgspec.structs.replace(case, input=program_text(problem, **limits), scorer=scorer)


def show_progress(done: int, count: int, what: str = "solving baselines") -> None:
    """Show the progress of solving, which takes a while: as a bar, or in a log as one line each."""
    if sys.stderr.isatty():
        bar = "█" * (20 * done // count)
        end = "\n" if done == count else ""
        sys.stderr.write(f"\r{what} {bar:░<20} {done} of {count}{end}")
    else:
        sys.stderr.write(f"{what}: {done} of {count}\n")
    sys.stderr.flush()
