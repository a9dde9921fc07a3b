"""inspect-ai's log as one JSON file (`.inspect.json`), for a run with one arm."""

from __future__ import annotations

from typing import IO

from fairtrial.analyse.run import Run
from fairtrial.tracks.interchange.exports.inspect_log import only_log
from fairtrial.tracks.interchange.exports.inspect_sample import encode


def write(run: Run, file: IO[str]) -> None:
    """Write the log, streamed."""
    log = only_log(run)
    file.write(encode(log.header).decode()[:-1] + ',"samples":[\n')
    for number, told in enumerate(run.told_trials()):
        file.write((",\n" if number else "") + encode(log.sample(told)).decode())
    file.write("\n]}\n")
