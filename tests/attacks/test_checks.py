"""Checks cannot be cheated: what an agent leaves behind decides nothing but what it should."""

from __future__ import annotations

import os
import shlex
import sys
from contextlib import asynccontextmanager

import pytest

from fairtrial.agents.workspace.archive import pack
from fairtrial.agents.workspace.making import Workspaces
from fairtrial.agents.workspace.sandbox import sandbox_problem
from fairtrial.core.experiment import Case
from fairtrial.core.file import Attachment, File
from fairtrial.core.score import Score, ScoreContext
from fairtrial.core.workspace import ARCHIVE, WorkspaceSpec
from fairtrial.scorers.check import Check
from tests.attacks.cheats import CHEATS, HONEST, Cheat

_PROBLEM = sandbox_problem(WorkspaceSpec(sandbox="bubblewrap"))
SANDBOXES = [
    "none",
    pytest.param("bubblewrap", marks=pytest.mark.skipif(bool(_PROBLEM), reason=_PROBLEM or "usable")),
]
# Without a sandbox the agent's code has the rights of the check.
_NEEDS_SANDBOX = {"another check while it runs"}
if os.getuid() == 0:  # who may look into every process
    _NEEDS_SANDBOX |= {"a word taken from the check's memory", "a process that traces the check"}


def lay(folder, files):
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if text.startswith("@"):
            path.symlink_to(text[1:])
        else:
            path.write_text(text)
            path.chmod(0o755 if text.startswith("#!") else 0o644)


async def judged(cheat: Cheat, sandbox: str, tmp_path) -> Score:
    """What a check says about a workspace as an agent left it."""
    lay(tmp_path / "start", cheat.start)
    lay(tmp_path / "check", cheat.check)
    body = pack(tmp_path / "start", 10**8)

    async def load(file):
        return File(name=file.name, media=file.media, body=body)

    start = Attachment(name="start", media=ARCHIVE, sha256="x", size=len(body))
    spec = WorkspaceSpec(files=(start,) if cheat.start else (), sandbox=sandbox)
    async with Workspaces(load) as workspaces:
        async with workspaces.make(spec) as workspace:
            lay(workspace.folder, cheat.left)
            changes, _ = await workspace.changes()

        @asynccontextmanager
        async def again():
            async with workspaces.make(spec, changes) as workspace:
                yield workspace

        command = cheat.command.replace("python ", f"{shlex.quote(sys.executable)} ", 1)
        context = ScoreContext(case=Case(id="x", input="?"), response="the answer", folder=tmp_path, workspace=again)
        result = await Check(command=command, files=["check"] if cheat.check else []).score(context)
    assert isinstance(result, Score), result
    return result


@pytest.mark.parametrize("sandbox", SANDBOXES)
@pytest.mark.parametrize("name", CHEATS)
async def test_no_cheat_pays(name, sandbox, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f".:{os.path.dirname(sys.executable)}:{os.environ['PATH']}")
    if sandbox == "none" and name in _NEEDS_SANDBOX:
        pytest.skip("without a sandbox it is not prevented")
    cheat = CHEATS[name]
    result = await judged(cheat, sandbox, tmp_path)
    assert result.value == 0, result
    assert cheat.notes in result.notes, result


@pytest.mark.parametrize("sandbox", SANDBOXES)
@pytest.mark.parametrize("name", HONEST)
async def test_honest_checks_say_what_they_said(name, sandbox, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}")
    result = await judged(HONEST[name], sandbox, tmp_path)
    assert result.value == 1, result
    assert HONEST[name].notes in result.notes, result


async def test_a_check_that_was_changed_is_noticed(tmp_path):
    result = await judged(CHEATS["another check while it runs"], "none", tmp_path)
    assert result.value == 0 and "tests/test_it.py was changed while the check ran" in result.notes
