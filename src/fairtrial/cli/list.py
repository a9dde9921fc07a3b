"""`fairtrial list`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fairtrial.cli.options import json_option, open_store, option, print_json, store_option

if TYPE_CHECKING:
    from fairtrial.analyse.summary import RunSummary

_COLUMNS = ("run", "suite", "status", "arms", "best", "scored", "started")


@click.command()
@option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="Show the newest N runs.")
@store_option
@json_option
def command(limit: int, store: str | None, as_json: bool) -> None:
    """List the runs in the store, newest first."""
    from fairtrial.analyse import Run
    from fairtrial.reports.json import document

    opened = open_store(store)
    records = opened.runs()
    tags: dict[str, list[str]] = {}
    for name, run_id in sorted(opened.tags().items()):
        tags.setdefault(run_id, []).append(name)
    summaries = [Run(opened, record).summary() for record in records[:limit]]
    if as_json:
        print_json({"runs": [{**document(summary), "tags": tags.get(summary.run_id, [])} for summary in summaries]})
        return
    if not records:
        click.echo("No runs in this store yet; `fairtrial run SUITE` starts one.")
        return
    from fairtrial.cli.console import Console
    from fairtrial.cli.tables import table

    rows = [_cells(summary, tags) for summary in summaries]
    Console(highlight=False).print(table(_COLUMNS, rows, names=("suite",)))
    if len(records) > limit:
        click.echo(f"and {len(records) - limit} older runs (--limit N shows more)", err=True)


def _cells(summary: RunSummary, tags: dict[str, list[str]]) -> list[str]:
    from datetime import datetime

    from fairtrial.analyse.wording.runs import number

    means = [arm.aggregate.mean for arm in summary.arms if arm.aggregate.mean is not None]
    return [
        "\n".join([summary.run_id, *_id_lines(summary, tags)]),
        summary.suite,
        summary.status,
        str(len(summary.arms)),
        number(max(means)) if means else "–",
        f"{sum(arm.scored for arm in summary.arms)}/{sum(arm.trials for arm in summary.arms)}",
        datetime.fromtimestamp(summary.created_at).astimezone().strftime("%y-%m-%d %H:%M"),
    ]


def _id_lines(summary: RunSummary, tags: dict[str, list[str]]) -> list[str]:
    """Return the lines below a run's id: its names, its series and the series' names."""
    series = summary.series_id
    names = [f"  {tag}" for tag in tags.get(summary.run_id, ())]
    if series is None:
        return names
    return [*names, f"  of {series}", *(f"  {tag}" for tag in tags.get(series, ()))]
