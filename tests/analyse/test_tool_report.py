"""Tools and skills: what they add, how they are used, and which are mistaken for each other."""

import json
from pathlib import Path

import pytest

from fairtrial import pipeline
from fairtrial.analyse.offered import OfferedServer, OfferedTool, Offers, added
from fairtrial.analyse.tool_counts import NONE, ArmCounts
from fairtrial.analyse.tool_report import tool_report
from fairtrial.analyse.wording.tools import arm_sentences, gain_sentence, notes_on, rate_words
from fairtrial.cli.main import _run
from fairtrial.core.calls import Call, expected_calls
from fairtrial.core.experiment import Case, ExpectedCall
from fairtrial.stats import aggregate

EXAMPLE = Path(__file__).parents[2] / "examples" / "tools" / "suite.yaml"
TEXT = {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]}


def offers(*names, schema=TEXT):
    tools = [OfferedTool(name=name, tokens=10, schema=schema) for name in names]
    servers = dict.fromkeys(name.partition(".")[0] for name in names)
    return Offers(
        servers=[
            OfferedServer(server=one, name=one, version="1", tools=[t for t in tools if t.name.startswith(f"{one}.")])
            for one in servers
        ]
    )


def case(position=0, **more):
    return Case(id=f"c{position}", input="?", position=position, **more)


def call(name, error=False, **arguments):
    server, _, tool = name.rpartition(".")
    return Call(tool, server or None, arguments, error)


class TestCounts:
    def test_rates_are_over_cases(self):
        """Repeats of one case are not independent: eight of them say no more about other cases than one does."""
        counts = ArmCounts(offers("s.a"))
        for position in range(4):
            for _ in range(8):
                counts.add(case(position), [call("s.a", x="1")] if position else [], None)
        use = counts.tools["s.a"].use
        assert (use.hits, use.chances) == (24, 32)
        assert use.aggregate().ci95 == aggregate([0.0, 1.0, 1.0, 1.0], [8, 8, 8, 8]).ci95

    def test_errors_and_recovery(self):
        counts = ArmCounts(offers("s.a", "s.b"))
        counts.add(case(0), [call("s.a", error=True, x="1"), call("s.a", x="2")], None)
        counts.add(case(1), [call("s.a", error=True, x="1"), call("s.b", x="2")], None)
        assert (counts.recovered.hits, counts.recovered.chances) == (1, 2)
        assert (counts.tools["s.a"].success.hits, counts.tools["s.a"].success.chances) == (1, 3)

    def test_arguments_against_the_schema(self):
        counts = ArmCounts(offers("s.a"))
        counts.add(case(), [call("s.a", x=1), call("s.a"), call("s.a", x="1")], None)
        assert (counts.tools["s.a"].valid.hits, counts.tools["s.a"].valid.chances) == (1, 3)
        assert sorted(reason for _, reason in counts.invalid) == [
            '"x" is a required property',
            'x: 1 is not of type "string"',
        ]

    def test_a_broken_schema_checks_nothing(self):
        counts = ArmCounts(offers("s.a", schema={"type": "no such type"}))
        counts.add(case(), [call("s.a", x=1)], None)
        assert counts.tools["s.a"].valid.chances == 0

    def test_confusion(self):
        counts = ArmCounts(offers("s.a", "s.b"))
        wanted = [ExpectedCall(name="a", arguments={"x": "1"})]  # the case leaves out the server
        counts.add(case(0), [call("s.b", x="1"), call("s.a", x="1")], wanted)  # more than asked for is no mistake
        counts.add(case(1), [call("s.b", x="1")], wanted)
        counts.add(case(2), [], wanted)
        counts.add(case(3), [call("s.b", x="1")], [])
        counts.add(case(4), [], [])
        counts.add(case(5), [call("s.a", x="2")], wanted)
        assert dict(counts.confusion) == {
            ("s.a", "s.a"): 2,
            ("s.a", "s.b"): 1,
            ("s.a", NONE): 1,
            (NONE, "s.b"): 1,
            (NONE, NONE): 1,
        }
        assert (counts.unneeded.hits, counts.unneeded.chances) == (1, 2)
        arguments, chosen = counts.tools["s.a"].arguments, counts.tools["s.a"].chosen
        assert (arguments.hits, arguments.chances, chosen.hits, chosen.chances) == (1, 2, 2, 4)

    def test_calls_that_are_no_tools_of_servers(self):
        counts = ArmCounts(offers("s.a"))
        reads = [
            Call("ReadMcpResourceTool", None, {"server": "s", "uri": "m://1"}),
            Call("Skill", None, {"skill": "p:k"}),
        ]
        counts.add(case(), [*reads, call("Bash", x="ls")], None)
        assert counts.resources == {"m://1": 1} and list(counts.tools) == ["s.a", "Bash"]

    def test_agents_that_do_not_tell(self):
        counts = ArmCounts(offers("s.a"))
        counts.add(case(), None, [])
        assert (counts.trials, counts.unknown, counts.unneeded.chances) == (0, 1, 0)


@pytest.mark.parametrize(
    ("more", "less", "what"),
    [
        (("s.a", "s.b"), (), [("server", "s")]),
        (("s.a", "s.b"), ("s.a",), [("tool", "s.b")]),
        (("s.a", "r.b"), ("s.a",), [("server", "r")]),
        (("s.a", "r.b"), (), [("server", "r"), ("server", "s")]),
        (("s.a",), ("s.b",), None),
        (("s.a",), ("s.a",), None),
    ],
)
def test_what_one_condition_has_more(more, less, what):
    assert added(offers(*more), offers(*less)) == what


@pytest.mark.parametrize(
    ("keys", "scorer", "names"),
    [
        ({"metadata": {"tools": [{"name": "a"}]}}, "match", ["a"]),
        ({"metadata": {"tools": []}}, {"type": "tool_calls", "names": ["b"]}, []),
        ({}, {"type": "all_of", "scorers": ["match", {"type": "tool_calls", "names": ["b"]}]}, ["b"]),
        ({}, {"type": "not", "scorer": {"type": "tool_calls", "names": ["b"]}}, None),
        ({}, {"type": "tool_calls", "max": 0}, []),
        ({}, {"type": "tool_calls", "forbidden": ["b"]}, None),
        ({"expected": '{"name": "c", "arguments": {"x": 1}}'}, {"type": "tool_calls"}, ["c"]),
        ({"expected": "{"}, {"type": "tool_calls"}, None),
        ({"expected": "c"}, {"type": "match"}, None),
    ],
)
def test_which_calls_a_case_asks_for(keys, scorer, names):
    found = expected_calls(case(**keys), scorer)
    assert (None if found is None else [one.name for one in found]) == names


@pytest.mark.slow
async def test_the_example_in_every_output(tmp_path, capfd, monkeypatch):
    """One run of the example: report, command line, Markdown, JSON, page and report as HTML."""
    import sys

    from mcp.client.stdio import stdio_client

    from fairtrial.store import Store

    # Servers write to the stderr of the moment in which this was imported: perhaps a test's, which is no file.
    monkeypatch.setattr(stdio_client.__wrapped__, "__defaults__", (sys.stderr,))
    monkeypatch.setenv("PYTHON", sys.executable)
    store = Store()
    run = await pipeline.arun(pipeline.load(EXAMPLE), store=store)
    assert run.status == "completed", [trial.failure_message for trial in run.trials()]
    report = tool_report(run)
    server, skill, both = report.gains
    assert (server.what, skill.what) == ([("server", "shop")], [("skill", "house-style")])
    assert (server.arm, server.baseline, server.score.verdict) == ("agent/with-server", "agent/plain", "better")
    assert (skill.arm, skill.baseline, skill.score.verdict) == ("agent/with-both", "agent/with-server", "cannot tell")
    assert both.what == [("server", "shop"), ("skill", "house-style")] and both.baseline == "agent/plain"
    lift = next(one for one in run.summary().lifts if one.arm == "agent/with-server" and not one.metric)
    assert (server.score.difference, server.score.ci95) == (lift.paired.difference, lift.paired.ci95)  # one interval
    costs = {one.metric: one for one in server.taken}
    assert costs["cost_usd"].difference == pytest.approx(9 * 0.002 / 11) and costs["cost_usd"].verdict == "worse"
    arm = next(one for one in report.arms if one.arm == "agent/with-server")
    assert (arm.offered, arm.covered, arm.never_called) == (4, 3, ["shop.cancel_order"])
    assert arm.tokens == sum(tool.tokens for tool in arm.tools) > 100
    assert (arm.servers[0].resources, arm.servers[0].prompts) == (["shop://terms"], ["apologise"])
    lines = arm_sentences(arm)
    assert "shop.find_customer was called instead of shop.find_order once" in lines
    assert "a tool was called although none was needed in 1 of 3 trials (1 to 91 %)" in lines
    assert gain_sentence(server).startswith("The server shop helps: +63.6 points (95 % CI")
    assert rate_words(arm.any_use, "trial") == "9 of 11 trials (48 to 98 %)"
    assert not any("differ" in note and "system" in note for note in notes_on(report))
    # what people and programs see of it
    assert _run(["tools"]) == 0
    shown = capfd.readouterr().out
    assert max(map(len, shown.splitlines())) <= 80 and "1 shop.find_customer" in shown
    assert _run(["tools", "--json"]) == 0
    document = json.loads(capfd.readouterr().out)
    assert document["gains"][0]["score"]["difference"] == pytest.approx(63.636363, abs=1e-4)
    assert document["arms"][0]["confusion"]["expected"][-1] == NONE
    assert document["arms"][0]["tools"][0]["use"] == {"count": 4, "of": 11, "share": pytest.approx(36.36, abs=0.01), "ci95": document["arms"][0]["tools"][0]["use"]["ci95"]}  # fmt: skip
    assert _run(["tools", "-o", "TOOLS.md"]) == 0
    section = Path("TOOLS.md").read_text()
    assert (
        section.startswith("## Do the tools help?\n\n**The server shop helps:")
        and "| server shop | agent | +63.6 |" in section
    )
    assert _run(["export", "-o", "all.md", "-o", "report.html"]) == 0
    assert section.partition("\nRun `")[0].strip() in Path("all.md").read_text()
    page = Path("report.html").read_text()
    assert "Do the tools help?" in page and "Tools taken for each other" in page and "confusion" in page


async def test_a_run_without_tools_says_so(run_suite, capsys):
    run = await run_suite(targets=["mock:echo"], cases=[{"input": "a", "expected": "a"}])
    assert _run(["tools", "--store", run.store.address]) == 1
    assert "has no MCP servers and no skills" in capsys.readouterr().err
    assert _run(["tools", "-o", "x.txt"]) == 1
    assert "ends in .md" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("tools", "calls", "score"),
    [
        ([], [], 1.0),
        ([], ["a"], 0.0),
        ([{"name": "a"}], ["a"], 1.0),
        ([{"name": "a"}], ["b"], 0.0),
        ([{"name": "s.a", "arguments": {"x": "1"}}], ["a"], 1.0),
        ([{"name": "s.a", "arguments": {"x": "2"}}], ["a"], 0.0),
        ([{"name": "b"}, {"name": "a"}], ["a", "b"], 0.0),
    ],
)
async def test_the_scorer_looks_at_what_the_case_asks_for(tools, calls, score):
    from fairtrial.core.accepted import case_problems, score_answer
    from fairtrial.core.answer import Answer
    from fairtrial.core.score import ScoreContext
    from fairtrial.scorers.tool_calls import ToolCalls

    asked = case(metadata={"tools": tools})
    assert not list(case_problems(ToolCalls(), asked, Path()))
    made = [{"server": "s", "tool": name, "arguments": {"x": "1"}} for name in calls]
    answer = Answer(text="", trace={"tool_calls": made})
    assert (await score_answer(ToolCalls(), ScoreContext(case=asked, response="", answer=answer))).value == score
    assert list(case_problems(ToolCalls(), case(), Path()))
