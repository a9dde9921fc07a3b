"""Import from ComplexOR: a folder for each problem, with samples of data and a function in gurobipy."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from fairtrial.core.errors import FairtrialError
from fairtrial.foreign.suites import Imported, Reference, expecting, read_text
from fairtrial.tracks.optimisation.importers._labelled import Labelled, Question, labelled_suite


class Complexor(Labelled):
    """Imports ComplexOR: `description.txt`, `sample.json` with inputs and outputs, and `NAME.py`, the reference."""

    def read(self, file: Path) -> Imported:
        """Convert a folder of problems into a suite."""
        if not file.exists():
            raise FairtrialError(f"{file} cannot be read: there is no such folder")
        if not file.is_dir():
            raise FairtrialError(f"{file} is not a folder: ComplexOR has a folder for each problem")
        with expecting(file, "ComplexOR"):
            folders = [path.parent for path in sorted(file.rglob("sample.json"))]
            if not folders:
                raise FairtrialError(f"{file} has no problems: each is a folder with description.txt and sample.json")
            questions = [question for own in folders for question in _questions(own)]
            return labelled_suite("ComplexOR", questions, self.answer)


def _questions(folder: Path) -> Iterator[Question]:
    description = read_text(folder / "description.txt").strip()
    samples = json.loads(read_text(folder / "sample.json"))
    code = folder / f"{folder.name}.py"
    program = read_text(code) if code.is_file() else None
    for number, sample in enumerate(samples, 1):
        given = sample["input"]
        lines = "\n".join(f"{key} = {json.dumps(value)}" for key, value in given.items())
        name = folder.name if len(samples) == 1 else f"{folder.name}-{number}"
        reference = Reference(program=program, call=folder.name, arguments=given) if program else None
        yield Question(name, f"{description}\n\nThe data:\n{lines}", sample["output"], reference=reference)
