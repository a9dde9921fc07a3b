"""Workspaces as data: the folder in which an agent works on one trial, and the sandbox around it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

import msgspec

from fairtrial.core.file import Attachment

Keep = Literal["none", "failed", "all"]
SandboxKind = Literal["none", "bubblewrap", "docker"]
Network = bool | Literal["model"] | tuple[str, ...]  # all, none, only the agent's model, or only these hosts
ARCHIVE = "application/gzip"  # the media type of files and of changes: a tar file, compressed


class WorkspaceSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a workspace starts from, its limits, and what programs in it may do."""

    files: tuple[Attachment, ...] = ()  # archives, unpacked one over the other; their contents are in the store
    skills: tuple[Attachment, ...] = ()  # archives of skills, for agents that do not take them by themselves
    setup: tuple[str, ...] = ()  # shell commands, run before the agent starts
    keep: Keep = "none"  # which folders stay on disk: none, those of trials without full score, or all
    timeout: float = 300.0  # seconds for each setup command
    max_mb: float = 50.0  # of what an agent may change
    sandbox: SandboxKind = "none"
    network: Network = False  # in a sandbox
    read: tuple[str, ...] = ()  # further paths that programs in a sandbox may read
    image: str = ""  # of a container
    processes: int = 1024  # in a sandbox, at the same time; threads count as well
    memory_mb: float = 8192.0  # of all programs in a sandbox together
    disk_mb: float = 10240.0  # that a sandbox may fill

    def identity(self) -> dict[str, Any]:
        """Return what identifies this workspace: everything that an agent can notice."""
        fields = {name: getattr(self, name) for name in ("setup", "sandbox", "network", "read", "image")}
        identity = {name: value for name, value in fields.items() if value}
        if self.skills:
            identity["skills"] = [file.sha256 for file in self.skills]
        return {"files": [file.sha256 for file in self.files], **identity}

    def with_own(self, own: Mapping[str, Any]) -> WorkspaceSpec:
        """Return this workspace with what a case says about its own."""
        if not own:
            return self
        return msgspec.convert({**msgspec.to_builtins(self), **own}, WorkspaceSpec)


class Enclosed(NamedTuple):
    """A command line and an environment that start a program in its sandbox."""

    command: list[str]
    environment: dict[str, str]


class Workspace(Protocol):
    """The folder of one attempt, while it lasts."""

    spec: WorkspaceSpec
    folder: Path
    shared: list[Path]  # other folders that every program in it may write to

    def enclose(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        *,
        read: Sequence[Path] = (),
        write: Sequence[Path] = (),
    ) -> Enclosed:
        """Return how to start a program here: as it is, or in the sandbox, with further paths that it may use."""

    def confinement(self) -> str:
        """Say what programs here may not do; empty without a sandbox."""
