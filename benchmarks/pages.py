"""How fast pages are looked at, how much memory that takes, and whether scores are the same on a busy machine.

`python -m benchmarks.pages [PAGES] [BROWSERS]` measures speed and memory;
`python -m benchmarks.pages --steady [ROUNDS]` scores the prepared pages again and again beside a changing load.
"""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fairtrial.tracks.code_arena import prompts as code_arena
from fairtrial.webpage.checks import Check, checks_of
from fairtrial.webpage.extract import ExtractedPage, extract
from fairtrial.webpage.probes import probes
from fairtrial.webpage.render import Renderer
from fairtrial.webpage.rendering import Rendering

_BUSY = "while True: pass"


def _memory() -> int:
    """What this process and everything that it started have, shared pages counted once each."""
    import psutil

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


def prepared() -> dict[str, tuple[ExtractedPage, list[Check]]]:
    """The prepared pages of both models, with the checks of their prompts; three of the twenty-four answers have no page."""
    checks = {case["id"]: checks_of(case.get("metadata") or case) for case in code_arena.cases()}
    return {
        f"{name}/{case}": (page, checks[case])
        for name in ("careful", "hasty")
        for case, text in code_arena.demo_answers(name).items()
        if (page := extract(text)).html is not None
    }


def verdict(page: ExtractedPage, seen: Rendering) -> dict[str, Any]:
    """Everything that a score is made of, with the reasons."""
    return {
        "checks": [(check.name, check.passed, check.reason) for check in seen.checks],
        "probes": [(probe.name, probe.passed, probe.words) for probe in probes(page, seen)],
        "counts": [seen.errors, seen.blocked, seen.controls, seen.tablet_overflow, seen.virtual, seen.stalled],
    }


def _busy() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", _BUSY])


@asynccontextmanager
async def load(seed: int, most: int | None = None) -> AsyncIterator[None]:
    """Other programs that want the processor: none to two for each core, or just `most`, changing every few seconds."""
    fewest, most = (0, 2 * (os.cpu_count() or 1)) if most is None else (most, most)
    chance, running = random.Random(seed), list[subprocess.Popen[bytes]]()

    def stop() -> None:
        while running:
            program = running.pop()
            program.kill()
            program.wait()

    async def change() -> None:
        while True:
            stop()
            running.extend(_busy() for _ in range(chance.randint(fewest, most)))
            await asyncio.sleep(chance.uniform(1, 6))

    changing = asyncio.create_task(change())
    try:
        yield
    finally:
        changing.cancel()
        await asyncio.gather(changing, return_exceptions=True)
        stop()


async def steady(rounds: int) -> int:
    """How many verdicts differ from those of the first round, which has no load beside it."""
    pages = prepared()
    first: dict[str, dict[str, Any]] = {}
    pictures: dict[str, set[tuple[bytes, ...]]] = {name: set() for name in pages}
    differing = 0
    for number in range(rounds):
        started = time.perf_counter()
        async with Renderer() as renderer:

            async def look(name: str, renderer: Renderer = renderer) -> Rendering:
                page, checks = pages[name]
                return await renderer.render(page.html or "", checks)

            if number:
                async with load(number):
                    found = await asyncio.gather(*map(look, pages))
            else:
                found = await asyncio.gather(*map(look, pages))
        for (name, (page, _)), seen in zip(pages.items(), found, strict=True):
            pictures[name].add(tuple(seen.pictures.values()))
            told = verdict(page, seen)
            if told != first.setdefault(name, told):
                differing += 1
                print(f"round {number + 1}, {name}:\n  first {first[name]}\n  now   {told}")
        took = time.perf_counter() - started
        print(f"round {number + 1}: {len(pages)} pages in {took:.0f} s, {differing} verdicts differ so far", flush=True)
    same = sum(len(seen) == 1 for seen in pictures.values())
    print(f"{rounds} rounds of {len(pages)} pages: {differing} verdicts differ; "
          f"the pictures of {same} pages are the same in every round")  # fmt: skip
    return differing


if __name__ == "__main__":
    words = sys.argv[1:]
    if words[:1] == ["--steady"]:
        sys.exit(1 if asyncio.run(steady(int(words[1]) if len(words) > 1 else 10)) else 0)
    numbers = [int(text) for text in words]
    asyncio.run(measure(numbers[0] if numbers else 100, numbers[1] if len(numbers) > 1 else None))
