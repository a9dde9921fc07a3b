"""Import from IndustryOR (`IndustryOR.json`), and from others in the same layout, such as its makers' NL4OPT."""

from __future__ import annotations

from pathlib import Path

from fairtrial.foreign.suites import Imported, expecting
from fairtrial.tracks.optimisation.importers._labelled import Labelled, Question, labelled_suite, read_records


class Industryor(Labelled):
    """Imports IndustryOR: `en_question`, `en_answer`, `difficulty`, `id`. It has no models to certify labels with."""

    def read(self, file: Path) -> Imported:
        """Convert the data file into a suite."""
        with expecting(file, "IndustryOR"):
            questions = [
                Question(
                    str(record.get("id", number)),
                    record["en_question"],
                    record["en_answer"],
                    kind=record.get("difficulty"),
                )
                for number, record in enumerate(read_records(file), 1)
            ]
            return labelled_suite("IndustryOR", questions, self.answer)
