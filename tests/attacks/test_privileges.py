"""In a sandbox, root has no more rights than anybody: what is bound read-only stays so."""

from __future__ import annotations

import shutil

import pytest

from fairtrial.agents.workspace.sandbox import sandbox_problem
from fairtrial.core.workspace import WorkspaceSpec

ATTEMPTS = {
    "mount it anew": "mount -o remount,rw,bind {read} && echo x > {read}/file",
    "mount something over it": "mount -t tmpfs none {read} && echo x > {read}/new",
    "make a device": "mknod {here}/null c 1 3",
    "change the owner": "chown 1:1 {here}/own && chown 12345 {here}/own && touch {here}/changed",
    "load a module": "insmod /nothing.ko 2>&1 | grep -q 'No such file'",
    "change the clock": "date -s 2020-01-01 > /dev/null && touch {here}/clock",
    "leave by chroot": "chroot / true && touch {here}/chroot",
    "another host name": "hostname other && touch {here}/hostname",
    "a raw socket": "python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)' && touch {here}/raw",
    "trace another": "grep -q 'CapEff:.*[1-9a-f]' /proc/self/status && touch {here}/capable",
}


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="there is no program bwrap")
@pytest.mark.parametrize("attempt", ATTEMPTS)
async def test_nothing_outside_can_be_changed(attempt, run_suite, tmp_path):
    if reason := sandbox_problem(WorkspaceSpec(sandbox="bubblewrap")):
        pytest.skip(reason)
    read, given = tmp_path / "read", tmp_path / "given"
    read.mkdir()
    given.mkdir()
    (read / "file").write_text("ours")
    (given / "own").write_text("")
    tried = ATTEMPTS[attempt].format(read=read, here=".")
    script = f"({tried}) 2> /dev/null && echo reached || echo held"
    run = await run_suite(
        targets=[{"target": "command:x", "options": {"command": ["sh", "-c", script]}}],
        workspace={"sandbox": "bubblewrap", "read": [str(read)], "files": [str(given)]},
        cases=[{"input": "?", "expected": "held"}],
        scorer="contains",
    )
    (trial,) = run.trials()
    assert (read / "file").read_text() == "ours"
    assert sorted(path.name for path in read.iterdir()) == ["file"]
    assert trial.answer.strip() == "held", trial
