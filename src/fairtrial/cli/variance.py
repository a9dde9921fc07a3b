"""`fairtrial variance`."""

from __future__ import annotations

from rich.text import Text

from fairtrial.analyse.run import Run
from fairtrial.analyse.variance import ArmVariance, arm_variances
from fairtrial.cli.console import Console
from fairtrial.cli.documents import print_json
from fairtrial.cli.start import open_store
from fairtrial.cli.tables import table
from fairtrial.core.many_arms import MOST_ARMS
from fairtrial.present.words.planning import VARIANCE_COLUMNS, steps_line, variance_cells
from fairtrial.reports.json import variance_document
from fairtrial.text.printable import counted, printable


def show_variances(run: str, case_cost: float, store: str | None, as_json: bool) -> None:
    """Print where the uncertainty of a run comes from."""
    stored_run = Run.find(run, open_store(store))
    arms = arm_variances(stored_run, case_cost=case_cost)
    if as_json:
        print_json(variance_document(stored_run.id, arms))
    else:
        print_variances(arms)


def print_variances(arms: list[ArmVariance]) -> None:
    """Print the shares of the uncertainty and the advice."""
    console = Console()
    console.print(Text("Sources of the uncertainty of each mean", style="bold"))
    console.print()
    shown = arms[:MOST_ARMS]
    console.print(table(VARIANCE_COLUMNS, map(variance_cells, shown)))
    console.print()
    for arm in shown:
        console.print(Text(printable(f"{arm.label}: {arm.advice}")))
        if arm.std_err:
            console.print(Text(f"  {steps_line(arm)}"), soft_wrap=True)
    if len(arms) > MOST_ARMS:
        console.print(f"and {counted(len(arms) - MOST_ARMS, 'more arm')}: --json has them all")
