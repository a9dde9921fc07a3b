"""What one session has to do on a run, and why it may stop before the end."""

from __future__ import annotations

from pathlib import Path

import msgspec

from fairtrial.core.experiment import Arm, Settings
from fairtrial.core.variables import Variables
from fairtrial.store.todo import Mode


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """One session's work on a run."""

    run_id: str
    plan_id: str
    series_id: str | None
    case_count: int
    arms: tuple[Arm, ...]
    settings: Settings
    variables: Variables
    folder: Path  # what paths in the suite are relative to
    mode: Mode
    fresh: bool = False  # nothing of the run is stored yet, so nothing needs to be looked up
    judged: bool = False  # whether any answer will need a judge
    stopped: str | None = None  # why the run had ended early, if it had


class Halt(msgspec.Struct, frozen=True):
    """Why a run stopped before its end; `unusable` means that it cannot go on as configured."""

    reason: str
    unusable: bool = False
    interrupted: bool = False
    decided: bool = False  # nothing is missing: the question is answered
