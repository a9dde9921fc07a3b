"""What a call costs in processor time, for every vendor's API: fairtrial's targets against bare aiohttp.

`python -m benchmarks.dialects` writes benchmarks/DIALECTS.md; the server is a process of its own.

A machine is never as quick as a minute ago, so all APIs take turns, each beside its bare loop.
"""

from __future__ import annotations

import asyncio
import os
import platform
import struct
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from statistics import median, quantiles
from typing import Any, NamedTuple

import aiohttp
import msgspec

from fairtrial.core import registry
from fairtrial.core.answer import Answer, Request
from fairtrial.core.experiment import DEFAULT_PARAMS, TargetSpec
from fairtrial.providers.sigv4 import Credentials, signed_headers

REPO = Path(__file__).parent.parent
RESULTS = REPO / "benchmarks" / "DIALECTS.md"
CALLS, AT_ONCE, ROUNDS = 100, 16, 31
_LENGTHS = struct.Struct(">II")  # of a frame, and of its headers
BEDROCK = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
VENDORS = {  # kind, model, path, key
    "openai": ("openai_api", "gpt-4o", "/v1", "k"),
    "openai-responses": ("openai_responses_api", "gpt-4o", "/v1", "k"),
    "anthropic": ("anthropic_api", "claude-sonnet-4-5", "", "k"),
    "google": ("google_api", "gemini-2.5-flash", "", "k"),
    "vertex": ("vertex_api", "gemini-2.5-flash", "/v1beta1/projects/p/locations/global", "Bearer k"),
    "azure": ("azure_api", "my-dep", "?api-version=2024-10-21", "k"),
    "bedrock, key": ("bedrock_api", BEDROCK, "", "k"),
    "bedrock, signed": ("bedrock_api", BEDROCK, "", ""),
    "mistral": ("mistral_api", "mistral-medium-latest", "/mistral/v1", "k"),
}


class Loops(NamedTuple):
    """One API, asked by fairtrial's target and by bare aiohttp."""

    ours: Callable[[], Awaitable[Any]]
    bare: Callable[[], Awaitable[Any]]


class Cost(NamedTuple):
    """Processor time of a call in ms, and as multiples of the bare one, round by round."""

    ms: float
    ratios: list[float]

    def cells(self) -> str:
        """Return the cells of a table: the median, and between which values half of the rounds are."""
        low, middle, high = quantiles(self.ratios, n=4)
        return f"{self.ms:.2f} | {middle:.2f} ({low:.2f}–{high:.2f})"


async def _all(call: Callable[[], Awaitable[Any]]) -> float:
    """Return the processor time of one call, in ms."""
    todo = iter(range(CALLS))

    async def worker() -> None:
        for _ in todo:
            await call()

    started = time.process_time()
    await asyncio.gather(*(worker() for _ in range(AT_ONCE)))
    return (time.process_time() - started) * 1000 / CALLS


async def _target(url: str, name: str) -> Any:
    kind, model, path, key = VENDORS[name]
    cls = registry.load("targets", kind)
    provider = name.partition(",")[0]
    options = {"model": "gpt-5.1"} if provider == "azure" else {}
    spec = TargetSpec(
        id=name, kind=kind, provider=provider, model=model, base_url=url + path, api_key=key, options=options
    )
    target = cls(spec, cls.options_type(), REPO)
    await target.open(AT_ONCE)
    return target


def _lines(chunk: bytes) -> Iterator[bytes]:
    """Yield the JSON of server-sent events, the shortest way: none is cut, as they are short."""
    for event in chunk.split(b"\n\n"):
        data = event.rpartition(b"data: ")[2]
        if data.startswith(b"{"):
            yield data


def _framed(chunk: bytes) -> Iterator[bytes]:
    """Yield the JSON of Bedrock's frames, the shortest way: by their lengths, without checksums and headers."""
    start = 0
    while start < len(chunk):
        length, headers = _LENGTHS.unpack_from(chunk, start)
        yield chunk[start + 12 + headers : start + length - 4]
        start += length


async def _loops(url: str, name: str, stack: AsyncExitStack, *, stream: bool) -> Loops:
    target = await _target(url, name)
    stack.push_async_callback(target.close)
    request = Request(
        trial_id="t", case_id="c", input="What is the answer?", params=dict(DEFAULT_PARAMS), stream=stream
    )
    body, address = target.body(request), target.url(stream=stream)
    raw = msgspec.json.encode(body)
    # Signed once: the server then has the same to check, and replies after the same time.
    signature = await target.signed(address, raw) or {}
    headers = {"content-type": "application/json", **target.headers(target.spec), **signature}
    connector = aiohttp.TCPConnector(limit=0)
    session = await stack.enter_async_context(aiohttp.ClientSession(connector=connector, headers=headers))

    events = _framed if name.startswith("bedrock") else _lines

    async def ours() -> None:
        answer = await target.ask(request)
        assert isinstance(answer, Answer) and answer.text == "ok", answer

    async def bare() -> None:
        async with session.post(address, data=msgspec.json.encode(body)) as response:
            assert response.status == 200, response.status
            if not stream:
                msgspec.json.decode(await response.read())
                return
            async for chunk in response.content.iter_any():
                for event in events(chunk):
                    msgspec.json.decode(event)

    return Loops(ours, bare)


async def _measure(url: str, *, stream: bool) -> dict[str, Cost]:
    async with AsyncExitStack() as stack:
        loops = {name: await _loops(url, name, stack, stream=stream) for name in VENDORS}
        rounds: dict[str, list[tuple[float, float]]] = {name: [] for name in VENDORS}
        for number in range(-1, ROUNDS):  # the first one warms up
            for name, (ours, bare) in loops.items():
                if number % 2:
                    floor, cost = await _all(bare), await _all(ours)
                else:
                    cost, floor = await _all(ours), await _all(bare)
                rounds[name] += [(cost, floor)] if number >= 0 else []
    return {
        name: Cost(median(cost for cost, _ in pairs), [cost / floor for cost, floor in pairs])
        for name, pairs in rounds.items()
    }


def _signing() -> float:
    """Return the processor time of one signature in a loop of its own, in µs."""
    credentials, body, times = Credentials("AKID", "secret"), b"x" * 200, []
    for _ in range(ROUNDS):
        started = time.process_time()
        for _ in range(CALLS):
            signed_headers("https://host/model/m/converse", body, credentials, "us-east-1", "bedrock")
        times.append((time.process_time() - started) * 1e6 / CALLS)
    return median(times)


_PAGE = """# What a call costs, by API

Processor time of one call by fairtrial's targets, and as a multiple of a bare loop: aiohttp, which sends the same bytes and decodes the JSON
of the reply or of each event (`python -m benchmarks.dialects`; median of {rounds} rounds of {calls} calls, in brackets the middle half of
the rounds; {at_once} calls at once; {cores} {machine} cores, {date}). All APIs take turns. The server is a process of its own that checks
the first request only: a server that takes longer makes a client wake up more often, which hides what the client itself costs.

| API | whole: ms | × bare | stream: ms | × bare |
| --- | ---: | --- | ---: | --- |
{rows}

A signed call to Bedrock takes {more:.0f} µs more than one with a Bedrock API key. AWS requires SHA-256 over the body and over the request, and an
HMAC; the bare loop sends a signature that was made once. Signing takes {signing:.0f} µs in a loop of its own, and longer between other work;
its headers come on top. The bare loop does not verify the checksums of Bedrock's streams either.
"""


def _page(whole: dict[str, Cost], streamed: dict[str, Cost]) -> str:
    return _PAGE.format(
        rounds=ROUNDS,
        calls=CALLS,
        at_once=AT_ONCE,
        cores=os.cpu_count(),
        machine=platform.machine(),
        date=f"{datetime.now(UTC):%B %Y}",
        rows="\n".join(f"| {name} | {whole[name].cells()} | {streamed[name].cells()} |" for name in VENDORS),
        more=(whole["bedrock, signed"].ms - whole["bedrock, key"].ms) * 1000,
        signing=_signing(),
    )


async def main(url: str) -> None:
    """Measure every API, and write what came of it."""
    page = _page(await _measure(url, stream=False), await _measure(url, stream=True))
    RESULTS.write_text(page, "utf-8")
    print(page)


if __name__ == "__main__":
    from tests.servers.vendors import SECRET

    os.environ |= {"AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": "us-east-1"}
    command = [sys.executable, "-m", "benchmarks.replaying"]
    server = subprocess.Popen(command, cwd=REPO, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        asyncio.run(main(server.stdout.readline().strip()))
    finally:
        server.kill()
        server.wait()
