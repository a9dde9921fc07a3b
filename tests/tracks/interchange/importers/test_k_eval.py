"""Configurations of k-eval: what is said about them before they can run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from fairtrial import pipeline
from fairtrial.cli.main import _run

CONFIG = {
    "name": "demo",
    "dataset": {"path": "./data/questions.jsonl", "question_key": "question", "answer_key": "answer"},
    "agent": {"type": "claude_code_sdk", "model": "claude-sonnet-4-5"},
    "judge": {"model": "vertex_ai/claude-opus-4-5", "temperature": 0.0},
    "mcp_servers": {
        "rag": {"type": "http", "url": "http://127.0.0.1:1/mcp", "headers": {"Authorization": "Bearer ${SEARCH_KEY}"}}
    },
    "conditions": {"baseline": {"system_prompt": "Answer."}, "with_rag": {"mcp_servers": ["rag"]}},
}
VARIABLES = (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_VERTEX",
    "ANTHROPIC_VERTEX_PROJECT_ID",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "GOOGLE_CLOUD_PROJECT",
    "VERTEXAI_PROJECT",
    "VERTEX_PROJECT_ID",
    "VERTEX_ACCESS_TOKEN",
    "VERTEX_API_KEY",
    "SEARCH_KEY",
)


@pytest.fixture
def config(tmp_path, monkeypatch):
    """Write a configuration with 300 questions, where nothing is set that it needs."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "data").mkdir()
    questions = [{"question": f"What is {n} + {n}?", "answer": str(2 * n)} for n in range(300)]
    (tmp_path / "data" / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in questions))

    def write(**keys):
        path = tmp_path / "config.yaml"
        path.write_text(yaml.safe_dump({**CONFIG, **keys}, sort_keys=False), "utf-8")
        return str(path)

    return write


def test_variables_that_are_not_set_are_named_once_each(config, capsys):
    file = config()
    for command in ("validate", "run"):
        assert _run([command, file]) == 1
        first, *problems = capsys.readouterr().err.strip().splitlines()
        assert first == "error: 3 problems" and len(problems) == 3
        assert "agent.model: agent has no credentials: set ANTHROPIC_API_KEY" in problems[0]
        assert "judge.model: vertex_ai:claude-opus-4-5 needs GOOGLE_CLOUD_PROJECT" in problems[1]
        assert "mcp_servers.rag.headers.Authorization: the variable SEARCH_KEY is not set" in problems[2]


def test_problems_are_where_the_file_of_k_eval_has_them(config, capsys):
    file = config()
    lines = Path(file).read_text("utf-8").splitlines()
    assert _run(["validate", file]) == 1
    found = [problem.strip().split(": ")[:2] for problem in capsys.readouterr().err.strip().splitlines()[1:]]
    for place, key in found:
        name, _, line = place.rpartition(":")
        assert name == file and lines[int(line) - 1].strip().startswith(key.split(".")[-1])


def test_without_keys_they_are_taken_as_set(config, capsys):
    assert _run(["validate", "--no-keys", config()]) == 0
    said = capsys.readouterr().out
    assert (
        "is valid: 300 cases × 2 arms" in said
        and "to run it, set ANTHROPIC_API_KEY, GOOGLE_CLOUD_PROJECT, SEARCH_KEY" in said
    )


def test_an_import_says_what_to_set_and_finds_its_dataset_from_anywhere(config, tmp_path, capsys):
    assert _run(["import", "k-eval", config(), "-o", str(tmp_path / "elsewhere" / "suite.yaml")]) == 0
    said = capsys.readouterr().err
    assert "0 cases" not in said and "to do" not in said
    assert "to run it, set ANTHROPIC_API_KEY, GOOGLE_CLOUD_PROJECT, SEARCH_KEY" in said
    assert pipeline.load(tmp_path / "elsewhere" / "suite.yaml", placeholders=True).case_count == 300


def test_only_what_is_needed_is_asked_for(config, tmp_path, monkeypatch, capsys):
    """Other ways in are enough: Vertex AI for the agent, a service account for the judge."""
    account = tmp_path / "account.json"
    account.write_text(json.dumps({"type": "service_account", "project_id": "my-project"}))
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(account))
    monkeypatch.setenv("CLAUDE_CODE_USE_VERTEX", "1")
    assert _run(["validate", "--no-keys", config()]) == 0
    assert "to run it, set SEARCH_KEY\n" in capsys.readouterr().out


def test_an_import_with_problems_is_no_success(config, tmp_path, capsys):
    dataset = {**CONFIG["dataset"], "path": "nowhere.jsonl"}
    assert _run(["import", "k-eval", config(dataset=dataset), "-o", str(tmp_path / "suite.yaml")]) == 1
    said = capsys.readouterr().err
    assert "to do: " in said and "nowhere.jsonl" in said and "0 cases" not in said


def test_a_suite_without_a_judge_is_told_so_once(write_suite, capsys):
    path = write_suite(scorer="golden_judge", cases=[{"input": f"{n}", "expected": f"{n}"} for n in range(300)])
    assert _run(["validate", str(path)]) == 1
    assert capsys.readouterr().err.count("its scorer needs a judge") == 1


def test_the_project_of_a_service_account_is_enough(config, tmp_path, monkeypatch):
    """As for LiteLLM, which k-eval asks its judge with: a project is only needed if it is another one."""
    account = tmp_path / "account.json"
    account.write_text(json.dumps({"type": "service_account", "project_id": "my-project"}))
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test-key-0001")
    monkeypatch.setenv("SEARCH_KEY", "search-test-key-0001")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(account))
    assert [judge.name for judge in pipeline.load(config()).settings.judges] == ["vertex_ai:claude-opus-4-5"]


async def test_a_judge_is_asked_in_the_project_of_its_credentials(config, model, tmp_path, monkeypatch):
    from fairtrial.engine.targets import build_target
    from fairtrial.targets import vertex_api

    account = tmp_path / "account.json"
    account.write_text(json.dumps({"type": "service_account", "project_id": "my-project"}))
    monkeypatch.setenv("VERTEX_BASE_URL", (await model()).url)
    monkeypatch.setenv("SEARCH_KEY", "search-test-key-0001")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(account))
    monkeypatch.setattr(vertex_api, "_default_credentials", lambda name: (object(), "my-project"))
    (judge,) = pipeline.load(config()).settings.judges
    target = build_target(judge.target, tmp_path)
    await target.open(1)
    try:
        assert "/projects/my-project/locations/" in target.url() and "claude-opus-4-5" in target.url()
    finally:
        await target.close()


def test_variables_by_name_reach_workers_on_other_machines(config, monkeypatch):
    from fairtrial.engine.cluster.executor import _named_variables

    for name in ("ANTHROPIC_API_KEY", "SEARCH_KEY", "GOOGLE_CLOUD_PROJECT"):
        monkeypatch.setenv(name, "test-value-0001")
    monkeypatch.setenv("DISABLE_PROMPT_CACHING", "1")
    assert _named_variables(pipeline.load(config()).arms) == {"DISABLE_PROMPT_CACHING": "1"}
