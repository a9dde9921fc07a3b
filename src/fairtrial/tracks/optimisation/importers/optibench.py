"""Import from OptiBench (earlier `e-opt.json`): questions with results and a program in PySCIPOpt or PuLP."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fairtrial.foreign.suites import Imported, Reference
from fairtrial.tracks.optimisation.importers._labelled import LabelledImporter, LabelledQuestion, read_records


class Optibench(LabelledImporter):
    """Imports OptiBench: `question`, `results`, `code`, `type`, `index`. Of the results, the last is the objective."""

    tool = "OptiBench"

    def questions(self, file: Path) -> list[LabelledQuestion]:
        return [_question(record, number) for number, record in enumerate(read_records(file))]

    def read(self, file: Path) -> Imported:
        imported = super().read(file)
        told = "only the objective counts, the last of the published results: several points may be optimal"
        return imported._replace(differences=[*imported.differences, told])


def _question(record: dict[str, Any], number: int) -> LabelledQuestion:
    results = record["results"]
    label = list(results.values())[-1] if isinstance(results, dict) and results else results
    code = record.get("code")
    reference = Reference(program=code) if isinstance(code, str) and code.strip() else None
    name = str(record.get("index", number))
    return LabelledQuestion(name, record["question"], label, kind=record.get("type"), reference=reference)
