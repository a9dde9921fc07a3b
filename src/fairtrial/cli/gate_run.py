"""`fairtrial gate SUITE`: run what a change can affect, reuse the rest, and gate the result."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import click
import msgspec

from fairtrial import pipeline
from fairtrial.analyse.run import Run
from fairtrial.cli.asking import load_dotenv
from fairtrial.cli.start import raise_open_file_limit, run_coroutine, tune_garbage_collector
from fairtrial.cli.watch import watcher
from fairtrial.config import RunOptions
from fairtrial.config.advice import ending_models
from fairtrial.store import Store


class GatedRun(NamedTuple):
    """A run for the gate; `not_run` says why it has no complete answers where nothing could be asked."""

    run: Run
    not_run: str = ""


def is_suite(name: str) -> bool:
    """Return whether the argument is the file of a suite, not a run."""
    return Path(name).suffix.lower() in (".yaml", ".yml", ".json") and Path(name).is_file()


def run_for_gate(suite: str, store: Store, *, replay: bool, repeats: int | None, quiet: bool) -> GatedRun:
    """Run a suite with stored answers wherever they are still valid; without keys, with stored answers only."""
    tune_garbage_collector()
    raise_open_file_limit()
    load_dotenv(suite)
    options = RunOptions(cache=True, repeats=repeats)
    loaded = pipeline.load(suite, options, placeholders=True)
    missing = sorted(loaded.variables.assumed)
    if not missing:
        loaded = pipeline.load(suite, options)
    if missing or replay:
        reason = f"{', '.join(missing)} is not set" if missing else "--replay"
        click.echo(f"{reason}: only stored answers are used, nothing is asked", err=True)
        loaded.settings = msgspec.structs.replace(loaded.settings, replay=True)
    for known in ending_models(loaded):
        click.echo(known.line, err=True)
    run = run_coroutine(pipeline.arun(loaded, store=store, watch=watcher(quiet=quiet)))
    return GatedRun(run, _not_run(run, missing))


def _not_run(run: Run, missing: list[str]) -> str:
    """Say why a run that may not ask anything is not complete; empty if it is, or may."""
    if not run.settings.get("replay"):
        return ""
    arms = run.summary().arms
    trials = sum(arm.trials for arm in arms)
    absent = trials - sum(arm.scored for arm in arms)  # of answers or of verdicts; others were not looked for any more
    why = f"{', '.join(missing)} is not set (forks get no secrets)" if missing else "--replay asks nothing"
    return f"not run: {absent} of {trials} answers are not stored, and {why}" if absent else ""
