"""Versions under one name: another server, other descriptions of tools, other descriptions of skills."""

import json
import sys
from pathlib import Path

import pytest

from fairtrial import pipeline
from fairtrial.analyse.tool_report import tool_report
from fairtrial.cli.main import _run
from fairtrial.core.errors import ProblemsError, TargetUnusableError
from fairtrial.present.words.versions import differ_words, version_sentence
from tests.scripted import Say

SERVERS = Path(__file__).parents[1] / "servers"
FACTS = {"command": sys.executable, "args": [str(SERVERS / "facts.py")]}
VERSIONS = Path(__file__).parents[2] / "examples" / "versions"
CASES = [{"id": f"c{n}", "input": f"What is code {n}?", "expected": "4711", "tools": ["lookup"]} for n in range(8)]
BETTER = "Find the code of anything, whatever it is called."


def by_description(turn, body):
    """A model that calls the tool whose description speaks of codes, and says what it found."""
    tools = [one["function"]["name"] for one in body["tools"] if "code" in one["function"]["description"].lower()]
    if turn.results or not tools:
        return Say(str(turn.results[-1]) if turn.results else "I do not know.")
    return Say("", ((tools[0], {"topic": "code"}),))


@pytest.fixture
async def reader(model):
    served = []
    served.append(await model(lambda turn: by_description(turn, served[0].bodies[-1])))
    return served[0]


def suite(descriptions, **more):
    return {
        "targets": [{"id": "t", "target": "tool-agent:openai:m"}],
        "mcp_servers": {"facts": FACTS},
        "conditions": {"v1": {"mcp": ["facts"]}, "v2": {"mcp": ["facts"], "descriptions": descriptions}},
        "cases": CASES,
        "scorer": "contains",
        **more,
    }


def functions(body):
    return {one["function"]["name"]: one["function"] for one in body["tools"]}


async def test_another_description_is_what_the_model_reads_and_what_is_compared(run_suite, reader):
    run = await run_suite(**suite({"facts.lookup": BETTER}))
    told = {functions(body)["facts__lookup"]["description"] for body in reader.bodies}
    assert told == {BETTER, "What is known about a topic."}
    (pair,) = tool_report(run).versions
    (what,) = pair.what
    assert (what.kind, what.name, what.parts) == ("tool", "facts.lookup", ["description"])
    assert (what.before, what.after) == ("What is known about a topic.", BETTER)
    assert (pair.arm, pair.baseline, pair.score.verdict) == ("t/v2", "t/v1", "better")
    assert version_sentence(pair).endswith("They differ in the description of the tool facts.lookup.")
    chosen = next(one for one in pair.changes if one.kind == "chosen" and one.name == "facts.lookup")
    assert (chosen.before.hits, chosen.after.hits, chosen.after.of, chosen.difference) == (0, 8, 8, 1.0)
    tokens = {arm.condition: {tool.name: tool.tokens for tool in arm.tools} for arm in tool_report(run).arms}
    assert tokens["v2"]["facts.lookup"] > tokens["v1"]["facts.lookup"]
    assert tokens["v2"]["facts.add"] == tokens["v1"]["facts.add"]


async def test_parameters_are_described_without_changing_what_is_valid(run_suite, reader, tmp_path):
    (tmp_path / "lookup.md").write_text("Finds codes.\n")
    descriptions = {"facts.lookup": {"file": "lookup.md", "parameters": {"topic": "One word."}}}
    run = await run_suite(**suite(descriptions))
    new = next(
        one for one in (functions(body)["facts__lookup"] for body in reader.bodies) if "Finds" in one["description"]
    )
    assert (
        new["description"] == "Finds codes." and new["parameters"]["properties"]["topic"]["description"] == "One word."
    )
    assert new["parameters"]["properties"]["topic"]["type"] == "string"
    (pair,) = tool_report(run).versions
    assert differ_words(pair.what) == "They differ in the description and parameters of the tool facts.lookup."


async def test_two_servers_under_one_name(run_suite, reader):
    """Agents see the same names, whichever server is behind them."""
    servers = {
        f"shop-{v}": {
            "command": sys.executable,
            "args": [str(VERSIONS / "shop_server.py"), str(VERSIONS / f"{v}.json")],
        }
        for v in ("v1", "v2")
    }
    conditions = {v: {"mcp": {"shop": f"shop-{v}"}} for v in ("v1", "v2")}
    run = await run_suite(**suite({}, mcp_servers=servers, conditions=conditions, cases=CASES[:2]))
    assert run.status == "completed"
    assert {tuple(functions(body)) for body in reader.bodies} == {
        ("shop__find_article", "shop__find_order", "shop__refund")
    }
    told = {functions(body)["shop__refund"]["description"] for body in reader.bodies}
    assert told == {"Refund money for an order.", "Refund money for an order: at most 100 EUR."}
    (pair,) = tool_report(run).versions
    assert differ_words(pair.what) == (
        "They differ in the server shop (shop-v1 → shop-v2): other descriptions of find_article, find_order, refund."
    )
    versions = {arm.condition: arm.servers[0].version for arm in tool_report(run).arms}
    assert versions == {"v1": "v1", "v2": "v2"}


@pytest.mark.parametrize(
    ("descriptions", "reason"),
    [
        ({"facts.lookups": "x"}, r"has no tool `lookups`; its tools: add"),
        ({"facts.lookup": {"parameters": {"topics": "x"}}}, r"`facts.lookup` has no parameter `topics`; its parameters: topic"),
    ],
)  # fmt: skip
async def test_what_the_server_does_not_have_stops_the_run_before_it_costs_anything(
    run_suite, reader, descriptions, reason
):
    with pytest.raises(TargetUnusableError, match=reason):
        await run_suite(**suite(descriptions))
    assert not reader.bodies


@pytest.mark.parametrize(
    ("target", "condition", "reason"),
    [
        ("mock:echo", {"mcp": ["facts"], "descriptions": {"facts.lookup": "x"}}, "mock:echo reads the descriptions of tools from their servers"),
        ("tool-agent:openai:m", {"mcp": ["facts"], "descriptions": {"facts": "x"}}, "`facts` is a server: name one of its tools, as in `facts.TOOL`"),
        ("tool-agent:openai:m", {"mcp": ["facts"], "descriptions": {"fact.lookup": "x"}}, "no MCP server `fact`.*facts"),
        ("tool-agent:openai:m", {"mcp": ["facts"], "descriptions": {"facts.lookup": {"text": "x", "file": "y"}}}, "`text` or `file`, not both"),
        ("tool-agent:openai:m", {"mcp": ["facts"], "descriptions": {"facts.lookup": {}}}, "say what the tool does"),
        ("tool-agent:openai:m", {"mcp": ["facts"], "descriptions": {"facts.lookup": {"file": "no.md"}}}, "there is no file .*no.md"),
        ("tool-agent:openai:m", {"mcp": {"facts": "fact"}}, "unknown MCP server `fact`.*facts"),
        ("tool-agent:openai:m", {"skills": ["skills/codes"], "descriptions": {"code": "x"}}, "no skill has the name `code`.*codes"),
        ("tool-agent:openai:m", {"skills": ["skills/codes"], "descriptions": {"codes": ""}}, "say when the skill is to be used"),
        ("tool-agent:openai:m", {"skills": ["skills/codes"], "descriptions": {"codes": {"text": "x", "parameters": {"a": "b"}}}}, "has no `parameters`"),
    ],
)  # fmt: skip
def test_problems(write_suite, tmp_path, monkeypatch, target, condition, reason):
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    skill(tmp_path)
    path = write_suite(targets=[target], mcp_servers={"facts": FACTS}, conditions={"some": condition})
    with pytest.raises(ProblemsError, match=reason):
        pipeline.load(path)


def test_suites_without_any_of_this_keep_their_plans(write_suite, tmp_path):
    """What a suite does not use is in no id."""
    import msgspec

    from fairtrial.config.checked_suite import _forget_unused

    skill(tmp_path)
    path = write_suite(mcp_servers={"facts": FACTS}, conditions={"c": {"mcp": ["facts"], "skills": ["skills/codes"]}})
    (arm,) = pipeline.load(path).arms
    assert {"texts", "entry"}.isdisjoint(arm.condition.mcp[0].identity())
    (stored,) = msgspec.to_builtins([arm])
    _forget_unused(stored)
    assert {"texts", "entry"}.isdisjoint(stored["condition"]["mcp"][0])
    assert "rest" not in stored["condition"]["skills"][0]


# -- skills --------------------------------------------------------------------------------------


def skill(folder: Path, name="codes", description="How to find codes."):
    place = folder / "skills" / name
    (place / "scripts").mkdir(parents=True, exist_ok=True)
    (place / "SKILL.md").write_text(f"---\nname: {name}\ndescription: {description}\n---\n\nThe code is 4711.\n")
    (place / "scripts" / "find.sh").write_text("echo 4711\n")
    return place


NEW = "Finds codes: use it whenever somebody asks for one"
QUERIES = [
    *({"id": f"yes{n}", "input": f"What is the code {n}?", "expected": "4711", "skill": "fires"} for n in range(3)),
    *({"id": f"no{n}", "input": f"What is the word {n}?", "expected": "word", "skill": "silent"} for n in range(3)),
]


def described(**more):
    return {
        "targets": ["claude-code:claude-test-1"],
        "conditions": {
            "v1": {"system": "Be brief.", "skills": "skills/codes"},
            "v2": {"system": "Be brief.", "skills": "skills/codes", "descriptions": {"codes": NEW}},
        },
        "cases": QUERIES,
        "scorer": "trigger",
        **more,
    }


def fires(turn, told):
    """A model that uses the skill where its new description was read, and once without need."""
    asked = turn.question.rpartition("What is")[2]
    if "Skill" in turn.tools and not turn.results and NEW in told and ("code" in asked or "word 0" in asked):
        return Say("", (("Skill", {"skill": "codes"}),))
    return Say("4711")


@pytest.fixture
async def claude(model):
    served = []
    served.append(await model(lambda turn: fires(turn, json.dumps(served[0].bodies[-1]))))
    return served[0]


@pytest.mark.slow
async def test_whether_a_skill_fires_by_two_descriptions(run_suite, claude, tmp_path, capsys, monkeypatch):
    """In Claude Code; a skill of the same name among the user's own is not the one that is offered."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    skill(tmp_path / "home" / ".claude", description="A namesake that shadows.")
    skill(tmp_path)
    run = await run_suite(**described())
    assert run.status == "completed", [trial.failure_message for trial in run.trials()]
    told = json.dumps(claude.bodies)
    assert NEW in told and "How to find codes." in told and "namesake" not in told
    old, new = [arm.skills[0].triggers for arm in tool_report(run).arms]
    assert [(one.hits, one.of) for one in (old.recall, old.false_fires)] == [(0, 3), (0, 3)]
    assert [(one.hits, one.of) for one in (new.recall, new.false_fires)] == [(3, 3), (1, 3)]
    assert [arm.aggregate.mean for arm in run.arms] == [0.5, pytest.approx(5 / 6)]
    (pair,) = tool_report(run).versions
    assert differ_words(pair.what) == "They differ in the description of the skill codes."
    assert (pair.what[0].before, pair.what[0].after) == ("How to find codes.", NEW)
    recall = next(one for one in pair.changes if one.kind == "recall")
    assert (recall.difference, recall.count) == (1.0, 3)
    assert _run(["tools", run.id, "--store", run.store.address]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "skill codes fired where it should in 3 of 3 trials" in shown
    assert "skill codes fired where it should not in 1 of 3 trials" in shown


@pytest.mark.slow
async def test_reading_its_file_is_using_it_and_a_crash_says_nothing(run_suite, model, tmp_path):
    skill(tmp_path)
    place = {}

    def script(turn):
        asked = turn.question.rpartition("What is")[2]
        if "code 0" in asked and not turn.results:
            return Say("", (("Read", {"file_path": f"{place['config']}/skills/codes/SKILL.md"}),))
        if "code 1" in asked or "word 1" in asked:
            raise ConnectionResetError  # the session dies before anything fires
        return Say("4711")

    place["config"] = "/nowhere"
    await model(script)
    targets = [{"id": "c", "target": "claude-code:claude-test-1", "options": {"tools": ["Read"]}}]
    conditions = {"v1": {"system": "Be brief.", "skills": "skills/codes"}}
    run = await run_suite(**described(targets=targets, conditions=conditions, retry={"attempts": 1}))
    (arm,) = tool_report(run).arms
    triggers = arm.skills[0].triggers
    assert (triggers.recall.hits, triggers.recall.of) == (1, 2), [trial.trace for trial in run.trials()]
    assert (triggers.false_fires.hits, triggers.false_fires.of, triggers.unobserved) == (0, 2, 2)


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        ({"skill": "fires"}, "`skill: fires` could mean codes or words: name it, as in `skill: {codes: fires}`"),
        ({"skill": {"code": "fires"}}, "no condition of this case has the skill `code`.*codes"),
        ({"skill": "never"}, "fires"),
        ({"skill": "fires", "conditions": ["plain"]}, "no condition of this case has `skills`"),
        ({"scorer": "trigger"}, "does not say `skill: fires` or `skill: silent`"),
    ],
)
def test_cases_that_cannot_be_meant(write_suite, tmp_path, case, reason):
    skill(tmp_path), skill(tmp_path, "words")
    conditions = {"plain": {}, "both": {"skills": ["skills/codes", "skills/words"]}}
    path = write_suite(conditions=conditions, cases=[{"input": "a", "expected": "a", **case}])
    with pytest.raises(ProblemsError, match=reason):
        pipeline.load(path)


def test_a_table_of_queries_says_it_in_a_column(write_suite, tmp_path):
    skill(tmp_path)
    (tmp_path / "queries.csv").write_text("input,skill\nWhat is the code?,fires\nWhat is the word?,silent\nHm?,\n")
    path = write_suite(
        conditions={"c": {"skills": "skills/codes"}},
        cases=[],
        dataset={"path": "queries.csv"},
        scorer={"type": "length", "min": 1},
    )
    from fairtrial.core.skill_use import wanted_of

    assert [wanted_of(case) for case in pipeline.load(path).cases()] == [{"": "fires"}, {"": "silent"}, {}]
