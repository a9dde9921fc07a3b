"""fairtrial, as a user runs it."""

from __future__ import annotations

import json
import sys
from importlib.metadata import version
from pathlib import Path

from benchmarks.rivals.tool import EXPECTED, KEY, Command, Job, Outcome, Tool
from fairtrial.analyse.run import Run
from fairtrial.store import Store
from fairtrial.web.access import link

_SUITE = """\
name: rivals
targets: [openai:m]
scorer: contains
concurrency: {concurrency}
stream: false
dataset: {{path: questions.jsonl, input: question, expected: answer}}
"""
_TOKEN = "a-token-for-measuring"
_INCOMPLETE = 2  # some trials have no score


class Fairtrial(Tool):
    name = "fairtrial"
    address = "https://pypi.org/project/fairtrial"
    note = "`fairtrial run`, everything durable before it counts; answers not streamed, as with the others"

    def install(self) -> str:
        return version("fairtrial")

    def command(self, job: Job) -> Command:
        rows = ({"question": text, "answer": EXPECTED} for text in job.questions)
        (job.folder / "questions.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
        (job.folder / "suite.yaml").write_text(_SUITE.format(concurrency=job.concurrency), "utf-8")
        return self._fairtrial(job, "run", "suite.yaml", "--quiet")

    def resume(self, job: Job) -> Command:
        return self._fairtrial(job, "resume", "latest", "--quiet")

    def _fairtrial(self, job: Job, *arguments: str) -> Command:
        variables = {"OPENAI_BASE_URL": f"{job.url}/v1", "OPENAI_API_KEY": KEY, "FAIRTRIAL_TOKEN": _TOKEN}
        return Command([sys.executable, "-m", "fairtrial", *arguments], variables, (0, _INCOMPLETE))

    def log_files(self, folder: Path) -> list[Path]:
        return sorted((folder / ".fairtrial").glob("fairtrial.db*"))

    def outcome(self, folder: Path) -> Outcome:
        store = Store(str(folder / ".fairtrial/fairtrial.db"), create=False)
        trials = Run.find("latest", store).trials()
        scores = [trial.score for trial in trials]
        store.close()
        right = sum(score is not None and score >= 1 for score in scores)
        failed = sum(score is None for score in scores)
        return Outcome(right, len(scores) - right - failed, failed)

    def viewer(self, job: Job, port: int) -> tuple[Command, str, str]:
        store = Store(str(job.folder / ".fairtrial/fairtrial.db"), create=False)
        run = Run.find("latest", store).id
        store.close()
        command = self._fairtrial(job, "serve", "--port", str(port))
        return command, link("", _TOKEN, f"runs/{run}"), "tr:has-text('Question')"
