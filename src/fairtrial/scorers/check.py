"""`check`: a command in the folder in which an agent worked: did it do the job?"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar

import msgspec

from fairtrial.agents.workspace.archive import ArchiveError
from fairtrial.agents.workspace.judging import (
    CheckFolder,
    Judged,
    check_variables,
    files_of_checks,
    has_score,
    judge_plainly,
    refereed,
)
from fairtrial.agents.workspace.making import LiveWorkspace
from fairtrial.core.experiment import Case
from fairtrial.core.score import Score, ScoreContext, Unscored
from fairtrial.core.scorer import Guide, Scorer
from fairtrial.text.printable import clipped

_MAX_NOTES = 500
_MOST_FIXED = 200  # files that a sandbox protects one by one; of more, it is seen afterwards whether they were changed
_CANNOT_RUN = (126, 127)  # what shells say of a program that they cannot start


class Check(Scorer, frozen=True, kw_only=True):
    """Runs `command` in the workspace as the agent left it: exit code 0 is 100, any other 0.

    A last line of JSON with `score` (0 to 100) and optional `notes` counts instead. `files` (folders, files or
    archives) are put there when the agent has finished, over its own: it can neither read nor change them. The command
    runs in the workspace's sandbox, with the answer on stdin. For a Python script or `pytest`, only what the check
    itself reports counts, not what the agent's files print or how they end it. A command that takes longer than
    `timeout` seconds or cannot be started leaves the trial unscored.
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
            files = CheckFolder(workspace.folder, workspace.changed)
            try:
                await asyncio.to_thread(files.fill, [context.folder / name for name in self._names()])
            except (ArchiveError, OSError) as error:
                return Unscored(kind="check", message=f"the files of the check cannot be used: {error}")
            try:
                judged = await self._judged(workspace, files, context)
            except TimeoutError:
                return Unscored(kind="timeout", message=f"the check took longer than {self.timeout:g} s")
            return _result(judged, files.noticed(), workspace.confinement())

    async def _judged(self, workspace: LiveWorkspace, files: CheckFolder, context: ScoreContext) -> Judged:
        local = workspace.spec.sandbox != "docker"
        referee = await asyncio.to_thread(refereed, self.command, files, workspace.folder, local=local)
        variables = {"FAIRTRIAL_CASE_ID": context.case.id, "FAIRTRIAL_EXPECTED": context.expected}
        fixed = files.fixed()
        ended = await workspace.run_script(
            self.command if referee is None else referee.command,
            self.timeout,
            stdin=context.response if referee is None else f"{referee.word}\n{context.response}",
            variables={**check_variables(files, workspace.environment()), **variables},
            read=files_of_checks(files),
            fixed=fixed if len(fixed) <= _MOST_FIXED else (),
        )
        judged = judge_plainly(ended) if referee is None else referee.judge(ended)
        tampered = await asyncio.to_thread(files.tampered)
        return judged._replace(foul=f"{tampered} was changed while the check ran") if tampered else judged


def _result(judged: Judged, noticed: Sequence[str], confinement: str) -> Score | Unscored:
    written = "\n".join(filter(None, (judged.output, judged.errors)))
    if judged.code in _CANNOT_RUN and not judged.output:
        limits = f" ({confinement})" if confinement else ""
        return Unscored(kind="check", message=f"the check cannot be run: {judged.errors or judged.code}{limits}")
    report = judged.report
    if judged.foul:
        value, notes = 0.0, judged.foul
    elif report is None or not has_score(report):
        value, notes = float(judged.code == 0), f"exit code {judged.code}"
        if last := written.rpartition("\n")[2].strip():
            notes = f"{notes}: {clipped(last, _MAX_NOTES)}"
    else:
        value, notes = float(report["score"]) / 100, str(report.get("notes") or "")[:_MAX_NOTES]
        if not 0 <= value <= 1:
            return Unscored(kind="range", message=f"the check says {report['score']!r}, not a number from 0 to 100")
    details: dict[str, Any] = {"exit_code": judged.code, "output": written}
    if noticed:
        details["noticed"] = list(noticed)
        notes = "; ".join(filter(None, (notes, f"noticed: {', '.join(noticed)}")))
    return Score(value=value, raw=100 * value, max=100.0, notes=notes, details={"check": details})
