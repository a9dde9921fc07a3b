"""`fairtrial tag`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fairtrial.cli.options import json_option, open_store, option, print_json, store_option

if TYPE_CHECKING:
    from fairtrial.store import Store


@click.command()
@click.argument("run", required=False)
@click.argument("name", required=False)
@option("--delete", is_flag=True, help="Forget a name: `fairtrial tag --delete NAME`.")
@store_option
@json_option
def command(run: str | None, name: str | None, delete: bool, store: str | None, as_json: bool) -> None:
    """Give RUN (or a series) a NAME that works wherever its id does; without arguments, list the names.

    A name that another run has moves to this one: `fairtrial tag latest main` after every release.
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
            raise click.UsageError(f"no run is called `{name or run}`" if name is None else "--delete takes one name")
        said = {"deleted": run}
    else:
        said = _set(opened, run, name)
    if as_json:
        print_json(said)
    else:
        click.echo(", ".join(f"{key} {value}" for key, value in said.items()), err=True)


def _set(opened: Store, run: str, name: str | None) -> dict[str, str]:
    if name is None:
        raise click.UsageError("how shall the run be called? `fairtrial tag RUN NAME`")
    from fairtrial.store.naming import check_tag

    check_tag(opened, name)
    records = opened.find_runs(run)
    series = records[0].series_id if len(records) > 1 else None
    before = opened.set_tag(name, records[0].id, series)
    now = series or records[0].id
    moved = {"before": before} if before and before != now else {}
    return {"tag": name, "series" if series else "run": now, **moved}
