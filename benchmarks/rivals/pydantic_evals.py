"""pydantic-evals: a program of the user's that calls `Dataset.evaluate`."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.environments import installed_version, python_environment
from benchmarks.rivals.tool import KEY, Command, Job, Outcome, Tool, read_log

_PROGRAM = """\
import asyncio, json, sys
from openai import AsyncOpenAI
from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import Contains
from pydantic_evals.reporting import EvaluationReportAdapter

url, concurrency = sys.argv[1], int(sys.argv[2])
client = AsyncOpenAI(base_url=url, api_key="{key}")

async def ask(question: str) -> str:
    chat = [{{"role": "user", "content": question}}]
    reply = await client.chat.completions.create(model="m", messages=chat)
    return reply.choices[0].message.content or ""

questions = json.load(open("questions.json"))
cases = [Case(name=str(n), inputs=text, expected_output="42") for n, text in enumerate(questions)]
dataset = Dataset(name="rivals", cases=cases, evaluators=[Contains(value="42")])
report = asyncio.run(dataset.evaluate(ask, max_concurrency=concurrency, progress=False))
open("report.json", "wb").write(EvaluationReportAdapter.dump_json(report))
"""


class PydanticEvals(Tool):
    name = "pydantic-evals"
    address = "https://pypi.org/project/pydantic-evals"
    note = "`Dataset.evaluate` around the openai package, which retries twice by itself; the report as JSON"

    def install(self) -> str:
        self.programs = python_environment(self.cache / "pydantic-evals", "pydantic-evals", "openai")
        return installed_version(self.programs, "pydantic-evals")

    def command(self, job: Job) -> Command:
        (job.folder / "questions.json").write_text(json.dumps(job.questions), "utf-8")
        (job.folder / "program.py").write_text(_PROGRAM.format(key=KEY), "utf-8")
        return Command([str(self.programs / "python"), "program.py", f"{job.url}/v1", str(job.concurrency)])

    def log_files(self, folder: Path) -> list[Path]:
        return [folder / "report.json"]

    def outcome(self, folder: Path) -> Outcome:
        return read_log("pydantic-evals", self.log_files(folder))
