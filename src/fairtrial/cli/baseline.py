"""`fairtrial baseline`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from fairtrial.cli.options import json_option, option, print_json, print_plain_json

if TYPE_CHECKING:
    from fairtrial.optim.problem import Baseline

_COLUMNS = ("id", "family", "n", "difficulty", "objective", "status", "gap")


@click.command()
@click.argument("problem", required=False)
@click.argument("output", required=False, type=click.Path())
@option("--list", "listed", is_flag=True, help="List every instance of the default suite.")
@option("--verify", is_flag=True, help="Solve all instances again and compare.")
@option("--text", is_flag=True, help="Print the problem as it is sent to models.")
@option(
    "--time-limit",
    type=click.FloatRange(min=1),
    default=60.0,
    show_default=True,
    help="Time limit for one problem, in seconds.",
)
@json_option
def command(
    problem: str | None, output: str | None, listed: bool, verify: bool, text: bool, time_limit: float, as_json: bool
) -> int:
    """Solve PROBLEM (such as box_qp-10) and write the solution to OUTPUT, in the format of an answer.

    The reported gap says how closely the solution is certified. HiGHS solves linear and convex problems, SCIP all
    others.
    """
    if listed:
        return _list(as_json=as_json)
    if verify:
        return _verify(time_limit, as_json=as_json)
    if problem is None:
        raise click.UsageError("missing problem; name one, or use --list or --verify")
    from fairtrial.optim.catalogue import baselines, by_name
    from fairtrial.optim.text import problem_text
    from fairtrial.workflows.folders import write_answer

    chosen = by_name(problem)
    if text:
        click.echo(problem_text(chosen))
        return 0
    baseline = baselines([chosen], Path(".fairtrial/baselines"), time_limit=time_limit)[0]
    answer = baseline.as_answer()
    if output is not None:
        write_answer(Path(output), answer)
    if as_json:
        print_json({**answer, "baseline": baseline})
    else:  # in the format that models must answer in
        print_plain_json(answer)
        click.echo(_baseline_line(baseline), err=True)
    return 0


def _baseline_line(baseline: Baseline) -> str:
    if baseline.status == "infeasible":
        solver = f"{baseline.solver} {baseline.version}"
        return f"{baseline.problem}: infeasible, proved by {solver} in {baseline.seconds:.1f} s"
    certified = "certified" if baseline.certified else f"not certified: the bound is {baseline.bound}"
    gap = "no bound" if baseline.gap is None else f"gap {baseline.gap:.1e}"
    how = f"{baseline.solver} {baseline.version}, {baseline.seconds:.1f} s"
    return f"{baseline.problem}: objective {baseline.objective}, {gap}, {certified} ({how})"


def _list(*, as_json: bool) -> int:
    from fairtrial.optim.catalogue import Selection, baselines, select

    problems = select(Selection())
    solved = baselines(problems)
    if as_json:
        rows = [
            {
                "id": problem.id,
                "family": problem.family,
                "n": problem.n,
                "difficulty": problem.difficulty,
                "objective": baseline.objective,
                "status": baseline.status,
                "gap": baseline.gap,
                "bound": baseline.bound,
                "certified": baseline.certified,
                "solver": baseline.solver,
                "version": baseline.version,
                "seconds": baseline.seconds,
            }
            for problem, baseline in zip(problems, solved, strict=True)
        ]
        print_json({"problems": rows})
        return 0
    from fairtrial.cli.console import Console
    from fairtrial.cli.tables import table

    cells = [
        [
            problem.id,
            problem.family,
            str(problem.n),
            problem.difficulty,
            "–" if baseline.objective is None else f"{baseline.objective if abs(baseline.objective) > 1e-9 else 0:.6g}",
            baseline.status,
            "–" if baseline.gap is None else f"{baseline.gap:.0e}",
        ]
        for problem, baseline in zip(problems, solved, strict=True)
    ]
    names = ("id", "family")
    Console(highlight=False).print(table(_COLUMNS, cells, names=names, words=("difficulty", "status")))
    return 0


def _verify(time_limit: float, *, as_json: bool) -> int:
    """Solve every problem again. A shipped baseline is wrong if a new bound excludes it or a better point exists."""
    from fairtrial.optim.catalogue import verify_all

    results = []
    for result in verify_all(time_limit):
        results.append(result)
        if not as_json:
            click.echo(f"{'ok  ' if result.right else 'WRONG'} {result.problem}: {result.message}")
    if as_json:
        print_json({"problems": results})
    wrong = sum(not result.right for result in results)
    if not as_json:
        click.echo(f"{len(results) - wrong} of {len(results)} baselines are right")
    return 1 if wrong else 0
