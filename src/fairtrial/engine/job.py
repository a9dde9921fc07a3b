"""The work of one session on a run, and why it may stop early."""

from __future__ import annotations

from pathlib import Path

import msgspec

from fairtrial.core.experiment import Arm
from fairtrial.core.functions import Functions
from fairtrial.core.settings import Settings
from fairtrial.core.variables import Variables
from fairtrial.store.todo import Mode


class Where(msgspec.Struct, frozen=True):
    """Where trials are carried out; `workers` are processes."""

    engine: str = "local"  # or ray, or ray:ADDRESS
    workers: int | None = None


HERE = Where()


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """One session's work on a run."""

    run_id: str
    plan_id: str
    series_id: str | None
    arms: tuple[Arm, ...]
    settings: Settings
    variables: Variables
    folder: Path  # paths in the suite are relative to it
    functions: Functions = {}  # given in Python, without an importable name
    mode: Mode
    fresh: bool = False  # nothing of the run is stored yet, so no lookups are needed
    judged: bool = False  # whether any answer will need a judge
    workspaces: Path | None = None  # where workspaces of this run that are kept go
    journals: Path | None = None  # where the journals of agents' sessions are
    stopped: str | None = None  # why the run stopped early before, if it did
    where: Where = HERE


class Halt(msgspec.Struct, frozen=True):
    """Why a run stopped early; `unusable` means that it cannot continue as configured."""

    reason: str
    unusable: bool = False
    interrupted: bool = False
    decided: bool = False  # the question is answered, so nothing is missing
    unreadable: bool = False  # the next cases cannot be read
    workerless: bool = False  # no worker is left
