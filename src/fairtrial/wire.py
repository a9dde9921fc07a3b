"""What targets that speak HTTP share: a session, server-sent events, and foreign errors as failures."""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlsplit

import msgspec

from fairtrial.core.answer import Answer, Failure, Request
from fairtrial.core.errors import TargetUnusableError
from fairtrial.core.suite import TargetSpec
from fairtrial.core.target import Target

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession

_REACH_SECONDS = 10.0


class ErrorBody(msgspec.Struct):
    """The shape that OpenAI, Anthropic and their imitators give their errors."""

    error: Any = None
    message: Any = None
    detail: Any = None


_error_body = msgspec.json.Decoder(ErrorBody)


class HttpTarget(Target):
    """A model behind an HTTP API: a subclass says what is sent and how a reply is read."""

    priced: ClassVar[bool] = True

    async def open(self, concurrency: int) -> None:
        self._session = await open_session(self.spec, self.headers())

    async def close(self) -> None:
        if hasattr(self, "_session"):
            await self._session.close()

    async def ask(self, request: Request) -> Answer | Failure:
        body = msgspec.json.encode(self.body(request))
        started = time.perf_counter()
        headers_seen = False
        try:
            async with self._session.post(self.url(), data=body, allow_redirects=False) as response:
                headers_seen = True
                if response.status != 200:
                    return await failure_of_response(response, streaming=request.stream)
                if request.stream and response.content_type == "text/event-stream":
                    return await self.read_stream(response, started)
                return self.read_whole(await response.read(), started)
        except Exception as error:  # the seam: `failure_of` raises again what is not the network's
            return failure_of(error, streaming=request.stream and headers_seen)

    def url(self) -> str:
        """Where requests go."""
        raise NotImplementedError

    def headers(self) -> dict[str, str]:
        """Who we are."""
        raise NotImplementedError

    def body(self, request: Request) -> dict[str, Any]:
        """What is sent."""
        raise NotImplementedError

    def read_whole(self, body: bytes, started: float) -> Answer | Failure:
        """A reply that came in one piece."""
        raise NotImplementedError

    async def read_stream(self, response: ClientResponse, started: float) -> Answer | Failure:
        """A reply that comes as server-sent events."""
        raise NotImplementedError


async def open_session(spec: TargetSpec, headers: dict[str, str]) -> ClientSession:
    """A session for one target, once its server was seen to listen."""
    import aiohttp

    await reach(spec)
    return aiohttp.ClientSession(
        headers={"Content-Type": "application/json", **headers, **spec.headers},
        connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=300),
        timeout=aiohttp.ClientTimeout(total=None),  # the engine has the clock
        proxy=_proxy(spec.base_url),  # looked up once: `trust_env` would start a thread for every call
        read_bufsize=2**18,
    )


async def reach(spec: TargetSpec, seconds: float = _REACH_SECONDS) -> None:
    """Fail before anything is spent when nobody listens at the address."""
    address = urlsplit(spec.base_url)
    if address.scheme not in ("http", "https") or not address.hostname:
        raise TargetUnusableError(f"{spec.id}: `{spec.base_url}` is no web address; correct its base URL")
    if _proxy(spec.base_url):
        return  # only the proxy could be reached, which proves nothing
    port = address.port or (443 if address.scheme == "https" else 80)
    try:
        async with asyncio.timeout(seconds):
            _, writer = await asyncio.open_connection(address.hostname, port)
        writer.close()
    except (OSError, TimeoutError) as error:
        reason = "no answer" if isinstance(error, TimeoutError) else (error.strerror or str(error))
        raise TargetUnusableError(
            f"{spec.id}: nobody answers at {spec.base_url} ({reason}); start the server or correct its base URL"
        ) from None


def _proxy(url: str) -> str | None:
    """The proxy between here and there, as HTTP_PROXY, HTTPS_PROXY and NO_PROXY have it."""
    from urllib.request import getproxies, proxy_bypass

    address = urlsplit(url)
    host = address.hostname or ""
    try:
        if ipaddress.ip_address(host).is_loopback:
            return None
    except ValueError:
        pass
    return None if proxy_bypass(host) else getproxies().get(address.scheme)


def failure_of(error: Exception, *, streaming: bool) -> Failure:
    """An exception of the HTTP client as a failure."""
    import aiohttp

    text = str(error) or type(error).__name__
    if isinstance(error, aiohttp.ClientConnectorError):
        return Failure(kind="connection", message=f"cannot connect: {text}", retryable=True)
    if isinstance(error, aiohttp.ClientError | OSError):
        # Only what broke inside a stream is worth asking again without one.
        kind = "stream" if streaming else "connection"
        return Failure(kind=kind, message=f"the connection broke: {text}", retryable=True)
    raise error


async def failure_of_response(response: ClientResponse, *, streaming: bool) -> Failure:
    """An HTTP error status as a failure."""
    failure = failure_of_status(response.status, await response.read(), response.headers.get("Retry-After"))
    if streaming and failure.kind == "refused" and "stream" in failure.message.lower():
        # A server that cannot stream, or not with usage: worth asking again without a stream.
        return Failure(kind="stream", message=failure.message, retryable=True)
    return failure


def failure_of_status(status: int, body: bytes, retry_after: str | None = None) -> Failure:
    """What an error status means for the call and for the target."""
    message = f"HTTP {status}: {_message(body)}"
    if status == 429:
        return Failure(kind="rate_limited", message=message, retryable=True, retry_after=_seconds(retry_after))
    if status >= 500:
        return Failure(kind="server", message=message, retryable=True, retry_after=_seconds(retry_after))
    if 300 <= status < 400:  # following it would carry the key to somebody else
        return Failure(kind="refused", message=f"HTTP {status}: the server redirects; give the address it redirects to")
    if status in (401, 402, 403):
        return Failure(kind="auth", message=message)
    if status == 404:
        return Failure(kind="model", message=message)
    return Failure(kind="refused", message=message)


def _message(body: bytes) -> str:
    try:
        parsed = _error_body.decode(body)
        error = parsed.error if parsed.error is not None else parsed.message or parsed.detail
        text = error.get("message") if isinstance(error, dict) else error
        text = str(text) if text else body.decode("utf-8", "replace")
    except (msgspec.MsgspecError, UnicodeDecodeError):
        text = body.decode("utf-8", "replace")
    return (
        " ".join(text.split()) or "no message"
    )  # whoever shows it hides values before cutting: half of one would stay


def _seconds(retry_after: str | None) -> float | None:
    """`Retry-After` in seconds; it may also be a date."""
    if not retry_after:
        return None
    try:
        return max(0.0, float(retry_after))
    except ValueError:
        pass
    from email.utils import parsedate_to_datetime

    try:
        return max(0.0, parsedate_to_datetime(retry_after).timestamp() - time.time())
    except ValueError:
        return None


async def sse_data(response: ClientResponse) -> AsyncIterator[bytes]:
    """The `data` of each server-sent event."""
    unfinished: list[bytes] = []  # pieces of a line whose end has not come; joined once, however many there are
    async for chunk in response.content.iter_any():
        lines = chunk.split(b"\n")
        if len(lines) > 1:
            lines[0] = b"".join([*unfinished, lines[0]])
            unfinished.clear()
        unfinished.append(lines.pop())
        for line in lines:
            if line.startswith(b"data:"):
                yield line[5:].strip()
    rest = b"".join(unfinished)
    if rest.startswith(b"data:"):
        yield rest[5:].strip()
