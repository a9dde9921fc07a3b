"""`fairtrial rescore`."""

from __future__ import annotations

import json
from typing import Any

import click

from fairtrial.cli.asking import load_dotenv_of
from fairtrial.cli.finish import Ending, check_outputs
from fairtrial.cli.start import open_store, run_coroutine
from fairtrial.cli.watch import watcher
from fairtrial.engine.engines import where_of
from fairtrial.workflows.resume import arescore, use_scoring


def rescore_run(
    run: str,
    scorer: str | None,
    judge: str | None,
    scoring: int | None,
    outputs: tuple[str, ...],
    store: str | None,
    engine: str,
    workers: int | None,
    as_json: bool,
    quiet: bool,
    plain: bool,
    **overrides: Any,
) -> int:
    """Score the stored answers of a run again, or return to an earlier scoring."""
    opened = open_store(store)
    load_dotenv_of(run, opened)
    check_outputs(outputs)
    ending = Ending(outputs=outputs, as_json=as_json, quiet=quiet, plain=plain)
    if scoring is not None:
        if scorer or judge:
            raise click.UsageError(
                "--scoring selects an existing scoring and cannot be combined with --scorer or --judge"
            )
        earlier = use_scoring(run, scoring, store=opened)
        return ending.report(earlier)
    work = arescore(
        run,
        scorer=scorer_spec(scorer),
        judge=judge,
        overrides=overrides,
        store=opened,
        watch=watcher(quiet=quiet),
        where=where_of(engine, workers),
    )
    return ending.report(run_coroutine(work), timed=True)


def scorer_spec(text: str | None) -> dict[str, object] | None:
    """Parse the --scorer option: a scorer's name, or JSON with options."""
    if text is None:
        return None
    if not text.lstrip().startswith("{"):
        return {"type": text}
    try:
        value = json.loads(text)
    except ValueError as error:
        raise click.UsageError(f"--scorer is not valid JSON: {error}") from None
    return dict(value)
