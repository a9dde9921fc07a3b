"""Every Eval Ever for a run with several targets: one record per line."""

from __future__ import annotations

from typing import IO

import msgspec

from fairtrial.analyse.run import Run
from fairtrial.tracks.interchange.exports.eee import records


def write(run: Run, file: IO[str]) -> None:
    """Write the record of every target."""
    for record in records(run):
        file.write(msgspec.json.encode(record).decode() + "\n")
