"""An MCP server behind OAuth, made with the protocol's own library, with an authorization server that knows one client.

`python protected.py PORT`: the server at /mcp wants tokens, which /token gives for the client `robot` with `s3cret`.
"""

import base64
import sys

import uvicorn
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver import MCPServer
from starlette.requests import Request
from starlette.responses import JSONResponse

PORT = int(sys.argv[1])
BASE = f"http://127.0.0.1:{PORT}"
TOKEN = "token-of-the-robot"


class Verifier:
    """Knows the one token."""

    async def verify_token(self, token: str) -> AccessToken | None:
        return AccessToken(token=token, client_id="robot", scopes=["facts"]) if token == TOKEN else None


settings = AuthSettings(
    issuer_url=BASE, resource_server_url=f"{BASE}/mcp", required_scopes=["facts"], validate_token_resource=False
)
server = MCPServer("vault", version="1.0", auth=settings, token_verifier=Verifier())
issued = []


@server.tool()
def lookup(topic: str) -> str:
    """What is known about a topic."""
    return f"The {topic} is 4711, after {len(issued)} tokens."


@server.custom_route("/.well-known/oauth-authorization-server", methods=["GET"])
async def metadata(request: Request) -> JSONResponse:
    """Say where tokens are given."""
    return JSONResponse(
        {
            "issuer": BASE,
            "authorization_endpoint": f"{BASE}/authorize",
            "token_endpoint": f"{BASE}/token",
            "response_types_supported": ["code"],
            "grant_types_supported": ["client_credentials"],
            "token_endpoint_auth_methods_supported": ["client_secret_basic"],
        }
    )


@server.custom_route("/token", methods=["POST"])
async def token(request: Request) -> JSONResponse:
    """Give a token to the client that has the secret."""
    given = base64.b64decode(request.headers.get("authorization", "").removeprefix("Basic ") or "").decode()
    form = await request.form()
    if given != "robot:s3cret" or form.get("grant_type") != "client_credentials":
        return JSONResponse({"error": "invalid_client"}, status_code=401)
    issued.append(form.get("scope"))
    return JSONResponse({"access_token": TOKEN, "token_type": "Bearer", "expires_in": 3600, "scope": "facts"})


uvicorn.run(server.streamable_http_app(), host="127.0.0.1", port=PORT, log_level="warning")
