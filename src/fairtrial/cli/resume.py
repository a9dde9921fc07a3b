"""`fairtrial resume`, and the code that `retry` shares with it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from fairtrial.analyse.run import Run
from fairtrial.cli.finish import Ending, check_outputs, exit_code
from fairtrial.cli.options import (
    concurrency_option,
    load_dotenv_of,
    open_store,
    option,
    raise_open_file_limit,
    run_coroutine,
    say_what_ends,
    session_options,
    tune_garbage_collector,
)
from fairtrial.cli.watch import watcher
from fairtrial.engine.engines import where_of
from fairtrial.store.trial_query import TrialQuery, matching_trials
from fairtrial.workflows.resume import aresume, aresume_series, refuse_imported

if TYPE_CHECKING:
    from fairtrial.store import Store
    from fairtrial.store.todo import Mode


def make_resume_command(mode: Mode, help_text: str) -> click.Command:
    """Return the click command that continues a stored run in the given mode."""

    @click.command(help=help_text)
    @click.argument("run", default="latest")
    @concurrency_option
    @option("--timeout", type=click.FloatRange(min=0, min_open=True), help="Time limit for one request, in seconds.")
    @option("--budget-usd", type=click.FloatRange(min=0), help="Budget for the whole run; stop before it is exceeded.")
    @session_options
    def command(
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

    return command


def _nothing_to_retry(name: str, store: Store) -> Run | None:
    """Return the run if it has ended and no trial of it lacks a score; else None."""
    run = Run.find(name, store)
    if run.status == "running" or matching_trials(store, run.record, TrialQuery(failed=True, unscored=True)):
        return None
    return run


command = make_resume_command(
    "resume",
    "Continue RUN (an id, a prefix of one, or `latest`). Stored answers are not requested again; those without a "
    "score are scored. In a series, missing runs are also made.",
)
