"""Import from MAMO (`mamo_easy_lp.jsonl`, `mamo_complex_lp.jsonl`)."""

from __future__ import annotations

from pathlib import Path

from fairtrial.tracks.optimisation.importers._labelled import LabelledImporter, LabelledQuestion, read_questions


class Mamo(LabelledImporter):
    """Imports MAMO: `id`, `Question`, `Answer`, `Type`. It has no models to certify labels with."""

    tool = "MAMO"

    def questions(self, file: Path) -> list[LabelledQuestion]:
        return read_questions(file, "Question", "Answer", "Type")
