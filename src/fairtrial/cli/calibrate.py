"""`fairtrial calibrate`."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec
from rich.table import Table
from rich.text import Text

from fairtrial import pipeline
from fairtrial.cli.asking import load_dotenv
from fairtrial.cli.console import Console
from fairtrial.cli.documents import print_json
from fairtrial.cli.options import in_store
from fairtrial.cli.rescore import scorer_spec
from fairtrial.cli.start import open_store, run_coroutine
from fairtrial.config import judge_named, variables_of
from fairtrial.core.errors import FairtrialError
from fairtrial.core.formatting import deviation, money, number
from fairtrial.core.judge import judge_key
from fairtrial.core.providers import known_providers, split_name
from fairtrial.core.settings import Settings
from fairtrial.text.printable import counted, printable
from fairtrial.workflows.calibrate import aattack, acalibrate, judges_of, marking_scorers, settings_of, unknown_names

if TYPE_CHECKING:
    from fairtrial.config import Suite
    from fairtrial.core.settings import JudgeSpec
    from fairtrial.judging.attacks import Resistance
    from fairtrial.judging.calibration import Calibration


def calibrate_judges(judge: str | None, suite: Path | None, store: str | None, as_json: bool, **options: Any) -> None:
    """Measure the judges, and print how reliable they are."""
    if judge is None and suite is None:
        raise click.UsageError("missing judge; name a judge, a suite with --suite, or both")
    load_dotenv(suite)
    show = print_resistance if options["injection"] else print_calibration
    results = list(_calibrate(judge, suite, store, **options))
    if as_json:
        from fairtrial.reports.json import calibration_document  # numpy: `run` asks this file for a hint first

        documents = [calibration_document(result) for result in results]
        print_json(documents[0] if len(documents) == 1 else {"calibrations": documents})
        return
    for place, result in enumerate(results):
        if place:
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
    """Yield the result of every selected judge, one after the other."""
    spec = scorer_spec(scorer)
    if suite is None:
        assert judge is not None
        common = _judge_without_suite(judge)
        judges = [common.pop("judge")]
    else:
        loaded = pipeline.load(suite)
        judges, common = judges_of(loaded, judge), settings_of(loaded)
        if spec is None:
            spec = _default_scorer(loaded)
    settings = msgspec.structs.replace(common.pop("settings"), concurrency=concurrency, timeout=timeout)
    common |= {"scorer": spec, "settings": settings}
    for chosen in judges:
        if injection:
            yield run_coroutine(aattack(chosen, **common))
        else:
            opened = open_store(store, create=True)
            yield run_coroutine(acalibrate(chosen, samples=samples, runs=runs, store=opened, **common))


def _judge_without_suite(judge: str) -> dict[str, Any]:
    """Return a judge that is not part of a suite, with default settings."""
    variables = variables_of()
    try:
        spec = judge_named(judge, variables, Path())
    except FairtrialError as error:
        if split_name(judge)[0] in known_providers():
            raise
        raise FairtrialError(f"{error}; if a suite defines this provider, add --suite FILE") from None
    return {"judge": spec, "settings": Settings(), "folder": Path(), "variables": variables}


def _default_scorer(suite: Suite) -> dict[str, Any] | None:
    """Return the scorer that a suite's judges mark for; if there are several, the first, with a note."""
    scorers: list[dict[str, Any] | None] = [*marking_scorers(suite)]
    scorer, *others = scorers or [None]
    if others:
        shown = msgspec.json.encode(scorer).decode()
        click.echo(
            f"calibrating with the scorer {shown}; the suite has {len(others)} more, use --scorer to choose another",
            err=True,
        )
    return scorer


def how_to_calibrate(suite: Suite, judge: JudgeSpec) -> str:
    """Say which command calibrates a judge of a suite; empty if neither is known by a name that can be typed."""
    first = ""
    if suite.path is not None:
        command = ["fairtrial", "calibrate", "--suite", str(suite.path)]
        names = " and ".join(f"`{name}`" for name in unknown_names(judge, suite.vars))
        first = f"give {names} a value under `vars` in the suite, then " if names else ""
    elif _is_named(judge, suite):
        command = ["fairtrial", "calibrate", judge.name, "--scorer", _shown_scorer(suite)]
    else:
        return ""
    return f"{first}`{in_store(shlex.join(command))}` shows how reliable it is"


def _is_named(judge: JudgeSpec, suite: Suite) -> bool:
    """Return whether a judge's name alone means the same judge."""
    try:
        return judge_key(judge_named(judge.name, suite.variables, suite.folder)) == judge_key(judge)
    except FairtrialError:
        return False


def _shown_scorer(suite: Suite) -> str:
    scorer = marking_scorers(suite)[0]
    return str(scorer["type"]) if len(scorer) == 1 else msgspec.json.encode(scorer).decode()


def print_calibration(result: Calibration) -> None:
    """Print the samples, the numbers and the rating."""
    table = Table(box=None, padding=(0, 1), header_style="bold", expand=True)
    for name in ("sample", "right", "given", "error", ""):
        table.add_column(name, justify="left" if name in ("sample", "") else "right", no_wrap=True)
    table.add_column("reason", ratio=1, no_wrap=True, overflow="ellipsis")
    for sample in result.samples:
        mark = ("✓", "green") if sample.within_tolerance else ("✗", "red")
        cells = (sample.id, number(sample.expected, 0), number(sample.actual, 0), number(sample.error, 0))
        table.add_row(*map(Text, cells), Text(mark[0], style=mark[1]), Text(printable(" ".join(sample.notes.split()))))
    console, summary = Console(), result.summary
    console.print(table)
    correlation = "undefined" if summary.correlation is None else f"{summary.correlation:.2f}"
    line = (
        f"\n{summary.judge}: {summary.passed} of {summary.total} within tolerance, mean error "
        f"{number(summary.mean_absolute_error)}, largest {number(summary.largest_error)}, "
        f"bias {number(summary.bias)}, correlation {correlation}"
        + (f", spread between runs {deviation(summary.spread)}" if summary.spread is not None else "")
        + f"; {counted(summary.calls, 'call')}, {money(summary.cost_usd)}"
    )
    console.print(Text(printable(line)))
    style = {"excellent": "green", "good": "green", "fair": "yellow"}.get(result.rating, "red")
    console.print(Text.assemble(("rating: ", "bold"), (result.rating, style), f". {result.recommendation}"))


def print_resistance(result: Resistance) -> None:
    """Print which attacks raised the judge's mark."""
    click.echo(f"a worthless answer scores {number(result.undisturbed, 0)}; with an attack it scores:")
    words = {True: "raised", False: "resisted", None: "no verdict"}
    for attack in result.attacks:
        click.echo(f"  {number(attack.value, 0):>4}  {words[attack.moved]:<10}  {attack.name}")
    click.echo(f"{result.judge}: {result.moved} of {len(result.attacks)} attacks raised the mark")
