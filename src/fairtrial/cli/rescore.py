"""`fairtrial rescore`."""

from __future__ import annotations

from typing import Any

import click

from fairtrial.cli.finish import Ending, check_outputs
from fairtrial.cli.options import (
    concurrency_option,
    load_dotenv_of,
    open_store,
    option,
    run_coroutine,
    session_options,
)
from fairtrial.cli.watch import watcher
from fairtrial.engine.engines import where_of
from fairtrial.workflows.resume import arescore, use_scoring


@click.command()
@click.argument("run", default="latest")
@option("--scorer", metavar="S", help='A scorer\'s name, or JSON: \'{"type": "numeric", "tolerance": 0.05}\'.')
@option("--judge", metavar="T", help="Use another judge, given as provider:model.")
@option("--scoring", type=click.IntRange(min=0), metavar="N", help="Return to an earlier scoring; 0 is the first.")
@concurrency_option
@option("--budget-usd", type=click.FloatRange(min=0), help="New budget for the whole run.")
@session_options
def command(
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
    """Score the stored answers of RUN again, with another scorer, another judge, or as the suite says.

    No new answers are requested, and no verdict is paid for twice: a verdict on the same answer and the same prompt is
    reused. The earlier scores stay in the store; the new ones become the run's current scores.
    """
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
    import json

    try:
        value = json.loads(text)
    except ValueError as error:
        raise click.UsageError(f"--scorer is not valid JSON: {error}") from None
    return dict(value)
