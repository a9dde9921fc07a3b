"""`fairtrial resume` and `fairtrial retry`."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from fairtrial.analyse.run import Run
from fairtrial.cli.asking import load_dotenv_of, say_what_ends
from fairtrial.cli.finish import Ending, check_outputs, exit_code
from fairtrial.cli.start import open_store, raise_open_file_limit, run_coroutine, tune_garbage_collector
from fairtrial.cli.watch import watcher
from fairtrial.engine.engines import where_of
from fairtrial.store import Store
from fairtrial.store.todo import Mode
from fairtrial.store.trial_query import TrialQuery, matching_trials
from fairtrial.workflows.resume import aresume, aresume_series, refuse_imported


def continue_run(
    mode: Mode,
    run: str,
    outputs: tuple[str, ...],
    store: str | None,
    engine: str,
    workers: int | None,
    as_json: bool,
    quiet: bool,
    plain: bool,
    **overrides: Any,
) -> int:
    """Continue a run that was stopped (`resume`), or ask again where its calls failed (`retry`)."""
    where = where_of(engine, workers)
    opened = open_store(store)
    refuse_imported(opened.find_runs(run)[0], mode)
    load_dotenv_of(run, opened)
    check_outputs(outputs)
    ending = Ending(outputs=outputs, as_json=as_json, quiet=quiet, plain=plain)
    tune_garbage_collector()
    raise_open_file_limit()
    if mode == "retry" and (unneeded := _nothing_to_retry(run, opened)):
        click.echo(f"nothing to retry: every trial that was run in {unneeded.id} has a score", err=True)
        return ending.report(unneeded)
    say_what_ends(opened, opened.find_runs(run)[0])
    if mode == "resume" and opened.series_of(run)[0].series_id is not None:
        watch = partial(watcher, quiet=quiet)
        series = run_coroutine(
            aresume_series(run, store=opened, overrides=overrides, watch=lambda part: watch(part=part), where=where)
        )
        code = ending.report(series[-1], series=series)
        return max(code, *(exit_code(part.status) for part in series))
    work = aresume(run, store=opened, mode=mode, overrides=overrides, watch=watcher(quiet=quiet), where=where)
    return ending.report(run_coroutine(work), timed=True)


def _nothing_to_retry(name: str, store: Store) -> Run | None:
    """Return the run if it has ended and no trial of it lacks a score; else None."""
    run = Run.find(name, store)
    if run.status == "running" or matching_trials(store, run.record, TrialQuery(failed=True, unscored=True)):
        return None
    return run
