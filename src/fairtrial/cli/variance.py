"""`fairtrial variance`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fairtrial.cli.options import json_option, open_store, option, print_json, store_option

if TYPE_CHECKING:
    from fairtrial.analyse.planning import ArmVariance

_COLUMNS = ("arm", "std. error", "cases", "repeats", "judge", "best repeats")


@click.command()
@click.argument("run", default="latest")
@option(
    "--case-cost", type=click.FloatRange(min=0), default=1.0, show_default=True, help="Cost of a new case, in answers."
)
@store_option
@json_option
def command(run: str, case_cost: float, store: str | None, as_json: bool) -> None:
    """Show where the uncertainty of RUN comes from, and where the next dollar helps most."""
    from fairtrial.analyse import Run
    from fairtrial.analyse.planning import arm_variances
    from fairtrial.reports.json import variance_document

    stored_run = Run.find(run, open_store(store))
    arms = arm_variances(stored_run, case_cost=case_cost)
    if as_json:
        print_json(variance_document(stored_run.id, arms))
    else:
        print_variances(arms)


def print_variances(arms: list[ArmVariance]) -> None:
    """Print the shares of the uncertainty and the advice."""
    from rich.text import Text

    from fairtrial.cli.console import Console
    from fairtrial.cli.tables import table
    from fairtrial.core.text import printable

    console = Console(highlight=False)
    console.print(Text("Sources of the uncertainty of each mean", style="bold"))
    console.print()
    console.print(table(_COLUMNS, map(_cells, arms)))
    console.print()
    for arm in arms:
        console.print(Text(printable(f"{arm.label}: {arm.advice}")))
        if arm.std_err:
            console.print(Text(f"  {_steps_line(arm)}"), soft_wrap=True)


def _cells(arm: ArmVariance) -> list[str]:
    from fairtrial.analyse.wording.runs import number

    parts = arm.components
    shares = {name: "unknown" if share is None else f"{100 * share:.0f} %" for name, share in arm.shares.items()}
    repeat = shares["repeat"]
    judge = shares["judge"] if parts.judge is not None else "–"
    best = "–" if arm.best_repeats is None else f"{max(1, round(arm.best_repeats))}"
    if parts.case == 0 and parts.repeat:
        best = "many"  # the cases do not differ, so only repeats reduce the uncertainty
    return [arm.label, number(arm.std_err, 2), shares["case"], repeat, judge, best]


def _steps_line(arm: ArmVariance) -> str:
    """Describe what the price of one more answer to every case would buy."""
    from fairtrial.analyse.wording.runs import money, number

    price = f"{arm.calls} more calls" if arm.cost_usd is None else money(arm.cost_usd)
    words = {"cases": "{:.0f} more cases", "repeats": "one more repeat", "judgements": "{:.1f} more judgements each"}
    options = [f"{words[step.what].format(step.more)} → {number(step.std_err, 2)}" for step in arm.steps]
    return f"standard error {number(arm.std_err, 2)}; with {price}: {', or '.join(options)}"
