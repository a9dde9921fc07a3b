"""promptfoo: `promptfoo eval`, `--resume`, `promptfoo view`."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.environments import node_environment
from benchmarks.rivals.tool import EXPECTED, KEY, Command, Job, Outcome, Tool, read_log

_FAILED_TESTS = 100  # the exit code if tests failed
_QUIET = {
    "PROMPTFOO_DISABLE_TELEMETRY": "1",
    "PROMPTFOO_DISABLE_UPDATE": "1",
    "PROMPTFOO_DISABLE_REMOTE_GENERATION": "1",
}


class Promptfoo(Tool):
    name = "promptfoo"
    address = "https://www.npmjs.com/package/promptfoo"
    note = "`promptfoo eval --no-cache`, results in its database, without a further file"

    def install(self) -> str:
        self.programs = node_environment(self.cache / "promptfoo", "promptfoo")
        package = self.programs.parent / "promptfoo" / "package.json"
        return str(json.loads(package.read_text("utf-8"))["version"])

    def command(self, job: Job) -> Command:
        model = {"id": "openai:chat:m", "config": {"apiBaseUrl": f"{job.url}/v1", "apiKey": KEY}}
        check = [{"type": "contains", "value": EXPECTED}]
        config = {
            "prompts": ["{{q}}"],
            "providers": [model],
            "tests": [{"vars": {"q": text}, "assert": check} for text in job.questions],
        }
        (job.folder / "promptfooconfig.json").write_text(json.dumps(config), "utf-8")
        return self._eval(job)

    def resume(self, job: Job) -> Command:
        return self._eval(job, "--resume")

    def _eval(self, job: Job, *more: str) -> Command:
        options = ["--no-cache", "--no-table", "--no-progress-bar", "--max-concurrency", str(job.concurrency)]
        command = [str(self.programs / "promptfoo"), "eval", "-c", "promptfooconfig.json", *options, *more]
        return Command(command, self._variables(job.folder), (0, _FAILED_TESTS))

    def _variables(self, folder: Path) -> dict[str, str]:
        return {"PROMPTFOO_CONFIG_DIR": str(folder / "home"), **_QUIET}

    def log_files(self, folder: Path) -> list[Path]:
        return sorted((folder / "home").glob("promptfoo.db*"))

    def outcome(self, folder: Path) -> Outcome:
        return read_log("promptfoo", [folder / "home/promptfoo.db"])

    def viewer(self, job: Job, port: int) -> tuple[Command, str, str]:
        command = [str(self.programs / "promptfoo"), "view", "--port", str(port), "--no"]
        return Command(command, self._variables(job.folder)), "/eval/", "tr:has-text('Question')"
