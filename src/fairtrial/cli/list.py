"""`fairtrial list`."""

from __future__ import annotations

import click

from fairtrial.cli.options import json_option, open_store, option, print_json, store_option


@click.command()
@option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="The newest N runs.")
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
    from datetime import datetime

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from fairtrial.analyse.words import number

    table = Table(box=None, padding=(0, 1), header_style="bold")
    for name in ("run", "suite", "status", "arms", "best", "scored", "started"):
        table.add_column(name, no_wrap=name != "suite", overflow="fold")
    for summary in summaries:
        means = [arm.aggregate.mean for arm in summary.arms if arm.aggregate.mean is not None]
        table.add_row(
            "\n".join([summary.run_id, *(f"  {tag}" for tag in tags.get(summary.run_id, ()))]),
            Text(summary.suite),
            summary.status,
            str(len(summary.arms)),
            number(max(means)) if means else "–",
            f"{sum(arm.scored for arm in summary.arms)}/{sum(arm.trials for arm in summary.arms)}",
            datetime.fromtimestamp(summary.created_at).astimezone().strftime("%Y-%m-%d %H:%M"),
        )
    console = Console(highlight=False)
    if not records:
        console.print("There is no run in this store yet; `fairtrial run SUITE` makes one.")
        return
    console.print(table)
    if len(records) > limit:
        click.echo(f"and {len(records) - limit} older ones (--limit N)", err=True)
