"""The floor: the same calls with nothing but aiohttp — no store, no scoring, no retries, no limits."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator

import aiohttp


def body_of(number: int, stream: bool) -> dict[str, object]:
    body: dict[str, object] = {
        "model": "m",
        "messages": [{"role": "user", "content": f"Question {number}: what is the answer?"}],
        "temperature": 0.7,
        "top_p": 1,
        "max_tokens": 2048,
        "frequency_penalty": 0,
        "presence_penalty": 0,
    }
    return {**body, "stream": True, "stream_options": {"include_usage": True}} if stream else body


async def ask(session: aiohttp.ClientSession, url: str, number: int, stream: bool) -> str:
    async with session.post(url, json=body_of(number, stream)) as response:
        if not stream:
            reply = await response.json()
            return str(reply["choices"][0]["message"]["content"])
        parts = []
        async for line in response.content:
            if line.startswith(b"data: ") and not line.startswith(b"data: [DONE]"):
                event = json.loads(line[6:])
                if event["choices"]:
                    parts.append(event["choices"][0]["delta"].get("content") or "")
        return "".join(parts)


async def main(url: str, count: int, concurrency: int, stream: bool) -> None:
    todo: Iterator[int] = iter(range(count))
    answers: list[str] = []
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def worker() -> None:
            for number in todo:
                answers.append(await ask(session, f"{url}/v1/chat/completions", number, stream))

        await asyncio.gather(*(worker() for _ in range(concurrency)))
    assert len(answers) == count and all("42" in answer for answer in answers)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "stream"))
