"""`fairtrial export`."""

from __future__ import annotations

import sys
from io import StringIO

import click

from fairtrial.analyse.run import Run
from fairtrial.cli.documents import harmless
from fairtrial.cli.finish import check_outputs
from fairtrial.cli.output import is_obeyed
from fairtrial.cli.start import open_store
from fairtrial.core.errors import FairtrialError
from fairtrial.reports.export import export, send, write, write_text
from fairtrial.reports.format import Format
from fairtrial.reports.formats import NAMES, SERVICES, format_named


def export_run(run: str, outputs: tuple[str, ...], form: str | None, store: str | None) -> None:
    """Write a run to files, or send it to a service."""
    chosen = None if form is None else format_named(form)
    if chosen in SERVICES:
        assert chosen is not None
        stored_run = Run.find(run, open_store(store))
        for address in outputs or (None,):
            click.echo(f"sent to {send(stored_run, chosen, address)}", err=True)
        return
    if not outputs:
        raise click.UsageError("name a file with -o")
    if "-" in outputs and chosen is None:
        raise click.UsageError(f"-o - needs --format, one of {', '.join(NAMES)}")
    if outputs.count("-") > 1:
        raise click.UsageError("-o - can be given once")
    check_outputs([output for output in outputs if output != "-"], chosen)
    stored_run = Run.find(run, open_store(store))
    for output in outputs:
        if output == "-":
            assert chosen is not None
            _print(stored_run, chosen)
        else:
            click.echo(f"written: {export(stored_run, output, chosen)}", err=True)


def _print(run: Run, form: Format) -> None:
    """Write a run to standard output: the same bytes as in a file, unless a terminal or CI server would obey them."""
    if form.binary and sys.stdout.isatty():
        raise FairtrialError(f"{form.title} ({form.endings[0]}) is binary: send it to a file or a program")
    sys.stdout.flush()
    if not form.binary and is_obeyed(sys.stdout):
        write_text(run, form, _Harmless() if "json" in form.endings[0] else sys.stdout)
    else:
        write(run, form, sys.stdout.buffer)
    sys.stdout.flush()


class _Harmless(StringIO):
    """Standard output for JSON in which everything that would be obeyed is escaped: the JSON means the same."""

    def write(self, text: str) -> int:
        """Write the text, escaped."""
        return sys.stdout.write(harmless(text))
