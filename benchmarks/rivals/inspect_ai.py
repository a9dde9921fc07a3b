"""inspect-ai: `inspect eval`, `inspect eval-retry`, `inspect view`."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.environments import installed_version, python_environment
from benchmarks.rivals.tool import EXPECTED, KEY, Command, Job, Outcome, Tool, read_log

_TASK = """\
import json
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import includes
from inspect_ai.solver import generate

@task
def rivals():
    rows = [json.loads(line) for line in open("questions.jsonl")]
    samples = [Sample(id=n, input=row["input"], target=row["target"]) for n, row in enumerate(rows)]
    return Task(dataset=MemoryDataset(samples), solver=generate(), scorer=includes())
"""


class InspectAi(Tool):
    name = "inspect-ai"
    address = "https://pypi.org/project/inspect-ai"
    note = "`inspect eval`, `--max-connections` and `--max-samples` as many as at once, no display"

    def install(self) -> str:
        self.programs = python_environment(self.cache / "inspect-ai", "inspect-ai", "openai")
        return installed_version(self.programs, "inspect-ai")

    def command(self, job: Job) -> Command:
        rows = ({"input": text, "target": EXPECTED} for text in job.questions)
        (job.folder / "questions.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
        (job.folder / "task.py").write_text(_TASK, "utf-8")
        return self._inspect(job, "eval", "task.py", "--model", "openai-api/mock/m")

    def resume(self, job: Job) -> Command:
        return self._inspect(job, "eval-retry", str(self._newest(job.folder)))

    def _inspect(self, job: Job, verb: str, *arguments: str) -> Command:
        many = str(job.concurrency)
        options = ["--log-dir", "logs", "--display", "none", "--max-connections", many, "--max-samples", many]
        variables = {"MOCK_API_KEY": KEY, "MOCK_BASE_URL": f"{job.url}/v1"}
        return Command([str(self.programs / "inspect"), verb, *arguments, *options], variables)

    def _newest(self, folder: Path) -> Path:
        return max(folder.glob("logs/*.eval"), key=lambda file: file.stat().st_mtime)

    def log_files(self, folder: Path) -> list[Path]:
        return [self._newest(folder)]

    def outcome(self, folder: Path) -> Outcome:
        return read_log("inspect", [self._newest(folder)])

    def viewer(self, job: Job, port: int) -> tuple[Command, str, str]:
        command = [str(self.programs / "inspect"), "view", "--log-dir", "logs", "--port", str(port)]
        return Command(command), f"/#/logs/{self._newest(job.folder).name}/samples", "[role=row]:has-text('Question')"
