"""DeepEval: a program of the user's that asks, and calls `evaluate`."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.environments import installed_version, python_environment
from benchmarks.rivals.tool import KEY, Command, Job, Outcome, Tool, read_log

_PROGRAM = """\
import asyncio, json, sys
from openai import AsyncOpenAI
from deepeval import evaluate
from deepeval.evaluate.configs import AsyncConfig, CacheConfig, DisplayConfig, ErrorConfig
from deepeval.metrics import PatternMatchMetric
from deepeval.test_case import LLMTestCase

url, concurrency = sys.argv[1], int(sys.argv[2])
client = AsyncOpenAI(base_url=url, api_key="{key}")

async def ask(question, gate):
    chat = [{{"role": "user", "content": question}}]
    async with gate:
        reply = await client.chat.completions.create(model="m", messages=chat)
    return reply.choices[0].message.content or ""

async def ask_all(questions):
    gate = asyncio.Semaphore(concurrency)
    return await asyncio.gather(*(ask(text, gate) for text in questions), return_exceptions=True)

questions = json.load(open("questions.json"))
answers = asyncio.run(ask_all(questions))
cases = [
    LLMTestCase(name=str(n), input=text, actual_output=answer, expected_output="42")
    for n, (text, answer) in enumerate(zip(questions, answers)) if isinstance(answer, str)
]
evaluate(
    test_cases=cases,
    metrics=[PatternMatchMetric(pattern=".*42.*")],
    async_config=AsyncConfig(max_concurrent=concurrency),
    display_config=DisplayConfig(show_indicator=False, print_results=False, results_folder="results"),
    cache_config=CacheConfig(write_cache=False),
    error_config=ErrorConfig(ignore_errors=True),
)
"""


class DeepEval(Tool):
    name = "DeepEval"
    address = "https://pypi.org/project/deepeval"
    note = (
        "`evaluate` on answers that a loop around the openai package collected before, which retries twice by itself; "
        "its cache off, for with it every answer rewrites a file"
    )

    def install(self) -> str:
        self.programs = python_environment(self.cache / "deepeval", "deepeval", "openai")
        return installed_version(self.programs, "deepeval")

    def command(self, job: Job) -> Command:
        (job.folder / "questions.json").write_text(json.dumps(job.questions), "utf-8")
        (job.folder / "program.py").write_text(_PROGRAM.format(key=KEY), "utf-8")
        command = [str(self.programs / "python"), "program.py", f"{job.url}/v1", str(job.concurrency)]
        return Command(command, {"DEEPEVAL_TELEMETRY_OPT_OUT": "YES"})

    def log_files(self, folder: Path) -> list[Path]:
        return sorted((folder / "results").glob("*.json"))

    def outcome(self, folder: Path) -> Outcome:
        return read_log("deepeval", self.log_files(folder))
