"""`fairtrial scorers`."""

from __future__ import annotations

import msgspec
from rich.table import Table

from fairtrial.cli.console import Console
from fairtrial.cli.documents import print_json
from fairtrial.core import registry


def list_scorers(as_json: bool) -> None:
    """Print the guides of all scorers."""
    guides = {name: scorer.guide for name, scorer in sorted(registry.parts("scorers").items())}
    if as_json:
        print_json({name: msgspec.to_builtins(guide) for name, guide in guides.items()})
        return
    table = Table(box=None, padding=(0, 1), header_style="bold")
    for column in ("scorer", "scale", "reproducibility", "runs", "best for"):
        table.add_column(column)
    for name, guide in guides.items():
        table.add_row(name, guide.scale, guide.reproducibility, guide.runs, guide.best_for)
    Console().print(table)
