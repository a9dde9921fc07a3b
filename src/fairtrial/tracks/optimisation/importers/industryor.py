"""Import from IndustryOR (`IndustryOR.json`), and from others in the same layout, such as its makers' NL4OPT."""

from __future__ import annotations

from pathlib import Path

from fairtrial.tracks.optimisation.importers._labelled import LabelledImporter, LabelledQuestion, read_questions


class Industryor(LabelledImporter):
    """Imports IndustryOR: `en_question`, `en_answer`, `difficulty`, `id`. It has no models to certify labels with."""

    tool = "IndustryOR"

    def questions(self, file: Path) -> list[LabelledQuestion]:
        return read_questions(file, "en_question", "en_answer", "difficulty")
