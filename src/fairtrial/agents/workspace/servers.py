"""MCP servers in a workspace: which files they need there, and how they run in its sandbox."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from msgspec.structs import replace

from fairtrial.agents.doubles.parts import PARTS
from fairtrial.agents.workspace.sandbox import basic_environment
from fairtrial.core.experiment import McpServer
from fairtrial.core.workspace import Workspace

_MAX_PATH = 4000


def files_of_servers(servers: Iterable[McpServer]) -> list[Path]:
    """Return the files that servers are started from, which they must be able to read in a sandbox."""
    named = [Path(server.cwd) / part for server in servers for part in (server.command, *server.args)]
    files = [path for path in named if len(str(path)) < _MAX_PATH and path.is_file()]
    return [*files, *(part for part in PARTS if PARTS[0] in files)]


def enclosed_server(server: McpServer, workspace: Workspace | None) -> McpServer:
    """Return a server that runs in the sandbox of a trial, if there is one: what its tools do, the agent does."""
    if not is_sandboxed(workspace) or server.transport != "stdio" or server.url:  # it is elsewhere
        return server
    assert workspace is not None
    environment = {**basic_environment(), **server.env}
    moved = moved_server(server, workspace)
    command = [moved.command, *moved.args]
    (program, *rest), variables = workspace.enclose(command, environment, read=files_of_servers([server]))
    return replace(moved, command=program, args=tuple(rest), env=variables)


def moved_server(server: McpServer, workspace: Workspace | None) -> McpServer:
    """Return a server that starts in the workspace if there is a sandbox, where its own folder does not exist."""
    if not is_sandboxed(workspace) or server.transport != "stdio":
        return server
    assert workspace is not None
    by_path = {str(path): path for path in files_of_servers([server])}
    command, *rest = (str(by_path.get(str(Path(server.cwd) / part), part)) for part in (server.command, *server.args))
    return replace(server, command=command, args=tuple(rest), cwd=str(workspace.folder))


def is_sandboxed(workspace: Workspace | None) -> bool:
    """Return whether programs in a workspace run in a sandbox."""
    return workspace is not None and workspace.spec.sandbox != "none"
