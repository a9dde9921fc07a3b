"""What a run's record says of how it was made: what was sent, and with which versions; all outputs read that record."""

import json
import re
import sqlite3
from importlib.metadata import version

import pytest

from fairtrial.analyse.run import Run
from fairtrial.cli.main import _run
from fairtrial.core.answer import Request
from fairtrial.core.experiment import TargetSpec
from fairtrial.engine.provenance import run_context
from fairtrial.engine.targets import build_target
from fairtrial.reports.export import export
from tests.scripted import Say
from tests.targets.test_agents import CASES, TOOLS, conditions, facts

PARAMS = {"temperature": 0.7, "top_p": 1, "max_tokens": 99}


def sent(kind: str, tmp_path, *, model: str = "m", options: dict | None = None, api: str = "") -> dict:
    """What a target of this kind is sent, where somebody wrote down `max_tokens` and nothing else."""
    spec = TargetSpec(id="t", kind=kind, provider="p", model=model, options=options or {}, api=api)
    request = Request(trial_id="", case_id="", input="", params=PARAMS, defaulted=("temperature", "top_p"))
    return build_target(spec, tmp_path).sent(request)


class TestSent:
    """An agent is sent what it is given, and nothing else is claimed."""

    def test_claude_code_chooses_itself(self, tmp_path):
        assert sent("claude_code", tmp_path) == {}

    def test_a_function_gets_no_parameters(self, tmp_path):
        assert sent("python_call", tmp_path) == {}

    def test_files_are_asked_nothing(self, tmp_path):
        assert sent("replay", tmp_path, options={"prefix": "p"}) == {}

    def test_a_program_is_given_what_somebody_wrote_down(self, tmp_path):
        assert sent("command", tmp_path, options={"command": ["x"]}) == {"max_tokens": 99}

    @pytest.mark.parametrize("api", ["openai_api", "anthropic_api"])
    def test_an_agent_around_a_model_sends_what_the_model_alone_is_sent(self, tmp_path, api):
        assert sent("tool_agent", tmp_path, api=api) == sent(api, tmp_path)

    @pytest.mark.slow
    async def test_a_program_reads_exactly_what_is_recorded(self, run_suite):
        options = {"command": ["sh", "-c", 'echo "$FAIRTRIAL_PARAMS"']}
        target = {"id": "t", "target": "command", "options": options, "params": {"seed": 5}}
        cases = [{"id": "own", "input": "x", "expected": "x", "params": {"temperature": 0.2}}, *CASES]
        run = await run_suite(targets=[target], cases=cases)
        assert run.arms[0].params == {"seed": 5}
        given = {trial.case_id: json.loads(trial.answer) for trial in run.trials()}
        assert given == {"own": {"seed": 5, "temperature": 0.2}, "code": {"seed": 5}}

    async def test_no_value_of_a_variable_is_in_the_record(self, run_suite, store, monkeypatch):
        monkeypatch.setenv("NAME_OF_IT", "secretive-name")
        target = {"id": "a ${NAME_OF_IT}", "target": "mock:echo", "params": {"extra": {"key": "${NAME_OF_IT}"}}}
        run = await run_suite(targets=[target], cases=CASES)
        assert b"secretive-name" not in run.record.context
        assert run.arms[0].params["extra"] == {"key": "${NAME_OF_IT}"}


@pytest.mark.slow
async def test_the_same_record_everywhere(run_suite, model, tmp_path, capsys):
    """Claude Code is sent no parameters: every output says so, and with which versions it ran."""
    await model(lambda turn: Say("4711"))
    run = await run_suite(
        targets=[{"id": "claude", "target": "claude-code:claude-test-1"}],
        mcp_servers={"facts": facts()},
        conditions=conditions(),
        cases=CASES,
        concurrency=2,
    )
    packages = run.context["packages"]
    assert packages["Claude Code"].count(".") == 2 and packages["claude-agent-sdk"] == version("claude-agent-sdk")
    assert packages["mcp"] == version("mcp")
    assert [arm.params for arm in run.arms] == [{}, {}]

    assert _run(["show", "--context", "--store", run.store.address]) == 0
    shown = capsys.readouterr().out
    assert "claude/with-facts: parameters: none sent" in shown and "temperature" not in shown
    assert f"Claude Code {packages['Claude Code']}" in shown
    assert "MCP server facts: facts 1.2.3" in shown and all(f"  {tool}  " in shown for tool in TOOLS)

    for name in ("run.json", "run.html", "run.eee.json"):
        export(run, tmp_path / name)
        text = (tmp_path / name).read_text()
        assert "temperature" not in text.replace("wording and temperature change answers", ""), name
    document = json.loads((tmp_path / "run.json").read_text())
    assert [arm["params"] for arm in document["arms"]] == [{}, {}]
    assert document["context"]["packages"] == packages


async def test_models_are_recorded_as_they_are_asked(run_suite, model_server):
    await model_server()
    run = await run_suite(targets=["openai:gpt-4o"], cases=CASES, params={"top_p": None})
    assert run.arms[0].params["temperature"] == 0.7 and "top_p" not in run.arms[0].params


@pytest.mark.slow
async def test_old_runs_claim_nothing(run_suite, store, tmp_path, capsys):
    """Runs from before there was the record: what was configured is known, what was sent is not."""
    run = await run_suite(cases=CASES, params={"temperature": 0.25})
    context = {name: value for name, value in run.context.items() if name != "arms"}
    with sqlite3.connect(store.address) as connection:
        connection.execute("UPDATE runs SET context = ?", [json.dumps(context).encode()])
    old = Run.find(run.id, store)
    assert old.arms[0].params is None
    assert _run(["show", "--context", "--store", store.address]) == 0
    claim = re.compile(r"parameters.{0,20}not recorded; configured: .*temperature 0.25", re.DOTALL)
    assert claim.search(capsys.readouterr().out)
    for name in ("old.html", "old.json", "old.eee.json"):
        export(old, tmp_path / name)
    assert claim.search((tmp_path / "old.html").read_text())
    assert json.loads((tmp_path / "old.json").read_text())["arms"][0]["params"] is None
    config = json.loads((tmp_path / "old.eee.json").read_text())["evaluation_results"][0]["generation_config"]
    assert "temperature" not in config["generation_args"]
    assert config["additional_details"]["parameters"] == "not recorded"


async def test_the_browser_that_looks_is_recorded(chromium):
    packages = (await run_context((), {}, (), looks=True))["packages"]
    assert packages["playwright"] == version("playwright")
    assert any("Chrom" in name and number[0].isdigit() for name, number in packages.items())


async def test_packages_that_a_run_does_not_use_are_not_recorded(run_suite):
    run = await run_suite(targets=["mock:echo"], cases=[{"input": "1", "expected": "1"}])
    assert "aiohttp" in run.context["packages"] and "mcp" not in run.context["packages"]
