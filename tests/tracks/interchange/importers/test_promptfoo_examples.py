"""What public examples of promptfoo have and few others: tests for some providers, endpoints, files of any kind."""

import json

import pytest
import yaml

from fairtrial.config import load_suite
from fairtrial.foreign.suites import write_suite
from fairtrial.tracks.interchange.importers._promptfoo.runtime_checks import is_sql
from fairtrial.tracks.interchange.importers.promptfoo import Promptfoo
from tests.tracks.interchange.importers.test_promptfoo_corpus import read


def imported(folder, **config):
    """Import a configuration that stands in a folder; return the suite and what was said."""
    (folder / "c.yaml").write_text(yaml.safe_dump(config))
    result = Promptfoo().read(folder / "c.yaml")
    write_suite(result, folder / "suite.yaml", source="c.yaml", tool="promptfoo")
    environment = {"GOOGLE_CLOUD_PROJECT": "mine"}
    return load_suite(folder / "suite.yaml", environment=environment, placeholders=True), result


def test_tests_may_be_for_some_providers_and_prompts(tmp_path):
    suite, _ = read("tests-for-some", tmp_path)
    asked = {
        case.id: {arm.name for arm in suite.arms if arm.repeats_of(case)} for case in suite.cases()
    }  # fmt: skip
    usual = {f"{name}/{label}" for name in ("quick", "careful-1", "careful-2") for label in ("In short", "At length")}
    assert list(asked.values()) == [
        {"quick/In short", "quick/At length"},
        {name for name in usual if name.startswith("careful")},
        {name for name in usual if name.endswith("In short")},
        {"special/In short", "special/At length"},
        usual,
    ]


def test_tests_for_names_that_nobody_has_are_said(tmp_path):
    config = {"prompts": ["{{q}}"], "providers": ["echo"],
              "tests": [{"vars": {"q": "x"}, "providers": ["nobody"], "prompts": ["none"]}]}  # fmt: skip
    (finding,) = imported(tmp_path, **config)[1].findings
    assert finding.startswith("`providers` of a test (test 1); `prompts` of a test (test 1): none has one of these")


def test_tests_for_some_prompts_are_for_the_conditions_with_tools_too(tmp_path):
    server = {"command": "npx", "args": ["x"]}
    config = {"prompts": [{"label": "a", "raw": "A {{q}}"}, {"label": "b", "raw": "B {{q}}"}],
              "providers": [{"id": "openai:gpt-5", "config": {"mcp": {"enabled": True, "server": server}}}, "echo"],
              "tests": [{"vars": {"q": "x"}, "prompts": ["a"]}]}  # fmt: skip
    suite, _ = imported(tmp_path, **config)
    (case,) = suite.cases()
    assert [arm.name for arm in suite.arms if arm.repeats_of(case)] == [
        "openai:gpt-5/with-tools/a", "mock:echo/without-tools/a"
    ]  # fmt: skip


def test_endpoints_of_sagemaker_keep_their_requests_and_replies(tmp_path):
    suite, result = read("sagemaker", tmp_path)
    kinds = [arm.target.kind for arm in suite.arms]
    assert kinds == ["python_call", "python_call", "python_call", "litellm"] and suite.arms[1].target.id == "jumpstart"
    code = (tmp_path / "promptfoo_code.py").read_text()
    assert "call_sagemaker('my-llama', 'llama', {'region': 'us-west-2', 'maxTokens': 99, 'transform'" in code
    assert "'path': '$.generated_text'" in code and "wrap.js'" in code
    assert any("boto3" in difference for difference in result.differences)


ECHO = {"prompts": ["{{q}}"], "providers": ["echo"]}


@pytest.mark.parametrize("name", ["change.patch", "notes.rst", "settings.toml", "data.tsv"])
def test_a_variable_may_stand_in_any_text_file(name, tmp_path):
    (tmp_path / name).write_text("- old\n+ new\n")
    suite, result = imported(tmp_path, **ECHO, tests=[{"vars": {"q": f"file://{name}"}}])
    (case,) = suite.cases()
    assert case.input == "- old\n+ new\n" and not result.findings


def test_a_variable_in_a_file_that_is_no_text_is_said(tmp_path):
    (tmp_path / "x.bin").write_bytes(b"\x00\xff\xfe")
    (tmp_path / "c.yaml").write_text(yaml.safe_dump({**ECHO, "tests": [{"vars": {"q": "file://x.bin"}}]}))
    (finding,) = Promptfoo().read(tmp_path / "c.yaml").findings
    assert finding == "test 1, left out: `q`: x.bin is not a text file"


def test_columns_that_sql_may_use_are_checked(tmp_path):
    pytest.importorskip("sqlglot")
    value = {"databaseType": "MySQL", "allowedColumns": ["select::null::name", "(.*)::people::(.*)"]}
    _, result = imported(tmp_path, **ECHO, tests=[{"vars": {"q": "x"}, "assert": [{"type": "is-sql", "value": value}]}])
    arguments = result.suite["cases"][0]["scorer"]["arguments"]
    assert arguments["columns"] == value["allowedColumns"] and not result.findings
    fits = [
        is_sql(text, **arguments)
        for text in ("SELECT name FROM people", "SELECT people.age FROM people", "SELECT other FROM people", "no SQL")
    ]
    assert fits == [True, True, False, False]


PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@pytest.mark.parametrize("prefix", ["", "data:image/png;base64,"])
def test_images_in_variables_are_written_into_files(prefix, tmp_path):
    parts = [{"type": "text", "text": "{{q}}"}, {"type": "image_url", "image_url": {"url": prefix + "{{picture}}"}}]
    prompt = json.dumps([{"role": "user", "content": parts}])
    config = {"prompts": [prompt], "providers": ["openai:gpt-5"], "tests": [{"vars": {"q": "What?", "picture": PIXEL}}]}
    suite, result = imported(tmp_path, **config)
    (case,) = suite.cases()
    assert [file.media for file in case.attach] == ["image/png"] and not result.findings


def test_a_text_to_be_similar_to_that_is_blank_is_said(tmp_path):
    test = {
        "vars": {"q": "x"},
        "assert": [{"type": "similar", "value": "{{prompt}}"}, {"type": "contains", "value": "x"}],
    }
    suite, result = imported(tmp_path, **ECHO, tests=[test])
    assert suite.case_count == 1
    assert result.findings == [
        "assertion `similar` (test 1): its value is blank here; write what answers should be like"
    ]


def test_settings_that_promptfoo_itself_does_not_send_are_no_loss(tmp_path):
    context = {"context": "You review code.", "max_tokens": 9}
    providers = [{"id": name, "config": context} for name in ("vertex:claude-sonnet-5", "vertex:llama-4-maverick")]
    _, result = imported(tmp_path, prompts=["{{q}}"], providers=providers, tests=[{"vars": {"q": "x"}}])
    assert not result.findings and "You review code." not in str(result.suite)
    assert any("`context`" in text and "system message" in text for text in result.differences)


def test_models_of_vertex_are_called_by_their_makers(tmp_path):
    special = {"id": "vertex:llama-4-maverick", "config": {"extra_body": {"google": {}}}, "label": "special"}
    providers = ["vertex:llama-4-maverick", special, "vertex:gemini-3-flash"]
    suite, _ = imported(tmp_path, prompts=["{{q}}"], providers=providers, tests=[{"vars": {"q": "x"}}])
    assert [arm.target.model for arm in suite.arms] == [
        "meta/llama-4-maverick", "vertex_ai/meta/llama-4-maverick", "gemini-3-flash"
    ]  # fmt: skip


def test_operations_of_bedrock_are_no_models(tmp_path):
    provider = {"id": "bedrock:api:InvokeModel", "config": {"region": "us-east-1"}}
    _, result = imported(tmp_path, prompts=["{{q}}"], providers=[provider, "echo"], tests=[{"vars": {"q": "x"}}])
    (finding,) = result.findings
    assert finding.startswith("provider bedrock:api:InvokeModel: no such target here")


def test_tools_and_rounds_of_mcp_servers_keep_their_limits(tmp_path):
    servers = [{"name": "docs", "url": "https://docs.example/mcp"}]
    config = {"max_tool_calls": 5, "max_tokens": 9, "mcp": {"enabled": True, "servers": servers, "tools": ["ask"]}}
    provider = {"id": "anthropic:messages:claude-sonnet-5", "config": config}
    suite, result = imported(tmp_path, prompts=["{{q}}"], providers=[provider], tests=[{"vars": {"q": "x"}}])
    (arm,) = suite.arms
    assert [server.only for server in arm.condition.mcp] == [("ask",)] and not result.findings
    assert arm.target.options == {"max_steps": 6} and "extra" not in arm.params


def test_tools_that_are_left_out_are_said(tmp_path):
    servers = [{"name": "docs", "url": "https://docs.example/mcp"}]
    config = {"mcp": {"enabled": True, "servers": servers, "exclude_tools": ["delete"]}}
    _, result = imported(tmp_path, prompts=["{{q}}"], providers=[{"id": "openai:gpt-5", "config": config}])
    (finding,) = result.findings
    assert finding.startswith("`exclude_tools` of `mcp`") and "mcp_tools" in finding
