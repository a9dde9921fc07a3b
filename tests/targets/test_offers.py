"""What conditions offer: skills, some tools of a server, resources and prompts, servers behind OAuth."""

import asyncio
import json
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from fairtrial import pipeline
from fairtrial.config.advice import warnings
from fairtrial.core.errors import ProblemsError, TargetUnusableError
from tests import forks
from tests.ports import free_port
from tests.scripted import Say, look_up

SERVERS = Path(__file__).parents[1] / "servers"
SHOP = Path(__file__).parents[2] / "examples" / "tools" / "shop_server.py"
CASES = [{"id": "code", "input": "What is the code?", "expected": "4711"}]
PROGRAM = {"command": sys.executable, "args": [str(SERVERS / "facts.py")]}


@pytest.fixture
def skill(tmp_path):
    folder = tmp_path / "skills" / "codes"
    (folder / "scripts").mkdir(parents=True)
    (folder / "evals").mkdir()
    (folder / "SKILL.md").write_text(
        "---\nname: codes\ndescription: How to find codes.\n---\n\nThe {{ code }} is 4711. See scripts/find.sh.\n"
    )
    (folder / "scripts" / "find.sh").write_text("echo 4711\n")
    (folder / "evals" / "evals.json").write_text('{"evals": []}')
    return folder


def with_and_without(skills="skills/codes", system="Be brief."):
    return {"plain": {"system": system}, "skilled": {"system": system, "skills": skills}}


class TestSkills:
    async def test_as_text_for_a_model(self, run_suite, skill):
        run = await run_suite(targets=["mock:echo"], conditions=with_and_without(), cases=CASES)
        plain, skilled = run.plan_arms
        assert plain.condition.system == "Be brief."
        text = "Be brief.\n\n# Skill: codes\n\nHow to find codes.\n\nThe {{ code }} is 4711. See scripts/find.sh."
        assert skilled.condition.system == text  # no template: it stands in a file of somebody's
        assert skilled.condition.skills[0].as_text and not plain.condition.skills
        assert next(run.told_trials()).chat.system == "Be brief."

    def test_it_never_replaces_the_prompt_that_an_agent_has_itself(self, write_suite, skill, monkeypatch):
        """With a skill as text, Codex would lose its own instructions, and that would pass for what the skill does."""
        conditions = {"plain": {}, "skilled": {"skills": "skills/codes"}}
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        codex = {"target": "codex:gpt-5", "options": {"program": sys.executable}}
        path = write_suite(targets=[codex], conditions=conditions, cases=CASES)
        with pytest.raises(
            ProblemsError, match=r"would replace its own system prompt.*give every condition a `system`"
        ):
            pipeline.load(path)

    def test_in_a_template_it_stays_text(self, write_suite, skill):
        (skill / "SKILL.md").write_text("---\ndescription: x\n---\n{{ no }} {% endraw %} ü")
        path = write_suite(conditions=with_and_without(system="Speak {{ language }}."), vars={"language": "French"})
        suite = pipeline.load(path)
        (case, *_) = suite.cases()
        system = suite.arms[1].condition.render(case, 0).system
        assert system == "Speak French.\n\n# Skill: codes\n\nx\n\n{{ no }} {% endraw %} ü"

    async def test_files_are_in_the_workspace_without_evals(self, run_suite, skill):
        agent = [sys.executable, "-c", "import os; print(sorted(x for _, _, y in os.walk('.') for x in y))"]
        run = await run_suite(
            targets=[{"id": "a", "target": "command", "options": {"command": agent}}],
            conditions=with_and_without(),
            cases=[{**CASES[0], "workspace": {"files": "skills/codes/SKILL.md"}}],
        )
        plain, skilled = [trial.answer for trial in run.trials()]
        assert plain == "['SKILL.md']" and skilled == "['SKILL.md', 'SKILL.md', 'find.sh']"
        assert "are in .skills/codes in your working folder" in run.plan_arms[1].condition.system

    def test_another_text_is_another_plan(self, write_suite, skill):
        path = write_suite(conditions=with_and_without())
        before = pipeline.load(path).plan_id
        assert pipeline.load(path).plan_id == before
        (skill / "scripts" / "find.sh").write_text("echo 4712\n")
        assert pipeline.load(path).plan_id != before
        assert skill / "scripts" / "find.sh" in pipeline.load(path).files_used()

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            (None, "a skill is a folder with a SKILL.md"),
            ("---\nname: x\n---\nhi", "has no `description`"),
            ("---\nname: [\n---\nhi", "not valid YAML"),
            ("---\nname: ../up\ndescription: d\n---\n", "not '../up'"),
        ],
    )
    def test_problems(self, write_suite, skill, text, reason):
        (skill / "SKILL.md").unlink() if text is None else (skill / "SKILL.md").write_text(text)
        with pytest.raises(ProblemsError, match=reason):
            pipeline.load(write_suite(conditions=with_and_without()))

    def test_a_warning_where_files_are_left_out(self, write_suite, skill):
        path = write_suite(targets=["mock:echo"], conditions=with_and_without())
        assert any("mock:echo gets only the SKILL.md of codes" in one for one in warnings(pipeline.load(path)))

    @pytest.mark.slow
    async def test_claude_code_takes_it_as_a_skill(self, run_suite, model, skill):
        def script(turn):
            if "Skill" in turn.tools and not turn.results:
                return Say("", (("Skill", {"skill": "codes"}),))
            return Say("4711" if "Launching skill" in str(turn.results) or "is 4711" in turn.question else "unknown")

        served = await model(script)
        cases = [{**CASES[0], "tools": ["Skill"]}]
        run = await run_suite(targets=["claude-code:claude-test-1"], conditions=with_and_without(), cases=cases)
        assert run.status == "completed", [trial.failure_message for trial in run.trials()]
        assert [arm.aggregate.mean for arm in run.arms] == [0.0, 1.0]
        roles = [[message["role"] for message in body["messages"]] for body in served.bodies]
        pairs = zip(served.bodies, roles, strict=True)
        first = [json.dumps(body) for body, spoken in pairs if "assistant" not in spoken]
        assert sum("How to find codes." in body for body in first) == 1  # offered under one condition, not as text
        assert not any("is 4711" in body for body in first)
        from fairtrial.analyse.tool_report import tool_report

        report = tool_report(run)
        skilled = next(arm for arm in report.arms if arm.condition == "skilled")
        (stats,) = skilled.skills
        assert (stats.use.hits, stats.use.of, stats.as_text) == (1, 1, False)
        (tool,) = skilled.tools  # which the case asks for
        assert (tool.name, tool.offered, tool.use.hits, tool.chosen.hits, tool.chosen.of) == ("Skill", True, 1, 1, 1)
        assert report.gains[0].what == [("skill", "codes")] and not report.gains[0].other_system

    @pytest.mark.parametrize(
        ("plain", "skilled", "text", "differs"),
        [
            ("Be brief.", "Be brief.", "", False),
            ("", "", "", False),
            ("", "Be brief.", "", True),
            ("Be brief.", "Be brief. Be exact.", "", True),
            ("Speak {{ language }}.", "Speak {{ language }}.", "", False),
            ("Speak {{ language }}.", "Speak {{ language }}.", "{% endraw %}", False),
            ("", "Speak {{ language }}.", "", True),
        ],
    )
    async def test_another_system_prompt_is_noticed(self, run_suite, skill, plain, skilled, text, differs):
        (skill / "SKILL.md").write_text(f"---\ndescription: x\n---\nHi {text}")
        conditions = {"plain": {"system": plain}, "skilled": {"system": skilled, "skills": "skills/codes"}}
        run = await run_suite(targets=["mock:echo"], conditions=conditions, cases=CASES, vars={"language": "French"})
        from fairtrial.analyse.tool_report import tool_report

        (gain,) = tool_report(run).gains
        assert gain.other_system == differs


class TestSomeTools:
    @pytest.mark.slow
    @pytest.mark.parametrize("target", ["tool-agent:openai:m", "claude-code:claude-test-1"])
    async def test_only_these_are_offered(self, run_suite, model, target):
        served = await model(look_up)
        await run_suite(
            targets=[{"id": "t", "target": target}],
            mcp_servers={"facts": PROGRAM},
            conditions={"some": {"mcp": ["facts"], "mcp_tools": {"facts": ["lookup", "add"]}}},
            cases=CASES,
            scorer="boolean",
        )
        offered = json.dumps([body.get("tools") for body in served.bodies])
        assert "lookup" in offered and "add" in offered
        assert "look_around" not in offered and "paper" not in offered

    async def test_a_tool_that_is_not_there(self, run_suite, model):
        await model(look_up)
        conditions = {"some": {"mcp": ["facts"], "mcp_tools": {"facts": ["lookups"]}}}
        with pytest.raises(TargetUnusableError, match=r"has no tool `lookups`; its tools: add, get.item"):
            await run_suite(
                targets=["tool-agent:openai:m"], mcp_servers={"facts": PROGRAM}, conditions=conditions, cases=CASES
            )

    @pytest.mark.parametrize(
        ("target", "condition", "reason"),
        [
            ("mock:echo", {"mcp": ["facts"], "mcp_tools": {"facts": ["add"]}}, "gets all tools of a server"),
            ("mock:echo", {"mcp": [], "mcp_tools": {"facts": ["add"]}}, "which the condition's `mcp` does not have"),
        ],
    )
    def test_problems(self, write_suite, target, condition, reason):
        path = write_suite(targets=[target], mcp_servers={"facts": PROGRAM}, conditions={"some": condition})
        with pytest.raises(ProblemsError, match=reason):
            pipeline.load(path)


async def test_resources_and_prompts_as_tools(run_suite, model):
    def script(turn):
        tool = next((name for name in turn.tools if name.endswith("read_resource")), "")
        return Say(turn.results[0]) if turn.results else Say("", ((tool, {"uri": "shop://terms"}),))

    served = await model(script)
    run = await run_suite(
        targets=[{"id": "t", "target": "tool-agent:openai:m", "options": {"resources": True, "prompts": True}}],
        mcp_servers={"shop": {"command": sys.executable, "args": [str(SHOP)]}},
        conditions={"c": {"mcp": ["shop"]}},
        cases=[{"id": "r", "input": "Returns?", "expected": "30 days", "scorer": "contains"}],
    )
    assert run.arms[0].aggregate.mean == 1.0, next(run.trials()).trace
    names = [tool["function"]["name"] for tool in served.bodies[0]["tools"]]
    assert names[-2:] == ["shop__read_resource", "shop__get_prompt"] and len(names) == 6
    from fairtrial.analyse.tool_report import tool_report

    (arm,) = tool_report(run).arms
    assert arm.resources == {"shop://terms": 1} and arm.servers[0].prompts == ["apologise"]
    assert arm.covered == 0  # reading a resource is no call of a tool


@contextmanager
def protected():
    port = free_port()
    process = subprocess.Popen([forks.programs() / "python", SERVERS / "protected.py", str(port)])
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


async def up(url):
    import aiohttp

    async with aiohttp.ClientSession() as session:
        while True:
            try:
                async with session.get(f"{url}/.well-known/oauth-authorization-server") as response:
                    return await response.json()
            except aiohttp.ClientError:
                await asyncio.sleep(0.1)


@pytest.mark.slow
async def test_servers_behind_oauth(run_suite, model, monkeypatch, store):
    """A token from a variable, a client's credentials, a wrong secret, an issuer that is somebody else."""
    await model(look_up)
    monkeypatch.setenv("MY_TOKEN", "token-of-the-robot")
    monkeypatch.setenv("MY_SECRET", "s3cret")
    client = {"client_id": "robot", "client_secret": "${MY_SECRET}", "scope": "facts"}

    def keys(auth, url):
        return {
            "targets": ["tool-agent:openai:m"],
            "mcp_servers": {"vault": {"url": f"{url}/mcp", "auth": auth}},
            "conditions": {"c": {"mcp": ["vault"]}},
            "cases": CASES,
            "scorer": "boolean",
            "repeats": 2,
        }

    with protected() as url:
        await up(url)
        run = await run_suite(**keys("${MY_TOKEN}", url))
        assert [trial.score for trial in run.trials()] == [1.0, 1.0], [t.failure_message for t in run.trials()]
        run = await run_suite(**keys({**client, "issuer": url}, url))
        assert [trial.score for trial in run.trials()] == [1.0, 1.0], [t.failure_message for t in run.trials()]
        assert "after 2 tokens" in next(run.trials()).answer  # one for the check before, one for both trials
        everything = json.dumps([run.plan.suite_text, run.record.context.decode(), repr(list(run.trials()))])
        assert "s3cret" not in everything and "token-of-the-robot" not in everything
        with pytest.raises(TargetUnusableError, match=r"`vault`.* gives no access") as refused:
            await run_suite(**keys({**client, "client_secret": "wrong", "issuer": url}, url))
        assert "wrong" not in str(refused.value)
        with pytest.raises(TargetUnusableError, match=r"gives no access.*https://elsewhere"):
            await run_suite(**keys({**client, "issuer": "https://elsewhere.example"}, url))


@pytest.mark.parametrize(
    ("server", "reason"),
    [
        ({"url": "http://x/mcp", "auth": {"client_id": "a"}}, "both `client_id` and `client_secret`"),
        ({"url": "http://x/mcp", "auth": {"scope": "a"}}, "either a `token`, or"),
        ({**PROGRAM, "auth": {"token": "a"}}, "is for servers with a `url`"),
    ],
)
def test_access_that_is_not_complete(write_suite, server, reason):
    with pytest.raises(ProblemsError, match=reason):
        pipeline.load(write_suite(mcp_servers={"s": server}, conditions={"c": {"mcp": ["s"]}}))


def test_suites_without_any_of_this_keep_their_plans(write_suite, tmp_path):
    """What a suite does not use is in no id: runs of earlier versions can still be compared and reused."""
    import msgspec

    path = write_suite(mcp_servers={"facts": PROGRAM}, conditions={"c": {"mcp": ["facts"]}}, cases=CASES)
    suite = pipeline.load(path)
    (arm,) = suite.arms
    assert {"only", "auth"}.isdisjoint(arm.condition.mcp[0].identity()) and "skills" not in arm.condition.identity()
    assert pipeline.load(write_suite(cases=[{**CASES[0], "tools": []}])).dataset_sha256 != suite.dataset_sha256
    stored = msgspec.to_builtins(suite.arms)
    from fairtrial.config.checked_suite import _forget_unused

    _forget_unused(stored[0])
    assert "skills" not in stored[0]["condition"] and "only" not in stored[0]["condition"]["mcp"][0]
