"""`tool-agent`: a small built-in agent around any model: it asks, calls the requested tools, and asks again."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import msgspec

from fairtrial.agents.mcp.offers import all_prompts, all_resources, all_tools
from fairtrial.agents.mcp.server import ServerError, all_connected, first_reason
from fairtrial.agents.record import Record
from fairtrial.agents.workspace.servers import enclosed_server
from fairtrial.core import registry
from fairtrial.core.answer import FILTERED, Answer, Failure, Request, SoFar, Usage
from fairtrial.core.events import LimitKind
from fairtrial.core.experiment import McpServer, TargetSpec
from fairtrial.core.target import Options, Target
from fairtrial.core.time_limit import time_limit
from fairtrial.core.tool_text import ToolText
from fairtrial.providers.bounds import Most, believed, maybe_billed, most_in_body
from fairtrial.providers.conversation import Conversation, Turn, read_turn
from fairtrial.providers.errors import Filtered
from fairtrial.providers.params import supported_params
from fairtrial.providers.streams import read_body
from fairtrial.providers.tools import RequestedCall, Tool, ToolResult
from fairtrial.providers.transport import HttpTarget

if TYPE_CHECKING:
    from aiohttp import ClientResponse
    from mcp.client import Client
    from mcp.types import Tool as McpTool

_MAX_NAME = 64  # the maximum that APIs accept
_MAX_RESULT = 100_000  # characters of a tool's result that the model sees
_MOST_OF_REPLY = 4096  # completion tokens to reckon with if the request sets no limit


class ToolAgentOptions(Options, frozen=True, kw_only=True):
    """`max_steps` limits how often the model is asked, `tool_timeout` how many seconds one tool call may take.

    With `resources` or `prompts`, those of the servers are tools too: `read_resource` and `get_prompt`. `model` is the
    model behind a deployment with another name.
    """

    max_steps: Annotated[int, msgspec.Meta(ge=1)] = 20
    resources: bool = False
    prompts: bool = False
    tool_timeout: Annotated[float, msgspec.Meta(gt=0)] = 60.0
    model: str | None = None


class ToolAgent(Target):
    """A model in a loop with the tools of the condition's MCP servers, which are restarted for each trial."""

    options_type: ClassVar[type[Options]] = ToolAgentOptions
    priced: ClassVar[bool] = True
    uses_tools: ClassVar[bool] = True
    limits_tools: ClassVar[bool] = True
    describes_tools: ClassVar[bool] = True
    uses_workspace: ClassVar[bool] = True
    takes_chats: ClassVar[bool] = True
    many_calls: ClassVar[bool] = True
    agent: ClassVar[bool] = True
    tells_limits: ClassVar[bool] = True

    def __init__(self, spec: TargetSpec, options: ToolAgentOptions, folder: Path) -> None:
        super().__init__(spec, options, folder)
        self._options = options
        api: type[HttpTarget] = registry.load("targets", spec.api)
        behind = {"model": options.model} if options.model else {}
        self._model = api(msgspec.structs.replace(spec, options=behind), api.options_type(**behind), folder)

    @classmethod
    def batch_problem(cls, spec: TargetSpec) -> str:
        return "an agent needs every answer of its model before it can go on"

    async def open(self, concurrency: int) -> None:
        await self._model.open(concurrency)

    async def close(self) -> None:
        await self._model.close()

    def sent(self, request: Request) -> dict[str, Any]:
        """Return the parameters of every turn."""
        return supported_params(self.spec, request.params, tools=bool(request.mcp), refused=self._model.refused)

    async def ask(self, request: Request) -> Answer | Failure:
        names = ", ".join(server.name for server in request.mcp)
        waiting = f"it was waiting for the MCP servers to start: {names}"
        request.journal.read = lambda: SoFar(doing=waiting, ready=not names)
        try:
            servers = [enclosed_server(server, request.workspace) for server in request.mcp]
            root = request.workspace.folder if request.workspace else None
            async with all_connected(servers, root) as clients:
                lists = await asyncio.gather(*(self._tools_of(server, clients[server.name]) for server in servers))
                tools = _with_unique_names([tool for tools in lists for tool in tools])
                sent = self.sent(request)
                conversation = self._model.talk(request, sent, tools)
                session = _ToolConversation(conversation, clients, tools, self._options)
                request.journal.read = session.record.so_far
                return await self._converse(session, request, sent)
        except ServerError as error:
            return Failure(kind="mcp", message=str(error), retryable=True)

    async def _tools_of(self, server: McpServer, client: Client) -> list[Tool]:
        """Return what the model can call of a server: the tools that the condition gives, and other offers as tools."""
        options = self._options
        try:
            tools = [_tool(server, tool) async for tool in all_tools(client) if server.offers(tool.name)]
            more = [tool async for tool in _offers_as_tools(server.name, client, options.resources, options.prompts)]
        except Exception as error:
            reason = first_reason(error)
            raise ServerError(f"the MCP server `{server.name}` failed to list its tools: {reason}") from None
        return [*tools, *(msgspec.structs.replace(tool, name=_model_name(server.name, tool.tool)) for tool in more)]

    async def _converse(self, session: _ToolConversation, request: Request, sent: dict[str, Any]) -> Answer | Failure:
        for _ in range(self._options.max_steps):
            body = msgspec.json.encode(session.conversation.body())
            most = most_in_body(self.spec, request, body, sent)
            longest = _MOST_OF_REPLY if most.completion is None else most.completion
            if request.allowance and not request.allowance.bears(session.spent, most.prompt, longest):
                return session.stopped("money", request.allowance.usd)
            async with request.turnstile.call(len(body), longest) if request.turnstile else nullcontext():
                turn = await self._turn(session.conversation, body)
            if isinstance(turn, Failure):
                turn = self._model.learned(turn, request, sent)
            if request.turnstile is not None:
                request.turnstile.used(turn.usage)
            if isinstance(turn, Failure) and turn.kind == "context" and session.record.turns:
                return session.stopped("tokens", None)  # with what it read, it has filled the context of its model
            if isinstance(turn, Failure):
                return session.failed(turn)
            session.record_turn(turn, most)
            if not turn.calls:
                return session.answer(turn)
            session.conversation.add(turn, await session.call_all(turn.calls))
        return session.stopped("turns", self._options.max_steps)

    async def _turn(self, conversation: Conversation, body: bytes) -> Turn | Failure:
        async def receive(response: ClientResponse) -> Turn | Failure:
            return read_turn(conversation, await read_body(response))

        result = await self._model.post(body, receive)
        self.quota = self._model.quota
        if isinstance(result, Filtered):  # which ends the conversation
            return Turn(text=result.text, finish_reason=FILTERED, usage=Usage())
        return result


class _ToolConversation:
    """One conversation with its tools, and the record of it."""

    def __init__(
        self,
        conversation: Conversation,
        clients: dict[str, Client],
        tools: list[Tool],
        options: ToolAgentOptions,
    ) -> None:
        self.conversation = conversation
        self.record = Record([])
        self.record.turns, self.record.servers = 0, dict.fromkeys(clients, "connected")
        self.spent = Usage()  # turns whose tokens are unknown count with the most that they can have used
        self._clients, self._options = clients, options
        self._tools = {tool.name: tool for tool in tools}
        self._costs: list[float] = []
        self._turns = self._uncounted = 0

    def record_turn(self, turn: Turn, most: Most) -> None:
        """Record a turn of the model, which can have used this much."""
        self._turns = self.record.turns = self._turns + 1
        counted = believed(turn.answer(None), most).usage
        self._uncounted += counted is None
        self.record.used(counted or Usage())
        self.spent += counted or Usage(prompt=most.prompt, completion=most.completion or _MOST_OF_REPLY)
        self._costs += [turn.cost_usd] if turn.cost_usd is not None else []
        if turn.thinking:
            self.record.think(turn.thinking)
        if turn.text:
            self.record.say(turn.text)

    async def call_all(self, calls: tuple[RequestedCall, ...]) -> list[ToolResult]:
        return list(await asyncio.gather(*map(self._call, calls)))

    async def _call(self, call: RequestedCall) -> ToolResult:
        tool, name = self._tools.get(call.name), str(self.record.steps)  # models may give several calls one id
        self.record.call(name, tool.tool if tool else call.name, tool.server if tool else None, call.arguments)
        if tool is None:
            result = ToolResult(call=call, text=f"there is no tool `{call.name}`", error=True)
        elif call.problem:
            result = ToolResult(call=call, text=call.problem, error=True)
        else:
            result = await self._ask_server(tool, call)
        self.record.returned(name, result.text, error=result.error)
        return result

    async def _ask_server(self, tool: Tool, call: RequestedCall) -> ToolResult:
        """Call a tool; its errors are returned to the model and do not fail the trial."""
        try:
            async with time_limit(self._options.tool_timeout):
                client = self._clients[tool.server]
                if tool.kind != "tool":
                    return ToolResult(call=call, text=(await _offered(client, tool, call.arguments))[:_MAX_RESULT])
                reply = await client.call_tool(tool.tool, call.arguments)
        except TimeoutError:
            return ToolResult(call=call, text=f"no answer within {self._options.tool_timeout:g} s", error=True)
        except Exception as error:  # the server may have died or may send invalid data
            return ToolResult(call=call, text=f"the tool failed: {first_reason(error)}", error=True)
        text = "\n".join(map(_block_text, reply.content))
        if not text and reply.structured_content is not None:
            text = msgspec.json.encode(reply.structured_content).decode()
        return ToolResult(call=call, text=text[:_MAX_RESULT], error=bool(reply.is_error))

    def stopped(self, kind: LimitKind, limit: float | None) -> Answer:
        """Return the last message, with what was done and spent until a limit was reached."""
        self.record.stopped(kind, limit)
        answer = self.record.unfinished()
        usage = self.record.usage or Usage()  # it may not have begun
        return msgspec.structs.replace(answer, usage=usage, given_up=bool(self._uncounted), first_token_ms=None)

    def failed(self, turn: Failure) -> Failure:
        """Return the failure of a turn with what was done and spent before; that is the least if a part is unknown."""
        more = bool(self._uncounted) or turn.given_up or (turn.usage is None and maybe_billed(turn))
        usage = (self.record.usage or Usage()) + (turn.usage or Usage())
        return msgspec.structs.replace(turn, usage=usage, given_up=more, trace=self.record.trace())

    def answer(self, turn: Turn) -> Answer:
        """Return the model's final answer with the record of the whole conversation."""
        self.record.model = turn.model
        answer = self.record.answer(turn.text, turn.finish_reason)
        return msgspec.structs.replace(
            answer,
            usage=None if self._uncounted else answer.usage,  # unknown if any turn did not report it
            first_token_ms=None,  # turns are read whole
            cost_usd=sum(self._costs) if len(self._costs) == self._turns else None,
        )


def _tool(server: McpServer, tool: McpTool) -> Tool:
    """Return a tool as the model sees it: in the condition's words, where it has any, or in those of the server."""
    text = next((text for text in server.texts if text.tool == tool.name), ToolText(tool=tool.name))
    return Tool(
        name=_model_name(server.name, tool.name),
        server=server.name,
        tool=tool.name,
        description=(tool.description or "") if text.description is None else text.description,
        schema=text.of_schema(tool.input_schema),
    )


def _model_name(server: str, tool: str) -> str:
    """Return a tool name that every API accepts, prefixed with its server."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", f"{server}__{tool}")[:_MAX_NAME]


def _with_unique_names(tools: list[Tool]) -> list[Tool]:
    """Number tools whose names became equal when characters that APIs reject were replaced."""
    counts: dict[str, int] = {}
    result = []
    for tool in tools:
        counts[tool.name] = count = counts.get(tool.name, 0) + 1
        name = tool.name if count == 1 else f"{tool.name[: _MAX_NAME - 4]}_{count}"
        result.append(msgspec.structs.replace(tool, name=name))
    return result


def _block_text(block: Any) -> str:
    """Return a part of a tool's result as text; images and audio are only named."""
    if block.type == "text":
        return str(block.text)
    if block.type == "resource":
        return str(getattr(block.resource, "text", None) or f"[{block.resource.uri}]")
    return f"[{block.uri}]" if block.type == "resource_link" else f"[{block.type}]"


async def _offers_as_tools(server: str, client: Client, resources: bool, prompts: bool) -> AsyncIterator[Tool]:
    """Yield a tool that reads resources and one that gets prompts, where they are wanted and the server has any."""
    capabilities = client.server_capabilities
    if resources and capabilities.resources is not None:
        addresses = [uri async for uri in all_resources(client)]
        if addresses:
            words = "\n".join(["Read one of these resources; parts in braces are to be filled in:", *addresses])
            yield _tool_for(server, "read_resource", words, {"uri": {"type": "string"}}, "resource")
    if prompts and capabilities.prompts is not None:
        described = [
            f"{prompt.name} ({', '.join(one.name for one in prompt.arguments or ())}): {prompt.description or ''}"
            async for prompt in all_prompts(client)
        ]
        if described:
            words = "\n".join(["Get one of these prompts, each with its arguments:", *described])
            properties = {"name": {"type": "string"}, "arguments": {"type": "object"}}
            yield _tool_for(server, "get_prompt", words, properties, "prompt")


def _tool_for(server: str, name: str, description: str, properties: dict[str, Any], kind: Any) -> Tool:
    schema = {"type": "object", "properties": properties, "required": [next(iter(properties))]}
    return Tool(name=name, server=server, tool=name, description=description, schema=schema, kind=kind)


async def _offered(client: Client, tool: Tool, arguments: dict[str, Any]) -> str:
    """Return the text of the resource or prompt that a model asks for."""
    if tool.kind == "resource":
        contents = (await client.read_resource(str(arguments["uri"]))).contents
        return "\n".join(getattr(part, "text", None) or f"[{part.uri}]" for part in contents)
    given = {name: str(value) for name, value in (arguments.get("arguments") or {}).items()}
    messages = (await client.get_prompt(str(arguments["name"]), given)).messages
    return "\n\n".join(f"{one.role}: {getattr(one.content, 'text', f'[{one.content.type}]')}" for one in messages)
