"""Providers that the user wrote: functions, files, packages of Node's and programs."""

from __future__ import annotations

import json
import re
import shlex
from typing import Any

from fairtrial.foreign.suites import FileRef
from fairtrial.tracks.interchange.importers._promptfoo.code import CodeFile
from fairtrial.tracks.interchange.importers._promptfoo.files import Folder, MissingFileError
from fairtrial.tracks.interchange.importers._promptfoo.notes import Notes
from fairtrial.tracks.interchange.importers._promptfoo.prompts import JAVASCRIPT


class OwnCode:
    """Makes targets of the user's own providers."""

    def __init__(self, folder: Folder, notes: Notes, code: CodeFile) -> None:
        self._folder, self._notes, self._code = folder, notes, code

    def target(self, name: str, config: dict[str, Any], suffix: str) -> dict[str, Any] | None:
        """Return the target of a provider that the user wrote: a program, a function, a package or a file."""
        if name.startswith("exec:"):
            return self._command(name)
        if name.startswith(JAVASCRIPT):
            made = self._code.code_provider(name.removeprefix(JAVASCRIPT), config)
            return {"target": f"python:{made}", "id": "function"}
        return self._package(name, config) if name.startswith("package:") else self._in_file(name, config, suffix)

    def _package(self, name: str, config: dict[str, Any]) -> dict[str, Any]:
        """Return the target of a provider that is in a package of Node's."""
        package, _, function = name.removeprefix("package:").rpartition(":")
        settings = json.loads(json.dumps(config, default=str))
        made = self._code.package_provider(package, function, self._folder.path, settings)
        self._notes.differs("code in JavaScript is run with `node`, TypeScript with `npx tsx`: install Node.js")
        return {"target": f"python:{made}", "id": name}

    def _in_file(self, name: str, config: dict[str, Any], suffix: str) -> dict[str, Any] | None:
        """Return the target of a provider that is in a file of the user's."""
        path = re.sub(r"^(python:|javascript:)?(file://)?", "", name)
        path, _, function = path.partition(suffix)
        try:
            file = self._folder.find(f"{path}{suffix}")[0]
        except MissingFileError as error:
            self._notes.lost(f"provider {name}", f"{error}; add the file and import again")
            return None
        settings = json.loads(json.dumps(config, default=str))
        if suffix == ".py":
            made = self._code.provider(file, function.lstrip(":") or "call_api", settings)
        else:
            made = self._code.node_provider(file, function.lstrip(":"), settings)
            self._notes.differs("code in JavaScript is run with `node`, TypeScript with `npx tsx`: install Node.js")
        return {"target": f"python:{made}", "id": name}

    def _command(self, name: str) -> dict[str, Any] | None:
        try:
            command = shlex.split(name.removeprefix("exec:"))
        except ValueError:
            command = []
        if not command:
            self._notes.lost(f"provider {name}", "its command cannot be read; write it as a `command` target")
            return None
        words: list[Any] = []
        for word in command:
            path = self._folder.path / word
            words.append(FileRef(path) if path.is_file() and not word.startswith("/") else word)
        self._notes.differs("a program gets the prompt as its last argument, without promptfoo's options and context")
        return {"target": "command", "id": name, "options": {"command": words, "prompt": "argument"}}
