"""Importers for suites of other tools, one per file; they report what cannot be carried over."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import yaml

from fairtrial.core import registry
from fairtrial.core.errors import FairtrialError
from fairtrial.core.private import replacing
from fairtrial.core.providers import TO_CHOOSE
from fairtrial.core.variables import escape
from fairtrial.foreign.misfit import MISFITS, reason_of
from fairtrial.text.printable import paired
from fairtrial.text.yaml_text import read_yaml as read_yaml_text
from fairtrial.text.yaml_text import reason_of as reason_of_yaml

NO_JUDGE = TO_CHOOSE


class FileRef(NamedTuple):
    """A file of the original in an imported suite, where it is written relative to the suite."""

    path: Path
    form: str = "{}"  # what stands around the path

    def text(self, folder: Path | None) -> str:
        """Return the reference for a suite in this folder; without one, next to the file."""
        path = os.path.relpath(self.path, folder) if folder is not None else self.path.name
        return self.form.format(path)


class Reference(NamedTuple):
    """A program of the original that builds the model of a question; it is run in a sandbox, to certify the answer."""

    program: str
    call: str = ""  # a function in it, with its arguments; empty: the program itself
    arguments: dict[str, Any] = {}
    files: dict[str, bytes] = {}  # that it reads


class Imported(NamedTuple):
    """An imported suite, and what could not be carried over from the original."""

    suite: dict[str, Any]
    findings: list[str]
    differences: list[str] = []  # settings that mean something else here
    files: Mapping[str, bytes | list[str | FileRef]] = {}  # what must stand next to the suite: by name, texts in pieces
    references: dict[str, Reference] = {}  # by the id of the case
    keys: Mapping[str, str] = {}  # of the original, by where their values are in the suite; `*` is any part of a key

    def key_of(self, key: str) -> str:
        """Return the key of the original for a key of the suite; one that has no other name is the same."""
        parts = key.split(".")
        for end in range(len(parts), 0, -1):
            for pattern, own in self.keys.items():
                wanted = pattern.split(".")
                if len(wanted) == end and all(one in ("*", part) for one, part in zip(wanted, parts, strict=False)):
                    found = iter(part for one, part in zip(wanted, parts, strict=False) if one == "*")
                    return ".".join([*(next(found) if one == "*" else one for one in own.split(".")), *parts[end:]])
        return key


class Importer(Protocol):
    """Converts the suites of one tool."""

    def read(self, file: Path) -> Imported:
        """Return the suite in a file; what has no counterpart goes into `findings`."""


class Foreign(NamedTuple):
    """Another tool's configuration that can be run directly."""

    tool: str
    imported: Imported


def read_foreign(path: Path) -> Foreign | None:
    """Read another tool's configuration, recognised by its keys; None if it is not one."""
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return None  # the suite loader reports the error
    for name in registry.listed("run_directly"):
        importer = registry.load("run_directly", name)()
        if importer.recognises(text):
            return Foreign(name.replace("_", "-"), importer.read(path))
    return None


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
        return read_yaml_text(read_text(file))
    except yaml.YAMLError as error:
        raise FairtrialError(f"{file} is not valid YAML: {reason_of_yaml(error)}") from None


@contextmanager
def expecting(file: Path, what: str) -> Iterator[None]:
    """Turn a crash on a file with an unexpected structure into an error message."""
    try:
        yield
    except (*MISFITS, csv.Error) as error:
        raise FairtrialError(f"{file} does not have the structure of {what}: {reason_of(error)}") from error


def suite_text(imported: Imported, folder: Path | None = None) -> str:
    """Return the suite as YAML, for this folder."""
    suite = _with_paths(imported.suite, folder, in_suite=True)
    return yaml.safe_dump(suite, sort_keys=False, allow_unicode=True, width=110)


def _with_paths(value: Any, folder: Path | None, *, in_suite: bool = False) -> Any:
    if isinstance(value, FileRef):
        return escape(value.text(folder)) if in_suite else value.text(folder)
    if isinstance(value, str):
        return paired(value)
    if isinstance(value, dict):
        return {_with_paths(key, folder): _with_paths(item, folder, in_suite=in_suite) for key, item in value.items()}
    return [_with_paths(item, folder, in_suite=in_suite) for item in value] if isinstance(value, list) else value


def write_suite(imported: Imported, path: Path, *, source: str, tool: str) -> None:
    """Write the suite and its files, with comments at the top about what could not be carried over."""
    lines = [f"# Imported from {source} ({tool})."]
    lines += [f"# Not carried over: {' '.join(finding.split())}" for finding in imported.findings]
    lines += [f"# Different here: {' '.join(difference.split())}" for difference in imported.differences]
    contents: dict[Path, bytes] = {}
    for name, given in imported.files.items():
        body = given if isinstance(given, bytes) else paired("".join(_with_paths(given, path.parent))).encode()
        contents[path.parent / name] = body
    # The suite comes last: where there is one, all its files are there.
    contents[path] = (paired("\n".join(lines)) + "\n" + suite_text(imported, path.parent)).encode()
    for file, body in contents.items():
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            with replacing(file, private=False) as opened:
                opened.write(body)
        except OSError as error:
            raise FairtrialError(f"{file} cannot be written: {error.strerror}") from None
