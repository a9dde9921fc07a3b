"""`check`: a command in the folder in which an agent worked: did it do the job?"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, ClassVar

import msgspec

from fairtrial.core.experiment import Case
from fairtrial.core.score import Score, ScoreContext, Unscored
from fairtrial.core.scorer import Guide, Scorer
from fairtrial.core.text import clipped
from fairtrial.toolbox.process import Ended
from fairtrial.workspace.archive import ArchiveError, pack, unpack
from fairtrial.workspace.making import LiveWorkspace

_MAX_FILES = 200 * 2**20
_MAX_NOTES = 500
_CANNOT_RUN = (126, 127)  # what shells say of a program that they cannot start


class Check(Scorer, frozen=True, kw_only=True):
    """Runs `command` in the workspace as the agent left it: exit code 0 is 100, any other 0.

    A last line of JSON with `score` (0 to 100) and perhaps `notes` says it instead. `files` (folders, files or
    archives) are put there when the agent has finished, over its own: it can neither read nor change them. The command
    runs in the workspace's sandbox, with the answer on stdin. A command that takes longer than `timeout` seconds or
    cannot be started leaves the trial unscored.
    """

    guide: ClassVar = Guide(
        scale="0 or 100, or as the command says",
        reproducibility="as the command",
        best_for="agents that work on files: tests, and whatever else a program can find out",
    )
    reads_text: ClassVar[bool] = False
    sees_all: ClassVar[bool] = True
    scores_refusals: ClassVar[bool] = True  # an agent that declined has not done the job, and the command finds that
    command: Annotated[str | list[str], msgspec.Meta(description="A shell script, or a program and its arguments.")]
    files: str | list[str] = []
    timeout: Annotated[float, msgspec.Meta(gt=0)] = 120.0

    def needs_workspace(self) -> bool:
        return True

    def check(self, case: Case, folder: Path) -> Iterable[str]:
        if not self.command:
            yield "`command` is empty: a check needs something to run"
        for name in self._names():
            if not (folder / name).exists():
                yield f"there is no file or folder {folder / name} for the check"

    def _names(self) -> list[str]:
        return [self.files] if isinstance(self.files, str) else self.files

    async def score(self, context: ScoreContext) -> Score | Unscored:
        if context.workspace is None:
            return Unscored(
                kind="workspace", message="there is no workspace: only agents that work in one can be checked"
            )
        async with context.workspace() as workspace:
            assert isinstance(workspace, LiveWorkspace)
            try:
                await asyncio.to_thread(self._add_files, workspace.folder, context.folder)
            except (ArchiveError, OSError) as error:
                return Unscored(kind="check", message=f"the files of the check cannot be used: {error}")
            variables = {"FAIRTRIAL_CASE_ID": context.case.id, "FAIRTRIAL_EXPECTED": context.expected}
            try:
                ended = await workspace.run_script(
                    self.command, self.timeout, stdin=context.response, variables=variables
                )
            except TimeoutError:
                return Unscored(kind="timeout", message=f"the check took longer than {self.timeout:g} s")
            return _result(ended, workspace.confinement())

    def _add_files(self, workspace: Path, folder: Path) -> None:
        for name in self._names():
            unpack(pack(folder / name, _MAX_FILES), workspace)


def _result(ended: Ended, confinement: str) -> Score | Unscored:
    written = "\n".join(filter(None, (ended.output, ended.errors)))
    if ended.code in _CANNOT_RUN and not ended.output:
        limits = f" ({confinement})" if confinement else ""
        return Unscored(kind="check", message=f"the check cannot be run: {ended.errors or ended.code}{limits}")
    report = _report(ended.output)
    if report is None:
        value, notes = float(ended.code == 0), f"exit code {ended.code}"
        if last := written.rpartition("\n")[2].strip():
            notes = f"{notes}: {clipped(last, _MAX_NOTES)}"
    else:
        value, notes = float(report["score"]) / 100, str(report.get("notes") or "")[:_MAX_NOTES]
        if not 0 <= value <= 1:
            return Unscored(kind="range", message=f"the check says {report['score']!r}, not a number from 0 to 100")
    details = {"check": {"exit_code": ended.code, "output": written}}
    return Score(value=value, raw=100 * value, max=100.0, notes=notes, details=details)


def _report(output: str) -> dict[str, Any] | None:
    """Return the JSON object in the last line, if it has a score."""
    try:
        report = msgspec.json.decode(output.rstrip().rpartition("\n")[2])
    except msgspec.DecodeError:
        return None
    has_score = isinstance(report, dict) and isinstance(report.get("score"), int | float)
    return report if has_score and not isinstance(report["score"], bool) else None
