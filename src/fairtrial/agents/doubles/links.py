"""Ways to an MCP server for `double.py`, which runs without the package: a program, or an address.

`send` takes a line with a message; whatever the server says comes to `take`, line by line, from threads.
"""

import json
import os
import sys
import threading
from contextlib import suppress

TYPE_CHECKING = False  # `typing` would take longer to import than all the rest
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from http.client import HTTPResponse
    from typing import Any, Protocol

    Take = Callable[[bytes], None]

    class Link(Protocol):
        """A way to a server."""

        def send(self, line: bytes) -> None:
            """Send a line with a message."""

        def close(self) -> None:
            """Let the server end."""


HEADERS = "FAIRTRIAL_HEADERS"  # a variable, because every user can read command lines
_PATIENCE = 5.0  # seconds that a server has to end by itself
_NO_METHOD, _INTERNAL = -32601, -32603


def connect(settings: "dict[str, Any]", command: "list[str]", take: "Take", ended: "Callable[[int], object]") -> "Link":
    """Return the way to a server; `ended` is called with the status of a program that ends."""
    if command:
        return _Program(command, take, ended)
    headers = json.loads(os.environ.pop(HEADERS, "{}"))
    kind = _Stream if settings["transport"] == "sse" else _Address
    return kind(settings["url"], headers, take)


class _Program:
    """A server that is a program: it lives as long as we do."""

    def __init__(self, command: "list[str]", take: "Take", ended: "Callable[[int], object]") -> None:
        import subprocess  # it takes as long to import as all the rest, and is only needed with a program

        try:
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        except OSError as error:
            sys.stderr.write(f"{command[0]} cannot be started: {error.strerror}\n")
            ended(127)
            raise
        self._take, self._ended = take, ended
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._take(line)
        self._ended(self._process.wait())

    def send(self, line: bytes) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line)
            self._process.stdin.flush()
        except OSError:  # it has ended, and the listener knows
            pass

    def close(self) -> None:
        self._ended = lambda _: None
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()
        patience = threading.Timer(_PATIENCE, self._process.kill)
        patience.start()
        self._process.wait()
        patience.cancel()
        self._listener.join(_PATIENCE)


class _Address:
    """A server that takes every message by a POST, and answers with JSON or with a stream of events."""

    def __init__(self, url: str, headers: "dict[str, str]", take: "Take") -> None:
        self._url, self._headers, self._take = url, headers, take
        self._session: dict[str, str] = {}

    def send(self, line: bytes) -> None:
        message = json.loads(line)
        if message.get("method") == "server/discover":  # the handshake of later versions needs headers of each call
            self._fail(message, _NO_METHOD, "Method not found")
        elif "id" in message and message.get("method") not in (None, "initialize"):
            threading.Thread(target=self._post, args=(line, message), daemon=True).start()
        else:
            self._post(line, message)

    def _post(self, line: bytes, message: "dict[str, Any]") -> None:
        kinds = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        try:
            with _opened(self._url, {**self._headers, **kinds, **self._session}, line) as response:
                if session := response.headers.get("Mcp-Session-Id"):
                    self._session["Mcp-Session-Id"] = session
                for answer in _answers(response):
                    self._heard(message, answer)
        except (OSError, ValueError) as error:
            if "id" in message and "method" in message:
                self._fail(message, _INTERNAL, f"the server cannot be reached: {error}")

    def _heard(self, asked: "dict[str, Any]", answer: bytes) -> None:
        if asked.get("method") == "initialize":
            result = json.loads(answer).get("result")
            if isinstance(result, dict) and "protocolVersion" in result:
                self._session["MCP-Protocol-Version"] = str(result["protocolVersion"])
        self._take(answer + b"\n")

    def _fail(self, message: "dict[str, Any]", code: int, problem: str) -> None:
        error = {"jsonrpc": "2.0", "id": message["id"], "error": {"code": code, "message": problem}}
        self._take(json.dumps(error).encode() + b"\n")

    def close(self) -> None:
        if "Mcp-Session-Id" not in self._session:
            return
        try:
            with _opened(self._url, {**self._headers, **self._session}, None, "DELETE"):
                pass
        except (OSError, ValueError):  # not every server has sessions that can be ended
            pass


class _Stream:
    """A server of the older kind: it answers on one stream of events, which says where messages are taken."""

    def __init__(self, url: str, headers: "dict[str, str]", take: "Take") -> None:
        self._url, self._headers, self._take = url, headers, take
        self._ready, self._endpoint = threading.Event(), ""
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        try:
            with _opened(self._url, {**self._headers, "Accept": "text/event-stream"}, None, "GET") as response:
                for kind, data in _events(response):
                    if kind == b"endpoint":
                        import urllib.parse  # as in `_opened`

                        self._endpoint = urllib.parse.urljoin(self._url, data.decode())
                        self._ready.set()
                    else:
                        self._take(b" ".join(data.splitlines()) + b"\n")
        except (OSError, ValueError) as error:
            sys.stderr.write(f"the server cannot be reached: {error}\n")
        os._exit(1)

    def send(self, line: bytes) -> None:
        self._ready.wait()
        try:
            with _opened(self._endpoint, {**self._headers, "Content-Type": "application/json"}, line):
                pass
        except (OSError, ValueError) as error:
            sys.stderr.write(f"the server cannot be reached: {error}\n")
            os._exit(1)

    def close(self) -> None:
        """The stream ends with us."""


def _opened(url: str, headers: "dict[str, str]", body: "bytes | None", method: str = "POST") -> "HTTPResponse":
    import urllib.error  # these take longer to import than all the rest, and are only needed for servers elsewhere
    import urllib.request

    request = urllib.request.Request(url, body, headers, method=method)  # noqa: S310  # an address of the suite
    try:
        return urllib.request.urlopen(request)  # type: ignore[no-any-return]  # noqa: S310
    except urllib.error.HTTPError as error:
        raise OSError(f"HTTP {error.code}") from None


def _answers(response: "HTTPResponse") -> "Iterator[bytes]":
    """Yield the messages of a reply, each in one line."""
    if response.headers.get_content_type() == "text/event-stream":
        for _, data in _events(response):
            yield b" ".join(data.splitlines())
    elif body := response.read().strip():
        yield b" ".join(body.splitlines())


def _events(response: "HTTPResponse") -> "Iterator[tuple[bytes, bytes]]":
    """Yield the kind and the data of every event of a stream."""
    kind, data = b"", list[bytes]()
    for line in response:
        name, _, value = line.rstrip(b"\r\n").partition(b":")
        if name == b"event":
            kind = value.strip()
        elif name == b"data":
            data.append(value.removeprefix(b" "))
        elif not line.strip() and data:
            yield kind, b"\n".join(data)
            kind, data = b"", []
