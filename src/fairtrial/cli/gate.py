"""`fairtrial gate`."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from fairtrial.cli.options import json_option, open_store, option, own_scale, print_json, store_option

if TYPE_CHECKING:
    from fairtrial.analyse.gate import Gate

_STYLES = {"passed": "green", "failed": "red", "cannot tell": "yellow"}


@click.command()
@click.argument("run", default="latest")
@option("--min-score", type=float, metavar="X", help="Every arm must have at least this.")
@option("--against", metavar="RUN", help="No arm may be worse than in this run, series or tag.")
@option("--margin", type=click.FloatRange(min=0), help="The loss that is bearable: 5 points; 0 with --these-cases.")
@option("--min-coverage", type=click.FloatRange(0, 100), default=95.0, show_default=True, help="Scored trials, %.")
@option("--arm", "arms", multiple=True, metavar="A", help="Only this arm; may be repeated.")
@option("--metric", default="", metavar="M", help="Look at this metric instead of the score.")
@option("--largest", type=click.FloatRange(min=0, min_open=True), help="No case can differ by more than this.")
@option(
    "--unsure",
    type=click.Choice(["pass", "fail", "101"]),
    default="101",
    show_default=True,
    help="How it ends when nobody can tell: exit 0, 100 or 101.",
)
@option("--these-cases", is_flag=True, help="Ask about these very cases: means, no intervals.")
@option("-o", "--output", "outputs", multiple=True, metavar="FILE", help="Write it: .md .junit.xml .json")
@store_option
@json_option
def command(
    run: str,
    min_score: float | None,
    against: str | None,
    margin: float | None,
    min_coverage: float,
    arms: tuple[str, ...],
    metric: str,
    largest: float | None,
    unsure: Literal["pass", "fail", "101"],
    these_cases: bool,
    outputs: tuple[str, ...],
    store: str | None,
    as_json: bool,
) -> int:
    """Pass or fail RUN, for CI: exit 0 passed, 100 failed, 101 cannot tell (--unsure).

    A minimum is met when the whole 95 % interval is above it. A regression is ruled out when the whole 95 % interval of
    the difference, the one that `compare` prints, lies above −margin. Both must hold whatever failures would have been
    worth. Where $GITHUB_STEP_SUMMARY is
    set, a summary is added to it.
    """
    from fairtrial.analyse.gate import Terms, gate
    from fairtrial.analyse.score_table import find_sources

    renderers = [_renderer(output, metric) for output in outputs]
    terms = Terms(
        min_score=own_scale(min_score, metric),
        margin=own_scale(margin, metric),
        largest=own_scale(largest, metric),
        unsure=unsure,
        min_coverage=min_coverage / 100,
        metric=metric,
        arms=arms,
        these_cases=these_cases,
    )
    opened = open_store(store)
    other = find_sources([against], opened)[0] if against else None
    found = gate(find_sources([run], opened)[0], other, terms)
    for output, render in zip(outputs, renderers, strict=True):
        _write(Path(output), render(found))
    _summarise(found)
    if as_json:
        from fairtrial.reports.json import gate_document

        print_json(gate_document(found, metric))
    else:
        print_gate(found)
    return found.exit_code


def _renderer(output: str, metric: str) -> Callable[[Gate], str]:
    """How a file is written, by its name; refused before anything is done."""
    name = output.lower()
    if name.endswith(".md"):
        from fairtrial.reports.md import render_gate

        return render_gate
    if name.endswith(".xml"):
        from fairtrial.reports.junit import render_gate as render_junit

        return render_junit
    if name.endswith(".json"):
        import msgspec

        from fairtrial.reports.json import gate_document

        return lambda found: msgspec.json.encode(gate_document(found, metric)).decode()
    raise click.UsageError(f"{output}: the name must end in .md, .junit.xml or .json")


def _write(path: Path, text: str, mode: str = "w") -> None:
    from fairtrial.core.errors import FairtrialError

    try:
        with path.open(mode, encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise FairtrialError(f"{path} cannot be written: {error.strerror or error}") from None


def _summarise(found: Gate) -> None:
    """GitHub shows what is added to this file on the page of the job."""
    if target := os.environ.get("GITHUB_STEP_SUMMARY"):
        from fairtrial.reports.md import render_gate

        _write(Path(target), render_gate(found), "a")


def print_gate(found: Gate) -> None:
    """Every check, and the result, for people."""
    from rich.text import Text

    from fairtrial.analyse.gate import gate_line
    from fairtrial.cli.console import Console
    from fairtrial.core.text import printable

    console = Console(highlight=False)
    for check in found.checks:
        console.print(Text(printable(gate_line(check)), style=_STYLES[check.result]))
    for note in found.notes:
        console.print(Text(printable(note), style="yellow"))
    ends = {0: " (--unsure pass: exit 0)", 100: " (--unsure fail: exit 100)"} if found.result == "cannot tell" else {}
    shown = f"gate {found.result}{ends.get(found.exit_code, '')}"
    console.print(Text(shown, style=f"bold {_STYLES[found.result]}"))
