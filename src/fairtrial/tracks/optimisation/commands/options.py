"""What is typed for `fairtrial optim` and `fairtrial baseline`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from fairtrial.cli.options import (
    FINITE,
    done_by,
    json_option,
    option,
    quiet_option,
    run_options,
    store_option,
    store_options,
)

weights_option = option(
    "--weights",
    nargs=2,
    type=FINITE,
    default=(0.5, 0.5),
    show_default=True,
    help="Weights of instruction following and of closeness to the optimum in the composites.",
)

credit_option = option(
    "--partial-credit",
    is_flag=True,
    help="Also give credit by the constraint_violations that answers report, in addition to the recomputed quality.",
)


def _time_limit_option(text: str) -> Callable[[Any], Any]:
    """Return the option for the seconds that there are for one problem."""
    return option("--time-limit", type=click.FloatRange(min=1), default=60.0, show_default=True, help=text)


@click.group()
def optim() -> None:
    """Compare prompt styles on optimisation problems with certified baselines."""


class _WithSizes(click.Command):
    """A command whose `--n` takes several numbers in a row: `--n 2 5`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, _one_by_one(args))


def _one_by_one(args: list[str]) -> list[str]:
    """Repeat `--n` before every number that follows it."""
    written: list[str] = []
    after_n = False
    for argument in args:
        if after_n and argument.isdigit() and written[-2:-1] == ["--n"]:
            written.append("--n")
        after_n = argument == "--n" or (after_n and argument.isdigit())
        written.append(argument)
    return written


@optim.command("generate")
@done_by("fairtrial.tracks.optimisation.commands.generate:generate_problems")
@click.argument("folder", required=False, type=click.Path(path_type=Path, file_okay=False))
@option("--family", "families", multiple=True, metavar="F", help="A family; may be repeated. --list names them.")
@option("--n", "sizes", multiple=True, type=click.IntRange(min=1), help="A size; may be repeated. Default: 5.")
@option("--seed", type=click.IntRange(min=1), default=1, show_default=True, help="Another seed, other problems.")
@option(
    "--count",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="Number of problems of every family and size.",
)
@option(
    "--variants",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Number of other wordings of every problem: the same mathematics in another story, order and names.",
)
@_time_limit_option("Time limit for certifying one problem, in seconds.")
@option("--list", "listed", is_flag=True, help="List the families, and what --n counts in each.")
@json_option
@quiet_option
def generate() -> None:
    """Generate problems that no model has seen, and write those that a solver certifies into FOLDER.

    The same family, size, seed and number give the same file on every machine. A problem that is not certified within
    the time limit is thrown away, and said; the exit code is 2 then. Proofs are in certificates.json.
    """


@optim.command("run", cls=_WithSizes)
@done_by("fairtrial.tracks.optimisation.commands.optim:run_styles")
@click.argument("models", nargs=-1, required=True, metavar="TARGET...")
@option(
    "--style",
    "styles",
    multiple=True,
    metavar="S",
    help="A prompt style, or a file of styles (styles.yaml, pirate.md); may be repeated; default: polite and strict.",
)
@option("--match-length", is_flag=True, help="Make the styles equally long by neutral sentences.")
@option(
    "--problems",
    multiple=True,
    type=click.Path(),
    metavar="FILE",
    help="A problem of your own (YAML, JSON, MPS, LP, model.py:name) or a folder of them; may be repeated.",
)
@option("--family", "families", multiple=True, metavar="F", help="Only this family; may be repeated.")
@option(
    "--n", "sizes", multiple=True, type=click.IntRange(min=1), metavar="N...", help="Only these sizes, such as 2 5."
)
@option(
    "--difficulty",
    "difficulties",
    multiple=True,
    type=click.Choice(["easy", "medium", "hard"]),
    help="Only this difficulty; may be repeated.",
)
@option("--count", type=click.IntRange(min=1), help="Number of instances; default: 30, or all of --problems.")
@option("--seed", type=click.IntRange(min=1), help="Seed of the instances; another one makes new ones.")
@option(
    "--answer",
    type=click.Choice(["numbers", "code"]),
    default="numbers",
    show_default=True,
    help="What is asked for: the numbers themselves, or a program that a sandbox runs.",
)
@credit_option
@option("--max-tokens", type=click.IntRange(min=1), default=8192, show_default=True, help="Longest answer, in tokens.")
@run_options
def run() -> None:
    """Ask every TARGET in every style; 5 repeats by default."""


@optim.command("export")
@done_by("fairtrial.tracks.optimisation.commands.optim:export_answers")
@click.argument("run")
@click.argument("folder", type=click.Path())
@store_option
def export() -> None:
    """Write the answers of RUN into FOLDER: INSTANCE/baseline.json, INSTANCE/STYLE_1.json, …"""


@optim.command("evaluate")
@done_by("fairtrial.tracks.optimisation.commands.optim:evaluate_folder")
@click.argument("folder", type=click.Path())
@weights_option
@_time_limit_option("Time limit for solving one problem of the folder, in seconds.")
@credit_option
@store_options
def evaluate() -> None:
    """Evaluate a FOLDER of answers made by any tool and store it as a run.

    FOLDER has instances (INSTANCE/problem.yaml, baseline.json, polite_1.json, strict_1.json, …), or is one. With a
    problem file, objective and constraints are computed from each answer; with baseline.json alone, format, gap and
    distance are measured.
    """


@optim.command("report")
@done_by("fairtrial.tracks.optimisation.commands.optim:report_styles")
@click.argument("run", default="latest")
@weights_option
@option("--by", type=click.Choice(["difficulty", "n", "family"]), help="Also print a table for each of these.")
@option("--details", is_flag=True, help="Show every test, the format step by step, and the lengths of the styles.")
@option(
    "-o",
    "--output",
    "outputs",
    multiple=True,
    metavar="FILE",
    help="Write the report to a file (.html, .md, .tex, .csv or .json); may be repeated.",
)
@store_options
def report() -> None:
    """Show how each style affects the answers of RUN, or write it as a report with tables, figures and methods."""


@optim.command("mcp")
@done_by("fairtrial.tracks.optimisation.commands.optim:serve_solver")
@click.argument("problems", nargs=-1, type=click.Path(), metavar="[PROBLEM]...")
def mcp() -> None:
    """Serve a solver as MCP tools on stdin and stdout, for an agent: evaluate, solve and describe a problem by its id.

    PROBLEM is a file or a folder of your own problems; the built-in ones are always known.
    """


@click.command()
@done_by("fairtrial.tracks.optimisation.commands.baseline:solve_problem")
@click.argument("problem", required=False)
@click.argument("output", required=False, type=click.Path())
@option("--list", "listed", is_flag=True, help="List every instance of the default suite.")
@option("--verify", is_flag=True, help="Solve all instances again and compare.")
@option("--text", is_flag=True, help="Print the problem as it is sent to models.")
@option("--export", type=click.Path(), metavar="FILE", help="Write the problem as a problem file; - prints it.")
@_time_limit_option("Time limit for one problem, in seconds.")
@json_option
def baseline() -> None:
    """Solve PROBLEM and write the solution to OUTPUT, in the format of an answer.

    PROBLEM is built in (box_qp-10) or a file: YAML or JSON as described in the documentation, MPS, LP, or a Pyomo model
    (model.py:name, which is executed).

    The reported gap says how closely the solution is certified. HiGHS solves linear and convex problems, SCIP all
    others; if neither certifies a solution in time, the best one is searched from many starting points. The time limit
    covers all of it. Results are kept: with a longer limit, the search continues from them.
    """
