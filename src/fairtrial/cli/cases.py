"""`fairtrial cases`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from fairtrial.cli.options import json_option, open_store, option, print_json, store_option

if TYPE_CHECKING:
    from fairtrial.analyse.items import CaseAnalysis

_MOST = 10


@click.command()
@click.argument("runs", nargs=-1)
@option("--all", "everything", is_flag=True, help="A line for every case, hardest first.")
@option("--subset", type=click.IntRange(min=1), metavar="N", help="Choose N cases that stand for all of them.")
@option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="With --subset: write their ids there.")
@store_option
@json_option
def command(
    runs: tuple[str, ...],
    everything: bool,
    subset: int | None,
    output: Path | None,
    store: str | None,
    as_json: bool,
) -> None:
    """Look at the cases themselves, judging by how the arms of RUNS did on them.

    Which are hard, which tell no arm from another, which have probably a wrong expected answer, and how few of them
    would keep the order of the arms.
    """
    from fairtrial.analyse.items import analyse_cases, choose_cases
    from fairtrial.analyse.score_table import find_sources, read_scores
    from fairtrial.core.errors import FairtrialError
    from fairtrial.reports.json import cases_document

    if output is not None and subset is None:
        raise FairtrialError("-o writes the cases that --subset N chooses: name both")
    scores = read_scores(find_sources(runs, open_store(store)))
    if subset is not None:
        chosen = choose_cases(scores, subset)
        if output is not None:
            output.write_text("".join(f"{case}\n" for case in chosen), "utf-8")
            click.echo(f"{len(chosen)} ids are in {output}", err=True)
        elif as_json:
            print_json({"cases": chosen})
        else:
            click.echo("\n".join(chosen))
        return
    found = analyse_cases(scores)
    if as_json:
        print_json(cases_document(found))
    else:
        print_cases(found, everything=everything)


def print_cases(found: CaseAnalysis, *, everything: bool = False) -> None:
    """The cases, for people."""
    from rich.text import Text

    from fairtrial.analyse.wording.cases import CASE_COLUMNS, case_cells, case_headline, case_lines, subset_lines
    from fairtrial.cli.console import Console
    from fairtrial.cli.tables import table
    from fairtrial.core.text import printable

    console = Console(highlight=False)
    console.print(Text(printable(case_headline(found)), style="bold"), soft_wrap=True)
    console.print()
    hardest = sorted(found.cases, key=lambda case: -case.difficulty)
    shown = hardest if everything else hardest[:_MOST]
    console.print(table(CASE_COLUMNS, map(case_cells, shown), names=("case",)))
    if len(shown) < len(hardest):
        console.print(f"the {len(shown)} hardest of {len(hardest)}; --all shows every one")
    console.print()
    for line in (*case_lines(found), *subset_lines(found)):
        console.print(Text(printable(line)), soft_wrap=True)
