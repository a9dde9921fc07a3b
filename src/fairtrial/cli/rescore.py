"""`fairtrial rescore`."""

from __future__ import annotations

from typing import Any

import click

from fairtrial.cli.options import (
    json_option,
    load_dotenv_of,
    open_store,
    option,
    output_option,
    quiet_option,
    store_option,
    work_quietly,
)


@click.command()
@click.argument("run", default="latest")
@option("--scorer", metavar="S", help='A scorer\'s name, or JSON: \'{"type": "numeric", "tolerance": 0.05}\'.')
@option("--judge", metavar="T", help="Another judge, as provider:model.")
@option("--scoring", type=click.IntRange(min=0), metavar="N", help="Go back to an earlier scoring; 0 is the first.")
@option("--concurrency", type=click.IntRange(min=1), help="Calls under way at once.")
@option("--budget-usd", type=click.FloatRange(min=0), help="Another budget for the whole run.")
@output_option
@store_option
@json_option
@quiet_option
def command(
    run: str,
    scorer: str | None,
    judge: str | None,
    scoring: int | None,
    outputs: tuple[str, ...],
    store: str | None,
    as_json: bool,
    quiet: bool,
    **overrides: Any,
) -> int:
    """Score the stored answers of RUN anew, with another scorer, another judge, or as the suite says.

    Nobody is asked for new answers, and no verdict is bought twice: what a judge said of an answer, asked in the same
    way, is used again. The earlier scores stay in the store; the new ones count from now on.
    """
    from fairtrial.cli.finish import check_outputs, finish
    from fairtrial.cli.watch import watcher
    from fairtrial.workflows.resume import arescore, use_scoring

    opened = open_store(store)
    load_dotenv_of(run, opened)
    check_outputs(outputs)
    if scoring is not None:
        if scorer or judge:
            raise click.UsageError(
                "--scoring names a scoring that is there already: it goes without --scorer and --judge"
            )
        earlier = use_scoring(run, scoring, store=opened)
        return finish(earlier, outputs=outputs, as_json=as_json, quiet=quiet)
    work = arescore(
        run,
        scorer=scorer_spec(scorer),
        judge=judge,
        overrides=overrides,
        store=opened,
        watch=watcher(quiet=quiet),
    )
    return finish(work_quietly(work), outputs=outputs, as_json=as_json, quiet=quiet)


def scorer_spec(text: str | None) -> dict[str, object] | None:
    """A scorer from the command line: a name, or JSON."""
    if text is None:
        return None
    if not text.lstrip().startswith("{"):
        return {"type": text}
    import json

    try:
        value = json.loads(text)
    except ValueError as error:
        raise click.UsageError(f"--scorer is not JSON: {error}") from None
    return dict(value)
