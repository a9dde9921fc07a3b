"""`replay:FOLDER`: answers from files made by any tool: FOLDER/CASE/PREFIX_*.json, one per repeat."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

from fairtrial.core.answer import Answer, Failure, Request
from fairtrial.core.experiment import TargetSpec
from fairtrial.core.target import Options, Target

_NUMBER = re.compile(r"(\d+)")


class ReplayOptions(Options, frozen=True, kw_only=True):
    """`prefix` selects the files of a case: `polite` reads polite_1.json, polite_2.json, …"""

    prefix: str


class Replay(Target):
    """Reads answers from files instead of asking a model. A missing file is a failure, not an empty answer."""

    options_type: ClassVar[type[Options]] = ReplayOptions

    def __init__(self, spec: TargetSpec, options: ReplayOptions, folder: Path) -> None:
        super().__init__(spec, options, folder)
        self._prefix, self._root = options.prefix, folder / spec.model

    @classmethod
    def check(cls, spec: TargetSpec, options: Any, folder: Path) -> Iterable[str]:
        if not (folder / spec.model).is_dir():
            yield f"there is no folder {folder / spec.model}"

    def sent(self, request: Request) -> dict[str, Any]:
        """Return nothing: answers are read from files."""
        return {}

    async def ask(self, request: Request) -> Answer | Failure:
        files = answer_files(self._root / request.case_id, self._prefix)
        if request.repeat >= len(files):
            pattern = f"{request.case_id}/{self._prefix}_*"
            there = "is only 1 file" if len(files) == 1 else f"are only {len(files)} files"
            return Failure(kind="refused", message=f"there {there} for {pattern}")
        try:
            text = await asyncio.to_thread(files[request.repeat].read_text, "utf-8")
        except (OSError, UnicodeDecodeError) as error:
            return Failure(kind="malformed", message=f"{files[request.repeat].name} cannot be read: {error}")
        return Answer(text=text, model=self.spec.id)


def answer_files(folder: Path, prefix: str) -> list[Path]:
    """Return the files with answers to one case that have this prefix, in numerical order."""
    pattern = re.compile(rf"{re.escape(prefix)}(_[^_]+\.(json|txt|md)|\.json)")
    files = [path for path in folder.iterdir() if pattern.fullmatch(path.name)] if folder.is_dir() else []
    return sorted(files, key=lambda path: [int(part) if part.isdigit() else part for part in _NUMBER.split(path.stem)])
