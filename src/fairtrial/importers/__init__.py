"""Importers for suites of other tools, one per file; they report what cannot be carried over."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from fairtrial.core.errors import FairtrialError

NO_JUDGE = "choose:a-model"  # not a provider: `validate` rejects it until the user has chosen a model


class Imported(NamedTuple):
    """An imported suite, and what could not be carried over from the original."""

    suite: dict[str, Any]
    findings: list[str]
    differences: list[str] = []  # settings that mean something else here


class Foreign(NamedTuple):
    """Another tool's configuration that can be run directly."""

    tool: str
    imported: Imported


def read_foreign(path: Path) -> Foreign | None:
    """Read another tool's configuration, recognised by its keys; None if it is not one."""
    from fairtrial.importers.k_eval import KEval, looks_like_k_eval

    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return None  # the suite loader reports the error
    return Foreign("k-eval", KEval().read(path)) if looks_like_k_eval(text) else None


def read_text(file: Path) -> str:
    """Return a file's text, or raise an error with the reason."""
    try:
        return file.read_text("utf-8-sig")
    except UnicodeDecodeError:
        raise FairtrialError(f"{file} is not a UTF-8 text file") from None
    except OSError as error:
        raise FairtrialError(f"{file} cannot be read: {error.strerror}") from None


def read_yaml(file: Path) -> Any:
    """Return a file's content as YAML, or raise an error with the reason."""
    try:
        return yaml.safe_load(read_text(file))
    except yaml.YAMLError as error:
        raise FairtrialError(f"{file} is not valid YAML: {error}") from None


@contextmanager
def expecting(file: Path, what: str) -> Iterator[None]:
    """Turn a crash on a file with an unexpected structure into an error message."""
    try:
        yield
    except (TypeError, AttributeError, KeyError, ValueError, IndexError, csv.Error) as error:
        raise FairtrialError(
            f"{file} does not have the structure of {what}: {type(error).__name__}: {error}"
        ) from error


def suite_text(imported: Imported) -> str:
    """Return the suite as YAML."""
    return yaml.safe_dump(imported.suite, sort_keys=False, allow_unicode=True, width=110)


def write_suite(imported: Imported, path: Path, *, source: str, tool: str) -> None:
    """Write the suite, with comments at the top about what could not be carried over."""
    lines = [f"# Imported from {source} ({tool})."]
    lines += [f"# Not carried over: {' '.join(finding.split())}" for finding in imported.findings]
    lines += [f"# Different here: {' '.join(difference.split())}" for difference in imported.differences]
    try:
        path.write_text("\n".join(lines) + "\n" + suite_text(imported), "utf-8")
    except OSError as error:
        raise FairtrialError(f"{path} cannot be written: {error.strerror}") from None
