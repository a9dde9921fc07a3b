"""`fairtrial tag`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fairtrial.cli.options import open_store, option, print_json, store_options
from fairtrial.store.store import check_tag

if TYPE_CHECKING:
    from fairtrial.store import Store


@click.command()
@click.argument("run", required=False)
@click.argument("name", required=False)
@option("--delete", is_flag=True, help="Remove a name: `fairtrial tag --delete NAME`.")
@store_options
def command(run: str | None, name: str | None, delete: bool, store: str | None, as_json: bool) -> None:
    """Give RUN (or a series) a NAME that works wherever its id does; without arguments, list the names.

    A name that another run already has moves to this one: `fairtrial tag latest main` after every release.
    """
    opened = open_store(store)
    if run is None:
        tags = opened.tags()
        if as_json:
            print_json({"tags": tags})
        else:
            click.echo("\n".join(f"{tag}  {run_id}" for tag, run_id in sorted(tags.items())) or "no run has a name yet")
        return
    if delete:
        if name is not None or not opened.delete_tag(run):
            raise click.UsageError(
                f"no run has the name `{name or run}`" if name is None else "--delete takes one name"
            )
        result = {"deleted": run}
    else:
        result = _set_tag(opened, run, name)
    if as_json:
        print_json(result)
    else:
        click.echo(", ".join(f"{key} {value}" for key, value in result.items()), err=True)


def _set_tag(opened: Store, run: str, name: str | None) -> dict[str, str]:
    if name is None:
        raise click.UsageError("missing name; use `fairtrial tag RUN NAME`")

    check_tag(opened, name)
    records = opened.find_runs(run)
    series = records[0].series_id if len(records) > 1 else None
    previous = opened.set_tag(name, records[0].id, series)
    current = series or records[0].id
    moved = {"before": previous} if previous and previous != current else {}
    return {"tag": name, "series" if series else "run": current, **moved}
