"""What commands that ask models do first: load keys from `.env`, say which models end."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fairtrial.cli.options import ENV_ADDRESSES
from fairtrial.config.keys import env_files
from fairtrial.providers.retirement import retiring

if TYPE_CHECKING:
    from fairtrial.store import Store
    from fairtrial.store.records import RunRecord


def load_dotenv(suite: str | Path | None = None) -> None:
    """Load keys from `.env` next to the suite and in this folder; variables that are already set win."""
    context = click.get_current_context(silent=True)
    confirm = bool(context and context.meta.get(ENV_ADDRESSES))
    for file in env_files(_folder_of(suite), confirm=confirm):
        file.check()
        for notice in file.notices:
            click.echo(f"note: {notice}", err=True)
        if file.refused:
            names = ", ".join(file.refused)
            click.echo(
                f"note: {names} in {file.path} ignored: a .env file can only set keys; use the environment", err=True
            )
        for name, value in file.process_values.items():
            os.environ.setdefault(name, value)


def load_dotenv_of(run: str, store: Store) -> None:
    """Load keys as for the original run: from the folder of its suite and from this folder."""
    load_dotenv(Path(store.plan(store.find_run(run).plan_id).folder))


def _folder_of(suite: str | Path | None) -> Path:
    path = Path(suite or ".")
    return path if path.is_dir() else path.parent


def say_what_ends(store: Store, record: RunRecord) -> None:
    """Say which models of a run end soon, or should have ended: it is about to ask them."""
    for known in retiring(arm.target for arm in store.arms(store.plan(record.plan_id))):
        click.echo(known.line, err=True)
