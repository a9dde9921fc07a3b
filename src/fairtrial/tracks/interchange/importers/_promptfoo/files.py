"""Files that a configuration refers to, and images in it that are written into files next to the suite."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
import shlex
from pathlib import Path
from typing import Any

import yaml

from fairtrial.core.errors import FairtrialError
from fairtrial.core.file import media_of
from fairtrial.core.trust import may_run_code
from fairtrial.foreign.suites import read_text
from fairtrial.tables.files import is_file
from fairtrial.text.printable import clipped, one_line
from fairtrial.tracks.interchange.importers._promptfoo.yaml12 import parse

PREFIX = "file://"
_IMAGES = "promptfoo_files"  # the folder of images
_DATA_URL = re.compile(r"data:[\w/+.-]+;base64,")
_GLOB = ("*", "?", "[")
_LONGEST_NAME = 200
_MAX_DEPTH = 16  # of references to references


class MissingFileError(Exception):
    """A file that cannot be read; the message says which, and why."""


class Folder:
    """The folder of a configuration."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def find(self, name: str) -> list[Path]:
        """Return the files that a reference means, which may be a pattern; raise MissingFileError if there are none."""
        name = name.removeprefix(PREFIX)
        try:
            paths = self._meant(name)
        except (OSError, ValueError, NotImplementedError):  # no file can have such a name, or match such a pattern
            paths = []
        if not paths:
            raise MissingFileError(f"there is no file {clipped(one_line(name), _LONGEST_NAME)}")
        if not may_run_code() and not all(path.resolve().is_relative_to(self.path.resolve()) for path in paths):
            raise MissingFileError(
                f"{name} is outside of the configuration's folder: copy it there, or import with --run-code"
            )
        return paths

    def _meant(self, name: str) -> list[Path]:
        if any(mark in name for mark in _GLOB):
            base = Path(name)
            root, pattern = (
                (Path(base.anchor), str(base.relative_to(base.anchor))) if base.is_absolute() else (self.path, name)
            )
            return sorted(path for path in root.glob(pattern.removeprefix("./")) if path.is_file())
        path = self.path / name
        if path.is_dir():
            return sorted(inner for inner in path.iterdir() if inner.is_file())
        return [path] if path.is_file() else []

    def text(self, name: str) -> str:
        """Return the text of a file; raise MissingFileError if it has none."""
        return _text(self.find(name)[0])

    def command(self, text: str) -> tuple[str, list[str | Path]]:
        """Return the program of a command, and all of its words with files of the folder as paths; "" if unreadable."""
        try:
            words = shlex.split(text)
        except ValueError:
            words = []
        return next(iter(words), ""), [
            path if is_file(path := self.path / word) and not word.startswith("/") else word for word in words
        ]

    def data(self, name: str) -> Any:
        """Return the content of a JSON, JSON Lines or YAML file; raise MissingFileError if it has none."""
        return load(self.find(name)[0])


def _text(path: Path) -> str:
    try:
        return read_text(path)
    except FairtrialError as error:
        raise MissingFileError(str(error)) from None


def load(path: Path) -> Any:
    """Return the content of a JSON, JSON Lines or YAML file; raise MissingFileError if it cannot be read."""
    text = _text(path)
    try:
        if path.suffix == ".jsonl":
            return [json.loads(line) for line in text.splitlines() if line.strip()]
        return json.loads(text) if path.suffix == ".json" else parse(text)
    except (ValueError, yaml.YAMLError) as error:
        raise MissingFileError(f"{path.name} cannot be read: {' '.join(str(error).split())[:120]}") from None


def dereferenced(value: Any, whole: Any, depth: int = 0) -> Any:
    """Return a configuration with every `$ref: '#/…'` in it replaced by what it refers to."""
    if isinstance(value, list):
        return [dereferenced(item, whole, depth) for item in value]
    if not isinstance(value, dict):
        return value
    reference = value.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/") and depth < _MAX_DEPTH:
        meant = whole
        for part in reference[2:].split("/"):
            meant = meant.get(part) if isinstance(meant, dict) else None
        if meant is not None:
            return dereferenced(meant, whole, depth + 1)
    return {key: dereferenced(item, whole, depth) for key, item in value.items()}


def resolve(value: Any, folder: Folder) -> Any:
    """Return a value with every `file://` to JSON or YAML in it read; raise MissingFileError if one cannot be."""
    if isinstance(value, str) and value.startswith(PREFIX):
        return folder.data(value)
    if isinstance(value, dict):
        return {key: resolve(item, folder) for key, item in value.items()}
    return [resolve(item, folder) for item in value] if isinstance(value, list) else value


def image_in(value: str) -> tuple[str, bytes] | None:
    """Return the image in a text and the name of its file; None if there is none."""
    text = "".join(_DATA_URL.sub("", value.strip(), count=1).split())
    try:
        body = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    media = media_of(body)
    stem = f"{_IMAGES}/{hashlib.sha256(body).hexdigest()[:12]}"
    return None if media is None else (f"{stem}.{media.rpartition('/')[2]}", body)
