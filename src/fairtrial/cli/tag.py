"""`fairtrial tag`."""

from __future__ import annotations

import click

from fairtrial.cli.documents import print_json
from fairtrial.cli.start import open_store
from fairtrial.store import Store
from fairtrial.store.tag_names import check_tag


def tag_run(run: str | None, name: str | None, delete: bool, store: str | None, as_json: bool) -> None:
    """Set, remove or list the names of runs."""
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
