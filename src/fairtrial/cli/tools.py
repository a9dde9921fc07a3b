"""`fairtrial tools`."""

from __future__ import annotations

from pathlib import Path

import click
from rich.text import Text

from fairtrial.analyse.run import Run
from fairtrial.analyse.tool_report import ArmToolReport, ToolReport, has_offers, tool_report
from fairtrial.cli.console import Console
from fairtrial.cli.documents import print_json
from fairtrial.cli.layout import (
    QUIET,
    VERDICT_STYLES,
    Column,
    cells,
    print_commands,
    print_lines,
    print_wrapped,
    table_lines,
    total_width,
)
from fairtrial.cli.start import open_store
from fairtrial.cli.tables import short_names
from fairtrial.core.errors import FairtrialError
from fairtrial.core.private import write_shared
from fairtrial.present.words.tools import TOOL_COLUMNS, arm_sentences, gain_sentence, notes_on, rate_cell, tool_cells
from fairtrial.reports.tools import document, render

_ENDINGS = (".md", ".markdown")


def show_tools(run: str, output: str | None, store: str | None, as_json: bool) -> None:
    """Print or write what servers, tools and skills added to a run."""
    if output not in (None, "-") and not str(output).endswith(_ENDINGS):
        raise click.UsageError(f"-o {output}: name a file that ends in .md, or - for standard output")
    stored_run = Run.find(run, open_store(store))
    if not has_offers(stored_run):
        raise FairtrialError(
            f"run {stored_run.id} has no MCP servers and no skills: give a condition `mcp` or `skills`"
        )
    report = tool_report(stored_run)
    if as_json:
        print_json(document(report))
    elif output == "-":
        click.echo(render(report), nl=False)
    elif output:
        try:
            write_shared(Path(output), render(report))
        except OSError as error:
            raise FairtrialError(f"{output} cannot be written: {error.strerror}") from None
        click.echo(f"written: {output}", err=True)
    else:
        _print(report)


def _print(report: ToolReport) -> None:
    console = Console()
    for gain in report.gains:
        style = VERDICT_STYLES.get(gain.score.verdict, "")
        print_wrapped(console, gain_sentence(gain, report.metric), f"bold {style}".strip(), hang=2)
    for arm in report.arms:
        console.print()
        _print_arm(console, arm)
    notes = notes_on(report)
    if notes:
        console.print()
    for note in notes:
        print_wrapped(console, note, QUIET, hang=2)
    compare = [(f"fairtrial compare {report.run_id}", "pair by pair, with tests")] if report.gains else []
    print_commands(
        Console(stderr=True),
        [(f"fairtrial tools {report.run_id} -o TOOLS.md", "the same for a README"), *compare],
    )


def _print_arm(console: Console, arm: ArmToolReport) -> None:
    print_wrapped(console, arm.arm, "bold")
    if arm.tools:
        print_lines(console, table_lines(_tool_columns(arm, console.page_width)))
    for line in arm_sentences(arm):
        print_wrapped(console, f"• {line}", indent=1, hang=2)
    if arm.confusion is not None and len(arm.confusion.called) > 1:
        console.print()
        console.print(Text(" asked for (rows), called (columns), in trials", "dim"))
        print_lines(console, table_lines(_confusion_columns(arm)))


def _tool_columns(arm: ArmToolReport, width: int) -> list[Column]:
    rows = [tool_cells(tool, rate_cell) for tool in arm.tools]
    columns = [
        Column(head, cells(texts), right=head in ("tokens", "calls"))
        for head, texts in zip(TOOL_COLUMNS, map(list, zip(*rows, strict=True)), strict=True)
    ]
    if total_width(columns) >= width:
        columns = [column for column in columns if column.head != "calls"]  # `worked` says it too
    room = width - 1 - (total_width(columns) - columns[0].width)
    names = short_names([row[0] for row in rows], max(12, room))
    return [Column("tool", cells(names)), *columns[1:]]


def _confusion_columns(arm: ArmToolReport) -> list[Column]:
    """Return the matrix with numbered columns, as names are long."""
    confusion = arm.confusion
    assert confusion is not None
    numbers = {name: str(number) for number, name in enumerate(confusion.called, 1)}
    names = [f"{numbers[name]} {name}" if name in numbers else f"  {name}" for name in confusion.expected]
    more = [name for name in confusion.called if name not in confusion.expected]
    rows = [*confusion.counts, *([0] * len(confusion.called) for _ in more)]
    first = Column("", cells([*names, *(f"{numbers[name]} {name}" for name in more)]))
    return [
        first,
        *(
            Column(numbers[name], cells([str(row[place] or "·") for row in rows]), right=True)
            for place, name in enumerate(confusion.called)
        ),
    ]
