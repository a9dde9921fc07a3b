"""Makes result files with the real tools, against our model server: what `fairtrial import results` must read.

    python -m benchmarks.foreign --out /tmp/files --tools /tmp/tools [inspect pydantic-evals promptfoo]

Every tool gets an environment of its own below `--tools`, made with uv or npm where it is missing.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from benchmarks.mock_server import Behaviour, start

_QUESTIONS = [{"input": f"What is {40 + n} + {2 - n % 3}?", "target": str(42 + n - n % 3)} for n in range(12)]

_INSPECT = """
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import includes, match
from inspect_ai.solver import generate

@task
def sums():
    rows = {rows!r}
    samples = [Sample(id=str(n), input=r["input"], target=r["target"]) for n, r in enumerate(rows)]
    return Task(dataset=MemoryDataset(samples), solver=generate(), scorer=[includes(), match()], epochs=2)
"""

_PYDANTIC = """
import asyncio, sys
from openai import AsyncOpenAI
from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import Contains, EqualsExpected
from pydantic_evals.reporting import EvaluationReportAdapter

client = AsyncOpenAI(base_url=sys.argv[1], api_key="not-a-key", max_retries=0)

async def ask(question: str) -> str:
    chat = [{{"role": "user", "content": question}}]
    reply = await client.chat.completions.create(model="model-a", messages=chat)
    return reply.choices[0].message.content or ""

rows = {rows!r}
cases = [Case(name=str(n), inputs=r["input"], expected_output=r["target"]) for n, r in enumerate(rows)]
dataset = Dataset(name="sums", cases=cases, evaluators=[EqualsExpected(), Contains(value="42")])
report = asyncio.run(dataset.evaluate(ask, progress=False))
open(sys.argv[2], "wb").write(EvaluationReportAdapter.dump_json(report))
"""


def _run(command: list[str], folder: Path, **environment: str) -> None:
    subprocess.run(command, cwd=folder, env={**os.environ, **environment}, check=True, timeout=600)


def _environment(tools: Path, name: str, *packages: str) -> Path:
    """Return the folder with the programs of an environment, which is made if it is not there."""
    folder = tools / name
    if not folder.exists():
        _run(["uv", "venv", "-q", str(folder)], tools)
        _run(["uv", "pip", "install", "-q", "--python", str(folder / "bin/python"), *packages], tools)
    return folder / "bin"


def make_inspect(out: Path, tools: Path, url: str) -> None:
    """Write two logs of one task, with two models."""
    program = _environment(tools, "inspect", "inspect-ai", "openai") / "inspect"
    (out / "sums.py").write_text(_INSPECT.format(rows=_QUESTIONS))
    for model in ("model-a", "model-b"):
        command = [str(program), "eval", "sums.py", "--model", f"openai-api/mock/{model}", "--log-dir", "inspect"]
        _run([*command, "--display", "none"], out, MOCK_API_KEY="not-a-key", MOCK_BASE_URL=url)


def make_pydantic_evals(out: Path, tools: Path, url: str) -> None:
    """Write a report."""
    program = _environment(tools, "pydantic", "pydantic-evals", "openai") / "python"
    (out / "sums_report.py").write_text(_PYDANTIC.format(rows=_QUESTIONS))
    (out / "pydantic-evals").mkdir(exist_ok=True)
    _run([str(program), "sums_report.py", url, "pydantic-evals/report.json"], out)


def make_promptfoo(out: Path, tools: Path, url: str) -> None:
    """Write results as JSON and JSONL, and the database."""
    folder = tools / "pf"
    if not (folder / "node_modules").exists():
        folder.mkdir(exist_ok=True)
        _run(["npm", "install", "--no-audit", "--no-fund", "promptfoo"], folder)
    config = {
        "description": "sums",
        "prompts": ["{{q}}"],
        "providers": [
            {"id": f"openai:chat:{name}", "label": name, "config": {"apiBaseUrl": url, "apiKey": "not-a-key"}}
            for name in ("model-a", "model-b")
        ],
        "tests": [
            {"vars": {"q": r["input"]}, "assert": [{"type": "contains", "value": r["target"]}]} for r in _QUESTIONS
        ],
    }
    (out / "promptfooconfig.json").write_text(json.dumps(config))
    (out / "promptfoo").mkdir(exist_ok=True)
    command = [str(folder / "node_modules/.bin/promptfoo"), "eval", "-c", "promptfooconfig.json", "--no-cache"]
    files = ["-o", "promptfoo/results.json", "-o", "promptfoo/results.jsonl"]
    quiet = {"PROMPTFOO_DISABLE_TELEMETRY": "1", "PROMPTFOO_DISABLE_UPDATE": "1"}
    try:
        _run([*command, *files], out, PROMPTFOO_CONFIG_DIR=str(out / "home"), **quiet)
    except subprocess.CalledProcessError as error:
        if error.returncode != 100:  # what promptfoo says when tests have failed
            raise
    shutil.copy(out / "home/promptfoo.db", out / "promptfoo/promptfoo.db")


_TOOLS: dict[str, Callable[[Path, Path, str], None]] = {
    "inspect": make_inspect,
    "pydantic-evals": make_pydantic_evals,
    "promptfoo": make_promptfoo,
}


async def main() -> None:
    """Make the files of the chosen tools."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--tools", type=Path, required=True)
    parser.add_argument("names", nargs="*", default=list(_TOOLS))
    chosen = parser.parse_args()
    for folder in (chosen.out, chosen.tools):
        folder.mkdir(parents=True, exist_ok=True)
    server, _, address = await start(Behaviour(strict=False))
    url = f"{address}/v1"
    for name in chosen.names:
        await asyncio.to_thread(_TOOLS[name], chosen.out.resolve(), chosen.tools.resolve(), url)
        print(f"made: {name}")
    server.close()


if __name__ == "__main__":
    asyncio.run(main())
