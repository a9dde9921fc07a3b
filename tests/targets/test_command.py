"""`command`: what a program is given, and where its answer stands. Any other command line is a few lines of YAML."""

import json
import os
import sys
from pathlib import Path

import pytest

from fairtrial import pipeline
from fairtrial.core.answer import Usage
from fairtrial.core.errors import ProblemsError
from fairtrial.core.experiment import McpServer
from fairtrial.targets._command_output import Paths, TokenPaths, read_output
from tests.targets.test_agents import CASES, facts

EVENTS = [
    "a line that is no event",
    '{"type": "system", "model": "m-1"}',
    '{"type": "assistant", "message": {"content": "Let me see."}, "usage": {"in": 1, "out": 1}}',
    '{"type": "result", "result": "Paris", "usage": {"in": 12, "out": 3, "cached": 4}, "cost": 0.25}',
]
GRAPH = McpServer(name="graph", tools=("search",))


def read(output: str, kind: str, **paths):
    return read_output(output.encode(), kind, Paths(**paths), [GRAPH], 1.0)


class TestWhereTheAnswerStands:
    def test_in_all_or_in_the_last_line(self):
        assert read("thinking\nParis\n\n", "text").text == "thinking\nParis"
        assert read("thinking\nParis\n\n", "last_line").text == "Paris" and read("", "last_line").text == ""

    def test_in_a_document(self):
        document = {"reply": {"texts": ["no", "Paris"]}, "calls": [{"name": "search", "args": {"q": 1}}], "usd": 0.5}
        answer = read(json.dumps(document), "json", answer="reply.texts[1]", tool_calls="calls", cost="usd")
        assert (answer.text, answer.cost_usd) == ("Paris", 0.5)
        assert answer.trace["tool_calls"][0]["server"] == "graph" and answer.trace["tool_calls"][0]["arguments"] == {
            "q": 1
        }

    def test_in_events_the_last_one_counts(self):
        tokens = TokenPaths(prompt="usage.in", completion="usage.out", cache_read="usage.cached")
        answer = read("\n".join(EVENTS), "lines", answer="result", tokens=tokens, cost="cost", model="model")
        assert (answer.text, answer.model, answer.cost_usd) == ("Paris", "m-1", 0.25)
        assert answer.usage == Usage(prompt=12, completion=3, cache_read=4)

    def test_what_is_not_there_is_unknown_and_never_zero(self):
        answer = read("\n".join(EVENTS), "lines", answer="result", tokens=TokenPaths(prompt="no.where"), cost="free")
        assert answer.usage is None and answer.cost_usd is None

    @pytest.mark.parametrize(
        ("output", "kind", "said"),
        [
            ("{", "json", "is not valid JSON"),
            ('{"result": 1}', "json", "has no text at `result`"),
            ("nothing\n{}\n", "lines", "has no text at `result`"),
        ],
    )
    def test_an_answer_that_is_not_there_is_a_failure(self, output, kind, said):
        failure = read(output, kind, answer="result")
        assert failure.kind == "malformed" and said in failure.message

    @pytest.mark.parametrize(
        ("options", "problem"),
        [
            ({"output": "lines"}, "needs `answer`"),
            ({"answer": "text"}, "is not JSON"),
            ({"output": "json", "answer": "a..b"}, "is not a path"),
            ({"command": ["echo", "{{ prompt }}"]}, "`prompt` is not known to a command"),
            ({"env": {"A": "{{ input"}}, "template"),
        ],
    )
    def test_mistakes_are_found_before_the_run(self, write_suite, options, problem):
        options = {"command": ["echo"], **options}
        with pytest.raises(ProblemsError, match=problem):
            pipeline.load(write_suite(targets=[{"target": "command", "options": options}], cases=CASES))


AGENT = """
import json, os, subprocess, sys
settings = json.load(open(sys.argv[1]))
server = json.load(open(settings["servers"]))["mcpServers"]["facts"]
lines = [
    {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "lookup", "arguments": {"topic": "code"}}},
]
process = subprocess.Popen(
    [server["command"], *server["args"]], env={**os.environ, **server["env"]}, stdin=subprocess.PIPE, stdout=subprocess.PIPE
)
for line in lines:
    process.stdin.write((json.dumps(line) + chr(10)).encode())
    process.stdin.flush()
    reply = json.loads(process.stdout.readline())
process.stdin.close()
text = reply["result"]["content"][0]["text"]
open("answer.json", "w").write(json.dumps({"told": [sys.argv[2:], open(settings["system"]).read(), text]}))
"""


@pytest.mark.slow
async def test_a_program_with_settings_of_its_own(run_suite, tmp_path):
    """Settings in a file, the prompt as an argument, the answer in a file; and its calls are seen, though it tells nothing."""
    (tmp_path / "agent.py").write_text(AGENT)
    options = {
        "command": [sys.executable, "agent.py", "{{ home }}/settings.json", "--ask={{ input }}", "{{ case_id }}"],
        "files": {"settings.json": '{"servers": {{ mcp_file | tojson }}, "system": {{ system_file | tojson }}}'},
        "version": [sys.executable, "-c", "print('agent 1.2.3')"],
        "output": "json",
        "output_file": "answer.json",
        "answer": "told[2]",
    }
    run = await run_suite(
        targets=[{"id": "mine", "target": "command", "options": options}],
        scorer={"type": "regex", "pattern": "4711"},
        mcp_servers={"facts": facts()},
        conditions={"with-facts": {"system": "Be brief.", "mcp": ["facts"], "require_tool_use": True}},
        cases=CASES,
        prices={"mine": {"input": 0, "output": 0}},
    )
    (trial,) = run.trials()
    assert trial.answer == "The code is 4711.", trial.failure_message
    (call,) = trial.trace["tool_calls"]
    assert (call["server"], call["tool"], call["result"]) == ("facts", "lookup", "The code is 4711.")
    assert trial.missing == "" and run.arms[0].tools.used == 1
    assert run.context["packages"]["mine"] == "agent 1.2.3"
    (change,) = [line for line in trial.trace["workspace"]["diff"].splitlines() if line.startswith("+{")]
    assert json.loads(change[1:])["told"][:2] == [["--ask=What is the code?", "code"], "Be brief."]
    assert not list(Path(tmp_path).glob("fairtrial-command*"))


QWEN = """#!/bin/sh
[ "$1" = --version ] && { echo 0.15.10; exit; }
[ -f "$HOME/.qwen/settings.json" ] || exit 3
echo '{"type": "system", "subtype": "init"}'
echo '{"type": "result", "result": "'"$OPENAI_BASE_URL $#"'", "usage": {"input_tokens": 9, "output_tokens": 2}}'
"""


async def test_the_example_of_the_documentation(run_suite, tmp_path, monkeypatch):
    """Qwen Code, played by a script that looks at what it is given."""
    import re

    import yaml

    page = (Path(__file__).parents[2] / "docs" / "targets.md").read_text("utf-8")
    (block,) = re.findall(r"^```yaml\n(- id: qwen\n.*?)^```", page, re.DOTALL | re.MULTILINE)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "qwen").write_text(QWEN)
    (tmp_path / "bin" / "qwen").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0001")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    (target,) = yaml.safe_load(block)
    run = await run_suite(targets=[target], cases=CASES)
    (trial,) = run.trials()
    arguments = len(target["options"]["command"]) - 1
    assert trial.answer == f"${{OPENAI_BASE_URL}} {arguments}", (
        trial.failure_message
    )  # as values of variables are shown
    assert (trial.prompt_tokens, trial.completion_tokens) == (9, 2) and run.context["packages"]["qwen"] == "0.15.10"


async def test_what_shells_write_is_no_template(run_suite):
    """`${#NAME}` is the length of a variable: only `{{` begins a value."""
    command = ["sh", "-c", "x=four; echo $${#x} {%"]
    run = await run_suite(targets=[{"target": "command", "options": {"command": command}}], cases=CASES)
    assert [trial.answer for trial in run.trials()] == ["4 {%"]
