"""`fairtrial cases`."""

from __future__ import annotations

from pathlib import Path

import click
from rich.text import Text

from fairtrial.analyse.items import CaseAnalysis, analyse_cases, choose_cases
from fairtrial.analyse.score_table import find_sources, read_scores
from fairtrial.cli.console import Console
from fairtrial.cli.documents import print_json
from fairtrial.cli.output import write_file
from fairtrial.cli.start import open_store
from fairtrial.cli.tables import table
from fairtrial.core.errors import FairtrialError
from fairtrial.present.words.cases import CASE_COLUMNS, case_cells, case_headline, case_lines, subset_lines
from fairtrial.reports.json import cases_document
from fairtrial.text.printable import printable

_MAX_SHOWN = 10


def show_cases(
    runs: tuple[str, ...],
    everything: bool,
    subset: int | None,
    output: Path | None,
    store: str | None,
    as_json: bool,
) -> None:
    """Print the analysis of the cases, or choose some of them."""
    if output is not None and subset is None:
        raise FairtrialError("-o needs --subset N: it writes the cases that --subset chooses")
    scores = read_scores(find_sources(runs, open_store(store)))
    if subset is not None:
        chosen = choose_cases(scores, subset)
        if output is not None:
            write_file(output, "".join(f"{case}\n" for case in chosen).encode())
            click.echo(f"written: {output} ({len(chosen)} ids)", err=True)
        if as_json:
            print_json({"cases": chosen})
        elif output is None:
            click.echo("\n".join(chosen))
        return
    analysis = analyse_cases(scores)
    if as_json:
        print_json(cases_document(analysis))
    else:
        print_cases(analysis, everything=everything)


def print_cases(analysis: CaseAnalysis, *, everything: bool = False) -> None:
    """Print the analysis of the cases."""
    console = Console()
    console.print(Text(printable(case_headline(analysis)), style="bold"), soft_wrap=True)
    console.print()
    hardest = sorted(analysis.cases, key=lambda case: -case.difficulty)
    shown = hardest if everything else hardest[:_MAX_SHOWN]
    console.print(table(CASE_COLUMNS, map(case_cells, shown), names=("case",)))
    if len(shown) < len(hardest):
        console.print(f"the {len(shown)} hardest of {len(hardest)} cases; --all shows every case")
    console.print()
    for line in (*case_lines(analysis), *subset_lines(analysis)):
        console.print(Text(printable(line)), soft_wrap=True)
