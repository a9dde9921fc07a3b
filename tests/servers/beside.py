"""A server beside a test that is not asynchronous itself, such as one that runs commands."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import TypeVar

Server = TypeVar("Server")


@contextmanager
def beside(serving: AbstractAsyncContextManager[Server]) -> Iterator[Server]:
    """Run a server in a thread of its own."""
    ready, found, loops, over = threading.Event(), [], [], asyncio.Event()

    async def serve() -> None:
        loops.append(asyncio.get_running_loop())
        async with serving as server:
            found.append(server)
            ready.set()
            await over.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    ready.wait()
    try:
        yield found[0]
    finally:
        loops[0].call_soon_threadsafe(over.set)
        thread.join()
