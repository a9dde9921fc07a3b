"""lm-evaluation-harness: `lm-eval run` with a task of the user's."""

from __future__ import annotations

import json
from pathlib import Path

import yaml

from benchmarks.environments import installed_version, python_environment
from benchmarks.rivals.tool import EXPECTED, KEY, Command, Job, Outcome, Tool, read_log

_TASK = {
    "task": "rivals",
    "dataset_path": "json",
    "dataset_kwargs": {"data_files": "questions.jsonl"},
    "test_split": "train",
    "output_type": "generate_until",
    "doc_to_text": "{{input}}",
    "doc_to_target": "{{target}}",
    "generation_kwargs": {"until": ["\n\n"], "max_gen_toks": 64, "temperature": 0},
    "filter_list": [
        {
            "name": "number",
            "filter": [{"function": "regex", "regex_pattern": "(-?[0-9]+)"}, {"function": "take_first"}],
        }
    ],
    "metric_list": [{"metric": "exact_match", "aggregation": "mean", "higher_is_better": True}],
}


class LmEval(Tool):
    name = "lm-eval"
    address = "https://pypi.org/project/lm-eval"
    note = "`local-chat-completions`, `num_concurrent` as many as at once; resumed by starting it again, for without its own cache (`--use_cache`, off here) nothing is kept"

    def install(self) -> str:
        self.programs = python_environment(self.cache / "lm-eval", "lm-eval[api]")
        return installed_version(self.programs, "lm-eval")

    def command(self, job: Job) -> Command:
        rows = ({"input": text, "target": EXPECTED} for text in job.questions)
        (job.folder / "questions.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
        (job.folder / "tasks").mkdir(exist_ok=True)
        (job.folder / "tasks/rivals.yaml").write_text(yaml.safe_dump(_TASK, sort_keys=False), "utf-8")
        return self._lm_eval(job)

    def resume(self, job: Job) -> Command:
        return self._lm_eval(job)

    def _lm_eval(self, job: Job) -> Command:
        model = (
            f"model=m,base_url={job.url}/v1/chat/completions,num_concurrent={job.concurrency},tokenized_requests=False"
        )
        command = [str(self.programs / "lm-eval"), "run", "--model", "local-chat-completions", "--model_args", model]
        command += ["--tasks", "rivals", "--include_path", "tasks", "--apply_chat_template", "--log_samples"]
        command += ["--output_path", "results"]
        home = str(job.folder / "home")
        variables = {"OPENAI_API_KEY": KEY, "HF_HUB_OFFLINE": "1", "HF_HOME": home, "HF_DATASETS_CACHE": home}
        return Command(command, variables)

    def log_files(self, folder: Path) -> list[Path]:
        return sorted((folder / "results").rglob("*.json*"))

    def outcome(self, folder: Path) -> Outcome:
        return read_log("lm-eval", self.log_files(folder))
