"""Reading ease of every answer as CSV, one trial per row."""

from __future__ import annotations

import csv
from typing import IO

from fairtrial.plugins import Run
from fairtrial_readability.ease import read


def write(run: Run, file: IO[str]) -> None:
    """Write every answer, streamed."""
    writer = csv.writer(file)
    writer.writerow(("case", "arm", "repeat", "reading_ease", "words", "sentences"))
    for trial in run.trials():
        if trial.answer is not None:
            reading = read(trial.answer)
            numbers = (f"{reading.ease:.1f}", reading.words, reading.sentences)
            writer.writerow((trial.case_id, trial.arm, trial.repeat, *numbers))
