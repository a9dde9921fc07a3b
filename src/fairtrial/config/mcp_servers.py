"""Resolving the MCP servers of a condition."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Literal

import msgspec

from fairtrial.config.descriptions import tool_texts
from fairtrial.config.document import ConditionEntry, SuiteDocument
from fairtrial.config.doubles import double_of, has_double
from fairtrial.config.mcp_document import AuthEntry, McpEntry
from fairtrial.config.source import SuiteSource
from fairtrial.core import registry
from fairtrial.core.experiment import McpAuth, McpServer
from fairtrial.core.options import Path as KeyPath


def servers_of(
    source: SuiteSource, path: KeyPath, entry: ConditionEntry, document: SuiteDocument
) -> tuple[McpServer, ...]:
    """Return the MCP servers that a condition uses."""
    entries = {**document.mcp_servers, **document.mcp_servers_as_desktop}
    texts = tool_texts(source, path, entry)
    servers: dict[str, McpServer] = {}
    for place, name, used in _used(entry):
        if used not in entries:
            hint = registry.nearest(used, list(entries)) if entries else "; the suite has no `mcp_servers:`"
            source.problem((*path, "mcp", place), f"unknown MCP server `{used}`{hint}")
        elif name not in servers:
            key = "mcpServers" if used in document.mcp_servers_as_desktop else "mcp_servers"
            server = _server(source, (key, used), name, entries[used])
            if server is not None:
                servers[name] = msgspec.structs.replace(
                    server,
                    only=tuple(entry.mcp_tools.get(name, ())),
                    texts=texts.get(name, ()),
                    entry="" if used == name else used,
                )
    for name in sorted(set(entry.mcp_tools) - set(entry.mcp)):
        source.problem((*path, "mcp_tools"), f"`mcp_tools` names `{name}`, which the condition's `mcp` does not have")
    if (entry.require_tool_use or entry.require_tool_success) and not entry.mcp:
        source.problem((*path, "mcp"), "tool use is required, but the condition has no MCP server")
    return tuple(servers.values())


def _used(entry: ConditionEntry) -> list[tuple[str | int, str, str]]:
    """Return the servers of a condition: where each is named, under which name the agent sees it, and its entry."""
    if isinstance(entry.mcp, dict):
        return [(name, name, used) for name, used in entry.mcp.items()]
    return [(index, name, name) for index, name in enumerate(entry.mcp)]


def _server(source: SuiteSource, path: KeyPath, name: str, entry: McpEntry) -> McpServer | None:
    """Return a server with what stands in for it; None if it is not right."""
    double = double_of(source, path, entry)
    if has_double(entry) and entry.command is None and entry.url is None:
        usable = _usable(source, path, name, entry)
        server = McpServer(name=name, cwd=str(source.folder.resolve())) if usable else None
    else:
        server = _real_server(source, path, name, entry)
    return msgspec.structs.replace(server, double=double) if server and double else server


def _usable(source: SuiteSource, path: KeyPath, name: str, entry: McpEntry) -> bool:
    """Return whether a condition may use a server of this name."""
    if entry.disabled:
        source.problem((*path, "disabled"), f"the MCP server `{name}` is disabled, but a condition uses it")
        return False
    if not re.fullmatch(r"[A-Za-z0-9_-]+", name) or "__" in name:
        source.problem(path, "the name of an MCP server may contain only letters, digits, - and single _")
        return False
    return True


def _real_server(source: SuiteSource, path: KeyPath, name: str, entry: McpEntry) -> McpServer | None:
    if (entry.command is None) == (entry.url is None):
        source.problem(path, "an MCP server needs either `command` (a program) or `url` (an address)")
        return None
    if not _usable(source, path, name, entry):
        return None
    if entry.command is None:
        kind: Literal["sse", "http"] = "sse" if (entry.type or entry.transport) == "sse" else "http"
        server = McpServer(
            name=name,
            transport=kind,
            url=entry.url or "",
            headers=entry.headers,
            timeout=entry.timeout,
            roots=entry.roots,
        )
        return _authorised(source, (*path, "auth"), server, entry.auth)
    if entry.auth is not None:
        source.problem((*path, "auth"), "`auth` is for servers with a `url`; a program gets its keys by `env`")
    first, *arguments = (entry.command or [""]) if isinstance(entry.command, list) else [entry.command]
    local = source.folder / first
    # Symlinks are not resolved: a virtual environment's python is a link and finds its environment by its own path.
    program = str(local.absolute()) if "/" in first and local.is_file() else shutil.which(first)
    if program is None and not has_double(entry):
        source.problem((*path, "command"), f"there is no program `{first}`")
        return None
    server = McpServer(
        name=name,
        command=program if program and "/" in first else first,
        args=(*arguments, *entry.args),
        env=entry.env,
        cwd=entry.cwd or ".",
        timeout=entry.timeout,
        roots=entry.roots,
    )
    return _with_place(server, source.folder)


def _authorised(source: SuiteSource, path: KeyPath, server: McpServer, entry: AuthEntry | None) -> McpServer:
    """Return a server with the access that the suite says: a header with a token, or how to get tokens."""
    if entry is None:
        return server
    credentials = (entry.client_id, entry.client_secret)
    if (entry.token is None) == (credentials == (None, None)):
        source.problem(path, "`auth` needs either a `token`, or `client_id` and `client_secret`")
    elif entry.token is not None:
        headers = {**server.headers, "Authorization": f"Bearer {entry.token}"}
        return msgspec.structs.replace(server, headers=headers)
    elif None in credentials:
        source.problem(path, "`auth` needs both `client_id` and `client_secret`")
    auth = McpAuth(
        client_id=entry.client_id or "",
        client_secret=entry.client_secret or "",
        issuer=entry.issuer or "",
        scope=entry.scope or "",
    )
    return msgspec.structs.replace(server, auth=auth)


def _with_place(server: McpServer, folder: Path) -> McpServer:
    """Return a server with the paths of its files: they are next to the suite, also if it works in the workspace."""
    if msgspec.structs.replace(server, args=(), env={}).wants_workspace:
        paths = (folder / argument for argument in server.args)
        pairs = zip(server.args, paths, strict=True)
        arguments = tuple(str(path.absolute()) if path.is_file() else argument for argument, path in pairs)
        return msgspec.structs.replace(server, args=arguments)
    return msgspec.structs.replace(server, cwd=str((folder / server.cwd).resolve()))
