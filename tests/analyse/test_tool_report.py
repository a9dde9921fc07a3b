"""Tools and skills: what they add, how they are used, and which are mistaken for each other."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import update

from fairtrial import pipeline
from fairtrial.analyse.offered import OfferedServer, OfferedTool, Offers, added
from fairtrial.analyse.tool_counts import NONE, ArmCounts
from fairtrial.analyse.tool_report import tool_report
from fairtrial.cli.main import _run
from fairtrial.core.calls import MadeCall, expected_calls
from fairtrial.core.experiment import Case, ExpectedCall
from fairtrial.present.words.tools import arm_sentences, gain_sentence, notes_on, rate_words
from fairtrial.stats import aggregate
from fairtrial.store import schema

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
    return MadeCall(tool, server or None, arguments, error)


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
            MadeCall("ReadMcpResourceTool", None, {"server": "s", "uri": "m://1"}),
            MadeCall("Skill", None, {"skill": "p:k"}),
        ]
        counts.add(case(), [*reads, call("Bash", x="ls")], None)
        assert counts.resources == {"m://1": 1} and list(counts.tools) == ["s.a", "Bash"]

    def test_a_case_can_ask_for_the_tool_that_loads_skills(self):
        counts = ArmCounts(offers("s.a"))
        counts.add(case(), [MadeCall("Skill", None, {"skill": "k"})], [ExpectedCall(name="Skill")])
        counts.add(case(1), [MadeCall("Skill", None, {"skill": "k"})], [ExpectedCall(name="s.a")])
        assert (counts.tools["Skill"].chosen.hits, counts.tools["Skill"].use.hits) == (1, 1)
        assert counts.confusion == {("Skill", "Skill"): 1, ("s.a", NONE): 1}

    def test_agents_that_do_not_tell(self):
        counts = ArmCounts(offers("s.a"))
        counts.add(case(), None, [])
        assert (counts.trials, counts.unknown, counts.unneeded.chances) == (0, 1, 0)


def naive(trials, offered):
    """The same counts without any state: every tool that is offered, called or asked for, over all trials."""
    known = [(case, calls, wanted) for case, calls, wanted in trials if calls is not None]
    asked = {one.name for _, _, wanted in known for one in wanted or ()}
    named = {ask: [name for name in offered if ask in (name, name.partition(".")[2])] for ask in asked}
    whole = {ask: found[0] if len(found) == 1 else ask for ask, found in named.items()}
    found = {}
    for tool in {*offered, *whole.values(), *(one.name for _, calls, _ in known for one in calls)}:
        wanted_by = [
            [any(one.name == ask or one.tool == ask for one in calls) for ask in {one.name for one in wanted or ()} if whole[ask] == tool]
            for _, calls, wanted in known
        ]  # fmt: skip
        used = [any(one.name == tool for one in calls) for _, calls, _ in known]
        own = [one for _, calls, _ in known for one in calls if one.name == tool]
        found[tool] = (
            (sum(use or any(asks) for use, asks in zip(used, wanted_by, strict=True)), len(known)),
            (sum(not one.error for one in own), len(own)),
            (sum(map(any, wanted_by)), sum(map(bool, wanted_by))),
        )
    return found


NAMES = st.sampled_from(["s.a", "s.b", "r.a", "Bash", "x.made_up", "made_up"])
TRIALS = st.lists(
    st.tuples(
        st.integers(0, 3).map(case),
        st.none() | st.lists(st.builds(call, NAMES, error=st.booleans()), max_size=4),
        st.none() | st.lists(NAMES | st.sampled_from(["a", "b"]), max_size=3, unique=True).map(
            lambda names: [ExpectedCall(name=name) for name in names]
        ),
    ),
    max_size=8,
)  # fmt: skip


class TestOrder:
    """The trials of a run can be counted in any order."""

    @given(TRIALS, st.randoms(use_true_random=False))
    @settings(max_examples=300)
    def test_every_order_gives_the_naive_count(self, trials, random):
        expected = naive(trials, ["s.a", "s.b", "r.a"])
        for _ in range(2):
            counts = ArmCounts(offers("s.a", "s.b", "r.a"))
            for one in trials:
                counts.add(*one)
            assert {
                name: tuple((share.hits, share.chances) for share in (own.use, own.success, own.chosen))
                for name, own in counts.tools.items()
            } == expected
            random.shuffle(trials)

    def test_intervals_do_not_depend_on_the_order_either(self):
        trials = [(case(n, cluster=str(n % 3)), [call("Bash")] * (n % 2), None) for n in range(6)]
        found = []
        for order in (trials, trials[::-1]):
            counts = ArmCounts(offers("s.a"))
            for one in order:
                counts.add(*one)
            found.append(counts.tools["Bash"].use.aggregate())
        assert found[0] == found[1] and found[0].count == 6

    def test_a_tool_that_is_asked_for_but_not_offered(self):
        """It was counted from its first mention on: 0 of 1, of 4 trials."""
        counts = ArmCounts(offers("s.a"))
        wanted = [None, None, [ExpectedCall(name="web.search")], None]
        for position, calls in enumerate(wanted):
            counts.add(case(position), [call("s.a", x="1")], calls)
        use = counts.tools["web.search"].use
        assert (use.hits, use.chances) == (0, 4) and use.aggregate().mean == 0

    def test_a_tool_that_a_case_asks_for_twice_is_one_trial(self):
        counts = ArmCounts(offers("s.a"))
        wanted = [ExpectedCall(name="s.a", arguments={"x": x}) for x in ("1", "2")]
        counts.add(case(0), [call("s.a", x="1"), call("s.a", x="2")], wanted)
        counts.add(case(1), [call("s.a", x="1")], wanted)
        counts.add(case(2), [], wanted)
        own = counts.tools["s.a"]
        assert [(share.hits, share.chances) for share in (own.chosen, own.arguments)] == [(2, 3), (1, 2)]
        assert dict(counts.confusion) == {("s.a", "s.a"): 2, ("s.a", NONE): 1}

    def test_a_name_with_a_star_is_used_where_one_of_its_tools_is(self):
        counts = ArmCounts(offers("s.a", "s.b"))
        for position, name in enumerate(["s.a", "s.b", "Bash"]):
            counts.add(case(position), [call(name, x="1")], [ExpectedCall(name="s.*")])
        own = counts.tools["s.*"]
        assert [(share.hits, share.chances) for share in (own.use, own.chosen)] == [(2, 3), (2, 3)]


@pytest.mark.slow
async def test_every_surface_has_the_same_denominators(run_suite, store, tmp_path, capsys):
    """A tool that only the third case asks for, another that only the last trial called: both of all trials."""
    from starlette.testclient import TestClient

    from fairtrial.reports.export import export
    from fairtrial.web.app import make_app
    from fairtrial.web.site import Site

    run = await run_suite(
        targets=[{"id": "agent", "target": "mock:agent", "options": {"answer": "x"}}],
        conditions={"with": {"skills": [str(_skill(tmp_path))]}},
        cases=[
            {"id": str(n), "input": f"q{n}", "expected": "x", "tools": [{"name": "web.search"}] if n == 2 else None}
            for n in range(4)
        ],
    )
    with store.writing() as connection:
        for n in range(4):
            calls = [{"tool": "Bash", "arguments": {}}] if n == 3 else []
            trace = json.dumps({"tool_calls": calls}).encode()
            connection.execute(
                update(schema.trials).where(schema.trials.c.case_position == n).values(trace=trace, row_hash=None)
            )
    assert _run(["tools", run.id, "--store", store.address]) == 0
    terminal = capsys.readouterr().out
    assert _run(["tools", run.id, "--store", store.address, "--json"]) == 0
    (arm,) = json.loads(capsys.readouterr().out)["arms"]
    assert {one["name"]: (one["use"]["count"], one["use"]["of"]) for one in arm["tools"]} == {
        "Bash": (1, 4),
        "web.search": (0, 4),
    }
    assert _run(["tools", run.id, "--store", store.address, "-o", "-"]) == 0
    markdown = capsys.readouterr().out
    export(run, tmp_path / "report.html")
    export(run, tmp_path / "report.md")
    site = Site(store, tmp_path)
    page = TestClient(make_app(site), headers={"origin": "http://testserver"}).get(f"/runs/{run.id}/result?wait=1").text
    site.close()
    assert "1/4" in terminal and "0/4" in terminal
    for text in (
        markdown,
        (tmp_path / "report.html").read_text("utf-8"),
        (tmp_path / "report.md").read_text("utf-8"),
        page,
    ):
        assert "1 of 4" in text and "0 of 4" in text


def _skill(folder: Path) -> Path:
    made = folder / "count"
    made.mkdir()
    (made / "SKILL.md").write_text("---\nname: count\ndescription: counts\n---\nCount.\n")
    return made


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
    assert "shop.find_customer was called for shop.find_order in 1 of 4 trials" in lines
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
    assert "Do the tools help?" in page and "Tools mistaken for each other" in page and "confusion" in page


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
