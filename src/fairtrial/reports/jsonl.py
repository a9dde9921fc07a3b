"""JSON Lines: one trial per line."""

from __future__ import annotations

from typing import IO

import msgspec

from fairtrial.analyse.run import Run
from fairtrial.reports.json import trial_document


def write(run: Run, file: IO[str]) -> None:
    """Write every trial, streamed."""
    for trial in run.trials():
        line = {"run_id": run.id, "suite": run.record.suite_name, **trial_document(trial)}
        file.write(msgspec.json.encode(line).decode() + "\n")
