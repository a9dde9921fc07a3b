"""Results of other tools become ordinary runs: which files they are, and which of their logs are new."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from fairtrial.analyse.run import Run
from fairtrial.config import variables_of
from fairtrial.core.errors import FairtrialError
from fairtrial.core.ids import canonical_json, dated_id
from fairtrial.core.score import Scale
from fairtrial.core.variables import Variables
from fairtrial.foreign.misfit import MISFITS, reason_of
from fairtrial.foreign.results import Columns, Log, reader_of, recognise
from fairtrial.foreign.source import Source
from fairtrial.store import Store
from fairtrial.store.imports import ImportedRun, attempts_at, find_imported
from fairtrial.tracks.interchange.import_log import ImportChoice, LogWriter
from fairtrial.tracks.interchange.results._frame import frame_log, is_frame
from fairtrial.tracks.interchange.values import name_of


class Import(NamedTuple):
    """One log and what became of it."""

    run: Run
    happened: Literal["imported", "already there", "older attempt"]
    origin: dict[str, Any]
    files: tuple[str, ...] = ()  # of the log
    replaced: tuple[str, ...] = ()  # runs of earlier attempts that were removed


def import_all(
    data: Any,
    *,
    store: Store,
    format: str | None = None,
    columns: Columns | None = None,
    scales: Mapping[str, Scale] | None = None,
) -> list[Import]:
    """Import files, folders or a data frame; every log in them becomes a run."""
    choice = ImportChoice(columns or Columns(), dict(scales or {}))
    logs = [frame_log(data, choice.columns)] if is_frame(data) else _logs(data, format, choice.columns)
    variables = variables_of()
    done = [import_one(log, choice, store, variables) for log in _newest_attempts_first(list(logs))]
    if not done:
        raise FairtrialError("there are no results in these files: nothing was imported")
    return done


def _newest_attempts_first(logs: Sequence[Log]) -> list[Log]:
    """Return the logs in the order of time; those with a newer attempt among them come last, and are not imported."""
    newest: dict[tuple[str, str, str], float] = {}
    for log in logs:
        attempt = (log.tool, log.lineage, log.part)
        newest[attempt] = max(newest.get(attempt, 0.0), log.created or 0.0)

    def is_older(log: Log) -> bool:
        return bool(log.lineage) and (log.created or 0.0) < newest[log.tool, log.lineage, log.part]

    return sorted(logs, key=lambda log: (is_older(log), log.created or 0.0))


# -- which files, which format --------------------------------------------------------------------


def _logs(data: Any, format: str | None, columns: Columns) -> Iterator[Log]:
    paths = [data] if isinstance(data, str | Path) else list(data)
    by_format: dict[str, list[Source]] = {}
    seen: set[Path] = set()
    for path in map(Path, paths):
        for source, named in _files(path):
            if source.path.resolve() in seen:
                continue
            seen.add(source.path.resolve())
            found = format or recognise(source)
            if found is None and named and (columns.case or columns.arm):
                found = "table"  # columns that the user names make it one
            if found is None and named:
                source.check_first_line()
                raise FairtrialError(
                    f"{source.path.name} is not recognised as results of a tool: say what it is with --format, or give "
                    "a table with columns for case, arm and score (--case, --arm, --score)"
                )
            source.release()
            if found is not None:
                by_format.setdefault(found, []).append(source)
    for name, sources in by_format.items():
        yield from _read(name, sources, columns)


def _read(name: str, sources: Sequence[Source], columns: Columns) -> Iterator[Log]:
    try:
        yield from reader_of(name).read(sources, columns)
    except MISFITS as error:
        raise _misfit(name, sources, error) from error


def _misfit(name: str, sources: Sequence[Source], error: Exception) -> FairtrialError:
    files = ", ".join(source.path.name for source in sources[:3])
    return FairtrialError(f"{files} does not have the structure of {name} results: {reason_of(error)}")


def _files(path: Path) -> Iterator[tuple[Source, bool]]:
    """Yield the files that a path stands for, and whether the user named them."""
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.is_file() and not file.name.startswith("."))
        yield from ((Source(file), False) for file in files)
    elif path.is_file():
        yield Source(path), True
    else:
        raise FairtrialError(f"{path} is not there: give a file or a folder with results")


# -- one log --------------------------------------------------------------------------------------


def import_one(log: Log, choice: ImportChoice, store: Store, variables: Variables) -> Import:
    """Import one log, unless it is there already."""
    key = canonical_json([log.tool, log.part, [s.sha256 for s in log.sources], log.lineage, choice])
    digest = hashlib.sha256(key).digest()
    run_id = dated_id(log.created, digest)
    files = tuple(name_of(source.path.name) for source in log.sources)
    known = find_imported(store, run_id)
    if known is not None and known.status != "running":
        return Import(Run(store, known), "already there", known.origin or {}, files)
    older: list[str] = []
    if log.lineage:
        for record, origin in attempts_at(store, log.tool, log.lineage):
            if origin.get("part", "") == log.part and origin.get("choice") == choice.shown():
                if record.created_at > (log.created or 0.0) or (
                    record.created_at == log.created and record.status == "completed"
                ):
                    return Import(Run(store, record), "older attempt", origin, files)
                older.append(record.id)
    target = ImportedRun(store, run_id, f"imported-{digest.hex()[:32]}", older)
    writer = LogWriter(log, choice, store, variables, target)
    with store.lock(run_id):
        try:
            origin = writer.write()
        except MISFITS as error:
            target.discard()
            raise _misfit(log.tool, log.sources, error) from error
        except BaseException:
            target.discard()
            raise
    return Import(Run(store, store.run_of_id(run_id)), "imported", origin, files, target.replaced)
