"""`fairtrial optim`: compare prompt styles on optimisation problems."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fairtrial.cli.optim_generate import command as generate
from fairtrial.cli.options import (
    json_option,
    load_dotenv,
    open_store,
    option,
    output_option,
    print_json,
    quiet_option,
    store_option,
)

if TYPE_CHECKING:
    from fairtrial.analyse.optimisation import OptimisationReport, Slice

_COLUMNS = ("arm", "follows", "feasible", "gap", "median", "quality", "composite")


@click.group()
def command() -> None:
    """Compare prompt styles on optimisation problems with certified baselines."""


command.add_command(generate)


@command.command("run")
@click.argument("targets", nargs=-1, required=True)
@option(
    "--style", "styles", multiple=True, metavar="S", help="A prompt style; may be repeated; default: polite and strict."
)
@option(
    "--problems",
    multiple=True,
    type=click.Path(),
    metavar="FILE",
    help="A problem of your own (YAML, JSON, MPS, LP, model.py:name) or a folder of them; may be repeated.",
)
@option("--family", "families", multiple=True, metavar="F", help="Only this family; may be repeated.")
@option("--n", "sizes", multiple=True, type=click.IntRange(min=1), help="Only this size; may be repeated.")
@option(
    "--difficulty",
    "difficulties",
    multiple=True,
    type=click.Choice(["easy", "medium", "hard"]),
    help="Only this difficulty; may be repeated.",
)
@option("--count", type=click.IntRange(min=1), help="Number of instances; default: 30, or all of --problems.")
@option(
    "--repeats", type=click.IntRange(min=1), default=5, show_default=True, help="Number of answers to every problem."
)
@option("--budget-usd", type=click.FloatRange(min=0), help="Stop before spending more than this.")
@output_option
@store_option
@json_option
@quiet_option
def run(
    targets: tuple[str, ...],
    styles: tuple[str, ...],
    problems: tuple[str, ...],
    families: tuple[str, ...],
    sizes: tuple[int, ...],
    difficulties: tuple[str, ...],
    count: int | None,
    repeats: int,
    budget_usd: float | None,
    outputs: tuple[str, ...],
    store: str | None,
    as_json: bool,
    quiet: bool,
) -> int:
    """Ask TARGETS in every style; a suite file with `suite: optimisation` has more options."""
    import yaml

    from fairtrial.cli.finish import Ending, check_outputs
    from fairtrial.cli.run import run_suite
    from fairtrial.config import RunOptions, parse_suite

    load_dotenv()
    check_outputs(outputs)
    chosen = {
        "problems": list(problems),
        "family": list(families),
        "n": list(sizes),
        "difficulty": list(difficulties),
        "count": count,
    }
    selection = {name: value for name, value in chosen.items() if value}
    text = yaml.safe_dump(
        {
            "name": "optimisation",
            "targets": list(targets),
            "repeats": repeats,
            "params": {"max_tokens": 8192},
            "suite": {"kind": "optimisation", "styles": list(styles or ("polite", "strict")), **selection},
        },
        sort_keys=False,
    )
    suite = parse_suite(text, file="optimisation", options=RunOptions(budget_usd=budget_usd))
    ending = Ending(outputs=outputs, as_json=as_json, quiet=quiet)
    code = run_suite(suite, ending, runs=1, store=store)
    if not quiet and not as_json:
        click.echo("`fairtrial optim report` compares the styles", err=True)
    return code


@command.command("export")
@click.argument("run")
@click.argument("folder", type=click.Path())
@store_option
def export(run: str, folder: str, store: str | None) -> None:
    """Write the answers of RUN into FOLDER: INSTANCE/baseline.json, INSTANCE/STYLE_1.json, …"""
    from pathlib import Path

    from fairtrial.analyse import Run
    from fairtrial.workflows.folders import write_folder

    count = write_folder(Run.find(run, open_store(store)), Path(folder))
    click.echo(f"{count} answers written to {folder}", err=True)


@command.command("evaluate")
@click.argument("folder", type=click.Path())
@option(
    "--weights",
    nargs=2,
    type=float,
    default=(0.5, 0.5),
    show_default=True,
    help="Weights of instruction following and of solution quality.",
)
@option(
    "--time-limit",
    type=click.FloatRange(min=1),
    default=60.0,
    show_default=True,
    help="Time limit for solving one problem of the folder, in seconds.",
)
@store_option
@json_option
def evaluate(folder: str, weights: tuple[float, float], time_limit: float, store: str | None, as_json: bool) -> None:
    """Evaluate a FOLDER of answers made by any tool and store it as a run.

    FOLDER has instances (INSTANCE/problem.yaml, baseline.json, polite_1.json, strict_1.json, …), or is one. With a
    problem file, objective and constraints are computed from each answer; with baseline.json alone, format, gap and
    distance are measured.
    """
    from pathlib import Path

    import msgspec

    from fairtrial import pipeline
    from fairtrial.analyse.optimisation import optimisation_report
    from fairtrial.cli.options import run_coroutine
    from fairtrial.core.text import printable
    from fairtrial.workflows.folders import describe_folder, read_folder

    suite = read_folder(Path(folder), time_limit=time_limit)
    for line in describe_folder(Path(folder), suite):
        click.echo(printable(line), err=True)
    stored_run = run_coroutine(pipeline.arun(suite, store=open_store(store, create=True)))
    report = optimisation_report(stored_run, weights)
    print_json(msgspec.to_builtins(report)) if as_json else print_report(report)


@command.command("report")
@click.argument("run", default="latest")
@option(
    "--weights",
    nargs=2,
    type=float,
    default=(0.5, 0.5),
    show_default=True,
    help="Weights of instruction following and of solution quality.",
)
@option("--by", type=click.Choice(["difficulty", "n", "family"]), help="Also print a table for each of these.")
@option("--details", is_flag=True, help="Show every test, and the difference by group of problems.")
@store_option
@json_option
def report(
    run: str, weights: tuple[float, float], by: str | None, details: bool, store: str | None, as_json: bool
) -> None:
    """Show how each style affects the answers of RUN."""
    import msgspec

    from fairtrial.analyse import Run
    from fairtrial.analyse.optimisation import optimisation_report

    result = optimisation_report(Run.find(run, open_store(store)), weights)
    if as_json:
        print_json(msgspec.to_builtins(result))
    else:
        print_report(result, by=by, details=details)


def print_report(report: OptimisationReport, *, by: str | None = None, details: bool = False) -> None:
    """Print the tables and sentences of a report."""
    from rich.text import Text

    from fairtrial.analyse.wording.comparisons import difficulty_line
    from fairtrial.cli.compare_page import print_comparisons
    from fairtrial.cli.console import Console
    from fairtrial.cli.tables import table
    from fairtrial.core.text import printable

    console = Console(highlight=False)
    console.print(Text(printable(f"run {report.run_id} · {report.suite}"), style="bold"))
    console.print()
    console.print(table(_COLUMNS, [[arm.arm, *_cells(arm.overall)] for arm in report.arms]))
    console.print(
        Text(
            f"gap is normalised: 0 is the optimum, 1 no better than chance; composite is "
            f"{report.weights[0]:g} following + {report.weights[1]:g} quality / 100",
            style="dim",
        )
    )
    for value in dict.fromkeys(name for arm in report.arms for name in arm.by[by]) if by else ():
        console.print(Text(f"\n{by} {value}", style="bold"))
        rows = [[arm.arm, *_cells(arm.by[by][value])] for arm in report.arms if by and value in arm.by[by]]
        console.print(table(_COLUMNS, rows))
    for arm in report.arms:
        faults = {
            "answers repeat the question": arm.overall.echoes,
            "answers cut off": arm.overall.truncated,
            "objectives misreported": arm.overall.misreported,
        }
        if any(faults.values()):
            told = ", ".join(f"{count} {words}" for words, count in faults.items() if count)
            console.print(Text(printable(f"{arm.arm}: {told}")))
    if report.beaten:
        shown = ", ".join(report.beaten[:5])
        console.print(Text(f"BASELINE BEATEN by {len(report.beaten)} answers: {shown}", style="bold red"))
    if report.left_out:
        console.print(Text(f"no scored answers: {', '.join(report.left_out)}", style="yellow"))
    if report.comparisons is not None:
        console.print()
        print_comparisons(report.comparisons, details=details)
        for pair in report.comparisons.pairs:
            console.print(Text(printable(f"{pair.a}, {pair.b}: {difficulty_line(pair)}")))


def _cells(slice_: Slice) -> list[str]:
    return [
        f"{100 * slice_.instruction_following:.0f} %",
        "–" if slice_.feasible is None else f"{100 * slice_.feasible:.0f} %",
        f"{slice_.normalised_gap:.3f}",
        f"{slice_.median_normalised_gap:.3f}",
        f"{slice_.quality:.1f}",
        f"{slice_.composite:.3f}",
    ]
