"""`fairtrial audit`: the tasks of a suite, each tried in the ways that are known to go wrong."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.text import Text

from fairtrial import pipeline
from fairtrial.cli.console import Console
from fairtrial.cli.documents import print_json
from fairtrial.cli.finish import why_not_writable
from fairtrial.cli.start import run_coroutine
from fairtrial.cli.tables import table
from fairtrial.config import RunOptions
from fairtrial.core.errors import FairtrialError
from fairtrial.text.printable import counted, printable
from fairtrial.tracks.audit.auditing import audit_suite
from fairtrial.tracks.audit.page import write_report
from fairtrial.tracks.audit.result import Audit
from fairtrial.tracks.audit.words import MARKS, STATUSES, TITLES, grouped, headline, marks, sentence

_MOST = 40  # rows of the table; of more cases, only those of which something is said are shown
_STYLES = {"finding": "bold", "missing": "yellow", "unchecked": "dim"}


def audit_tasks(
    suite: Path,
    cases: tuple[str, ...],
    limit: int | None,
    output: Path | None,
    fail_on: str,
    as_json: bool,
    quiet: bool,
    **how: Any,
) -> int:
    """Audit a suite, print what was found, and return 1 if it is something to fail on."""
    if output is not None and (reason := why_not_writable(output)):
        raise FairtrialError(f"{output} cannot be written: {reason}")
    loaded = pipeline.load(suite, RunOptions(cases=cases, limit=limit), placeholders=True)
    tried: dict[str, Any] = {"at_once": how.pop("concurrency"), "seconds": how.pop("timeout"), **how}
    tried["done"] = None if quiet or as_json else _Progress()
    result = run_coroutine(audit_suite(loaded, **tried))
    if output is not None:
        write_report(result, output)
    if as_json:
        print_json(document(result))
    elif not quiet:
        print_audit(result)
    failing = STATUSES[: STATUSES.index(fail_on) + 1] if fail_on in STATUSES else ()
    return int(any(result.of(status) for status in failing))


class _Progress:
    """One line that shows how far it is, on a terminal."""

    def __init__(self) -> None:
        self._shown = sys.stderr.isatty()

    def __call__(self, done: int, total: int) -> None:
        if self._shown:
            click.echo(f"\r{done} of {total} tried ", nl=done >= total, err=True)


def document(audit: Audit) -> dict[str, Any]:
    """Return the audit as one JSON document, with its sentences."""
    rows = [{**msgspec.to_builtins(row), "message": sentence(row)} for row in audit.rows]
    counts = {status: len(audit.of(status)) for status in ("sound", *STATUSES)}
    probes = [{"name": name, "title": TITLES[name]} for name in audit.probes]
    head = {"suite": audit.suite, "sound": audit.sound, "headline": headline(audit), "counts": counts}
    return {**head, "probes": probes, "notes": list(audit.notes), "rows": rows}


def print_audit(audit: Audit) -> None:
    """Print every case with every probe, what is wrong, and what to do."""
    console = Console()
    console.print(Text(printable(f"{audit.suite} · {headline(audit)}"), style="bold"))
    console.print()
    shown = marks(audit)
    hidden = 0
    if len(shown) > _MOST:
        worth = [one for one in shown if "x" in one[1]][:_MOST]
        shown, hidden = worth, len(shown) - len(worth)
    if shown:
        columns = ("case", *map(str, range(1, len(audit.probes) + 1)))
        console.print(table(columns, [[name, *cells] for name, cells in shown], names=("case",)))
    if hidden:
        console.print(Text(f"{counted(hidden, 'more case')} not shown here", style="dim"))
    for number, name in enumerate(audit.probes, 1):
        console.print(Text(f"{number:>3} {name}: {TITLES[name]}", style="dim"))
    console.print(Text(f"    {MARKS}", style="dim"))
    for status in STATUSES:
        for line in grouped(audit.of(status)):
            console.print()
            console.print(Text(printable(line), style=_STYLES[status]))
    for note in audit.notes:
        console.print()
        console.print(Text(printable(note), style="dim"))
