"""`fairtrial gate`."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from fairtrial.cli.options import from_points, json_option, open_store, option, print_json, store_option

if TYPE_CHECKING:
    from fairtrial.analyse.gate import Gate, Terms
    from fairtrial.analyse.gate_plan import AgainstItself, GatePlan
    from fairtrial.analyse.score_table import Source

_STYLES = {"passed": "green", "failed": "red", "cannot tell": "yellow"}


@click.command()
@click.argument("run", default="latest")
@option("--min-score", type=float, metavar="X", help="Minimum score of every arm.")
@option("--against", metavar="RUN", help="No arm may be worse than in this run, series or tag.")
@option("--margin", type=click.FloatRange(min=0), help="Acceptable loss; default: 5 points, or 0 with --these-cases.")
@option(
    "--min-coverage",
    type=click.FloatRange(0, 100),
    default=95.0,
    show_default=True,
    help="Minimum percentage of scored trials.",
)
@option("--arm", "arms", multiple=True, metavar="A", help="Only this arm; may be repeated.")
@option("--metric", default="", metavar="M", help="Check this metric instead of the score.")
@option("--largest", type=click.FloatRange(min=0, min_open=True), help="Largest difference possible on one case.")
@option(
    "--unsure",
    type=click.Choice(["pass", "fail", "101"]),
    default="101",
    show_default=True,
    help="Exit code if nobody can tell: 0, 100 or 101.",
)
@option("--plan", is_flag=True, help="Say beforehand what a gate against RUN can decide, and decide nothing.")
@option("--aa", is_flag=True, help="Say how often this gate would contradict itself on unchanged input.")
@option("--repeats", type=click.IntRange(min=1), metavar="N", help="With --plan: answers to a case in the run to come.")
@option("--these-cases", is_flag=True, help="Treat these cases as all there are: compare means, without intervals.")
@option(
    "-o",
    "--output",
    "outputs",
    multiple=True,
    metavar="FILE",
    help="Write the result: .md .junit.xml .json; may be repeated.",
)
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
    plan: bool,
    aa: bool,
    repeats: int | None,
    these_cases: bool,
    outputs: tuple[str, ...],
    store: str | None,
    as_json: bool,
) -> int:
    """Pass or fail RUN, for CI: exit 0 passed, 100 failed, 101 cannot tell (--unsure).

    A minimum is met when the whole 95 % interval is above it. A regression is ruled out when the whole 95 % interval of
    the difference, as `compare` prints it, lies above −margin. Both must hold whatever scores the failed trials would
    have got. If $GITHUB_STEP_SUMMARY is set, a summary is added to that file.

    --plan and --aa take RUN as what is known about cases and noise: it needs two answers to a case (--repeats 2), or
    two runs (--runs 2). They try the gate on made-up merges, cost nothing, and exit 0.
    """
    from fairtrial.analyse.gate import Terms, gate
    from fairtrial.analyse.score_table import find_sources

    renderers = [_renderer(output, metric) for output in outputs]
    terms = Terms(
        min_score=from_points(min_score, metric),
        margin=from_points(margin, metric),
        largest=from_points(largest, metric),
        unsure=unsure,
        min_coverage=min_coverage / 100,
        metric=metric,
        arms=arms,
        these_cases=these_cases,
    )
    opened = open_store(store)
    if plan or aa:
        _foresee(find_sources([run], opened)[0], terms, plan=plan, aa=aa, repeats=repeats, as_json=as_json)
        return 0
    reference = find_sources([against], opened)[0] if against else None
    result = gate(find_sources([run], opened)[0], reference, terms)
    for output, render in zip(outputs, renderers, strict=True):
        _write(Path(output), render(result))
    _append_github_summary(result)
    if as_json:
        from fairtrial.reports.json import gate_document

        print_json(gate_document(result, metric))
    else:
        print_gate(result)
    return result.exit_code


def _foresee(source: Source, terms: Terms, *, plan: bool, aa: bool, repeats: int | None, as_json: bool) -> None:
    """Print what the gate can decide, and how often it would contradict itself."""
    from fairtrial.analyse.gate_plan import gate_against_itself, plan_gate

    planned = plan_gate(source, terms, repeats=repeats) if plan else None
    itself = gate_against_itself(source, terms) if aa else None
    if as_json:
        from fairtrial.reports.json import gate_outlook_document

        print_json(gate_outlook_document(planned, itself))
        return
    if planned:
        _print_plan(planned)
    if itself:
        _print_itself(itself)


def _print_plan(plan: GatePlan) -> None:
    from rich.text import Text

    from fairtrial.analyse.wording.gate_plans import COLUMNS, plan_advice, plan_line, plan_rows
    from fairtrial.cli.console import Console
    from fairtrial.cli.tables import table

    console = Console(highlight=False)
    for arm in plan.arms:
        console.print(Text(arm.arm, style="bold"), soft_wrap=True)
        console.print(Text(plan_line(arm, plan.margin)))
        console.print(table(COLUMNS, plan_rows(arm), names=COLUMNS[:1]))
        if advice := plan_advice(arm):
            console.print(Text(advice, style="yellow"))
        console.print()


def _print_itself(itself: AgainstItself) -> None:
    from rich.text import Text

    from fairtrial.analyse.wording.gate_plans import itself_lines
    from fairtrial.cli.console import Console
    from fairtrial.core.text import printable

    console = Console(highlight=False)
    for arm in itself.arms:
        console.print(Text(arm.arm, style="bold"), soft_wrap=True)
        for line in itself_lines(arm, itself.margin):
            console.print(Text(printable(line)))
        console.print()


def _renderer(output: str, metric: str) -> Callable[[Gate], str]:
    """Return the function that renders a file, by its extension; an unknown one is refused before anything is done."""
    name = output.lower()
    if name.endswith(".md"):
        from fairtrial.reports.md import render_gate

        return render_gate
    if name.endswith(".xml"):
        from fairtrial.reports.junit import render_gate as render_junit

        return render_junit
    if name.endswith(".json"):
        import msgspec

        from fairtrial.reports import SCHEMA_VERSION
        from fairtrial.reports.json import gate_document

        return lambda result: msgspec.json.encode(
            {"schema_version": SCHEMA_VERSION, **gate_document(result, metric)}
        ).decode()
    raise click.UsageError(f"{output}: the file name must end in .md, .junit.xml or .json")


def _write(path: Path, text: str, mode: str = "w") -> None:
    from fairtrial.core.errors import FairtrialError

    try:
        with path.open(mode, encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise FairtrialError(f"{path} cannot be written: {error.strerror or error}") from None


def _append_github_summary(result: Gate) -> None:
    """Append the result to $GITHUB_STEP_SUMMARY, which GitHub shows on the job's page."""
    if target := os.environ.get("GITHUB_STEP_SUMMARY"):
        from fairtrial.reports.md import render_gate

        _write(Path(target), render_gate(result), "a")


def print_gate(result: Gate) -> None:
    """Print every check and the result."""
    from rich.text import Text

    from fairtrial.analyse.gate import gate_line
    from fairtrial.cli.console import Console
    from fairtrial.core.text import printable

    console = Console(highlight=False)
    for check in result.checks:
        console.print(Text(printable(gate_line(check)), style=_STYLES[check.result]))
    for note in result.notes:
        console.print(Text(printable(note), style="yellow"))
    exit_notes = (
        {0: " (--unsure pass: exit 0)", 100: " (--unsure fail: exit 100)"} if result.result == "cannot tell" else {}
    )
    verdict = f"gate {result.result}{exit_notes.get(result.exit_code, '')}"
    console.print(Text(verdict, style=f"bold {_STYLES[result.result]}"))
