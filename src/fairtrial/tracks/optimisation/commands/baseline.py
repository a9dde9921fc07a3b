"""`fairtrial baseline`."""

from __future__ import annotations

from pathlib import Path

import click

from fairtrial.cli.console import Console
from fairtrial.cli.documents import print_json, print_plain_json
from fairtrial.cli.tables import table
from fairtrial.core.errors import FairtrialError
from fairtrial.core.private import write_shared
from fairtrial.text.printable import significant
from fairtrial.tracks.optimisation.cases import CACHE
from fairtrial.tracks.optimisation.catalogue import ProblemSelection, baselines, select, verify_all
from fairtrial.tracks.optimisation.certify import check_solved
from fairtrial.tracks.optimisation.export import problem_yaml
from fairtrial.tracks.optimisation.folders import write_answer
from fairtrial.tracks.optimisation.problem import Baseline, OptimisationProblem
from fairtrial.tracks.optimisation.problem_files import find_problem
from fairtrial.tracks.optimisation.text import problem_text

_OF_PROBLEM = ("id", "family", "n", "difficulty")
_OF_BASELINE = ("objective", "status", "gap", "bound", "certified", "solver", "version", "seconds")


def solve_problem(
    problem: str | None,
    output: str | None,
    listed: bool,
    verify: bool,
    text: bool,
    export: str | None,
    time_limit: float,
    as_json: bool,
) -> int:
    """Solve a problem, or list, verify, print or export problems."""
    if listed:
        return _list(as_json=as_json)
    if verify:
        return _verify(time_limit, as_json=as_json)
    if problem is None:
        raise click.UsageError("missing problem; name one, or use --list or --verify")

    chosen = find_problem(problem)
    if text:
        click.echo(problem_text(chosen))
        return 0
    if export:
        return _export(chosen, export)
    baseline = baselines([chosen], CACHE, time_limit=time_limit)[0]
    check_solved(baseline)
    answer = baseline.as_reference(chosen)
    if output is not None:
        write_answer(Path(output), answer)
    if as_json:
        print_json({**answer, "baseline": baseline})
    else:  # in the format that models must answer in
        print_plain_json(answer)
        click.echo(_baseline_line(baseline), err=True)
    return 0


def _export(problem: OptimisationProblem, file: str) -> int:
    if file == "-":
        click.echo(problem_yaml(problem), nl=False)
        return 0
    try:
        write_shared(Path(file), problem_yaml(problem))
    except OSError as error:
        raise FairtrialError(f"{file} cannot be written: {error.strerror or error}") from None
    click.echo(f"{problem.id} written to {file}", err=True)
    return 0


def _baseline_line(baseline: Baseline) -> str:
    if baseline.status == "infeasible":
        solver = f"{baseline.solver} {baseline.version}"
        return f"{baseline.problem}: infeasible, proved by {solver} in {baseline.seconds:.1f} s"
    how = f"{baseline.solver} {baseline.version}, {baseline.seconds:.1f} s"
    objective = "none" if baseline.objective is None else significant(baseline.objective, 12)
    if baseline.certified:
        return f"{baseline.problem}: objective {objective}, gap {baseline.gap:.1e}, certified ({how})"
    bound = "no bound is known" if baseline.bound is None else f"the bound is {baseline.bound}, gap {baseline.gap:.1e}"
    return f"{baseline.problem}: best known {objective}, not certified: {bound} ({how})"


def _list(*, as_json: bool) -> int:
    problems = select(ProblemSelection())
    solved = baselines(problems)
    if as_json:
        rows = [
            {
                name: getattr(one, name)
                for one, names in ((problem, _OF_PROBLEM), (baseline, _OF_BASELINE))
                for name in names
            }
            for problem, baseline in zip(problems, solved, strict=True)
        ]
        print_json({"problems": rows})
        return 0

    cells = [
        [
            problem.id,
            problem.family,
            str(problem.n),
            problem.difficulty,
            "–" if baseline.objective is None else significant(baseline.objective),
            baseline.status,
            "–" if baseline.gap is None else f"{baseline.gap:.0e}",
        ]
        for problem, baseline in zip(problems, solved, strict=True)
    ]
    columns = (*_OF_PROBLEM, *_OF_BASELINE[:3])
    Console().print(table(columns, cells, names=("id", "family"), words=("difficulty", "status")))
    return 0


def _verify(time_limit: float, *, as_json: bool) -> int:
    """Solve every problem again. A shipped baseline is wrong if a new bound excludes it or a better point exists."""
    results = []
    for result in verify_all(time_limit):
        results.append(result)
        if not as_json:
            click.echo(f"{'ok  ' if result.right else 'WRONG'} {result.problem}: {result.message}")
    right = sum(result.right for result in results)
    if as_json:
        print_json({"problems": results})
    else:
        click.echo(f"{right} of {len(results)} baselines are right")
    return 0 if right == len(results) else 1
