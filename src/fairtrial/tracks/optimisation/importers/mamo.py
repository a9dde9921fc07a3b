"""Import from MAMO (`mamo_easy_lp.jsonl`, `mamo_complex_lp.jsonl`)."""

from __future__ import annotations

from pathlib import Path

from fairtrial.foreign.suites import Imported, expecting
from fairtrial.tracks.optimisation.importers._labelled import Labelled, Question, labelled_suite, read_records


class Mamo(Labelled):
    """Imports MAMO: `id`, `Question`, `Answer`, `Type`. It has no models to certify labels with."""

    def read(self, file: Path) -> Imported:
        """Convert the data file into a suite."""
        with expecting(file, "MAMO"):
            questions = [
                Question(str(record.get("id", number)), record["Question"], record["Answer"], kind=record.get("Type"))
                for number, record in enumerate(read_records(file), 1)
            ]
            return labelled_suite("MAMO", questions, self.answer)
