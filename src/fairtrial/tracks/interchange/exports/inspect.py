"""inspect-ai's log format (`.eval`): a file for a run with one arm, a folder of files for one with several."""

from __future__ import annotations

import tempfile
import zipfile
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from fairtrial.analyse.run import Run
from fairtrial.analyse.stored_run import Told
from fairtrial.tracks.interchange.exports.inspect_log import ArmLog, logs_of, only_log
from fairtrial.tracks.interchange.exports.inspect_sample import encode, summary_of


def write(run: Run, file: IO[bytes]) -> None:
    """Write the log of a run with one arm, streamed."""
    with _EvalFile(only_log(run), file) as writer:
        for told in run.told_trials():
            writer.add(told)


def write_folder(run: Run, folder: Path) -> None:
    """Write one log for every arm, all of them in one pass over the trials."""
    with ExitStack() as stack:
        writers = {}
        for log in logs_of(run):
            file = stack.enter_context((folder / log.file_name).open("wb"))
            writers[log.arm.name] = stack.enter_context(_EvalFile(log, file))
        for told in run.told_trials():
            writers[told.trial.arm].add(told)


class _EvalFile:
    """Writes one log. Summaries are kept in a temporary file until all samples are written."""

    def __init__(self, log: ArmLog, file: IO[bytes]) -> None:
        self._log, self._file = log, file

    def __enter__(self) -> _EvalFile:
        self._zip = zipfile.ZipFile(self._file, "w", zipfile.ZIP_DEFLATED, compresslevel=6)
        self._summaries = tempfile.TemporaryFile()
        self._count = 0
        header = self._log.header
        self._zip.writestr(
            "_journal/start.json",
            encode({"version": header["version"], "eval": header["eval"], "plan": header["plan"]}),
        )
        return self

    def add(self, told: Told) -> None:
        """Add a trial."""
        sample = self._log.sample(told)
        self._zip.writestr(f"samples/{sample['id']}_epoch_{sample['epoch']}.json", encode(sample))
        self._summaries.write((b",\n" if self._count else b"[") + encode(summary_of(sample)))
        self._count += 1

    def __exit__(self, failed: type[BaseException] | None, *_: object) -> None:
        with self._summaries, self._zip:
            if failed is None:
                self._finish()

    def _finish(self) -> None:
        self._summaries.write(b"]" if self._count else b"[]")
        self._summaries.seek(0)
        with self._zip.open("summaries.json", "w", force_zip64=True) as member:
            while piece := self._summaries.read(1 << 20):
                member.write(piece)
        self._zip.writestr("header.json", encode(self._log.header))
