"""Tokens for MCP servers that OAuth protects: fetched with a client's credentials, kept until they expire."""

from __future__ import annotations

import asyncio
import time
import warnings
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from fairtrial.agents.mcp.server import ServerError, first_reason
from fairtrial.core.errors import NotInstalledError
from fairtrial.core.experiment import McpServer
from fairtrial.core.time_limit import time_limit

_MARGIN = 60.0  # seconds before its end at which a token is not used any more
_DEFAULT_LIFE = 300.0  # seconds, where the authorization server does not say
_PROBE = {"jsonrpc": "2.0", "id": 0, "method": "ping"}


class AccessTokens:
    """The tokens of one session of work; trials that start at the same time share one request for a token."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str, str], tuple[str, float]] = {}
        self._lock = asyncio.Lock()

    async def authorised(self, servers: Sequence[McpServer]) -> tuple[McpServer, ...]:
        """Return these servers with a header for access, where they need one; raise ServerError if it is refused."""
        return tuple([await self._authorised(server) if _needs_token(server) else server for server in servers])

    async def _authorised(self, server: McpServer) -> McpServer:
        assert server.auth is not None
        key = (server.url, server.auth.client_id, server.auth.scope)
        async with self._lock:
            token, ends = self._kept.get(key, ("", 0.0))
            if time.monotonic() > ends:
                token, life = await _fetch(server)
                self._kept[key] = (token, time.monotonic() + max(0.0, life - _MARGIN))
        return replace(server, headers={**server.headers, "Authorization": f"Bearer {token}"})


def _needs_token(server: McpServer) -> bool:
    """Return whether a server is reached at all and asks for a token."""
    return server.auth is not None and (not server.double or server.double.asks)


async def _fetch(server: McpServer) -> tuple[str, float]:
    """Return a new token and for how many seconds it is valid."""
    try:
        async with time_limit(server.timeout):
            return await _ask(server)
    except TimeoutError:
        problem = f"no token within {server.timeout:g} s"
    except Exception as error:  # of the network, of the flow, or of what a server answers
        problem = first_reason(error)
    raise ServerError(f"the MCP server `{server.name}` ({server.shown()}) gives no access: {problem}")


async def _ask(server: McpServer) -> tuple[str, float]:
    """Knock at the server: its refusal says where tokens are given, as the protocol's own client follows it up."""
    try:
        from mcp.client.auth import OAuthFlowError
        from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
        from mcp.shared._httpx_utils import create_mcp_http_client
    except ImportError:
        raise NotInstalledError("MCP servers", "agents") from None
    assert server.auth is not None
    storage = _Storage()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about an issuer that is not given, which the documentation is about
        provider = ClientCredentialsOAuthProvider(
            server_url=server.url,
            storage=storage,
            client_id=server.auth.client_id,
            client_secret=server.auth.client_secret,
            scope=server.auth.scope or None,
            issuer=server.auth.issuer or None,
        )
    headers = {**server.headers, "Accept": "application/json, text/event-stream"}
    async with (
        create_mcp_http_client(headers=headers, auth=provider) as client,
        client.stream("POST", server.url, json=_PROBE) as response,
    ):
        refused = response.status_code in (401, 403)
    if storage.tokens is None:
        raise OAuthFlowError(
            "it does not ask for a token" if not refused else "it refused, and named no authorization server"
        )
    if refused:
        raise OAuthFlowError("it refused the token")
    return storage.tokens.access_token, float(storage.tokens.expires_in or _DEFAULT_LIFE)


class _Storage:
    """Keeps what the protocol's client got, for as long as it takes to read it."""

    def __init__(self) -> None:
        self.tokens: Any = None
        self._client: Any = None

    async def get_tokens(self) -> Any:
        return self.tokens

    async def set_tokens(self, tokens: Any) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> Any:
        return self._client

    async def set_client_info(self, client_info: Any) -> None:
        self._client = client_info
