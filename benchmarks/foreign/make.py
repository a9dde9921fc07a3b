"""Runs the tools, each in an environment of its own, against servers of ours."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import yaml

from benchmarks.environments import node_environment, python_environment
from benchmarks.foreign import programs
from benchmarks.foreign.shared import ROWS, Place, call


def inspect(place: Place) -> None:
    """Write two logs of one task, with two models."""
    program = python_environment(place.tools / "inspect", "inspect-ai", "openai") / "inspect"
    (place.out / "sums.py").write_text(programs.INSPECT.format(rows=ROWS))
    for model in ("model-a", "model-b"):
        command = [str(program), "eval", "sums.py", "--model", f"openai-api/mock/{model}", "--log-dir", "inspect"]
        call([*command, "--display", "none"], place.out, MOCK_API_KEY="not-a-key", MOCK_BASE_URL=place.models)


def pydantic_evals(place: Place) -> None:
    """Write a report, and beside it the averages that the tool prints."""
    program = python_environment(place.tools / "pydantic", "pydantic-evals", "openai") / "python"
    (place.out / "sums_report.py").write_text(programs.PYDANTIC.format(rows=ROWS))
    folder = _folder(place, "pydantic-evals")
    files = [str(folder / "report.json"), str(folder / "averages.json")]
    call([str(program), "sums_report.py", place.models, *files], place.out)


def promptfoo(place: Place) -> None:
    """Write results as JSON and JSONL, and the database."""
    program = node_environment(place.tools / "pf", "promptfoo") / "promptfoo"
    config = {
        "description": "sums",
        "prompts": ["{{q}}"],
        "providers": [
            {"id": f"openai:chat:{name}", "label": name, "config": {"apiBaseUrl": place.models, "apiKey": "not-a-key"}}
            for name in ("model-a", "model-b")
        ],
        "tests": [{"vars": {"q": r["input"]}, "assert": [{"type": "contains", "value": r["target"]}]} for r in ROWS],
    }
    (place.out / "promptfooconfig.json").write_text(json.dumps(config))
    folder = _folder(place, "promptfoo")
    command = [str(program), "eval", "-c", "promptfooconfig.json", "--no-cache"]
    files = ["-o", "promptfoo/results.json", "-o", "promptfoo/results.jsonl"]
    quiet = {"PROMPTFOO_DISABLE_TELEMETRY": "1", "PROMPTFOO_DISABLE_UPDATE": "1"}
    home = str(place.out / "home")
    call([*command, *files], place.out, allowed=(0, 100), PROMPTFOO_CONFIG_DIR=home, **quiet)  # 100: tests failed
    shutil.copy(place.out / "home/promptfoo.db", folder / "promptfoo.db")


def lm_eval(place: Place) -> None:
    """Write results and samples of a task with two filters, for two models."""
    program = python_environment(place.tools / "lm-eval", "lm-eval[api]") / "lm-eval"
    _questions(place)
    (_folder(place, "tasks") / "sums.yaml").write_text(yaml.safe_dump(programs.LM_EVAL, sort_keys=False))
    for model in ("model-a", "model-b"):
        address = f"model={model},base_url={place.models}/chat/completions,num_concurrent=4,tokenized_requests=False"
        command = [str(program), "run", "--model", "local-chat-completions", "--model_args", address]
        task = ["--tasks", "sums", "--include_path", "tasks", "--apply_chat_template", "--log_samples"]
        call([*command, *task, "--output_path", "lm-eval"], place.out, OPENAI_API_KEY="not-a-key", HF_HUB_OFFLINE="1")


def deepeval(place: Place) -> None:
    """Write a test run with two of its own metrics, and one of ours that cannot measure every answer."""
    program = python_environment(place.tools / "deepeval", "deepeval", "openai") / "python"
    (place.out / "sums_deepeval.py").write_text(programs.DEEPEVAL.format(rows=ROWS))
    command = [str(program), "sums_deepeval.py", place.models, "deepeval"]
    call(command, place.out, DEEPEVAL_TELEMETRY_OPT_OUT="YES")


def k_eval(place: Place) -> None:
    """Write the detailed rows and the summary of two conditions, three times each."""
    program = python_environment(place.tools / "k-eval", "k-eval", python="3.13") / "python"
    _questions(place)
    _folder(place, "k-eval")
    (place.out / "k_eval.yaml").write_text(yaml.safe_dump(programs.K_EVAL_CONFIG, sort_keys=False))
    (place.out / "sums_k_eval.py").write_text(programs.K_EVAL)
    variables = {"MODELS": place.models, "OPENAI_API_BASE": place.judges, "OPENAI_API_KEY": "not-a-key"}
    call([str(program), "sums_k_eval.py"], place.out, **variables)


def helm(place: Place) -> None:
    """Write two runs of scenarios that need no download, one of them with perturbed questions; two trials of each."""
    program = python_environment(place.tools / "helm", "crfm-helm", "openai<2", "tiktoken") / "helm-run"
    folder = _folder(place, "helm")
    deployment = programs.helm_deployment(place.models)
    (folder / "model_metadata.yaml").write_text(yaml.safe_dump({"models": [programs.HELM_MODEL]}))
    (folder / "model_deployments.yaml").write_text(yaml.safe_dump({"model_deployments": [deployment]}))
    entries = [
        "simple_mcqa:model=mock/model-a,data_augmentation=robustness",
        "simple_classification:model=mock/model-a",
    ]
    sizes = ["--max-eval-instances", "12", "--num-train-trials", "2", "--num-threads", "1"]
    paths = ["--suite", "sums", "--local-path", ".", "--output-path", "benchmark_output"]
    call([str(program), "--run-entries", *entries, *sizes, *paths], folder)


def _questions(place: Place) -> None:
    (place.out / "sums.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))


def _folder(place: Place, name: str) -> Path:
    folder = place.out / name
    folder.mkdir(exist_ok=True)
    return folder


TOOLS: dict[str, Callable[[Place], None]] = {
    "inspect": inspect,
    "pydantic-evals": pydantic_evals,
    "promptfoo": promptfoo,
    "lm-eval": lm_eval,
    "deepeval": deepeval,
    "k-eval": k_eval,
    "helm": helm,
}
