"""`fairtrial optim`: compare prompt styles on optimisation problems."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from fairtrial import pipeline
from fairtrial.analyse.run import Run
from fairtrial.cli.options import (
    in_store,
    open_store,
    option,
    print_plain_json,
    run_coroutine,
    store_option,
    store_options,
)
from fairtrial.cli.run import run_loaded, run_options
from fairtrial.config import parse_suite
from fairtrial.core.errors import FairtrialError
from fairtrial.text.printable import counted, printable
from fairtrial.tracks.optimisation.analysis import OptimisationReport, optimisation_report
from fairtrial.tracks.optimisation.commands import time_limit_option
from fairtrial.tracks.optimisation.commands.generate import command as generate
from fairtrial.tracks.optimisation.commands.optim_page import print_report, print_summary
from fairtrial.tracks.optimisation.folders import describe_folder, read_folder, write_folder
from fairtrial.tracks.optimisation.mcp_server import serve
from fairtrial.tracks.optimisation.problem_files import find_problems
from fairtrial.tracks.optimisation.reports import check_style_outputs, write_styles
from fairtrial.tracks.optimisation.reports.json import document
from fairtrial.tracks.optimisation.style_suite import StyleSuite

_OF_SUITE = (
    *("match_length", "problems", "families", "sizes", "difficulties", "count", "seed"),
    *("partial_credit", "max_tokens"),
)
weights_option = option(
    "--weights",
    nargs=2,
    type=float,
    default=(0.5, 0.5),
    show_default=True,
    help="Weights of instruction following and of closeness to the optimum in the composites.",
)

credit_option = option(
    "--partial-credit",
    is_flag=True,
    help="Also give credit by the constraint_violations that answers report, in addition to the recomputed quality.",
)


@click.group()
def command() -> None:
    """Compare prompt styles on optimisation problems with certified baselines."""


command.add_command(generate)


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


@command.command("run", cls=_WithSizes)
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
def run(models: tuple[str, ...], styles: tuple[str, ...], answer: str, **options: Any) -> int:
    """Ask every TARGET in every style; 5 repeats by default."""
    suite = StyleSuite(
        targets=models,
        styles=styles or ("polite", "strict"),
        answer="code" if answer == "code" else "",
        **{name: options.pop(name) for name in _OF_SUITE},
    )
    code = run_loaded(
        lambda chosen, _: parse_suite(suite.text(), file="optimisation", options=chosen),
        None,
        show_result=_show_styles,
        **options,
    )
    if not (options["quiet"] or options["as_json"] or options["dry_run"]):
        command = in_store("fairtrial optim report --by difficulty -o report.html")
        click.echo(f"`{command}` compares the styles in detail", err=True)
    return code


def _show_styles(run: Run) -> bool:
    """Print the guide's table of a run; not possible where no answer was scored."""
    try:
        report = optimisation_report(run)
    except FairtrialError:
        return False
    print_summary(report)
    return True


@command.command("export")
@click.argument("run")
@click.argument("folder", type=click.Path())
@store_option
def export(run: str, folder: str, store: str | None) -> None:
    """Write the answers of RUN into FOLDER: INSTANCE/baseline.json, INSTANCE/STYLE_1.json, …"""
    count = write_folder(Run.find(run, open_store(store)), Path(folder))
    click.echo(f"{counted(count, 'answer')} written to {folder}", err=True)


@command.command("evaluate")
@click.argument("folder", type=click.Path())
@weights_option
@time_limit_option("Time limit for solving one problem of the folder, in seconds.")
@credit_option
@store_options
def evaluate(
    folder: str,
    weights: tuple[float, float],
    time_limit: float,
    partial_credit: bool,
    store: str | None,
    as_json: bool,
) -> None:
    """Evaluate a FOLDER of answers made by any tool and store it as a run.

    FOLDER has instances (INSTANCE/problem.yaml, baseline.json, polite_1.json, strict_1.json, …), or is one. With a
    problem file, objective and constraints are computed from each answer; with baseline.json alone, format, gap and
    distance are measured.
    """
    suite = read_folder(Path(folder), time_limit=time_limit, partial_credit=partial_credit)
    for line in describe_folder(Path(folder), suite):
        click.echo(printable(line), err=True)
    stored_run = run_coroutine(pipeline.arun(suite, store=open_store(store, create=True)))
    _show(optimisation_report(stored_run, weights), as_json=as_json)


@command.command("report")
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
def report(
    run: str,
    weights: tuple[float, float],
    by: str | None,
    details: bool,
    outputs: tuple[str, ...],
    store: str | None,
    as_json: bool,
) -> None:
    """Show how each style affects the answers of RUN, or write it as a report with tables, figures and methods."""
    check_style_outputs(outputs)
    result = optimisation_report(Run.find(run, open_store(store)), weights)
    _show(result, by=by, details=details, as_json=as_json)
    for output in outputs:
        write_styles(result, Path(output))
        click.echo(f"written: {output}", err=True)


def _show(report: OptimisationReport, *, as_json: bool, by: str | None = None, details: bool = False) -> None:
    if as_json:
        print_plain_json(document(report))
    else:
        print_report(report, by=by, details=details)


@command.command("mcp")
@click.argument("problems", nargs=-1, type=click.Path(), metavar="[PROBLEM]...")
def mcp(problems: tuple[str, ...]) -> None:
    """Serve a solver as MCP tools on stdin and stdout, for an agent: evaluate, solve and describe a problem by its id.

    PROBLEM is a file or a folder of your own problems; the built-in ones are always known.
    """
    serve(find_problems(list(problems)))
