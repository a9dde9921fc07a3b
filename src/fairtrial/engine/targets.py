"""Build a session's targets from their specs, open them before anything is spent, and close them at the end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from fairtrial.core import registry
from fairtrial.core.errors import FairtrialError, TargetUnusableError
from fairtrial.core.experiment import TargetSpec
from fairtrial.core.functions import Functions
from fairtrial.core.options import read
from fairtrial.core.settings import target_specs
from fairtrial.core.target import Target
from fairtrial.core.variables import Variables
from fairtrial.engine.job import Job


def build_target(spec: TargetSpec, folder: Path, functions: Functions | None = None) -> Target:
    """Build a target from its spec."""
    cls = registry.load("targets", spec.kind)
    options = read(cls.options_type, spec.options, [])
    target: Target = cls(spec, options, folder)
    target.functions = functions or {}
    return target


@asynccontextmanager
async def open_targets(
    specs: Sequence[TargetSpec],
    folder: Path,
    variables: Variables,
    *,
    concurrency: int,
    functions: Functions | None = None,
) -> AsyncIterator[dict[str, Target]]:
    """Open these targets and yield them by id; a single error lists every target that cannot be used."""
    targets = {spec.id: build_target(spec, folder, functions) for spec in specs}
    try:
        opened = await asyncio.gather(
            *(target.open(concurrency) for target in targets.values()), return_exceptions=True
        )
        errors = [error for error in opened if isinstance(error, BaseException)]
        for error in errors:
            if not isinstance(error, FairtrialError):
                raise error
        if errors:
            raise TargetUnusableError("\n".join(dict.fromkeys(variables.hide(str(error)) for error in errors)))
        yield targets
    finally:
        await asyncio.gather(*(target.close() for target in targets.values()), return_exceptions=True)


@asynccontextmanager
async def targets_of(job: Job) -> AsyncIterator[dict[str, Target]]:
    """Open what a session calls and yield it by id; to score stored answers again, no target of an arm is opened."""
    rescores = job.mode == "rescore"
    closed = {arm.target.id: Target(arm.target, None, job.folder) for arm in job.arms} if rescores else {}
    specs = target_specs(() if rescores else job.arms, job.settings)
    concurrency = job.settings.concurrency
    async with open_targets(
        specs, job.folder, job.variables, concurrency=concurrency, functions=job.functions
    ) as opened:
        yield closed | opened
