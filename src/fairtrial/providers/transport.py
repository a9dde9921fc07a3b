"""What HTTP targets share: the session, requests, and what becomes of replies."""

from __future__ import annotations

import asyncio
import ipaddress
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar
from urllib.parse import urlsplit, urlunsplit

import msgspec

from fairtrial.core.answer import FILTERED, Answer, Failure, Request, Usage
from fairtrial.core.errors import TargetUnusableError
from fairtrial.core.experiment import TargetSpec
from fairtrial.core.providers import Provider
from fairtrial.core.target import Target
from fairtrial.core.time_limit import time_limit
from fairtrial.providers.conversation import Conversation, read_turn
from fairtrial.providers.embeddings import EmbeddingCall, read_embedding
from fairtrial.providers.errors import Filtered, cut_off, error_of, failure_of
from fairtrial.providers.mending import read_mended
from fairtrial.providers.params import Api, provider_of, refused_parameter, renamed_limit, supported_params
from fairtrial.providers.quota import read_quota
from fairtrial.providers.streamed import Collected, Streamed
from fairtrial.providers.streams import EventParser, EventStream, pieces, read_body
from fairtrial.providers.tools import Tool

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession
    from aiohttp.client import _RequestContextManager
    from yarl import URL

    from fairtrial.providers.batch import BatchApi

Result = TypeVar("Result")
_REACH_SECONDS = 10.0
_SILENCE = 120.0  # seconds without a byte after which a transfer is given up, where no timeout of the suite applies
_ABOUT_SCHEMAS = re.compile(
    r"response_?format|json.?schema|structured.?output|output_?config|text\.format", re.IGNORECASE
)


class HttpTarget(Target):
    """A model behind an HTTP API; subclasses define what is sent and how a reply is read."""

    priced: ClassVar[bool] = True
    tells_limits: ClassVar[bool] = True
    # If this is set, `targets/NAME_api.py` serves `NAME:model` without further configuration.
    provider: ClassVar[Provider | None] = None
    api: ClassVar[Api] = Api()
    conversation: ClassVar[type[Conversation]]  # what is sent, and how a whole reply is read
    streamed: ClassVar[type[Streamed]]  # how a reply is read that arrives in pieces
    stream_media: ClassVar[str] = "text/event-stream"
    event_parser: ClassVar[type[EventParser]] = EventStream
    batch_api: ClassVar[type[BatchApi] | None] = None
    _takes_schemas = True  # until the server refuses one
    refused: frozenset[str] = frozenset()  # parameters that the server has refused
    limit_name = ""  # the name of `max_tokens` that the server wants
    _sent: tuple[Mapping[str, Any], dict[str, Any]] | None = None  # the last parameters, and those of them that count

    @classmethod
    def accepts(cls, spec: TargetSpec) -> Api:
        """Return what the API accepts for a target."""
        return cls.api

    async def open(self, concurrency: int) -> None:
        self._addresses: dict[bool, str | URL] = {}
        self._session = await open_session(self.spec, self.headers(self.spec), self.origin())

    async def close(self) -> None:
        if hasattr(self, "_session"):
            await self._session.close()

    def sent(self, request: Request) -> dict[str, Any]:
        if self._sent is None or self._sent[0] is not request.params:  # mostly they are those of the last request
            self._sent = request.params, supported_params(self.spec, request.params, refused=self.refused)
        return self._sent[1]

    @classmethod
    def batch_problem(cls, spec: TargetSpec) -> str:
        if cls.batch_api is None or not provider_of(spec).batches:
            return f"fairtrial knows no batch API of {spec.provider} (it does of openai, anthropic and google)"
        return ""

    def batches(self) -> BatchApi:
        assert self.batch_api is not None, "`batch_problem` says so before"
        return self.batch_api(self)

    def request(self, method: str, url: str | URL, **given: Any) -> _RequestContextManager:
        """Make any other request to the server, which gives up when nothing arrives any more."""
        import aiohttp

        timeout = aiohttp.ClientTimeout(total=None, sock_connect=_REACH_SECONDS, sock_read=_SILENCE)
        return self._session.request(method, url, allow_redirects=False, timeout=timeout, **given)

    def understood(self, request: Request) -> Request:
        """Return the request without a schema if the server takes none: the prompt says it, too."""
        if request.schema is None or (self._takes_schemas and provider_of(self.spec).schemas):
            return request
        return msgspec.structs.replace(request, schema=None)

    def embedding(self, text: str) -> EmbeddingCall:
        """Return the request for the embedding of a text, where the API has embeddings."""
        raise NotImplementedError

    async def _embed(self, text: str) -> Answer | Failure:
        call, started = self.embedding(text), time.perf_counter()

        async def receive(response: ClientResponse) -> Answer | Failure:
            body = await read_body(response)
            latency = (time.perf_counter() - started) * 1000
            return read_mended(lambda body: read_embedding(call, body, latency), body)

        return as_answer(await self.post(msgspec.json.encode(call.body), receive, url=call.url), started)

    async def ask(self, request: Request) -> Answer | Failure:
        if request.embed:
            return await self._embed(request.input)
        request = self.understood(request)
        body = msgspec.json.encode(self.body(request))
        started = time.perf_counter()

        async def receive(response: ClientResponse) -> Answer | Failure:
            if request.stream and response.content_type == self.stream_media:
                return await self.read_stream(response, Collected(request.listener, started))
            return self.read_whole(await read_body(response), started)

        result = as_answer(await self.post(body, receive, stream=request.stream), started)
        return self.learned(result, request, self.sent(request)) if isinstance(result, Failure) else result

    async def post(
        self,
        body: bytes,
        receive: Callable[[ClientResponse], Awaitable[Result]],
        *,
        stream: bool = False,
        url: str | URL = "",
    ) -> Result | Failure | Filtered:
        """Send a request once, and read a reply that is not an error by `receive`; `url` if it is not for an answer."""
        answering = False
        try:
            url = url or self._address(stream)
            more = await self.signed(url, body)
            async with self._session.post(url, data=body, headers=more, allow_redirects=False) as response:
                self.quota = read_quota(response.headers, asyncio.get_running_loop().time()) or self.quota
                if not 200 <= response.status < 300:
                    return await error_of(response, streaming=stream)
                answering = True
                return await receive(response)
        except Exception as error:  # `failure_of` re-raises everything that is not a network error
            return failure_of(error, answering=answering, streaming=stream)

    def _address(self, stream: bool) -> str | URL:
        """Return the address of requests, which is put together once."""
        if stream not in self._addresses:
            self._addresses[stream] = self.url(stream=stream)
        return self._addresses[stream]

    def learned(self, failure: Failure, request: Request, sent: Mapping[str, Any]) -> Failure:
        """Do without what the server refuses from now on, and have this request sent again."""
        if failure.kind != "refused":
            return failure
        if request.schema is not None and _ABOUT_SCHEMAS.search(failure.message):
            self._takes_schemas = False
        elif "max_tokens" in sent and (name := renamed_limit(failure.message)):
            self.limit_name = name
        # What is refused already may have been on its way when that was learned.
        elif name := refused_parameter(failure.message, {*sent, *self.refused}):
            self.refused |= {name}
            self._sent = None
        else:
            return failure
        return msgspec.structs.replace(failure, retryable=True, retry_after=0.0)

    def origin(self) -> str:
        """Return the address of the server."""
        return self.spec.base_url

    def url(self, *, stream: bool = False) -> str | URL:
        """Return the address of requests."""
        return endpoint(self.spec.base_url, self.conversation.path)

    @staticmethod
    def headers(spec: TargetSpec) -> dict[str, str]:
        """Return the headers that authenticate requests: the key, as most APIs want it."""
        return {"Authorization": f"Bearer {spec.api_key}"} if spec.api_key else {}

    async def signed(self, url: str | URL, body: bytes) -> dict[str, str] | None:
        """Return more headers for one request, where a key alone does not authenticate it."""
        return None

    def body(self, request: Request) -> dict[str, Any]:
        """Return the request body."""
        return self.talk(request, self.sent(request)).body()

    def talk(self, request: Request, sent: Mapping[str, Any], tools: Sequence[Tool] = ()) -> Conversation:
        """Return the conversation that a request begins, with the parameters that count."""
        return self.conversation(self.spec, request, tools, accepted=sent, limit_name=self.limit_name)

    def read_whole(self, body: bytes, started: float) -> Answer | Failure:
        """Read a complete, non-streamed reply."""
        return self._read(body, (time.perf_counter() - started) * 1000)

    def read_reply(self, body: bytes) -> Answer | Failure:
        """Read a complete reply of which the duration is unknown."""
        return self._read(body, None)

    def _read(self, body: bytes, latency_ms: float | None) -> Answer | Failure:
        turn = read_turn(self.conversation, body)
        return turn if isinstance(turn, Failure) else turn.answer(latency_ms)

    async def read_stream(self, response: ClientResponse, collected: Collected) -> Answer | Failure:
        """Read a reply that arrives in pieces."""
        streamed, parser = self.streamed(collected), self.event_parser()
        ended: Answer | Failure | None = None
        async for chunk in pieces(response):
            ended = streamed.take_all(parser.feed(chunk))
            if ended is not None or streamed.over:
                break
        else:
            ended = streamed.take_all(parser.end())
        if ended is not None:
            return ended
        if not streamed.done:
            return cut_off()
        return streamed.turn().answer(collected.latency_ms, collected.first_token_ms)


def as_answer(result: Answer | Failure | Filtered, started: float | None = None) -> Answer | Failure:
    """Turn a filtered prompt into an answer: the model was not asked, and nothing was billed."""
    if not isinstance(result, Filtered):
        return result
    latency = (time.perf_counter() - started) * 1000 if started else 0.0
    return Answer(text=result.text, finish_reason=FILTERED, usage=Usage(), latency_ms=latency)


async def open_session(spec: TargetSpec, headers: dict[str, str], origin: str = "") -> ClientSession:
    """Open a session for one target after checking that its server is reachable."""
    import aiohttp

    from fairtrial.providers.connections import Connector  # with aiohttp

    origin = origin or spec.base_url
    await check_reachable(spec.id, origin)
    return aiohttp.ClientSession(
        headers={
            "Content-Type": "application/json",
            "Accept-Encoding": "gzip, deflate",
            **headers,
            **spec.headers,
        },
        connector=Connector(),
        timeout=aiohttp.ClientTimeout(total=None),  # the engine enforces the timeout
        proxy=_proxy(origin),  # looked up once: `trust_env` would start a thread for every call
        read_bufsize=2**18,
        auto_decompress=False,  # a few bytes can expand to gigabytes: we decompress in pieces with a limit
    )


@asynccontextmanager
async def open_download(url: str, headers: Mapping[str, str]) -> AsyncIterator[ClientResponse]:
    """Open what is at an address, without following it elsewhere; `read_body` reads it within limits."""
    import aiohttp

    # Some servers refuse programs that do not say what they are.
    named = {"User-Agent": "fairtrial", "Accept-Encoding": "gzip, deflate", **headers}
    async with (
        aiohttp.ClientSession(headers=named, proxy=_proxy(url), auto_decompress=False) as session,
        session.get(url, allow_redirects=False) as response,
    ):
        yield response


async def check_reachable(name: str, url: str, seconds: float = _REACH_SECONDS) -> None:
    """Raise an error before anything is spent if no server listens at the address."""
    address = urlsplit(url)
    if address.scheme not in ("http", "https") or not address.hostname:
        raise TargetUnusableError(f"{name}: `{url}` is not a web address; correct the base URL")
    if _proxy(url):
        return  # only the proxy would be tested, which proves nothing
    port = address.port or (443 if address.scheme == "https" else 80)
    try:
        async with time_limit(seconds):
            _, writer = await asyncio.open_connection(address.hostname, port)
        writer.close()
    except (OSError, TimeoutError) as error:
        reason = "no answer" if isinstance(error, TimeoutError) else (error.strerror or str(error))
        raise TargetUnusableError(
            f"{name}: cannot connect to {url} ({reason}); start the server or correct the base URL"
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
