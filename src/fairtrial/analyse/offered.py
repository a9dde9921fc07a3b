"""What the arms of a run were offered: tools, resources and prompts of MCP servers, and skills, with what they take."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from fairtrial.analyse.stored_run import StoredRun
from fairtrial.core.experiment import Arm, McpServer
from fairtrial.core.skill import Skill
from fairtrial.text.printable import estimated_tokens

_IN_TEMPLATES = r'\{% raw %\}|\{\{ "'  # before the text of a skill


class OfferedTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that an arm could call; runs of older versions recorded neither its schema nor its size."""

    name: str  # server.tool
    tokens: int | None
    schema: dict[str, Any] = {}
    description: str = ""


class OfferedServer(msgspec.Struct, frozen=True, kw_only=True):
    """A server of an arm, as it described itself before the run."""

    server: str
    name: str
    version: str
    tools: list[OfferedTool]
    resources: list[str] = []
    prompts: list[str] = []
    entry: str = ""  # which of `mcp_servers` it is, if agents see it under another name

    def by_tool(self) -> dict[str, OfferedTool]:
        """Return its tools by their names without the server's."""
        return {tool.name.removeprefix(f"{self.server}."): tool for tool in self.tools}

    def described(self, tool: str) -> str:
        """Return the description of a tool that an arm got; empty if that is not known."""
        found = self.by_tool().get(tool)
        return found.description if found else ""

    @property
    def tokens(self) -> int | None:
        """The tokens that the descriptions of its tools take of every prompt; None if they are not known."""
        sizes = [tool.tokens for tool in self.tools]
        return None if None in sizes else sum(size or 0 for size in sizes)


class Offers(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that an arm was offered."""

    servers: list[OfferedServer] = []
    skills: list[Skill] = []

    @property
    def tools(self) -> dict[str, OfferedTool]:
        """Its tools by name."""
        return {tool.name: tool for server in self.servers for tool in server.tools}

    @property
    def tokens(self) -> int | None:
        """The tokens that all of it takes before anything is used; None if they are not known."""
        sizes = [*(server.tokens for server in self.servers), *(skill.tokens for skill in self.skills)]
        return None if None in sizes else sum(size or 0 for size in sizes)

    def items(self) -> frozenset[tuple[str, str]]:
        """Return what one condition can have and another one lack: servers, skills, and tools of servers."""
        servers = {("server", server.server) for server in self.servers}
        return frozenset(
            servers | {("tool", name) for name in self.tools} | {("skill", one.name) for one in self.skills}
        )


def offers_of(run: StoredRun) -> dict[str, Offers]:
    """Return what every arm was offered, by its name; arms without servers and skills have none."""
    recorded = {(one["server"], one.get("entry") or ""): one for one in run.context.get("mcp_servers") or ()}
    return {arm.name: _offers(arm, recorded) for arm in run.plan_arms}


def _offers(arm: Arm, recorded: Mapping[tuple[str, str], dict[str, Any]]) -> Offers:
    servers = []
    for server in arm.condition.mcp:
        found = recorded.get((server.name, server.entry)) or {}
        tools = [_tool(server, tool) for tool in found.get("tools") or () if server.offers(tool["name"])]
        servers.append(
            OfferedServer(
                server=server.name,
                name=found.get("name") or "",
                version=found.get("version") or "",
                tools=tools,
                resources=found.get("resources") or [],
                prompts=found.get("prompts") or [],
                entry=server.entry,
            )
        )
    return Offers(servers=servers, skills=list(arm.condition.skills))


def _tool(server: McpServer, recorded: Mapping[str, Any]) -> OfferedTool:
    """Return a tool as the arm knows it: in the words of the condition, where it has any."""
    name, schema, own = recorded["name"], recorded.get("schema") or {}, recorded.get("description") or ""
    tokens = recorded.get("tokens")
    text = next((text for text in server.texts if text.tool == name), None)
    if text is not None:
        schema, own = text.of_schema(schema), own if text.description is None else text.description
        described = {"name": name, "description": own, "input_schema": schema}
        tokens = estimated_tokens(msgspec.json.encode(described).decode())
    return OfferedTool(name=f"{server.name}.{name}", tokens=tokens, schema=schema, description=own)


def added(more: Offers, less: Offers) -> list[tuple[str, str]] | None:
    """Return what the first has and the second lacks; None if the second has something else.

    A server stands for its tools where the other has none of it.
    """
    ours, theirs = more.items(), less.items()
    if not theirs < ours:
        return None
    new = ours - theirs
    servers = {name for kind, name in new if kind == "server"}
    return sorted(one for one in new if one[0] != "tool" or one[1].partition(".")[0] not in servers)


def own_system(arm: Arm) -> str:
    """Return the system prompt of an arm without the texts of skills, which come after what the suite says."""
    system = arm.condition.system
    if not any(skill.as_text for skill in arm.condition.skills):
        return system
    heading = rf"(?:\A|\n\n)({_IN_TEMPLATES})?# Skill: {re.escape(arm.condition.skills[0].name)}(\n|\\n)"
    found = re.search(heading, system)
    return system[: found.start()] if found else system
