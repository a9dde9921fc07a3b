"""How fast pages are looked at, and how much memory that takes: `python -m benchmarks.pages [PAGES] [BROWSERS]`."""

from __future__ import annotations

import asyncio
import sys
import time

import psutil

from fairtrial.suites import code_arena
from fairtrial.webpage.extract import extract
from fairtrial.webpage.render import Renderer


def _memory() -> int:
    """What this process and everything that it started have, shared pages counted once each."""
    total = 0
    for process in (psutil.Process(), *psutil.Process().children(recursive=True)):
        try:
            total += process.memory_full_info().pss
        except psutil.Error:
            continue
    return total


async def measure(count: int, browsers: int | None) -> None:
    pages = [html for text in code_arena.demo_answers("careful").values() if (html := extract(text).html)]
    most = 0

    async def watch() -> None:
        nonlocal most
        while True:
            most = max(most, await asyncio.to_thread(_memory))
            await asyncio.sleep(1)

    async with Renderer(browsers) as renderer:
        watching = asyncio.create_task(watch())
        started = time.perf_counter()
        chosen = [pages[number % len(pages)] for number in range(count)]
        found = await asyncio.gather(*(renderer.render(html) for html in chosen))
        took = time.perf_counter() - started
        watching.cancel()
    assert all(len(seen.pictures) == 2 and not seen.trouble for seen in found)
    size = sum(len(body) for seen in found for body in seen.pictures.values()) / 2 / count / 1024
    print(f"{count} pages at two sizes with probes: {took:.0f} s, {took / count:.2f} s a page, "
          f"{most / 2**20:.0f} MiB at most, {size:.0f} KiB a picture")  # fmt: skip


if __name__ == "__main__":
    numbers = [int(text) for text in sys.argv[1:]]
    asyncio.run(measure(numbers[0] if numbers else 100, numbers[1] if len(numbers) > 1 else None))
