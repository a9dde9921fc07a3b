"""Check every MCP server of every condition and list its tools before anything is spent."""

from __future__ import annotations

import asyncio
import tempfile
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from fairtrial.agents.doubles.cassette import CassetteError, is_recording, read_cassette, write_offers
from fairtrial.agents.doubles.drift import differences, versions
from fairtrial.agents.doubles.played import problem_with, read_played
from fairtrial.agents.mcp.offers import Inventory, inventory_of, offers_of
from fairtrial.agents.mcp.server import ServerError, connected, first_reason
from fairtrial.agents.mcp.tokens import AccessTokens
from fairtrial.core.errors import TargetUnusableError
from fairtrial.core.experiment import Arm, Condition, McpServer
from fairtrial.core.time_limit import time_limit

_AT_ONCE = 4
_ADVICE = {True: "correct the mock", False: "to record it anew, remove that folder first"}
Hide = Callable[[str], str]


async def preflight(arms: Sequence[Arm], hide: Hide = str, *, compare: bool = False) -> list[Inventory]:
    """Return the inventory of every server in use; raise an error if any server cannot be used.

    A server that a recording or a mock stands in for is not started, unless it is asked for what these do not have, or
    to `compare` it with them, if the suite says where it is.
    """
    servers = list({server.name: server for arm in arms for server in arm.condition.mcp}.values())
    if not servers:
        return []
    gate, tokens = asyncio.Semaphore(_AT_ONCE), AccessTokens()

    async def inspect(server: McpServer) -> Inventory | str:
        async with gate:
            return await _inspect(server, tokens, hide, compare=compare)

    results = await asyncio.gather(*map(inspect, servers))
    problems = [" ".join(hide(item).split()) for item in results if isinstance(item, str)]
    if problems:
        raise TargetUnusableError("\n".join(problems))
    inventory = [_hidden(item, hide) for item in results if isinstance(item, Inventory)]
    _check_limited(arms, inventory)
    for words in () if compare else drift_words(inventory):
        warnings.warn(words, stacklevel=2)
    return inventory


def drift_words(inventory: Iterable[Inventory]) -> list[str]:
    """Return a sentence for every server that is not what was recorded or written down of it."""
    return [
        f"the MCP server `{item.server}` differs from {item.stand_in}: {'; '.join(item.drift)}; {_ADVICE[item.is_mock]}"
        for item in inventory
        if item.drift
    ]


def _hidden(inventory: Inventory, hide: Hide) -> Inventory:
    """Return an inventory as it may be stored: a server may put whatever it knows into a schema."""
    return msgspec.json.decode(hide(msgspec.json.encode(inventory).decode()), type=Inventory)


def _check_limited(arms: Sequence[Arm], inventories: Sequence[Inventory]) -> None:
    """Raise an error if a condition gives a tool that its server does not have."""
    offered = {item.server: [tool.name for tool in item.tools] for item in inventories}
    for server in (server for arm in arms for server in arm.condition.mcp):
        for name in server.only:
            if name not in offered[server.name]:
                known = ", ".join(offered[server.name])
                raise TargetUnusableError(f"the MCP server `{server.name}` has no tool `{name}`; its tools: {known}")


async def _inspect(server: McpServer, tokens: AccessTokens, hide: Hide, *, compare: bool) -> Inventory | str:
    """Return the inventory of a server, or of what stands in for it; or why there is none."""
    if not server.double:
        offers = await _live_offers(server, tokens)
        return offers if isinstance(offers, str) else inventory_of(server.name, offers)
    if not server.double.play:
        return await _begin_recording(server, tokens, hide)
    if problem := problem_with(server.double):
        return f"the MCP server `{server.name}`: {problem}"
    recorded, words = read_played(server.double).offers, str(server.double)
    drift: list[str] = []
    if server.double.asks or (compare and (server.command or server.url)):
        real = replace(server, double=replace(server.double, unknown="ask"))  # which is reached
        live = await _live_offers(real, tokens)
        if isinstance(live, str):
            return live
        live = _as_recorded(live, hide)
        drift = differences(recorded, live)
        other = "" if server.double.mock else versions(recorded, live)
        drift += [other] if other else []
    return inventory_of(server.name, recorded, stand_in=words, is_mock=server.double.mock, drift=tuple(drift))


async def _begin_recording(server: McpServer, tokens: AccessTokens, hide: Hide) -> Inventory | str:
    """Record what a server offers; a recording of another version is not mixed with it."""
    assert server.double
    offers = await _live_offers(server, tokens)
    if isinstance(offers, str):
        return offers
    folder, kept = Path(server.double.record), _as_recorded(offers, hide)
    try:
        changed = differences(read_cassette(folder).offers, kept) if is_recording(folder) else []
        if changed:
            return (
                f"the MCP server `{server.name}` is not the one that was recorded in {server.double.shown} "
                f"({'; '.join(changed)}): remove that folder, or record into another one"
            )
        await asyncio.to_thread(write_offers, folder, kept)
    except CassetteError as error:
        return f"the MCP server `{server.name}` cannot be recorded in {server.double.shown}: {error}"
    return inventory_of(server.name, offers)


def _as_recorded(offers: dict[str, Any], hide: Hide) -> dict[str, Any]:
    return msgspec.json.decode(hide(msgspec.json.encode(offers).decode()), type=dict[str, Any])


async def _live_offers(server: McpServer, tokens: AccessTokens) -> dict[str, Any] | str:
    """Return what a server offers, started or reached for that; or why it cannot be used."""
    try:
        (server,) = await tokens.authorised([server])
    except ServerError as error:
        return str(error)
    with tempfile.TemporaryDirectory(prefix="fairtrial-preflight-") as empty:  # in the place of a workspace
        server = server.placed(Path(empty))
        try:
            async with connected(server) as client, time_limit(server.timeout):
                offers = await offers_of(client)
        except ServerError as error:
            return str(error)
        except Exception as error:
            return f"the MCP server `{server.name}` ({server.shown()}) failed to list its tools: {first_reason(error)}"
    if not any(offers.get(name) for name in ("tools", "resources", "resourceTemplates", "prompts")):
        return f"the MCP server `{server.name}` ({server.shown()}) offers no tools"
    return offers


def with_tools(arms: Iterable[Arm], inventory: Iterable[Inventory]) -> tuple[Arm, ...]:
    """Return these arms with the tool names of their servers, so that a call can be matched to its server."""
    offered = {item.server: tuple(tool.name for tool in item.tools) for item in inventory}

    def with_tool_names(condition: Condition) -> Condition:
        servers = (replace(server, tools=offered.get(server.name, ())) for server in condition.mcp)
        return replace(condition, mcp=tuple(servers))

    return tuple(replace(arm, condition=with_tool_names(arm.condition)) for arm in arms)
