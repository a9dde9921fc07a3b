"""`fairtrial tools`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from fairtrial.analyse.offer_rates import RateChange
from fairtrial.analyse.run import Run
from fairtrial.analyse.tool_report import ArmToolReport, Confusion, ToolReport, has_offers, tool_report
from fairtrial.analyse.version_gains import VersionGain
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
from fairtrial.cli.tables import short_names, shortened
from fairtrial.core.errors import FairtrialError
from fairtrial.core.private import write_shared
from fairtrial.present.words.tools import (
    TOOL_COLUMNS,
    arm_sentences,
    confusion_heading,
    gain_sentence,
    notes_on,
    rate_cell,
    tool_cells,
)
from fairtrial.present.words.versions import (
    CHANGE_COLUMNS,
    change_cells,
    rest_words,
    shown_changes,
    text_lines,
    version_sentence,
    without_server,
)
from fairtrial.reports.tools import document, render

_CONFUSED = 12  # tools up to which a matrix can be read in 80 columns
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
    for version in report.versions:
        _print_version(console, version, report.metric)
    for arm in report.arms:
        console.print()
        _print_arm(console, arm)
    notes = notes_on(report)
    if notes:
        console.print()
    for note in notes:
        print_wrapped(console, note, QUIET, hang=2)
    pairs = bool(report.gains or report.versions)
    compare = [(f"fairtrial compare {report.run_id}", "pair by pair, with tests")] if pairs else []
    print_commands(
        Console(stderr=True),
        [(f"fairtrial tools {report.run_id} -o TOOLS.md", "the same for a README"), *compare],
    )


def _print_version(console: Console, gain: VersionGain, metric: str) -> None:
    style = VERDICT_STYLES.get(gain.score.verdict, "") if gain.score else ""
    print_wrapped(console, version_sentence(gain, metric), f"bold {style}".strip(), hang=2)
    for line in text_lines(gain.what):
        print_wrapped(console, line, indent=3, hang=2)
    changes = shown_changes(gain)
    if changes:
        print_lines(console, table_lines(_change_columns(changes, console.page_width)))
    if rest := rest_words(gain):
        print_wrapped(console, rest, QUIET, indent=3)


def _change_columns(changes: Sequence[RateChange], width: int) -> list[Column]:
    """Return the table of differences; names give way to numbers where it is too wide."""
    short = without_server(changes)
    rows = list(zip(*(change_cells(change, short) for change in changes), strict=True))
    columns = [
        Column(head, cells(texts), right=place > 1)
        for place, (head, texts) in enumerate(zip(CHANGE_COLUMNS, rows, strict=True))
    ]
    over = total_width(columns) - (width - 3)
    if over > 0:
        room = max(14, columns[0].width - over)
        names = short_names(list(rows[0]), room)
        columns[0] = Column(columns[0].head, cells(names))
        over = total_width(columns) - (width - 3)
    if over > 0:
        texts = [shortened(text, max(16, columns[1].width - over)) for text in rows[1]]
        columns[1] = Column(columns[1].head, cells(texts))
    return columns


def _print_arm(console: Console, arm: ArmToolReport) -> None:
    print_wrapped(console, arm.arm, "bold")
    if arm.tools:
        print_lines(console, table_lines(_tool_columns(arm, console.page_width)))
    for line in arm_sentences(arm):
        print_wrapped(console, f"• {line}", indent=1, hang=2)
    if arm.confusion is not None and len(arm.confusion.called) > 1:
        console.print()
        said = confusion_heading(arm, _CONFUSED)
        heading = "asked for (rows), called (columns), in trials" + (f"; {said}" if said else "")
        print_wrapped(console, heading, "dim")
        print_lines(console, table_lines(_confusion_columns(arm.confusion.among(_CONFUSED), console.page_width)))


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


def _confusion_columns(confusion: Confusion, width: int) -> list[Column]:
    """Return the matrix with numbered columns, as names are long."""
    numbers = {name: str(number) for number, name in enumerate(confusion.called, 1)}
    names = [f"{numbers[name]} {name}" if name in numbers else f"  {name}" for name in confusion.expected]
    more = [name for name in confusion.called if name not in confusion.expected]
    rows = [*confusion.counts, *([0] * len(confusion.called) for _ in more)]
    columns = [
        Column(numbers[name], cells([str(row[place] or "·") for row in rows]), right=True)
        for place, name in enumerate(confusion.called)
    ]
    labels = [*names, *(f"{numbers[name]} {name}" for name in more)]
    room = width - 3 - total_width(columns)
    return [Column("", cells(shortened(label, max(16, room)) for label in labels)), *columns]
