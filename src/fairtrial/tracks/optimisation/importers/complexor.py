"""Import from ComplexOR: a folder for each problem, with samples of data and a function in gurobipy."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from fairtrial.core.errors import FairtrialError
from fairtrial.foreign.suites import Reference, read_text
from fairtrial.tracks.optimisation.importers._labelled import LabelledImporter, LabelledQuestion


class Complexor(LabelledImporter):
    """Imports ComplexOR: `description.txt`, `sample.json` with inputs and outputs, and `NAME.py`, the reference."""

    tool = "ComplexOR"

    def questions(self, file: Path) -> list[LabelledQuestion]:
        if not file.exists():
            raise FairtrialError(f"{file} cannot be read: there is no such folder")
        if not file.is_dir():
            raise FairtrialError(f"{file} is not a folder: ComplexOR has a folder for each problem")
        folders = [path.parent for path in sorted(file.rglob("sample.json"))]
        if not folders:
            raise FairtrialError(f"{file} has no problems: each is a folder with description.txt and sample.json")
        return [question for own in folders for question in _questions(own)]


def _questions(folder: Path) -> Iterator[LabelledQuestion]:
    description = read_text(folder / "description.txt").strip()
    samples = json.loads(read_text(folder / "sample.json"))
    code = folder / f"{folder.name}.py"
    program = read_text(code) if code.is_file() else None
    for number, sample in enumerate(samples, 1):
        given = sample["input"]
        lines = "\n".join(f"{key} = {json.dumps(value)}" for key, value in given.items())
        name = folder.name if len(samples) == 1 else f"{folder.name}-{number}"
        reference = Reference(program=program, call=folder.name, arguments=given) if program else None
        yield LabelledQuestion(name, f"{description}\n\nThe data:\n{lines}", sample["output"], reference=reference)
