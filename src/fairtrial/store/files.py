"""Files of trials by content: created while scoring, such as screenshots, and what agents changed in workspaces."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import select

from fairtrial.core.file import File
from fairtrial.core.place import Place, place_of
from fairtrial.store import schema
from fairtrial.store.rows import WORKSPACE, changes_name
from fairtrial.store.store import Store


def attachments(
    store: Store, run_id: str, *, first: int = 0, count: int | None = None, place: Place | None = None
) -> dict[Place, dict[str, str]]:
    """Return the hashes of a run's screenshots by trial and name; of a slice of its cases, or of one trial."""
    table = schema.attachments
    query = select(table).where(table.c.run_id == run_id, table.c.case_position >= first)
    query = query.where(table.c.name != WORKSPACE, table.c.name.not_like(f"{WORKSPACE}/%"))
    if count is not None:
        query = query.where(table.c.case_position < first + count)
    if place is not None:
        query = query.where(*schema.at(table, place))
    hashes: dict[Place, dict[str, str]] = {}
    for row in store.fetch_dicts(query.order_by(*table.primary_key)):
        hashes.setdefault(place_of(row), {})[row["name"]] = row["sha256"]
    return hashes


def stored_changes(store: Store, run_id: str, place: Place, turn: int | None = None) -> File | None:
    """Return what an agent changed in its workspace in a trial, as it is stored; None if that is not known."""
    attached, files = schema.attachments, schema.files
    query = (
        select(files.c.media, files.c.body)
        .join(attached, attached.c.sha256 == files.c.sha256)
        .where(attached.c.run_id == run_id, attached.c.name == changes_name(turn), *schema.at(attached, place))
    )
    return next((File(name=WORKSPACE, media=media, body=body) for media, body in store.fetch(query)), None)


def kept_workspaces(store: Store, run_id: str) -> Path:
    """Return where the workspaces of a run that are kept on disk are: next to the store."""
    return _beside(store) / "workspaces" / run_id


def kept_journals(store: Store, run_id: str) -> Path:
    """Return where the journals of agents' sessions that have not ended are: next to the store."""
    return _beside(store) / "journals" / run_id


def _beside(store: Store) -> Path:
    file = Path(store.path)
    return (file.parent if file.is_file() else Path(".fairtrial")).resolve()


def delete_with_files(store: Store, run_id: str) -> None:
    """Delete a run and what was kept on disk for it; files go first, so that whoever is killed can delete it again."""
    _delete_kept_files(store, run_id)
    store.delete_run(run_id)


def _delete_kept_files(store: Store, run_id: str) -> None:
    for folder in (kept_workspaces(store, run_id), kept_journals(store, run_id)):
        shutil.rmtree(folder, ignore_errors=True)


def scored_by(store: Store, run_id: str, scoring: int, names: Sequence[str], *, among: int | None = None) -> bool:
    """Return whether one of these scorers has scored any answer of a run; `among` limits this to its first cases."""
    table = schema.scores
    conditions = [table.c.run_id == run_id, table.c.scoring == scoring, table.c.scorer.in_(names)]
    if among is not None:
        conditions.append(table.c.case_position < among)
    return store.fetch_value(select(table.c.scorer).where(*conditions).limit(1)) is not None


def contents(store: Store, hashes: Sequence[str]) -> dict[str, tuple[str, bytes]]:
    """Return (media type, bytes) by hash."""
    rows = store.fetch_dicts(select(schema.files).where(schema.files.c.sha256.in_(hashes)))
    return {row["sha256"]: (row["media"], row["body"]) for row in rows}
