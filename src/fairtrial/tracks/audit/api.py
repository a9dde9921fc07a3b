"""The verb `audit`, with its async twin."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fairtrial import pipeline
from fairtrial.api.given import AnySuite, load_given
from fairtrial.api.twins import sync_twin
from fairtrial.tracks.audit.auditing import AT_ONCE, REPEATS, SECONDS, audit_suite
from fairtrial.tracks.audit.result import Audit


async def aaudit(
    suite: AnySuite,
    *,
    probes: Sequence[str] = (),
    skip: Sequence[str] = (),
    repeats: int = REPEATS,
    concurrency: int = AT_ONCE,
    timeout: float = SECONDS,
) -> Audit:
    """Check the tasks of a suite before money is spent: solutions pass, doing nothing and known cheats fail.

    No target is asked. The suite's own code runs: setup commands, checks, solutions.

    Args:
        suite: A suite, its file, or a mapping with its keys.
        probes: Only these probes, such as `nothing`; default: all.
        skip: All probes but these.
        repeats: How often every solution must pass.
        concurrency: How many attempts are made at the same time.
        timeout: Seconds that an attempt may take, and its check.
    """
    # Nothing is asked: keys and other variables may be unset.
    is_file = isinstance(suite, str | Path)
    loaded = pipeline.load(Path(str(suite)), placeholders=True) if is_file else load_given(suite, None)
    return await audit_suite(loaded, probes=probes, skip=skip, repeats=repeats, at_once=concurrency, seconds=timeout)


audit = sync_twin(aaudit)
