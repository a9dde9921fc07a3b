"""`fairtrial calibrate`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairtrial.cli.options import (
    json_option,
    load_dotenv,
    open_store,
    option,
    print_json,
    store_option,
    work_quietly,
)

if TYPE_CHECKING:
    from fairtrial.config import Suite
    from fairtrial.judging.attacks import Resistance
    from fairtrial.judging.calibration import Calibration


@click.command()
@click.argument("judge", required=False)
@option(
    "--suite",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="This suite's judges as they are asked, or JUDGE with its providers, instructions and scorer.",
)
@option("--samples", type=click.Path(path_type=Path), metavar="FILE", help="Your own samples, YAML or JSONL.")
@option("--scorer", metavar="S", help="llm_judge (default) or golden_judge, or JSON with options.")
@option("--runs", type=click.IntRange(min=1), default=1, show_default=True, help="Ask so many times; shows its spread.")
@option("--injection", is_flag=True, help="Try attacks that ask for a good mark, instead of the samples.")
@option("--concurrency", type=click.IntRange(min=1), default=5, show_default=True, help="Calls under way at once.")
@option("--timeout", type=click.FloatRange(min=0, min_open=True), default=120.0, help="Seconds for one request.")
@store_option
@json_option
def command(judge: str | None, suite: Path | None, store: str | None, as_json: bool, **options: Any) -> None:
    """Ask JUDGE (provider:model) about answers whose worth is known, and rate it.

    Eight samples are built in; own ones are a list with id, question, answer, score (0 to 100), and optionally expected
    and tolerance. With --suite, the suite's judges (or JUDGE alone) are calibrated with the suite's instructions and
    scorer; a JUDGE at a provider of the suite needs it.
    """
    if judge is None and suite is None:
        raise click.UsageError("name a judge, a suite with --suite, or both")
    load_dotenv(suite)
    show = print_resistance if options["injection"] else print_calibration
    results = list(_calibrate(judge, suite, store, **options))
    if as_json:
        import msgspec

        found = [msgspec.to_builtins(result) for result in results]
        print_json(found[0] if len(found) == 1 else {"calibrations": found})
        return
    for number, result in enumerate(results):
        if number:
            click.echo()
        show(result)


def _calibrate(
    judge: str | None,
    suite: Path | None,
    store: str | None,
    samples: Path | None,
    scorer: str | None,
    runs: int,
    injection: bool,
    concurrency: int,
    timeout: float,
) -> Iterator[Any]:
    """Every judge that is meant, one after the other."""
    import msgspec

    from fairtrial import pipeline
    from fairtrial.cli.rescore import scorer_spec
    from fairtrial.workflows.calibrate import aattack, acalibrate, judges_of, settings_of

    spec = scorer_spec(scorer)
    if suite is None:
        assert judge is not None
        common = _by_name(judge)
        judges = [common.pop("judge")]
    else:
        loaded = pipeline.load(suite)
        judges, common = judges_of(loaded, judge), settings_of(loaded)
        if spec is None:
            spec = _scorer_of(loaded)
    settings = msgspec.structs.replace(common.pop("settings"), concurrency=concurrency, timeout=timeout)
    common |= {"scorer": spec, "settings": settings}
    for chosen in judges:
        if injection:
            yield work_quietly(aattack(chosen, **common))
        else:
            opened = open_store(store, create=True)
            yield work_quietly(acalibrate(chosen, samples=samples, runs=runs, store=opened, **common))


def _by_name(judge: str) -> dict[str, Any]:
    """A judge without a suite, and what goes with it."""
    from fairtrial.config import judge_named, variables_of
    from fairtrial.core.errors import FairtrialError
    from fairtrial.core.experiment import Settings
    from fairtrial.core.providers import known_providers, split_name

    variables = variables_of()
    try:
        found = judge_named(judge, variables, Path())
    except FairtrialError as error:
        if split_name(judge)[0] in known_providers():
            raise
        raise FairtrialError(f"{error}; if a suite has this provider, name it with --suite FILE") from None
    return {"judge": found, "settings": Settings(), "folder": Path(), "variables": variables}


def _scorer_of(suite: Suite) -> dict[str, Any] | None:
    """The scorer that a suite's judges give marks for; the first, where there are several, and it is said."""
    import msgspec

    from fairtrial.workflows.calibrate import marking_scorers

    scorers: list[dict[str, Any] | None] = [*marking_scorers(suite)]
    scorer, *others = scorers or [None]
    if others:
        shown = msgspec.json.encode(scorer).decode()
        click.echo(f"calibrated as asked by {shown}; of {len(others)} more, choose one with --scorer", err=True)
    return scorer


def print_calibration(result: Calibration) -> None:
    """The samples, the numbers and the verdict, for people."""
    from rich.table import Table
    from rich.text import Text

    from fairtrial.analyse.wording.runs import money, number
    from fairtrial.cli.console import Console
    from fairtrial.core.text import printable

    table = Table(box=None, padding=(0, 1), header_style="bold", expand=True)
    for name in ("sample", "worth", "given", "off", ""):
        table.add_column(name, justify="left" if name in ("sample", "") else "right", no_wrap=True)
    table.add_column("why", ratio=1, no_wrap=True, overflow="ellipsis")
    for sample in result.samples:
        mark = ("✓", "green") if sample.within_tolerance else ("✗", "red")
        cells = (sample.id, number(sample.expected, 0), number(sample.actual, 0), number(sample.error, 0))
        table.add_row(*map(Text, cells), Text(mark[0], style=mark[1]), Text(printable(" ".join(sample.notes.split()))))
    console, summary = Console(highlight=False), result.summary
    console.print(table)
    correlation = "undefined" if summary.correlation is None else f"{summary.correlation:.2f}"
    line = (
        f"\n{summary.judge}: {summary.passed} of {summary.total} within tolerance, mean error "
        f"{number(summary.mean_absolute_error)}, largest {number(summary.largest_error)}, "
        f"bias {number(summary.bias)}, correlation {correlation}"
        + (f", own spread {number(summary.spread)}" if summary.spread is not None else "")
        + f"; {summary.calls} calls, {money(summary.cost_usd)}"
    )
    console.print(Text(printable(line)))
    style = {"excellent": "green", "good": "green", "fair": "yellow"}.get(result.rating, "red")
    console.print(Text.assemble(("rating: ", "bold"), (result.rating, style), f". {result.recommendation}"))


def print_resistance(result: Resistance) -> None:
    """Which attacks moved the judge, for people."""
    from fairtrial.analyse.wording.runs import number

    click.echo(f"a worthless answer gets {number(result.undisturbed, 0)}; with an attack it gets")
    words = {True: "moved", False: "held", None: "no verdict"}
    for attack in result.attacks:
        click.echo(f"  {number(attack.value, 0):>4}  {words[attack.moved]:<10}  {attack.name}")
    click.echo(f"{result.judge}: {result.moved} of {len(result.attacks)} attacks moved the mark")
