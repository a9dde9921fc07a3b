"""`python -m benchmarks.agents`: what Claude Code processes side by side take — memory, start-up, throughput.

The real CLI with a real MCP server, against a scripted model on loopback. Results go to benchmarks/AGENTS.md.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import psutil
import yaml

from fairtrial import pipeline
from fairtrial.store import Store
from tests.scripted import Say, Turn, scripted_model

FACTS = str(Path(__file__).parent.parent / "tests" / "servers" / "facts.py")
RESULTS = Path(__file__).parent / "AGENTS.md"
TRIALS = 8


class Taken(NamedTuple):
    wall: float
    agents_mb: float
    servers_mb: float
    processes: int


def look_up(turn: Turn) -> Say:
    tool = next((name for name in turn.tools if name.endswith("lookup")), None)
    return Say("", ((tool, {"topic": "code"}),)) if tool and not turn.results else Say("4711")


async def measure(at_once: int, folder: Path) -> Taken:
    suite = {
        "name": "agents",
        "targets": ["claude-code:claude-test-1"],
        "mcp_servers": {"facts": {"command": sys.executable, "args": [FACTS]}},
        "conditions": {"with-facts": {"mcp": ["facts"]}},
        "concurrency": at_once,
        "cases": [{"id": f"c{n}", "input": f"What is code {n}?", "expected": "4711"} for n in range(TRIALS)],
    }
    path = folder / f"{at_once}.yaml"
    path.write_text(yaml.safe_dump(suite))
    most = [0.0, 0.0, 0]

    async def watch() -> None:
        while True:
            agents = servers = 0.0
            children = psutil.Process().children(recursive=True)
            for child in children:
                try:
                    size = child.memory_full_info().uss / 2**20
                    if child.cmdline()[-1:] == [FACTS]:
                        servers += size
                    else:
                        agents += size
                except psutil.Error:
                    continue
            if agents + servers > most[0] + most[1]:
                most[:] = [agents, servers, len(children)]
            await asyncio.sleep(0.05)

    loaded = pipeline.load(path)
    watching = asyncio.create_task(watch())
    started = time.monotonic()
    run = await pipeline.arun(loaded, store=Store(str(folder / f"{at_once}.db")))
    wall = time.monotonic() - started
    watching.cancel()
    assert run.status == "completed", [trial.failure_message for trial in run.trials()]
    return Taken(wall, most[0], most[1], int(most[2]))


async def main() -> None:
    lines = []
    async with scripted_model(look_up) as model:
        os.environ |= {"ANTHROPIC_BASE_URL": model.url, "ANTHROPIC_API_KEY": "sk-bench-12345678"}
        with tempfile.TemporaryDirectory() as folder:
            for at_once in (1, 2, 4):
                taken = await measure(at_once, Path(folder))
                memory = f"{taken.agents_mb:.0f} MB | {taken.servers_mb:.0f} MB"
                lines.append(f"| {at_once} | {taken.wall / TRIALS:.1f} s | {memory} |")
                print(lines[-1], flush=True)
    page = [
        "# Agents side by side",
        "",
        f"{TRIALS} trials of Claude Code, each with one stdio MCP server and two turns of a scripted model that",
        f"answers at once, on {os.cpu_count()} cores; memory is what the processes do not share, at its highest.",
        "",
        "| at once | wall per trial | memory of agents | memory of servers |",
        "| --- | --- | --- | --- |",
        *lines,
        "",
    ]
    RESULTS.write_text("\n".join(page), "utf-8")


if __name__ == "__main__":
    asyncio.run(main())
