"""Suites of other tools, one reader per file; what cannot be carried over is said."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from fairtrial.core.errors import FairtrialError

NO_JUDGE = "choose:a-model"  # no such provider: `validate` refuses it until somebody has chosen


class Imported(NamedTuple):
    """A suite of ours, and what of the original has no place in it."""

    suite: dict[str, Any]
    findings: list[str]
    differences: list[str] = []  # where the same words mean something else here


class Foreign(NamedTuple):
    """A configuration of another tool that can be run as it is."""

    tool: str
    imported: Imported


def read_foreign(path: Path) -> Foreign | None:
    """Another tool's configuration, told from its keys; None where it is none."""
    from fairtrial.importers.k_eval import KEval, looks_like_k_eval

    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return None  # whoever loads it says what is wrong
    return Foreign("k-eval", KEval().read(path)) if looks_like_k_eval(text) else None


def read_text(file: Path) -> str:
    """A file's text, or a sentence why not."""
    try:
        return file.read_text("utf-8-sig")
    except UnicodeDecodeError:
        raise FairtrialError(f"{file} is not a text file in UTF-8") from None
    except OSError as error:
        raise FairtrialError(f"{file} cannot be read: {error.strerror}") from None


def read_yaml(file: Path) -> Any:
    """A file's content as YAML, or a sentence why not."""
    try:
        return yaml.safe_load(read_text(file))
    except yaml.YAMLError as error:
        raise FairtrialError(f"{file} is not YAML: {error}") from None


@contextmanager
def expecting(file: Path, what: str) -> Iterator[None]:
    """A file laid out otherwise than its tool writes it is a sentence, not a crash."""
    try:
        yield
    except (TypeError, AttributeError, KeyError, ValueError, IndexError, csv.Error) as error:
        raise FairtrialError(f"{file} is not laid out like {what}: {type(error).__name__}: {error}") from error


def suite_text(imported: Imported) -> str:
    """The suite as YAML."""
    return yaml.safe_dump(imported.suite, sort_keys=False, allow_unicode=True, width=110)


def write_suite(imported: Imported, path: Path, *, source: str, tool: str) -> None:
    """Write the suite with what could not be carried over as comments on top."""
    lines = [f"# Imported from {source} ({tool})."]
    lines += [f"# Not carried over: {' '.join(finding.split())}" for finding in imported.findings]
    lines += [f"# Different here: {' '.join(difference.split())}" for difference in imported.differences]
    try:
        path.write_text("\n".join(lines) + "\n" + suite_text(imported), "utf-8")
    except OSError as error:
        raise FairtrialError(f"{path} cannot be written: {error.strerror}") from None
