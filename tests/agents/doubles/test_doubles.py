"""Recordings and mocks of MCP servers in runs: real servers, real programs in their place, a scripted model."""

import asyncio
import json
import shutil
import sys
from pathlib import Path

import pytest
import yaml

import fairtrial as ft
from fairtrial import pipeline
from fairtrial.config import RunOptions
from fairtrial.core.errors import ProblemsError, TargetUnusableError
from fairtrial.core.events import ResultEvent, read_events
from fairtrial.present.words.tools import arm_sentences, notes_on
from fairtrial.workflows.resume import aresume
from tests.scripted import Say, Turn

SHOP = str(Path(__file__).with_name("shop.py"))
AGENT = {"id": "agent", "target": "tool-agent:openai:m1"}
BUY = [("stock", {"thing": "apple"}), ("buy", {"thing": "apple"}), ("stock", {"thing": "apple"})]


def calls(turn: Turn, wanted: list[tuple[str, dict]]) -> Say:
    """A model that makes these calls one after the other, and says what they returned."""
    done = len(turn.results)
    if done < len(wanted):
        name, arguments = wanted[done]
        return Say("Next.", ((next(tool for tool in turn.tools if tool.endswith(name)), arguments),))
    return Say(" | ".join(turn.results))


def making(*wanted: tuple[str, dict]):
    return lambda turn: calls(turn, list(wanted))


def live(**more) -> dict:
    return {"command": [sys.executable, SHOP], **more}


def suite(server: dict, **more) -> dict:
    return {
        "targets": [AGENT],
        "scorer": {"type": "contains"},
        "mcp_servers": {"shop": server},
        "conditions": {"with-shop": {"mcp": ["shop"]}},
        "cases": [{"id": "buy", "input": "Buy an apple.", "expected": "2 of apple"}],
        **more,
    }


def sources(trial) -> list[str]:
    return [event.source for event in read_events(trial.trace["events"]) if isinstance(event, ResultEvent)]


def recorded(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "calls.jsonl").read_text().splitlines()]


@pytest.fixture
def marks(tmp_path, monkeypatch) -> Path:
    """A folder in which every server that is started leaves a file."""
    folder = tmp_path / "marks"
    folder.mkdir()
    return folder


class TestRecordAndReplay:
    async def test_what_was_recorded_is_replayed_a_hundred_times_without_a_server(
        self, run_suite, model, marks, tmp_path
    ):
        await model(making(*BUY))
        server = live(env={"SHOP_MARKS": str(marks)})
        first = await run_suite(**suite({**server, "record": "cassettes/shop"}))
        (trial,) = first.trials()
        assert trial.score == 1 and sources(trial) == ["live"] * 3, trial.failure_message
        assert "3 of apple | you have 1 | 2 of apple" in trial.answer
        started = len(list(marks.iterdir()))
        assert started == 2  # before the run, and in the trial
        rows = recorded(tmp_path / "cassettes/shop")
        assert [(row["name"], len(row["results"])) for row in rows] == [("buy", 1), ("stock", 2)]
        assert sorted(path.name for path in (tmp_path / "cassettes/shop").iterdir()) == ["calls.jsonl", "offers.json"]

        replay = suite({**server, "replay": "cassettes/shop"}, repeats=100)
        run = await run_suite(**replay)
        assert run.status == "completed" and [trial.score for trial in run.trials()] == [1.0] * 100
        assert all(sources(trial) == ["recorded"] * 3 for trial in run.trials())
        assert {trial.answer for trial in run.trials()} == {trial.answer}
        assert len(list(marks.iterdir())) == started  # no server was started, not even before the run
        again = await run_suite(**replay)
        assert [trial.score for trial in again.trials()] == [trial.score for trial in run.trials()]
        assert [trial.answer for trial in again.trials()] == [trial.answer for trial in run.trials()]

    async def test_the_model_is_offered_the_same(self, run_suite, model):
        """Also in the same order: some agents take the first tool that fits."""
        served = await model(making(*BUY))
        await run_suite(**suite(live()))
        await run_suite(**suite(live(record="r")))
        await run_suite(**suite({"replay": "r"}))
        plain, recording, replayed = (served.bodies[place]["tools"] for place in (0, 4, 8))
        assert plain == recording == replayed and [tool["function"]["name"] for tool in plain][:2] == [
            "shop__stock",
            "shop__buy",
        ]

    async def test_without_the_server_being_named(self, run_suite, model):
        await model(making(*BUY))
        await run_suite(**suite(live(record="shop-said")))
        run = await run_suite(**suite({"replay": "shop-said"}))
        (trial,) = run.trials()
        assert trial.score == 1
        (told,) = run.context["mcp_servers"]
        assert (told["name"], told["version"], told["stand_in"]) == ("shop", "1", "the recording shop-said")

    async def test_equal_calls_are_written_in_different_ways(self, run_suite, model):
        await model(making(("buy", {"thing": "apple", "pieces": 1})))
        await run_suite(**suite(live(record="r")))
        for arguments in ({"pieces": 1.0, "thing": "apple"}, {"thing": "apple"}):
            await model(making(("buy", arguments)))
            (trial,) = (await run_suite(**suite({"replay": "r"}))).trials()
            assert "you have 1" in trial.answer and trial.unscored_kind is None

    async def test_what_is_ignored_makes_no_difference(self, run_suite, model):
        await model(making(("where", {"path": "/a/one"})))
        await run_suite(**suite(live(record="r")))
        await model(making(("where", {"path": "/b/two"})))
        (trial,) = (await run_suite(**suite({"replay": "r", "ignore": ["path"]}))).trials()
        assert trial.answer == "/a/one is in /a"
        (trial,) = (await run_suite(**suite({"replay": "r"}))).trials()
        assert trial.unscored_kind == "recording"

    async def test_only_what_reads_returns_its_last_result_once_more(self, run_suite, model):
        await model(making(("stock", {"thing": "pear"}), ("buy", {"thing": "pear"})))
        await run_suite(**suite(live(record="r")))
        await model(making(*[("stock", {"thing": "pear"})] * 3))
        (trial,) = (await run_suite(**suite({"replay": "r"}))).trials()
        assert trial.answer == "5 of pear | 5 of pear | 5 of pear"
        await model(making(*[("buy", {"thing": "pear"})] * 2))
        (trial,) = (await run_suite(**suite({"replay": "r"}))).trials()
        assert "1×, and it was called 2×" in trial.unscored_message

    async def test_what_another_case_was_told_is_not_mixed_up(self, run_suite, model):
        """The same call returns other things after other calls: each case gets what it got."""

        def script(turn: Turn) -> Say:
            first = [("buy", {"thing": "apple"})] if "first" in turn.question else []
            return calls(turn, [*first, ("stock", {"thing": "apple"})])

        await model(script)
        cases = [
            {"id": "a", "input": "second", "expected": "3 of apple"},
            {"id": "b", "input": "first", "expected": "2 of apple"},
        ]
        await run_suite(**suite(live(record="r"), cases=cases))
        run = await run_suite(**suite({"replay": "r"}, cases=cases))
        assert [trial.score for trial in run.trials()] == [1, 1]

    async def test_the_paths_of_workspaces_are_no_difference(self, run_suite, tmp_path):
        """A trial's folder is another one every time."""

        target = {"id": "own", "target": "python:agent.py:answer"}
        (tmp_path / "agent.py").write_text(PYTHON_AGENT)
        server = live(record="r", args=["{{workspace}}"])
        keys = {"targets": [target], "workspace": {}, "scorer": "boolean"}
        cases = [{"id": "one", "input": "Where is it?", "expected": "found"}]
        first = await run_suite(**suite(server, **keys, cases=cases))
        assert [trial.score for trial in first.trials()] == [1], first.trials()[0].failure_message
        (row,) = recorded(tmp_path / "r")
        assert row["arguments"] == {"path": "{{workspace}}/file"}
        assert row["results"][0]["result"]["content"][0]["text"] == "{{workspace}}/file is in {{workspace}}"
        run = await run_suite(**suite({"replay": "r"}, **keys, cases=cases))
        (trial,) = run.trials()
        assert trial.score == 1 and sources(trial) == ["recorded"]  # of calls of which the function tells nothing


PYTHON_AGENT = '''
"""An agent of a user: it starts the server itself and calls it once."""
import json
import os
import subprocess


def answer(input, mcp_servers, workspace):
    server = mcp_servers["shop"]
    path = f"{workspace}/file"
    messages = [
        {"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}}},
        {"id": 2, "method": "tools/call", "params": {"name": "where", "arguments": {"path": path}}},
    ]
    lines = "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\\n" for message in messages)
    done = subprocess.run(
        [server["command"], *server["args"]], input=lines, capture_output=True, text=True, cwd=server.get("cwd"),
        env={**os.environ, **server["env"]}, check=True,
    )
    text = json.loads(done.stdout.splitlines()[-1])["result"]["content"][0]["text"]
    return "found" if text == f"{path} is in {workspace}" else text
'''


class TestUnknownCalls:
    @pytest.fixture
    async def recording(self, run_suite, model) -> str:
        await model(making(("stock", {"thing": "apple"})))
        await run_suite(**suite(live(record="r")))
        await model(making(("stock", {"thing": "pear"})))
        return "r"

    async def test_they_fail_without_becoming_a_score(self, run_suite, recording):
        run = await run_suite(**suite({"replay": recording, "unknown": "fail"}))
        (trial,) = run.trials()
        assert trial.score is None and run.status == "incomplete"
        assert trial.unscored_kind == "recording"
        assert trial.unscored_message == (
            'the recording has no shop.stock(thing: "pear"); the nearest one has thing: "apple"'
        )
        (call,) = trial.trace["tool_calls"]
        assert call["error"] and call["result"] == "This tool is not available at the moment."

    async def test_they_are_asked_of_the_server_and_recorded(self, run_suite, recording, tmp_path, marks):
        server = live(replay=recording, unknown="ask", record=recording, env={"SHOP_MARKS": str(marks)})
        (trial,) = (await run_suite(**suite(server))).trials()
        assert trial.answer == "5 of pear" and sources(trial) == ["live"] and trial.unscored_kind is None
        assert [row["arguments"] for row in recorded(tmp_path / "r")] == [{"thing": "apple"}, {"thing": "pear"}]
        (trial,) = (await run_suite(**suite({"replay": recording}))).trials()
        assert trial.answer == "5 of pear" and sources(trial) == ["recorded"]

    @pytest.mark.parametrize(
        ("rule", "answer", "error"),
        [
            ({"error": "sold out"}, "sold out", True),
            ({"result": "none"}, "none", False),
            ({"result": {"left": 0}}, '{"left": 0}', False),
        ],
    )
    async def test_a_rule_answers_them(self, run_suite, recording, rule, answer, error):
        run = await run_suite(**suite({"replay": recording, "unknown": rule}))
        (trial,) = run.trials()
        assert trial.answer == answer and trial.unscored_kind is None and sources(trial) == ["mock"]
        assert trial.trace["tool_calls"][0]["error"] is error

    async def test_a_tool_that_does_not_exist_is_refused_as_servers_do(self, run_suite, model, recording):
        """What an agent invents is its own mistake, and no gap of the recording."""
        await model(lambda turn: Say("") if turn.results else Say("?", (("shop__stocks", {}),)))
        (trial,) = (await run_suite(**suite({"replay": recording}))).trials()
        assert trial.unscored_kind is None

    async def test_a_result_that_was_too_large_is_unknown(self, run_suite, model, tmp_path):
        await model(making(("large", {})))
        await run_suite(**suite(live(record="r")))
        assert recorded(tmp_path / "r")[0]["results"] == [{"too_large": pytest.approx(2_000_000, rel=0.01)}]
        (trial,) = (await run_suite(**suite({"replay": "r"}))).trials()
        assert "too large to be recorded" in trial.unscored_message


class TestConversations:
    async def test_the_nth_call_is_counted_over_all_turns(self, run_suite, model):
        """Each turn starts the servers anew, but it is one trial."""

        def script(turn: Turn) -> Say:
            return calls(turn, [("buy", {"thing": "apple"})] * (1 + ("Another" in turn.question)))

        await model(script)
        cases = [{"id": "two", "turns": ["Buy one.", "Another one."], "expected": "you have 1"}]
        first = await run_suite(**suite(live(record="r"), cases=cases))
        (trial,) = first.trials()
        assert trial.score == 1, trial.failure_message
        run = await run_suite(**suite({"replay": "r"}, cases=cases))
        (trial,) = run.trials()
        assert trial.score == 1 and trial.trace["doubles"]["shop"]["recorded"] == 2
        assert sources(trial) == ["recorded", "recorded"]

    async def test_after_the_turn_in_which_a_session_ended(self, write_suite, store, model):
        """Another session goes on with the conversation, and knows which calls were made in it."""
        broken = True

        def script(turn: Turn) -> Say:
            if broken and "Another" in turn.question:
                raise ValueError("the model is away")
            return calls(turn, [("buy", {"thing": "apple"})] * (1 + ("Another" in turn.question)))

        broken = False
        await model(script)
        cases = [{"id": "two", "turns": ["Buy one.", "Another one."], "expected": "second"}]
        await pipeline.arun(pipeline.load(write_suite(**suite(live(record="r"), cases=cases))), store=store)
        (row,) = recorded(Path("r"))
        row["results"][1]["result"]["content"][0]["text"] = "second"
        Path("r/calls.jsonl").write_text(json.dumps(row) + "\n")
        broken = True
        path = write_suite(**suite({"replay": "r"}, cases=cases, retry={"attempts": 1}))
        run = await pipeline.arun(pipeline.load(path), store=store)
        assert run.status == "incomplete"
        broken = False
        run = await aresume(run.id, store=store, mode="retry")
        (trial,) = run.trials()
        assert trial.score == 1 and trial.trace["doubles"]["shop"]["recorded"] == 2, trial.failure_message


class TestSafety:
    async def test_keys_are_hidden_in_the_recording(self, run_suite, model, monkeypatch, tmp_path):
        monkeypatch.setenv("SHOP_KEY", "hunter2-hunter2-hunter2")
        await model(making(("secret", {})))
        await run_suite(**suite(live(record="r", env={"SHOP_KEY": "${SHOP_KEY}"})))
        assert "hunter2" not in "".join(path.read_text() for path in (tmp_path / "r").rglob("*") if path.is_file())
        assert recorded(tmp_path / "r")[0]["results"][0]["result"]["content"][0]["text"] == "the key is ${SHOP_KEY}"

    async def test_many_trials_and_two_runs_record_at_the_same_time(self, write_suite, store, model, tmp_path):
        def script(turn: Turn) -> Say:
            return calls(turn, [("buy", {"thing": "apple", "pieces": int(turn.question.split()[1])})])

        await model(script)
        cases = [{"id": f"c{n}", "input": f"Buy {n} apples", "expected": f"you have {n}"} for n in range(1, 21)]
        halves = [cases[:12], cases[8:]]
        paths = [write_suite(f"{n}.yaml", **suite(live(record="r"), cases=half)) for n, half in enumerate(halves)]
        await asyncio.gather(*(pipeline.arun(pipeline.load(path), store=store) for path in paths))
        assert len(recorded(tmp_path / "r")) == 20 and not (tmp_path / "r/parts").exists()
        once = (tmp_path / "r/calls.jsonl").read_bytes()
        path = write_suite(**suite({"replay": "r"}, cases=cases))
        run = await pipeline.arun(pipeline.load(path), store=store)
        assert [trial.score for trial in run.trials()] == [1] * 20
        # The same calls in another order give the same file.
        shutil.rmtree(tmp_path / "r")
        path = write_suite(**suite(live(record="r"), cases=list(reversed(cases))))
        await pipeline.arun(pipeline.load(path), store=store)
        assert (tmp_path / "r/calls.jsonl").read_bytes() == once

    async def test_another_recording_is_another_condition(self, run_suite, model, tmp_path):
        await model(making(("stock", {"thing": "apple"})))
        await run_suite(**suite(live(record="r")))
        replay = suite({"replay": "r"})
        run = await run_suite(RunOptions(cache=True), **replay)
        again = await run_suite(RunOptions(cache=True), **replay)
        assert [trial.cached for trial in again.trials()] == [True]
        file = tmp_path / "r/calls.jsonl"
        file.write_text(file.read_text().replace("3 of apple", "9 of apple"))
        other = await run_suite(RunOptions(cache=True), **replay)
        (trial,) = other.trials()
        assert not trial.cached and trial.answer == "9 of apple"
        assert len({one.record.plan_id for one in (run, again, other)}) == 2

    async def test_a_plan_is_not_continued_with_another_recording(self, write_suite, store, model, tmp_path):
        await model(making(("stock", {"thing": "apple"})))
        await pipeline.arun(pipeline.load(write_suite(**suite(live(record="r")))), store=store)
        loaded = pipeline.load(write_suite(**suite({"replay": "r"})))
        file = tmp_path / "r/calls.jsonl"
        file.write_text(file.read_text().replace("3 of apple", "9 of apple"))
        with pytest.raises(TargetUnusableError, match="the recording r has changed since the run was planned"):
            await pipeline.arun(loaded, store=store)

    async def test_other_versions_are_not_mixed(self, run_suite, model):
        await model(making(("stock", {"thing": "apple"})))
        await run_suite(**suite(live(record="r")))
        with pytest.raises(TargetUnusableError, match=r"the tool `sell` is new.*remove that folder"):
            await run_suite(**suite(live(record="r", env={"SHOP_VERSION": "2"})))


class TestMocks:
    MOCK = {
        "name": "shop",
        "tools": [
            {
                "name": "find_order",
                "description": "Find an order.",
                "schema": {"properties": {"number": {"type": "string"}}, "required": ["number"]},
                "answers": [
                    {"when": {"number": "A-17"}, "result": {"status": "sent"}},
                    {"when": {"number": "A-18"}, "results": ["on its way", "there"]},
                    {"when": {"number": "A-19"}, "error": "the shop is closed"},
                ],
            }
        ],
    }

    async def test_it_answers_by_arguments(self, run_suite, model, tmp_path):
        (tmp_path / "shop-mock.yaml").write_text(yaml.safe_dump(self.MOCK))
        numbers = ["A-17", "A-18", "A-18", "A-18", "A-19"]
        await model(making(*(("find_order", {"number": number}) for number in numbers)))
        run = await run_suite(**suite({"mock": "shop-mock.yaml"}))
        (trial,) = run.trials()
        assert trial.answer == '{"status": "sent"} | on its way | there | there | the shop is closed'
        assert sources(trial) == ["mock"] * 5 and [call["error"] for call in trial.trace["tool_calls"]][-1]
        assert trial.unscored_kind is None

    async def test_what_it_does_not_know_is_no_score(self, run_suite, model, tmp_path):
        (tmp_path / "shop-mock.yaml").write_text(yaml.safe_dump(self.MOCK))
        await model(making(("find_order", {"number": "B-1"})))
        (trial,) = (await run_suite(**suite({"mock": "shop-mock.yaml"}))).trials()
        assert trial.unscored_message == 'the mock has no answer to shop.find_order(number: "B-1")'

    @pytest.mark.parametrize(
        ("mock", "reason"),
        [
            ({"tools": []}, "it has no `tools`"),
            ({"tools": [{"name": "a"}, {"name": "a"}]}, "two tools with the name `a`"),
            ({"tools": [{"name": "a", "answers": [{"when": {}}]}]}, "answer 1 of `a` needs one of"),
            ({"tools": [{"name": "a", "answer": []}]}, "unknown field `answer`"),
            ({"tools": [{"name": 3}]}, r"Expected `str`, got `int` - at `\$.tools\[0\].name`"),
            ("[", "it cannot be read as YAML"),
        ],
    )
    def test_bad_mocks(self, write_suite, tmp_path, mock, reason):
        (tmp_path / "m.yaml").write_text(mock if isinstance(mock, str) else yaml.safe_dump(mock))
        with pytest.raises(ProblemsError, match=reason):
            pipeline.load(write_suite(**suite({"mock": "m.yaml"})))


class TestConfiguration:
    @pytest.mark.parametrize(
        ("server", "reason"),
        [
            ({"replay": "r"}, "there is no recording in it .*record it first: `record: r`"),
            ({"replay": "r", "mock": "m.yaml"}, "either `replay` or `mock`"),
            ({"replay": "r", "unknown": "ask"}, "needs either `command`"),
            ({"replay": "r", "unknown": "never"}, "`unknown` is `fail`, `ask`"),
            ({"replay": "r", "unknown": {"error": 3}}, "an error is a text"),
            ({"replay": "r", "record": "s"}, "only something to record with `unknown: ask`"),
            ({"record": "r"}, "needs either `command`"),
            (live(unknown="fail"), "`unknown` says what a `replay` or `mock` does"),
            (live(ignore=["a"]), "`ignore` is for"),
            ({"command": []}, "there is no program ``"),
            ({"mock": "none.yaml"}, "the mock none.yaml cannot be used: it cannot be read"),
        ],
    )
    def test_bad_input(self, write_suite, server, reason):
        with pytest.raises(ProblemsError, match=reason):
            pipeline.load(write_suite(**suite(server)))

    @pytest.mark.parametrize(
        ("name", "text", "reason"),
        [
            ("calls.jsonl", "{}\n", "line 1 of calls.jsonl cannot be read"),
            ("calls.jsonl", "not json\n", "line 1 of calls.jsonl cannot be read"),
            ("offers.json", "[]", "offers.json cannot be read"),
            ("offers.json", '{"format": 9}', "not of a format"),
            ("offers.json", '{"format": 1, "tools": [{"title": "no name"}]}', "required field `name`"),
            ("calls.jsonl", '{"kind": "tool", "name": "a", "results": [], "cases": []}', "no results of a call of a"),
            ("parts/x.jsonl", "[1]\n", "parts/x.jsonl cannot be read"),
        ],
    )
    def test_a_broken_recording_is_a_problem_of_the_suite(self, write_suite, tmp_path, name, text, reason):
        (tmp_path / "r/parts").mkdir(parents=True)
        (tmp_path / "r/offers.json").write_text('{"format": 1, "name": "shop", "tools": []}')
        (tmp_path / "r" / name).write_text(text)
        with pytest.raises(ProblemsError, match=reason):
            pipeline.load(write_suite(**suite({"replay": "r"})))

    async def test_recording_changes_nothing_for_the_agent(self, write_suite, model):
        await model()
        plain, recording = (
            pipeline.load(write_suite(**suite(server))).arms[0].condition.identity()
            for server in (live(), live(record="r"))
        )
        assert plain == recording


class TestDrift:
    async def test_validate_tells_what_has_changed(self, run_suite, model, write_suite, capsys):
        from fairtrial.cli.main import _run

        await model(making(("stock", {"thing": "apple"})))
        await run_suite(**suite(live(record="r")))
        path = write_suite(**suite(live(replay="r")))
        assert await asyncio.to_thread(_run, ["validate", str(path), "--servers"]) == 0
        said = capsys.readouterr()
        assert "warning" not in said.err and "from the recording r" in said.out
        path = write_suite(**suite(live(replay="r", env={"SHOP_VERSION": "2"})))
        assert await asyncio.to_thread(_run, ["validate", str(path), "--servers"]) == 0
        words = " ".join(capsys.readouterr().err.split())
        for change in (
            "the description of `buy` has changed",
            "the schema of `buy` has changed: `colour` is new",
            "the tool `sell` is new",
            "its version was 1, and is 2",
        ):
            assert change in words
        assert await asyncio.to_thread(_run, ["validate", str(path), "--servers", "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert "the tool `sell` is new" in told["warnings"][-1] and told["mcp_servers"][0]["drift"]

    async def test_a_run_that_may_ask_the_server_tells_it_too(self, run_suite, model):
        await model(making(("stock", {"thing": "apple"})))
        await run_suite(**suite(live(record="r")))
        with pytest.warns(UserWarning, match="`shop` differs from the recording r.*the tool `sell` is new"):
            await run_suite(**suite(live(replay="r", unknown="ask", env={"SHOP_VERSION": "2"})))


class TestWhomARecordingFavours:
    async def test_it_is_said_where_arms_miss_different_shares(self, run_suite, model, tmp_path):
        """Recorded with one arm only: the other one asks for pears, every second time."""

        def script(turn: Turn) -> Say:
            odd = int(turn.question.split()[1]) % 2
            thing = "pear" if odd and "careful" in turn.system else "apple"
            return calls(turn, [("stock", {"thing": thing}), ("stock", {"thing": "apple"})])

        await model(script)
        cases = [{"id": f"c{n}", "input": f"Case {n} of 6", "expected": "3 of apple"} for n in range(6)]
        arms = {
            "quick": {"system": "Be quick.", "mcp": ["shop"]},
            "careful": {"system": "Be careful.", "mcp": ["shop"]},
        }
        await run_suite(**suite(live(record="r"), conditions={"quick": arms["quick"]}, cases=cases))
        alike = await run_suite(**suite({"replay": "r"}, conditions={"quick": arms["quick"]}, cases=cases))
        (only,) = ft.tools(alike).arms
        assert (only.stood_in.hits, only.stood_in.of) == (12, 12)

        run = await run_suite(**suite({"replay": "r"}, conditions=arms, cases=cases))
        report = ft.tools(run)
        assert [(arm.stood_in.hits, arm.stood_in.of) for arm in report.arms] == [(12, 12), (9, 12)]
        assert (
            "Recordings and mocks answered 100 % of the calls of agent/quick and 75 % of those of agent/careful: what "
            "was recorded favours agent/quick. Record with both."
        ) in notes_on(report)
        assert "recordings and mocks answered 9 of 12 calls" in " ".join(arm_sentences(report.arms[1]))
        said = " ".join(map(str, ft.compare(run).caveats))
        assert (
            "The recording favours agent/quick: 50 % of the trials of agent/careful have no score, because it called "
            "what was not recorded, and 0 % of those of agent/quick. Record with both."
        ) in said
        assert "favours" not in " ".join(notes_on(ft.tools(alike)))
