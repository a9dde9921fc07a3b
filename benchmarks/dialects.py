"""What a call costs in processor time, for every vendor's API: fairtrial's targets against bare aiohttp.

`python -m benchmarks.dialects` prints a table; the server is a process of its own.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from typing import Any

import aiohttp
import msgspec

from fairtrial.core import registry
from fairtrial.core.answer import Answer, Request
from fairtrial.core.experiment import DEFAULT_PARAMS, TargetSpec

REPO = Path(__file__).parent.parent
CALLS, AT_ONCE, ROUNDS = 300, 16, 5
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


async def _all(call: Callable[[], Awaitable[Any]]) -> float:
    """Processor time of one call, in ms."""
    todo = iter(range(CALLS))

    async def worker() -> None:
        for _ in todo:
            await call()

    started = time.process_time()
    await asyncio.gather(*(worker() for _ in range(AT_ONCE)))
    return (time.process_time() - started) * 1000 / CALLS


async def _measure(url: str, name: str, *, stream: bool) -> tuple[float, float]:
    kind, model, path, key = VENDORS[name]
    cls = registry.load("targets", kind)
    provider = name.partition(",")[0]
    options = {"model": "gpt-5.1"} if provider == "azure" else {}
    spec = TargetSpec(
        id=name, kind=kind, provider=provider, model=model, base_url=url + path, api_key=key, options=options
    )
    target = cls(spec, cls.options_type(), REPO)
    await target.open(AT_ONCE)
    request = Request(
        trial_id="t", case_id="c", input="What is the answer?", params=dict(DEFAULT_PARAMS), stream=stream
    )

    async def ours() -> None:
        answer = await target.ask(request)
        assert isinstance(answer, Answer) and answer.text == "ok", answer

    body, address = target.body(request), target.url(stream=stream)
    headers = target.headers(spec) or {"authorization": "k"}

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), headers=headers) as session:

        async def bare() -> None:
            async with session.post(address, json=body) as response:
                if not stream:
                    msgspec.json.decode(await response.read())
                    return
                async for line in response.content.iter_any():
                    for event in line.split(b"\n\n"):
                        if event.rpartition(b"data: ")[2].startswith(b"{"):
                            msgspec.json.decode(event.rpartition(b"data: ")[2])

        pairs = [(await _all(ours), await _all(bare)) for _ in range(ROUNDS)]
    await target.close()
    return median(pair[0] for pair in pairs), median(pair[0] / pair[1] for pair in pairs)


async def main(url: str) -> None:
    print("| API | whole: ms | × bare | stream: ms | × bare |\n| --- | ---: | ---: | ---: | ---: |")
    for name in VENDORS:
        cells = []
        for stream in (False, True):
            cost, ratio = await _measure(url, name, stream=stream)
            cells.append(f"{cost:.2f} | {ratio:.2f}")
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    from tests.servers.vendors import SECRET

    os.environ |= {"AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": "us-east-1"}
    command = [sys.executable, "-m", "tests.servers.vendors"]
    server = subprocess.Popen(command, cwd=REPO, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        asyncio.run(main(server.stdout.readline().strip()))
    finally:
        server.kill()
        server.wait()
