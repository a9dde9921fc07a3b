"""Workspaces in other circumstances: without a network, on another day, and looked at when a check has ended."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from fairtrial.agents.processes.process import Ended
from fairtrial.agents.workspace.making import LiveWorkspace
from fairtrial.agents.workspace.sandbox import sandbox_problem
from fairtrial.core.workspace import Enclosed, Network, WorkspaceSpec
from fairtrial.tracks.audit.subject import files_in

DAYS = 400  # later: another year, another month, another day of the week
_ALONE = ("bwrap", "--dev-bind", "/", "/", "--unshare-net", "--die-with-parent", "--")
_LIBRARY = "faketime/libfaketime.so.1"  # in /usr/lib, or in the part of it for a kind of machine


class Offline(LiveWorkspace):
    """A workspace whose programs reach no network, apart from setup commands."""

    def enclose(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        *,
        read: Sequence[Path] = (),
        write: Sequence[Path] = (),
        fixed: Sequence[Path] = (),
        network: Network | None = None,
    ) -> Enclosed:
        if self.spec.sandbox == "none" and network is not True:
            command = [*_ALONE, *command]
        return super().enclose(command, environment, read=read, write=write, fixed=fixed, network=network)


class Later(LiveWorkspace):
    """A workspace whose programs see a later date, apart from setup commands."""

    def enclose(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        *,
        read: Sequence[Path] = (),
        write: Sequence[Path] = (),
        fixed: Sequence[Path] = (),
        network: Network | None = None,
    ) -> Enclosed:
        enclosed = super().enclose(command, environment, read=read, write=write, fixed=fixed, network=network)
        if network is True:
            return enclosed
        around, own = enclosed.command[: -len(command)], enclosed.command[-len(command) :]
        # Not for what makes the sandbox: the library would leave there what another user cannot open.
        later = ["env", f"LD_PRELOAD={_library()}", f"FAKETIME=+{DAYS}d"]
        return enclosed._replace(command=[*around, *later, *own])


class Watched(LiveWorkspace):
    """A workspace that notes which files a check leaves in it."""

    made: dict[str, bytes]  # of the class that is made for one look

    async def run_script(
        self,
        script: str | Sequence[str],
        seconds: float,
        *,
        stdin: str = "",
        variables: Mapping[str, str] | None = None,
        read: Sequence[Path] = (),
        fixed: Sequence[Path] = (),
        network: Network | None = None,
    ) -> Ended:
        before = files_in(self.folder)
        ended = await super().run_script(
            script, seconds, stdin=stdin, variables=variables, read=read, fixed=fixed, network=network
        )
        if network is not True:
            self.made.update((name, body) for name, body in files_in(self.folder).items() if name not in before)
        return ended


def offline_problem() -> str:
    """Return why nothing can be kept from the network here; empty if it can."""
    return sandbox_problem(WorkspaceSpec(sandbox="bubblewrap"))


def later_problem(spec: WorkspaceSpec) -> str:
    """Return why programs cannot be shown another date here; empty if they can."""
    if sys.platform != "linux" or not _library():
        return "needs libfaketime (on Debian: apt-get install libfaketime)"
    return "a container has the date of its machine" if spec.sandbox == "docker" else ""


def _library() -> str:
    libraries = Path("/usr/lib")
    return next(map(str, sorted([*libraries.glob(_LIBRARY), *libraries.glob(f"*/{_LIBRARY}")])), "")
