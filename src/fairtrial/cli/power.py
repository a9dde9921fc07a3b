"""`fairtrial power`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fairtrial.cli.options import json_option, open_store, option, print_json, store_option

if TYPE_CHECKING:
    from fairtrial.analyse.planning import PairPower

_MOST = 10


@click.command()
@click.argument("runs", nargs=-1)
@option("--arms", nargs=2, metavar="A B", help="Only these two.")
@option("--delta", "deltas", multiple=True, type=click.FloatRange(min=0, min_open=True), help="Points to detect.")
@option(
    "--margin",
    "margins",
    multiple=True,
    type=click.FloatRange(min=0, min_open=True),
    help="Losses that do not matter: cases for equivalence and for a gate.",
)
@option("--power", type=click.FloatRange(min=0.5, max=0.999), default=0.8, show_default=True, help="How surely.")
@store_option
@json_option
def command(
    runs: tuple[str, ...],
    arms: tuple[str, str] | None,
    deltas: tuple[float, ...],
    margins: tuple[float, ...],
    power: float,
    store: str | None,
    as_json: bool,
) -> None:
    """Say how many cases or repeats it takes to see a difference between arms, judging by RUNS.

    The numbers allow for how little RUNS may say of the spread themselves: few cases there ask for more here.
    """
    from fairtrial.analyse.planning import DELTAS, plan_power
    from fairtrial.analyse.score_table import choose, find_sources, read_scores
    from fairtrial.reports.json import power_document

    scores = read_scores(find_sources(runs, open_store(store)))
    wanted = [delta / 100 for delta in deltas] or DELTAS
    bearable = [margin / 100 for margin in margins]
    found = plan_power(scores, choose(scores, arms or ()), deltas=wanted, margins=bearable, beta=1 - power)
    if as_json:
        print_json(power_document(found))
        return
    if len(found.pairs) > 1:
        click.echo(
            f"Planned for {round(0.05 / found.alpha)} comparisons at once (each at {100 * found.alpha:.2g} %).\n"
        )
    for pair in sorted(found.pairs, key=lambda pair: -(pair.detectable or 1.0))[:_MOST]:
        _print_pair(pair, power)
    if len(found.pairs) > _MOST:
        click.echo(f"and {len(found.pairs) - _MOST} more pairs; --arms A B chooses one, --json has them all")


def _print_pair(pair: PairPower, power: float) -> None:
    from rich.text import Text

    from fairtrial.analyse.wording.runs import number
    from fairtrial.cli.console import Console
    from fairtrial.cli.tables import table

    console = Console(highlight=False)
    console.print(Text(f"{pair.a} against {pair.b}", style="bold"), soft_wrap=True)
    console.print(
        Text(
            f"{pair.count} cases with {pair.repeats:.3g} repeat{'s' if pair.repeats != 1 else ''} show a difference of "
            f"{number(pair.detectable)} points or more in {100 * power:g} % of experiments."
            if pair.detectable is not None
            else f"{pair.count} cases are too few to show any difference."
        )
    )
    options = [repeats for repeats, _ in pair.cases_needed[0][1]]
    columns = ("cases needed to see", *(f"{repeats} repeat{'s' if repeats > 1 else ''}" for repeats in options))
    rows = [
        [f"{100 * delta:g} point{'' if delta == 0.01 else 's'}", *(f"{cases:,}" for _, cases in needed)]
        for delta, needed in pair.cases_needed
    ]
    console.print(table(columns, rows, names=("cases needed to see",)))
    for row in pair.for_margin:
        console.print(
            f"If they do not differ: {row.equivalent:,} cases call them equivalent within ±{number(row.margin)}, "
            f"{row.gate:,} pass a gate with that margin"
            + (
                f"; the {pair.count} there are pass it in {100 * row.chance:.0f} % of runs."
                if row.chance is not None
                else "."
            )
        )
    if pair.noise_sd is None:
        console.print("What repeats would bring is unknown: no case has two answers of both; --repeats 3 shows it.")
    elif pair.noise_sd == 0:
        console.print("Repeats bring nothing here: every answer to a case got the same score.")
    console.print()
