"""What HTTP targets share: the session, requests, and turning errors into failures."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import time
import zlib
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlsplit, urlunsplit

import msgspec

from fairtrial.core.answer import FILTERED, Answer, Failure, Request, Usage
from fairtrial.core.errors import TargetUnusableError
from fairtrial.core.experiment import TargetSpec
from fairtrial.core.listening import Listener
from fairtrial.core.providers import Provider
from fairtrial.core.target import Target
from fairtrial.core.time_limit import time_limit
from fairtrial.providers.conversation import Conversation
from fairtrial.providers.params import Api, supported_params
from fairtrial.providers.replies import UNREADABLE
from fairtrial.providers.streams import TooLargeError, read_beginning, read_body

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession

_REACH_SECONDS = 10.0
_MAX_TEXT = 16 * 2**20  # characters of a streamed answer, with its reasoning


class ErrorBody(msgspec.Struct):
    """The error format of OpenAI, Anthropic and compatible servers."""

    error: Any = None
    message: Any = None
    detail: Any = None
    code: Any = None


_error_body = msgspec.json.Decoder(ErrorBody)


class Filtered(msgspec.Struct, frozen=True):
    """An error status that means the provider's filter blocked the prompt. It counts as a special kind of answer."""

    text: str


class HttpTarget(Target):
    """A model behind an HTTP API; subclasses define what is sent and how a reply is read."""

    priced: ClassVar[bool] = True
    # If this is set, `targets/NAME_api.py` serves `NAME:model` without further configuration.
    provider: ClassVar[Provider | None] = None
    api: ClassVar[Api] = Api()
    conversation: ClassVar[type[Conversation]]  # how its models receive tools

    async def open(self, concurrency: int) -> None:
        self._session = await open_session(self.spec, self.headers(self.spec))

    async def close(self) -> None:
        if hasattr(self, "_session"):
            await self._session.close()

    def sent(self, request: Request) -> dict[str, Any]:
        return supported_params(self.spec, request.params)

    async def ask(self, request: Request) -> Answer | Failure:
        body = msgspec.json.encode(self.body(request))
        started = time.perf_counter()
        answering = False
        try:
            async with self._session.post(self.url(), data=body, allow_redirects=False) as response:
                if response.status != 200:
                    return as_answer(await error_of(response, streaming=request.stream), started)
                answering = True
                if request.stream and response.content_type == "text/event-stream":
                    return await self.read_stream(response, Collected(request.listener, started))
                return self.read_whole(await read_body(response), started)
        except Exception as error:  # `failure_of` re-raises everything that is not a network error
            return failure_of(error, answering=answering, streaming=request.stream)

    def url(self) -> str:
        """Return the address of requests."""
        return endpoint(self.spec.base_url, self.conversation.path)

    @staticmethod
    def headers(spec: TargetSpec) -> dict[str, str]:
        """Return the headers that authenticate requests."""
        raise NotImplementedError

    def body(self, request: Request) -> dict[str, Any]:
        """Return the request body."""
        raise NotImplementedError

    def read_whole(self, body: bytes, started: float) -> Answer | Failure:
        """Read a complete, non-streamed reply."""
        raise NotImplementedError

    async def read_stream(self, response: ClientResponse, collected: Collected) -> Answer | Failure:
        """Read a reply that is streamed as server-sent events."""
        raise NotImplementedError


def as_answer(result: Failure | Filtered, started: float | None = None) -> Answer | Failure:
    """Turn a filtered prompt into an answer: the model was not asked, and nothing was billed."""
    if isinstance(result, Failure):
        return result
    latency = (time.perf_counter() - started) * 1000 if started else 0.0
    return Answer(text=result.text, finish_reason=FILTERED, usage=Usage(), latency_ms=latency)


class Collected:
    """The pieces of a streamed answer, passed on to a listener as they arrive."""

    def __init__(self, listener: Listener, started: float) -> None:
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._size = 0
        self._listener, self._started = listener, started
        self._first: float | None = None  # when the first piece of text arrived

    def say(self, text: str) -> None:
        """Add a piece of the answer."""
        self._first = self._first or time.perf_counter()
        self._grow(text)
        self._texts.append(text)
        self._listener.piece(text)

    def think(self, thought: str) -> None:
        """Add a piece of the reasoning."""
        self._grow(thought)
        self._thoughts.append(thought)

    def _grow(self, piece: str) -> None:
        self._size += len(piece)
        if self._size > _MAX_TEXT:
            raise TooLargeError(f"an answer of more than {_MAX_TEXT >> 20} million characters")

    @property
    def text(self) -> str:
        """The answer so far."""
        return "".join(self._texts)

    @property
    def reasoning(self) -> str | None:
        """The reasoning so far."""
        return "".join(self._thoughts) or None

    @property
    def first_token_ms(self) -> float | None:
        """The time to the first piece of the answer."""
        return (self._first - self._started) * 1000 if self._first else None

    @property
    def latency_ms(self) -> float:
        """The time since the request."""
        return (time.perf_counter() - self._started) * 1000


async def open_session(spec: TargetSpec, headers: dict[str, str]) -> ClientSession:
    """Open a session for one target after checking that its server is reachable."""
    import aiohttp

    await check_reachable(spec)
    return aiohttp.ClientSession(
        headers={
            "Content-Type": "application/json",
            "Accept-Encoding": "gzip, deflate",
            **headers,
            **spec.headers,
        },
        connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=300),
        timeout=aiohttp.ClientTimeout(total=None),  # the engine enforces the timeout
        proxy=_proxy(spec.base_url),  # looked up once: `trust_env` would start a thread for every call
        read_bufsize=2**18,
        auto_decompress=False,  # a few bytes can expand to gigabytes: we decompress in pieces with a limit
    )


async def check_reachable(spec: TargetSpec, seconds: float = _REACH_SECONDS) -> None:
    """Raise an error before anything is spent if no server listens at the address."""
    address = urlsplit(spec.base_url)
    if address.scheme not in ("http", "https") or not address.hostname:
        raise TargetUnusableError(f"{spec.id}: `{spec.base_url}` is not a web address; correct the base URL")
    if _proxy(spec.base_url):
        return  # only the proxy would be tested, which proves nothing
    port = address.port or (443 if address.scheme == "https" else 80)
    try:
        async with time_limit(seconds):
            _, writer = await asyncio.open_connection(address.hostname, port)
        writer.close()
    except (OSError, TimeoutError) as error:
        reason = "no answer" if isinstance(error, TimeoutError) else (error.strerror or str(error))
        raise TargetUnusableError(
            f"{spec.id}: cannot connect to {spec.base_url} ({reason}); start the server or correct the base URL"
        ) from None


@lru_cache(maxsize=256)
def endpoint(base_url: str, path: str) -> str:
    """Join a path to a base URL, keeping the base URL's query (`?api-version=…`) at the end."""
    parts = urlsplit(base_url)
    base = parts.path.rstrip("/")
    if path.startswith("/v1/"):
        base = base.removesuffix("/v1")
    return urlunsplit(parts._replace(path=base + path))


def _proxy(url: str) -> str | None:
    """Return the proxy for a URL according to HTTP_PROXY, HTTPS_PROXY and NO_PROXY."""
    from urllib.request import getproxies, proxy_bypass

    address = urlsplit(url)
    host = address.hostname or ""
    try:
        if ipaddress.ip_address(host).is_loopback:
            return None
    except ValueError:
        pass
    return None if proxy_bypass(host) else getproxies().get(address.scheme)


def failure_of(error: Exception, *, answering: bool, streaming: bool) -> Failure:
    """Turn an exception into a failure; `answering` means that status 200 had arrived, so the call may be billed."""
    import aiohttp

    text = str(error) or type(error).__name__
    if isinstance(error, TooLargeError):  # a retry would be just as large
        return Failure(kind="malformed", message=f"the server sent {text}")
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        return Failure(kind="files", message=f"too many files are open: {text}", retryable=True)
    if isinstance(error, aiohttp.ClientConnectorError):
        return Failure(kind="connection", message=f"cannot connect: {text}", retryable=True)
    if isinstance(error, aiohttp.ClientError | OSError | zlib.error):
        if not answering:
            message = f"the connection was lost: {text}"
            return Failure(kind="connection", message=message, retryable=True, maybe_billed=True)
        # Only an answer that broke off while streaming is retried without streaming.
        kind = "stream" if streaming else "malformed"
        return Failure(kind=kind, message=f"the answer was cut off: {text}", retryable=True)
    raise error


def unreadable(body: bytes, what: str, error: Exception) -> Failure:
    """Return the failure for a reply with status 200 whose body is not valid."""
    if not body.strip():
        reason = "the body is empty"
    elif isinstance(error, UnicodeDecodeError):
        reason = f"the body is not a valid {what} (not UTF-8)"
    else:
        reason = f"the body is not a valid {what} ({error})"
    return Failure(kind="malformed", message=f"HTTP 200, but {reason}", retryable=True)


def unreadable_event(error: Exception) -> Failure:
    """Return the failure for a stream event that is not valid."""
    reason = "not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
    return Failure(kind="stream", message=f"unreadable event in the stream: {reason}", retryable=True)


async def error_of(response: ClientResponse, *, streaming: bool) -> Failure | Filtered:
    """Read an HTTP error response."""
    result = error_of_status(response.status, await read_beginning(response), response.headers)
    if streaming and isinstance(result, Failure) and result.kind == "refused" and "stream" in result.message.lower():
        # The server may not support streaming, or not with usage: retry without streaming.
        return Failure(kind="stream", message=result.message, retryable=True)
    return result


def failed_mid_stream(result: Answer | Failure, usage: Usage | None = None) -> Answer | Failure:
    """Mark an error in the middle of a stream: what came before may be billed, and `usage` may be incomplete."""
    if isinstance(result, Answer):
        return result
    return msgspec.structs.replace(result, usage=usage, maybe_billed=True, given_up=True)


def error_of_status(status: int, body: bytes, headers: Mapping[str, str] | None = None) -> Failure | Filtered:
    """Return what an error status means for the call and the target."""
    text, code = _read_error(body)
    if status == 400 and code == "content_filter":
        return Filtered(text)
    kind = _kind_of(status, code)
    retryable = kind in ("rate_limited", "server")
    should_retry = (headers or {}).get("x-should-retry", "").lower()
    if should_retry in ("true", "false"):
        retryable = should_retry == "true"
    if 300 <= status < 400:  # following a redirect could send the key to a third party
        text = "the server redirects; set the base URL to the address that it redirects to"
    return Failure(
        kind=kind,
        message=f"HTTP {status}: {text}",
        retryable=retryable,
        retry_after=_retry_after(headers or {}) if retryable else None,
    )


def _kind_of(status: int, code: str) -> str:
    if status in (401, 402, 403) or (status == 429 and code == "insufficient_quota"):
        return "auth"
    if status == 429:
        return "rate_limited"
    if status in (408, 409) or status >= 500:
        return "server"
    return "model" if status == 404 else "refused"


def _read_error(body: bytes) -> tuple[str, str]:
    """Return an error's message and its code."""
    text, code = "", ""
    try:
        parsed = _error_body.decode(body)
        error = parsed.error if parsed.error is not None else parsed.message or parsed.detail
        if isinstance(error, dict):
            code = str(error.get("code") or error.get("type") or "")
            error = error.get("message")
        text = str(error) if error else ""
    except UNREADABLE:
        pass
    text = " ".join((text or body.decode("utf-8", "replace")).split())
    return text or "no message", code  # not truncated here: secrets are hidden first, or part of one could remain


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Return how many seconds to wait; the header may also hold milliseconds or a date."""
    try:
        return max(0.0, float(headers["retry-after-ms"]) / 1000)
    except (KeyError, ValueError):
        pass
    value = headers.get("Retry-After")
    if not value:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    from email.utils import parsedate_to_datetime

    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None
