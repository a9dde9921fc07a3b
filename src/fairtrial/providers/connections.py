"""Connections to servers: what comes when nothing was asked is never an answer, and ends the connection.

HTTP/1.1 tells answers apart by their order alone. Of a server that answers twice, or once more after a while, the
second answer would be taken for that to the next question on the same connection.
"""

from __future__ import annotations

import select
from functools import partial
from typing import Any, cast

from aiohttp import TCPConnector
from aiohttp.client_proto import ResponseHandler


class Connector(TCPConnector):
    """Keeps connections for further questions, until its server once says something without being asked."""

    def __init__(self) -> None:
        super().__init__(limit=0, ttl_dns_cache=300)
        self.trusted = True
        self._factory = cast("partial[ResponseHandler]", partial(_Connection, self, loop=self._loop))

    def _release(self, key: Any, protocol: ResponseHandler, *, should_close: bool = False) -> None:
        if isinstance(protocol, _Connection):
            protocol.asked = False
            if protocol.said_more():
                self.trusted = False
        super()._release(key, protocol, should_close=should_close or not self.trusted)


class _Connection(ResponseHandler):
    """A connection that knows whether something was asked."""

    def __init__(self, connector: Connector, **given: Any) -> None:
        super().__init__(**given)
        self._connector = connector
        self.asked = False

    def set_response_params(self, **given: Any) -> None:
        self.asked = True  # the request is on its way
        super().set_response_params(**given)

    def data_received(self, data: bytes) -> None:
        if self.asked or not data:  # without data, aiohttp itself goes on with what it has
            super().data_received(data)
        else:
            self._distrust()

    def is_connected(self) -> bool:
        """Whether it can be used; for one that is kept, whether it may be used again."""
        if self.asked or not super().is_connected():
            return super().is_connected()
        return self._connector.trusted and not _has_data(self.transport)

    def said_more(self) -> bool:
        """Whether there is more than the answer to the last question."""
        # Names of aiohttp's own: a version without them is used with less protection, and fails our tests.
        return bool(getattr(self, "_buffer", None) or getattr(self, "_tail", None))

    def _distrust(self) -> None:
        self._connector.trusted = False
        self.force_close()
        self.abort()


def _has_data(transport: Any) -> bool:
    """Return whether something has arrived that has not been read yet: an answer to no question, or the end."""
    if not hasattr(select, "poll"):
        return False  # on Windows
    poll = select.poll()
    poll.register(transport.get_extra_info("socket").fileno(), select.POLLIN)
    return bool(poll.poll(0))
