"""`fairtrial power`."""

from __future__ import annotations

import click
from rich.text import Text

from fairtrial.analyse.planning import DELTAS, PairPower, plan_power
from fairtrial.analyse.score_table import choose, find_sources, read_scores
from fairtrial.cli.console import Console
from fairtrial.cli.documents import print_json
from fairtrial.cli.start import open_store
from fairtrial.cli.tables import table
from fairtrial.core.formatting import number
from fairtrial.core.many_arms import MOST_ARMS, is_large
from fairtrial.present.words.planning import LOOKS_FOR, NEEDED, looks_line, looks_table, power_line, power_table
from fairtrial.present.words.prices import price_line
from fairtrial.reports.json import power_document
from fairtrial.text.printable import sentence_of

_MAX_SHOWN = 10


def show_power(
    runs: tuple[str, ...],
    arms: tuple[str, str] | None,
    deltas: tuple[float, ...],
    margins: tuple[float, ...],
    power: float,
    looks: int | None,
    store: str | None,
    as_json: bool,
) -> None:
    """Print how many cases are needed for each pair of arms."""
    scores = read_scores(find_sources(runs, open_store(store)))
    differences = [delta / 100 for delta in deltas] or DELTAS
    allowed_losses = [margin / 100 for margin in margins]
    pairs = choose(scores, arms or ())
    plan = plan_power(scores, pairs, deltas=differences, margins=allowed_losses, beta=1 - power, looks=looks or 0)
    if as_json:
        print_json(power_document(plan))
        return
    if (comparisons := round(0.05 / plan.alpha)) > 1:
        click.echo(f"Planned for {comparisons:,} simultaneous comparisons (each at {100 * plan.alpha:.2g} %).")
        if is_large(comparisons):
            click.echo(f"Of more than {MOST_ARMS} arms, each is planned against the first one only.")
        click.echo()
    for pair in sorted(plan.pairs, key=lambda pair: -(pair.detectable or 1.0))[:_MAX_SHOWN]:
        _print_pair(pair, power)
    if len(plan.pairs) > _MAX_SHOWN:
        click.echo(f"and {len(plan.pairs) - _MAX_SHOWN} more pairs; --arms A B selects one, --json has them all")


def _print_pair(pair: PairPower, power: float) -> None:
    console = Console()
    console.print(Text(f"{pair.a} against {pair.b}", style="bold"), soft_wrap=True)
    console.print(Text(power_line(pair, power)))
    columns, rows = power_table(pair)
    console.print(table(columns, rows, names=(NEEDED,)))
    if pair.with_looks:
        console.print()
        console.print(Text(looks_line(pair.with_looks[0].planned, power)))
        columns, rows = looks_table(pair.with_looks)
        console.print(table(columns, rows, names=(LOOKS_FOR,)))
    for row in pair.for_margin:
        console.print(
            f"If they do not differ: {row.equivalent:,} cases show equivalence within {number(row.margin)} points, "
            f"{row.gate:,} pass a gate with that margin"
            + (
                f"; the present {pair.count} pass it in {100 * row.chance:.0f} % of runs."
                if row.chance is not None
                else "."
            )
        )
    if pair.price is not None:
        console.print(Text(sentence_of(price_line(pair.price))))
    if pair.noise_sd is None:
        console.print(
            "The effect of repeats is unknown: no case has two answers from both arms; --repeats 3 measures it."
        )
    elif pair.noise_sd == 0:
        console.print("Repeats do not help here: all answers to a case got the same score.")
    console.print()
