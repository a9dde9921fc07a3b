"""Workspaces in suites: what they start from is packed, so that a run needs nothing but its store."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from fairtrial.agents.workspace.archive import ArchiveError, entries, pack, pack_git
from fairtrial.agents.workspace.gateway import address_of
from fairtrial.agents.workspace.sandbox import sandbox_problem
from fairtrial.config.case_document import WorkspaceEntry, listed
from fairtrial.config.document import SuiteDocument
from fairtrial.config.source import SuiteSource
from fairtrial.core.file import File, attachment_of
from fairtrial.core.folders import cache_folder
from fairtrial.core.options import Path as KeyPath
from fairtrial.core.trust import leave_out, may_run_code, within
from fairtrial.core.workspace import ARCHIVE, WorkspaceSpec

_PLAIN = ("keep", "timeout", "max_mb", "sandbox", "image", "processes", "memory_mb", "disk_mb")
_MB = 2**20


def own_fields(entry: WorkspaceEntry, folder: Path) -> dict[str, Any]:
    """Return what an entry says, as fields of a `WorkspaceSpec`; raise ValueError with what is wrong with it."""
    fields: dict[str, Any] = {name: value for name in _PLAIN if (value := getattr(entry, name)) is not None}
    if entry.files is not None or entry.git is not None:
        fields["files"] = msgspec.to_builtins([attachment_of(file) for file in _archives(entry, folder)])
    if entry.setup is not None:
        fields["setup"] = listed(entry.setup)
    if entry.network is not None:
        fields["network"] = _network(entry.network)
    if entry.read is not None:
        fields["read"] = [str(_existing(folder / name)) for name in listed(entry.read)]
    return fields


def resolve_workspace(
    source: SuiteSource, layers: Sequence[tuple[KeyPath, WorkspaceEntry | None]]
) -> WorkspaceSpec | None:
    """Return the workspace of an arm, where the most specific layer wins key by key; None if no layer says anything."""
    given = [(path, entry) for path, entry in layers if entry is not None]
    if not given:
        return None
    spec = WorkspaceSpec()
    for path, entry in given:
        try:
            spec = spec.with_own(own_fields(entry, source.folder))
        except ValueError as error:
            source.problem((*path, "workspace"), str(error))
    if problem := sandbox_problem(spec):
        source.problem((*given[-1][0], "workspace"), problem)
    return spec


def workspace_files(document: SuiteDocument, folder: Path) -> Iterator[File]:
    """Yield the archives that the workspaces of a suite start from, each with its content."""
    for entry in workspace_entries(document):
        yield from _archives(entry, folder)


def workspace_paths(document: SuiteDocument, folder: Path) -> set[Path]:
    """Return the files on disk that the workspaces of a suite start from."""
    paths: set[Path] = set()
    for entry in workspace_entries(document):
        for name in listed(entry.files or []):
            place = within(folder, name)
            paths |= {place / inner for inner, _ in entries(place)} if place.is_dir() else {place}
    return {path for path in paths if path.is_file()}


def workspace_entries(document: SuiteDocument) -> Iterable[WorkspaceEntry]:
    """Return every `workspace:` in a suite."""
    holders: list[Any] = [document, *document.targets, *document.conditions.values()]
    holders += [document.case_defaults, *document.cases]
    return [holder.workspace for holder in holders if holder.workspace is not None]


def _archives(entry: WorkspaceEntry, folder: Path) -> Iterator[File]:
    limit = int((entry.max_mb or WorkspaceSpec().max_mb) * _MB)
    try:
        if entry.git is not None and not may_run_code():
            leave_out(entry.git.url)
        elif entry.git is not None:
            local = folder / entry.git.url
            repository = str(local.resolve()) if local.is_dir() else entry.git.url
            clone = cache_folder() / "git" / hashlib.sha256(repository.encode()).hexdigest()[:20]
            body = pack_git(repository, entry.git.ref, limit, clone)
            yield File(name=f"{entry.git.url}@{entry.git.ref}", media=ARCHIVE, body=body)
        for name in listed(entry.files or []):
            path = within(folder, name)
            yield File(name=name, media=ARCHIVE, body=_packed(path, _stamp(path), limit))
    except ArchiveError as error:
        raise ValueError(str(error)) from None
    except OSError as error:
        raise ValueError(f"the files of the workspace cannot be read: {error}") from None


def _stamp(path: Path) -> tuple[Any, ...]:
    """Return what changes when a file or anything in a folder does."""
    if not path.is_dir():
        return (path.stat().st_mtime_ns, path.stat().st_size) if path.exists() else ()
    return tuple((name, status.st_mtime_ns, status.st_size, status.st_mode) for name, status in entries(path))


@lru_cache(maxsize=64)
def _packed(path: Path, stamp: tuple[Any, ...], limit: int) -> bytes:
    return pack(path, limit)


def _existing(path: Path) -> Path:
    if not path.exists():
        raise ValueError(f"there is no {path} to read in the sandbox")
    return path.resolve()


def _network(value: bool | str | list[str]) -> bool | str | list[str]:
    if isinstance(value, bool) or value == "model":
        return value
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    hosts = listed(value)
    for host in hosts:
        address_of(host)
    return hosts
