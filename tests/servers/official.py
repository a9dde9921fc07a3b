"""The server of facts.py, made with the protocol's own library, over stdio or HTTP: starting it takes two seconds."""

import os
import sys

from mcp.server.mcpserver import MCPServer
from mcp.types import EmbeddedResource, ResourceLink, TextResourceContents

server = MCPServer("facts", version="1.2.3")


@server.tool()
def lookup(topic: str) -> str:
    """What is known about a topic."""
    return f"The {topic} is 4711."


@server.tool()
def look_around() -> str:
    """Where the server is, and what it sees of the environment."""
    return f"{os.getcwd()} {sorted(os.environ)}"


@server.tool(name="get.item")
def get_dotted() -> str:
    """One of two tools whose names differ only in a sign."""
    return "dotted"


@server.tool(name="get_item")
def get_plain() -> str:
    """The other one."""
    return "plain"


@server.tool()
def paper() -> list[EmbeddedResource | ResourceLink]:
    """A text that is no text block, and a link."""
    text = TextResourceContents(uri="memo://1", text="the memo says 4711", mime_type="text/plain")
    return [
        EmbeddedResource(type="resource", resource=text),
        ResourceLink(type="resource_link", name="m", uri="memo://2"),
    ]


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def serve(transport: str, port: int) -> None:
    """Over HTTP, for those who know the key."""
    import uvicorn
    from starlette.responses import PlainTextResponse

    app = server.sse_app() if transport == "sse" else server.streamable_http_app()

    async def guarded(scope, receive, send):
        headers = dict(scope.get("headers") or ())
        if scope["type"] == "http" and headers.get(b"x-key") != b"open sesame":
            await PlainTextResponse("no key", status_code=401)(scope, receive, send)
            return
        await app(scope, receive, send)

    uvicorn.run(guarded, host="127.0.0.1", port=port, log_level="warning")


if __name__ == "__main__":
    if sys.argv[1:2] in (["sse"], ["http"]):
        serve(sys.argv[1], int(sys.argv[2]))
        sys.exit()
    server.run()
