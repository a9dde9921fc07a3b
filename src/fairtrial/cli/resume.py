"""`fairtrial resume`, and what `retry` shares with it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from fairtrial.cli.options import (
    allow_many_files,
    json_option,
    keep_collector_calm,
    load_dotenv_of,
    open_store,
    option,
    output_option,
    quiet_option,
    store_option,
    work_quietly,
)

if TYPE_CHECKING:
    from fairtrial.store.todo import Mode


def going_on(mode: Mode, help_text: str) -> click.Command:
    """A command that works on a stored run."""

    @click.command(help=help_text)
    @click.argument("run", default="latest")
    @option("--concurrency", type=click.IntRange(min=1), help="Calls under way at once.")
    @option("--timeout", type=click.FloatRange(min=0, min_open=True), help="Seconds for one request.")
    @option("--budget-usd", type=click.FloatRange(min=0), help="Stop before the whole run has cost more.")
    @output_option
    @store_option
    @json_option
    @quiet_option
    def command(
        run: str, outputs: tuple[str, ...], store: str | None, as_json: bool, quiet: bool, **overrides: Any
    ) -> int:
        from fairtrial.cli.finish import check_outputs, exit_code, finish
        from fairtrial.cli.watch import watcher
        from fairtrial.workflows.resume import aresume, aresume_series

        opened = open_store(store)
        load_dotenv_of(run, opened)
        check_outputs(outputs)
        keep_collector_calm()
        allow_many_files()
        if mode == "resume" and opened.series_of(run)[0].series_id is not None:
            watch = partial(watcher, quiet=quiet)
            series = work_quietly(
                aresume_series(run, store=opened, overrides=overrides, watch=lambda part: watch(part=part))
            )
            code = finish(series[-1], outputs=outputs, as_json=as_json, quiet=quiet, series=series)
            return max(code, *(exit_code(one.status) for one in series))
        work = aresume(run, store=opened, mode=mode, overrides=overrides, watch=watcher(quiet=quiet))
        return finish(work_quietly(work), outputs=outputs, as_json=as_json, quiet=quiet)

    return command


command = going_on(
    "resume",
    "Go on with RUN (an id, a prefix of one, or `latest`). What is answered is not asked again; "
    "what is answered but not scored is scored. Of a series, the runs that are missing are made too.",
)
