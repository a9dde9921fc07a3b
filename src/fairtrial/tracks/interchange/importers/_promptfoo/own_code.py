"""Providers that the user wrote: functions, files, packages of Node's and programs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from fairtrial.foreign.suites import FileRef
from fairtrial.tracks.interchange.importers._promptfoo.conversion import NODE, Conversion
from fairtrial.tracks.interchange.importers._promptfoo.prompts import JAVASCRIPT


def target(at: Conversion, name: str, config: dict[str, Any], suffix: str) -> dict[str, Any] | None:
    """Return the target of a provider that the user wrote: a program, a function, a package or a file."""
    if name.startswith("exec:"):
        return _command(at, name)
    if name.startswith(JAVASCRIPT):
        made = at.code.code_provider(name.removeprefix(JAVASCRIPT), config)
        return {"target": f"python:{made}", "id": "function"}
    return _package(at, name, config) if name.startswith("package:") else _in_file(at, name, config, suffix)


def _package(at: Conversion, name: str, config: dict[str, Any]) -> dict[str, Any]:
    """Return the target of a provider that is in a package of Node's."""
    package, _, function = name.removeprefix("package:").rpartition(":")
    settings = json.loads(json.dumps(config, default=str))
    made = at.code.package_provider(package, function, at.folder.path, settings)
    at.notes.differs(NODE)
    return {"target": f"python:{made}", "id": name}


def _in_file(at: Conversion, name: str, config: dict[str, Any], suffix: str) -> dict[str, Any]:
    """Return the target of a provider that is in a file of the user's."""
    path = re.sub(r"^(python:|javascript:)?(file://)?", "", name)
    path, _, function = path.partition(suffix)
    file = at.folder.find(f"{path}{suffix}")[0]
    settings = json.loads(json.dumps(config, default=str))
    if suffix == ".py":
        made = at.code.provider(file, function.lstrip(":") or "call_api", settings)
    else:
        made = at.code.node_provider(file, function.lstrip(":"), settings)
        at.notes.differs(NODE)
    return {"target": f"python:{made}", "id": name}


def _command(at: Conversion, name: str) -> dict[str, Any] | None:
    _, command = at.folder.command(name.removeprefix("exec:"))
    if not command:
        at.notes.lost(f"provider {name}", "its command cannot be read; write it as a `command` target")
        return None
    words = [FileRef(word) if isinstance(word, Path) else word for word in command]
    at.notes.differs("a program gets the prompt as its last argument, without promptfoo's options and context")
    return {"target": "command", "id": name, "options": {"command": words, "prompt": "argument"}}
