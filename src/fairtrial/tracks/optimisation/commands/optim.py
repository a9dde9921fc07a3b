"""`fairtrial optim`: compare prompt styles on optimisation problems."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from fairtrial import pipeline
from fairtrial.analyse.run import Run
from fairtrial.cli.documents import print_plain_json
from fairtrial.cli.options import in_store
from fairtrial.cli.run import run_loaded
from fairtrial.cli.start import open_store, run_coroutine
from fairtrial.config import parse_suite
from fairtrial.core.errors import FairtrialError
from fairtrial.text.printable import counted, printable
from fairtrial.tracks.optimisation.analysis import OptimisationReport, optimisation_report
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


def run_styles(models: tuple[str, ...], styles: tuple[str, ...], answer: str, **options: Any) -> int:
    """Run the suite that these options describe, and print its table."""
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


def export_answers(run: str, folder: str, store: str | None) -> None:
    """Write the answers of a run as a folder."""
    count = write_folder(Run.find(run, open_store(store)), Path(folder))
    click.echo(f"{counted(count, 'answer')} written to {folder}", err=True)


def evaluate_folder(
    folder: str,
    weights: tuple[float, float],
    time_limit: float,
    partial_credit: bool,
    store: str | None,
    as_json: bool,
) -> None:
    """Store a folder of answers as a run, and print its report."""
    suite = read_folder(Path(folder), time_limit=time_limit, partial_credit=partial_credit)
    for line in describe_folder(Path(folder), suite):
        click.echo(printable(line), err=True)
    stored_run = run_coroutine(pipeline.arun(suite, store=open_store(store, create=True)))
    _show(optimisation_report(stored_run, weights), as_json=as_json)


def report_styles(
    run: str,
    weights: tuple[float, float],
    by: str | None,
    details: bool,
    outputs: tuple[str, ...],
    store: str | None,
    as_json: bool,
) -> None:
    """Print the report of a run, and write it to files."""
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


def serve_solver(problems: tuple[str, ...]) -> None:
    """Serve the solver until its input ends."""
    serve(find_problems(list(problems)))
