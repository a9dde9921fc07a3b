"""What batch APIs share: many requests are handed in at once and answered within a day, at half the price.

One provider's batch API is one file in `batches/`. It uses the connection of a target, and what is sent and read for
each request is the target's own, so that answers are the same as those of direct calls.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

import msgspec

from fairtrial.core.answer import FILTERED, Answer, Failure, Request, Usage
from fairtrial.providers.errors import Filtered, error_of, error_of_status, failure_of, unreadable
from fairtrial.providers.mending import read_mended
from fairtrial.providers.moments import now_there
from fairtrial.providers.replies import UNREADABLE
from fairtrial.providers.streams import AnswerTooLargeError, pieces, read_body

if TYPE_CHECKING:
    from aiohttp import ClientResponse
    from aiohttp.client import _RequestContextManager
    from yarl import URL

    from fairtrial.core.experiment import TargetSpec
    from fairtrial.providers.conversation import Conversation

Result = TypeVar("Result")
_A_DAY = 86_400.0  # seconds that our clock may have been wrong by, and is not any more
_MAX_LINE = 64 * 2**20


class BatchStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How far a batch is; `failure` says why one that ended has no results at all."""

    ended: bool
    answered: int = 0  # requests that have a result, as far as the provider tells
    failure: Failure | None = None
    crowded: bool = False  # it failed because too much waits for this account: later, or in smaller parts, it may work


class BatchError(Exception):
    """The results of a batch cannot be read at the moment."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class Asked(Protocol):
    """The target whose requests a batch is made of, with its connection."""

    spec: TargetSpec
    conversation: ClassVar[type[Conversation]]

    def request(self, method: str, url: str | URL, **given: Any) -> _RequestContextManager:
        """Make any other request to its server."""

    def url(self) -> str | URL:
        """Return the address of its requests."""

    def body(self, request: Request) -> dict[str, Any]:
        """Return what it would send for a request."""

    def understood(self, request: Request) -> Request:
        """Return the request without what the server does not understand."""

    def sent(self, request: Request) -> Mapping[str, Any]:
        """Return the parameters that go out with a request."""

    def learned(self, failure: Failure, request: Request, sent: Mapping[str, Any]) -> Failure:
        """Do without what the server refuses from now on."""

    def read_reply(self, body: bytes) -> Answer | Failure:
        """Read a reply to one request."""


class BatchApi:
    """One provider's batch API. Like a target, it makes one attempt and returns a Failure for external errors."""

    most_requests: ClassVar[int] = 10_000  # in one batch; more would only take longer to submit and to read
    most_bytes: ClassVar[int] = 64 * 2**20
    part_of_price: ClassVar[float] = 0.5

    def __init__(self, target: Asked) -> None:
        self.target = target
        self._ahead = 0.0  # seconds by which the server's clock is ahead of ours

    def line(self, name: str, request: Request) -> bytes:
        """Return one request of a batch as JSON; results come back under its name."""
        raise NotImplementedError

    async def submit(self, name: str, lines: Sequence[bytes]) -> str | Failure:
        """Submit a batch under a name of ours and return its id at the provider."""
        raise NotImplementedError

    async def find(self, name: str, first: str, count: int, since: float) -> str | Failure | None:
        """Return the id of the batch that was submitted under this name, or None if there is none.

        `first` is the name of its first request, `count` the number of requests, `since` when it may have been
        submitted. A failure of kind `pending` means that it is not known yet.
        """
        raise NotImplementedError

    async def look(self, batch: str) -> BatchStatus | Failure:
        """Return how far a batch is."""
        raise NotImplementedError

    def address(self, batch: str, action: str = "") -> str:
        """Return the address of a batch, or of something that can be done with it."""
        raise NotImplementedError

    async def files(self, batch: str) -> Sequence[str]:
        """Return the addresses of the results of a batch that ended; raise BatchError."""
        raise NotImplementedError

    def read_line(self, line: bytes) -> tuple[str, Answer | Failure]:
        """Return the name of a request and its result."""
        raise NotImplementedError

    async def results(self, batch: str) -> AsyncIterator[tuple[str, Answer | Failure]]:
        """Yield the results of a batch that ended, by the names of its requests; raise BatchError."""
        damaged: Failure | None = None  # the other lines have been paid for, too
        for url in await self.files(batch):
            async with self._download(url) as lines:
                async for line in lines:
                    result = self._read_line(line)
                    if isinstance(result, Failure):
                        damaged = result
                    else:
                        yield result
        if damaged is not None:
            raise BatchError(damaged)

    def _read_line(self, line: bytes) -> tuple[str, Answer | Failure] | Failure:
        def read(line: bytes) -> tuple[str, Answer | Failure] | Failure:
            try:
                return self.read_line(line)
            except UNREADABLE as error:
                return unreadable(line, "line of results", error)

        return read_mended(read, line)

    async def cancel(self, batch: str) -> Failure | None:
        """Have a batch cancelled; what is answered by then can still be read."""
        done = await self.call("POST", self.address(batch, "cancel"), read_body)
        return done if isinstance(done, Failure) else None

    # -- for subclasses ------------------------------------------------------------------------------

    def is_before(self, moment: float, since: float) -> bool:
        """Return whether a moment of the server's is surely before one of ours, by the clock that its replies show.

        Ours may have been set since then.
        """
        return moment < since + self._ahead - _A_DAY

    async def call(
        self,
        method: str,
        url: str | URL,
        receive: Callable[[ClientResponse], Awaitable[Result]],
        *,
        body: Any = None,
        headers: dict[str, str] | None = None,
    ) -> Result | Failure:
        """Make a request and read a reply that is not an error."""
        try:
            async with self.target.request(method, url, data=body, headers=headers) as response:
                self._ahead = now_there(response.headers) - time.time()
                if not 200 <= response.status < 300:
                    return await _error(response)
                return await receive(response)
        except TimeoutError:
            return Failure(kind="timeout", message="no reply", retryable=True, maybe_billed=True)
        except Exception as error:  # `failure_of` re-raises everything that is not a network error
            return failure_of(error, answering=False, streaming=False)

    async def call_for(self, kind: type[Result], method: str, url: str | URL, **given: Any) -> Result | Failure:
        """Make a request whose reply is JSON of this kind."""
        body = await self.call(method, url, read_body, **given)
        if isinstance(body, Failure):
            return body

        def read(body: bytes) -> Result | Failure:
            try:
                return msgspec.json.decode(body, type=kind)
            except UNREADABLE as error:
                return unreadable(body, "reply about a batch", error)

        return read_mended(read, body)

    @asynccontextmanager
    async def _download(self, url: str | URL) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open a file of results, line by line; raise BatchError."""
        try:
            async with self.target.request("GET", url) as response:
                if not 200 <= response.status < 300:
                    raise BatchError(await _error(response))
                yield _lines(response)
        except BatchError:
            raise
        except TimeoutError:
            raise BatchError(Failure(kind="timeout", message="no reply", retryable=True)) from None
        except Exception as error:
            raise BatchError(failure_of(error, answering=True, streaming=False)) from error

    def read(self, reply: msgspec.Raw) -> Answer | Failure:
        """Read the reply to one request, as it would have come by itself."""
        return self.target.read_reply(bytes(reply))

    def read_error(self, status: int, body: bytes) -> Answer | Failure:
        """Read an error that there is instead of a reply."""
        result = error_of_status(status, body)
        if not isinstance(result, Filtered):
            return result
        return Answer(text=result.text, finish_reason=FILTERED, usage=Usage(), latency_ms=None)


def is_unsure(failure: Failure) -> bool:
    """Return whether a batch may have been submitted although there was no proper reply."""
    return failure.maybe_billed or failure.kind in ("server", "malformed")


def expired() -> Failure:
    """Return the failure of a request that its provider did not get to in time."""
    return Failure(kind="expired", message="the provider did not answer within the time of the batch")


def cancelled() -> Failure:
    """Return the failure of a request whose batch was cancelled."""
    return Failure(kind="cancelled", message="the batch was cancelled before this request was answered")


def before_asking(failure: Failure) -> Failure:
    """Return a failure on the way to a batch: nothing is asked yet, so there is nothing to be unsure about."""
    kind = "connection" if failure.kind == "malformed" else failure.kind
    return msgspec.structs.replace(failure, maybe_billed=False, kind=kind)


async def _error(response: ClientResponse) -> Failure:
    error = await error_of(response, streaming=False)
    return Failure(kind="refused", message=error.text) if isinstance(error, Filtered) else error


async def _lines(response: ClientResponse) -> AsyncIterator[bytes]:
    rest: list[bytes] = []
    size = 0
    async for piece in pieces(response):
        *lines, last = piece.split(b"\n")
        if lines:
            lines[0] = b"".join((*rest, lines[0]))
            rest, size = [], 0
        rest.append(last)
        size += len(last)
        if size > _MAX_LINE:
            raise AnswerTooLargeError(f"a line of more than {_MAX_LINE >> 20} MB")
        for line in lines:
            if line.strip():
                yield line
    if (line := b"".join(rest)).strip():
        yield line
