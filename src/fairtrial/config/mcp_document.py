"""The keys of an MCP server in a suite file."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from fairtrial.config.case_document import Keys


class AuthEntry(Keys, frozen=True, kw_only=True):
    """Access to a server that OAuth protects: a token, or the credentials of a client to get tokens with."""

    shorthand: ClassVar[str] = "token"
    token: Annotated[str | None, Meta(description="A bearer token, such as ${MY_TOKEN}.")] = None
    client_id: str | None = None
    client_secret: Annotated[str | None, Meta(description="Such as ${MY_CLIENT_SECRET}.")] = None
    issuer: Annotated[
        str | None, Meta(description="The authorization server: the secret is sent there and nowhere else.")
    ] = None
    scope: Annotated[str | None, Meta(description="What to ask for, separated by blanks.")] = None


class McpEntry(Keys, frozen=True, kw_only=True):
    """An MCP server, in the format of desktop clients."""

    command: Annotated[
        str | list[str] | None,
        Meta(description="A program that speaks MCP on stdin and stdout; in a list with its arguments."),
    ] = None
    args: list[str] = []
    env: dict[str, str] = {}
    cwd: Annotated[str | None, Meta(description="Its working directory; default: the suite's folder.")] = None
    url: Annotated[str | None, Meta(description="The address of a running server.")] = None
    type: Literal["stdio", "http", "streamable-http", "streamable_http", "streamableHttp", "sse"] | None = None
    transport: Literal["stdio", "http", "streamable-http", "streamable_http", "streamableHttp", "sse"] | None = None
    headers: dict[str, str] = {}
    auth: Annotated[AuthEntry | None, Meta(description="For a server protected by OAuth.")] = None
    description: str = ""
    disabled: bool = False
    auto_approve: Annotated[Any, Meta(description="For desktop clients; ignored here.")] = msgspec.field(
        default=None, name="autoApprove"
    )
    always_allow: Any = msgspec.field(default=None, name="alwaysAllow")
    timeout: Annotated[float, Meta(gt=0, le=3600, description="Seconds it may take to start.")] = 120.0
    roots: Annotated[
        bool, Meta(description="Tell it the folder in which the agent works, instead of its own folders.")
    ] = False
    record: Annotated[
        str | None,
        Meta(description="A folder next to the suite, in which what the server offers and returns is kept."),
    ] = None
    replay: Annotated[str | None, Meta(description="A recording that answers in the server's place.")] = None
    mock: Annotated[
        str | None, Meta(description="A YAML file with tools and their answers, in the server's place.")
    ] = None
    unknown: Annotated[
        Any,
        Meta(description="What other calls come to: `fail`, `ask` (the server), {error: TEXT} or {result: …}."),
    ] = None
    ignore: Annotated[
        list[str], Meta(description="Arguments (or JSON pointers into them) that make no difference in a `replay`.")
    ] = []
