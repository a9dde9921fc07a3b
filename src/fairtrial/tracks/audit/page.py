"""An audit as a page, and as notebooks show it: the words of the terminal."""

from __future__ import annotations

from html import escape
from pathlib import Path

from fairtrial.core.errors import FairtrialError
from fairtrial.core.private import replacing
from fairtrial.present.charts.svg import safe
from fairtrial.present.notebook_table import block, heading, lines, table
from fairtrial.reports.html_render import render
from fairtrial.tracks.audit.result import Audit
from fairtrial.tracks.audit.words import MARKS, TITLES, advised, headline, marks

_MOST = 200  # rows of the table


def as_html(audit: Audit) -> str:
    """Show an audit: what is wrong, and every case with every probe."""
    rows = [(name, *cells) for name, cells in marks(audit)[:_MOST]]
    legend = [f"{number} {name}: {TITLES[name]}" for number, name in enumerate(audit.probes, 1)]
    return block(
        heading(headline(audit)),
        lines(advised(audit)),
        table(("case", *map(str, range(1, len(audit.probes) + 1))), rows),
        lines([*legend, MARKS, *audit.notes]),
    )


def write_report(audit: Audit, path: Path) -> None:
    """Write the audit as a page that needs nothing else."""
    title = f"{audit.suite}: {headline(audit)}"
    text = render("audit.html.j2", title=title, suite=audit.suite, shown=safe(as_html(audit)))
    try:
        with replacing(path) as file:
            file.write(text.encode())
    except OSError as error:
        raise FairtrialError(f"{escape(str(path))} cannot be written: {error.strerror or error}") from None
