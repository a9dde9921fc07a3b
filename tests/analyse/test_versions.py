"""Versions: which arms differ in what, what the later one gains, and how differently it uses its tools."""

import json
import sys
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from fairtrial import pipeline
from fairtrial.analyse.tool_counts import ArmCounts
from fairtrial.analyse.tool_report import tool_report
from fairtrial.analyse.versions import version_pairs
from fairtrial.cli.main import _run
from fairtrial.core.calls import MadeCall
from fairtrial.core.experiment import Case, ExpectedCall
from fairtrial.core.file import Attachment
from fairtrial.core.skill import Skill
from fairtrial.present.words.tools import arm_sentences, confusion_lines, notes_on
from fairtrial.present.words.versions import differ_words, version_sentence
from fairtrial.reports.export import export
from fairtrial.stats import paired
from fairtrial.web.app import make_app
from fairtrial.web.site import Site

EXAMPLE = Path(__file__).parents[2] / "examples" / "versions"
AGENT = """
import json, sys

def ask(input, system, mcp_servers):
    '''An agent that calls what its question says, by the version that its server is of.'''
    version = next((one["args"][-1] for one in mcp_servers.values()), "none")
    told = json.loads(input)[0 if version.endswith("v1.json") else 1]
    calls = [{"server": "shop", "tool": name, "arguments": {}, "error": name.endswith("?")} for name in told]
    return {"text": ("right" if "find_order" in told else "wrong") + system, "tool_calls": calls, "cost_usd": 0.001 * len(told)}
"""


def server(version):
    return {"command": sys.executable, "args": [str(EXAMPLE / "shop_server.py"), str(EXAMPLE / f"{version}.json")]}


SERVERS = {"shop-v1": server("v1"), "shop-v2": server("v2"), "crm": server("v1")}
V1, V2 = {"mcp": {"shop": "shop-v1"}}, {"mcp": {"shop": "shop-v2"}}


def cases(*pairs):
    """Cases that ask for an order, with the calls of both versions."""
    return [
        {"id": f"c{n}", "input": json.dumps(list(pair)), "expected": "right", "tools": ["find_order"], "scorer": "contains"}
        for n, pair in enumerate(pairs)
    ]  # fmt: skip


MIXED = cases(
    *[(["find_article"], ["find_order"])] * 7,
    *[(["find_order"], ["find_order"])] * 2,
    ([], ["find_order", "refund"]),
)


@pytest.fixture
def asked(run_suite, tmp_path):
    (tmp_path / "agent.py").write_text(AGENT)

    async def run(conditions=None, **more):
        targets = [{"id": "a", "target": "python:agent.py:ask"}]
        conditions = {"v1": V1, "v2": V2} if conditions is None else conditions
        return await run_suite(targets=targets, mcp_servers=SERVERS, conditions=conditions, **{"cases": MIXED, **more})

    return run


async def test_the_gain_is_the_comparison_and_shares_are_paired_by_case(asked):
    run = await asked(repeats=2)
    report = tool_report(run)
    (pair,) = report.versions
    compared = next(one for one in run.summary().lifts if not one.metric)
    assert (pair.score.difference, pair.score.ci95) == (compared.paired.difference, compared.paired.ci95)
    assert [one.metric for one in pair.taken] == ["cost_usd", "latency_ms"]
    found = {(one.kind, one.name, one.called): one for one in pair.changes}
    chosen = found["chosen", "shop.find_order", ""]
    assert (chosen.before.hits, chosen.after.hits, chosen.after.of, chosen.count) == (4, 20, 20, 10)
    naive = paired([1.0] * 10, [0.0] * 7 + [1.0] * 2 + [0.0])
    assert chosen.difference == pytest.approx(naive.difference)
    # Wider than by itself, for all of them hold together.
    assert chosen.ci95[0] < naive.ci95[0] and chosen.differs
    mistaken = found["mistaken", "shop.find_order", "shop.find_article"]
    assert (mistaken.before.hits, mistaken.after.hits, mistaken.difference) == (14, 0, -0.7)
    alone = await asked(repeats=1, cases=MIXED[:1])  # one case has no interval
    assert tool_report(alone).versions[0].changes[0].ci95 is None


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ({"v1": V1, "v2": V2}, [("a/v2", "They differ in the server shop (shop-v1 → shop-v2): other descriptions of find_article, find_order, refund.")]),
        ({"v1": {**V1, "system": "x"}, "v2": V2}, [("a/v2", "They differ in more than one thing: the server shop (shop-v1 → shop-v2): other descriptions of find_article, find_order, refund; the system prompt.")]),
        ({"v1": V1, "v2": {"mcp": {"shop": "shop-v2", "crm": "crm"}}}, [("a/v2", "They differ in more than one thing: the server shop (shop-v1 → shop-v2): other descriptions of find_article, find_order, refund; the server crm (added).")]),
        # Where each of two things has a pair of its own, both at once say nothing more.
        ({"v1": V1, "v2": V2, "v2 terse": {**V2, "system": "x"}, "v1 terse": {**V1, "system": "x"}}, [("a/v2", "the server shop"), ("a/v1 terse", "the server shop")]),
        ({"one": {"mcp": ["shop-v1"]}, "other": {"mcp": ["shop-v2"]}}, [("a/other", "They differ in the server shop-v2 (shop-v1 → shop-v2): other descriptions of find_article, find_order, refund.")]),
        ({"v1": V1, "without": {}}, []),
    ],
)  # fmt: skip
async def test_which_pairs_differ_in_what(asked, conditions, expected):
    run = await asked(conditions, cases=MIXED[:2])
    found = [(pair.arm, differ_words(pair.what)) for pair in tool_report(run).versions]
    assert len(found) == len(expected)
    for (arm, said), (wanted, words) in zip(found, expected, strict=True):
        assert arm == wanted and words in said


async def test_another_version_and_one_more_server_is_not_what_the_server_adds(asked):
    """That one has a server more was all that was seen: the other version of the first one counted as its gain."""
    run = await asked({"v1": V1, "v2": {"mcp": {"shop": "shop-v2", "crm": "crm"}}}, cases=MIXED[:2])
    report = tool_report(run)
    assert not report.gains and len(report.versions) == 1
    assert not any("No condition lacks only one" in note for note in notes_on(report))


async def test_another_version_of_a_skill_and_a_server_is_not_what_the_server_adds(run_suite, tmp_path):
    """It was said that the server helps, although the skill was another one, too."""
    for version in ("old", "new"):
        (tmp_path / version).mkdir()
        (tmp_path / version / "SKILL.md").write_text(f"---\nname: codes\ndescription: d\n---\n\nThe {version} one.\n")
    conditions = {
        "v1": {"system": "x", "skills": "old"},
        "v2": {"system": "x", "skills": "new", "mcp": ["crm"]},
    }
    target = {
        "id": "a",
        "target": "mock:a",
        "options": {"answer": "x", "tool_calls": [{"server": "crm", "tool": "refund"}]},
    }
    run = await run_suite(targets=[target], mcp_servers=SERVERS, conditions=conditions)
    report = tool_report(run)
    assert not report.gains
    assert differ_words(report.versions[0].what) == (
        "They differ in more than one thing: the files of the skill codes; the server crm (added)."
    )


async def test_another_wording_is_no_baseline_where_the_same_one_is_there(asked):
    """With `prompts` beside conditions, every pair was compared, whatever it was asked with."""
    prompts = {"plain": "{{ input }}", "long": "{{ input }} "}
    run = await asked({"without": {}, "with": V1}, prompts=prompts, cases=MIXED[:2])
    found = {(gain.arm, gain.baseline) for gain in tool_report(run).gains}
    assert found == {("a/with/plain", "a/without/plain"), ("a/with/long", "a/without/long")}


async def test_every_surface_says_it_alike(asked, store, tmp_path, capsys):
    run = await asked(case_defaults={"forbidden": ["shop.refund"]}, repeats=2)
    report = tool_report(run)
    (pair,) = report.versions
    sentence = version_sentence(pair)
    assert sentence.startswith("a/v2 is better than a/v1: +80.0 points (95 % CI ")
    assert _run(["tools", run.id, "--store", store.address]) == 0
    terminal = capsys.readouterr().out
    assert max(map(len, terminal.splitlines())) <= 80
    assert _run(["tools", run.id, "--store", store.address, "-o", "-"]) == 0
    markdown = capsys.readouterr().out
    assert _run(["tools", run.id, "--store", store.address, "--json"]) == 0
    (said,) = json.loads(capsys.readouterr().out)["versions"]
    export(run, tmp_path / "report.html")
    export(run, tmp_path / "report.md")
    site = Site(store, tmp_path)
    page = TestClient(make_app(site), headers={"origin": "http://testserver"}).get(f"/runs/{run.id}/result?wait=1").text
    site.close()
    html = (tmp_path / "report.html").read_text("utf-8")
    everywhere = [terminal, markdown, (tmp_path / "report.md").read_text("utf-8"), html, page]
    chosen = next(one for one in pair.changes if one.kind == "chosen")
    low, high = (round(100 * bound) for bound in chosen.ci95)
    for text in everywhere:
        flat = " ".join(text.replace("\\", "").split())
        assert sentence in flat
        assert "called when asked for" in flat and "find_article instead" in flat and "4 of 20" in flat
        assert f"{low} to {high}" in flat
        assert "find_article was called for shop.find_order in 14 of 20 trials" in flat
        assert "shop.refund, which is forbidden, was called in 2 of 20 trials" in flat
    assert "a/v2 against a/v1 better" in repr(report)
    document = next(one for one in said["changes"] if one["kind"] == "chosen")
    assert (said["arm"], said["baseline"], document["cases"]) == ("a/v2", "a/v1", 10)
    assert document["difference"] == pytest.approx(80) and document["ci95"] == pytest.approx(
        [100 * b for b in chosen.ci95]
    )
    assert document["before"]["count"] == 4 and document["after"]["of"] == 20
    assert said["what"] == [
        {
            "kind": "server",
            "name": "shop",
            "how": "version",
            "parts": [],
            "before": "shop-v1",
            "after": "shop-v2",
            "tools": {"description": ["find_article", "find_order", "refund"]},
        }
    ]


async def test_tools_are_taken_for_each_other_in_whole_conversations(run_suite, tmp_path):
    """What was called in an earlier turn counts as much as what was called in the last one."""
    (tmp_path / "talk.py").write_text(
        "def ask(messages, mcp_servers):\n"
        "    first = len(messages) == 1\n"
        "    return {'text': 'x', 'tool_calls': [{'server': 'shop', 'tool': 'find_article'}] if first else []}\n"
    )
    run = await run_suite(
        targets=["python:talk.py:ask"],
        mcp_servers=SERVERS,
        conditions={"v1": V1},
        cases=[{"id": "talk", "turns": ["first", "then"], "expected": "x", "tools": ["find_order"]}],
    )
    (arm,) = tool_report(run).arms
    assert confusion_lines(arm.confusion) == ["shop.find_article was called for shop.find_order in 1 of 1 trial"]
    (use,) = [tool.use for tool in arm.tools if tool.name == "shop.find_article"]
    assert (use.hits, use.of) == (1, 1)


def many(count=40):
    """An arm of many tools, most of which are taken for another one."""
    from tests.analyse.test_tool_report import offers

    names = [f"warehouse.tool_number_{n:02}" for n in range(count)]
    counts = ArmCounts(offers(*names, schema={}))
    for n, name in enumerate(names):
        for repeat in range(n + 1):
            other = names[n - 1] if repeat % 2 else name
            server, _, tool = other.partition(".")
            counts.add(Case(id=f"{n}", input="", position=n), [MadeCall(tool, server, {})], [ExpectedCall(name=name)])
    return offers(*names, schema={}), counts


def test_many_tools_stay_readable(capsys, monkeypatch):
    from fairtrial.analyse.tool_report import ToolReport, _arm, _confusion
    from fairtrial.cli.tools import _print
    from fairtrial.core.experiment import Arm, Condition, TargetSpec
    from fairtrial.present.charts import confusion_matrix
    from fairtrial.present.figures.tools import _arm as drawn_arm
    from fairtrial.reports.tools import render

    given, counts = many()
    confusion = _confusion(counts)
    assert len(confusion.called) == 40
    few = confusion.among(12)
    assert len(few.called) <= 12 and "warehouse.tool_number_39" in few.expected
    lines = confusion_lines(confusion)
    assert lines[0] == "warehouse.tool_number_38 was called for warehouse.tool_number_39 in 20 of 40 trials"
    assert lines[-1] == "31 more pairs of tools were confused" and len(lines) == 9
    spec = TargetSpec(id="a", kind="mock", provider="mock")
    arm = _arm(Arm(name="a", target=spec, condition=Condition(), params={}, scorer={}), given, counts, held_out=False)
    report = ToolReport(run_id="r", suite="s", metric="", gains=[], arms=[arm])
    monkeypatch.setenv("COLUMNS", "80")
    _print(report)
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 80
    assert "those confused most; 28 more tools left out" in " ".join(shown.split())
    assert "those confused most; 28 more tools left out" in render(report)
    view = drawn_arm(arm)
    assert view.confused == "those confused most; 28 more tools left out"
    assert ">12 tool_number_39<" in view.confusion and ">12<" in view.confusion  # columns have numbers, rows say which
    assert ">b<" in confusion_matrix(["a"], ["a", "b"], [[1, 1]], corner="")


def trigger_counts(*trials, tags=()):
    """Count trials of a skill: what the case wants, whether it fired, whether it ended."""
    from fairtrial.analyse.offered import Offers

    files = Attachment(name="skill codes", media="application/x-tar", sha256="0" * 64, size=1)
    given = Offers(skills=[Skill(name="codes", description="d", files=files, tokens=1)])
    counts = ArmCounts(given)
    for position, (wanted, did, ended) in enumerate(trials):
        case = Case(id=str(position), input="", position=position, metadata={"skill": wanted}, tags=tags)
        counts.add(case, [MadeCall("Skill", None, {"skill": "codes"})] if did else [], None, ended=ended)
    return counts.skills["codes"]


class TestTriggers:
    def test_a_trial_that_broke_off_does_not_say_that_the_skill_stayed_silent(self):
        own = trigger_counts(
            ("fires", True, True), ("fires", False, True), ("fires", False, False), ("fires", True, False),
            ("silent", False, True), ("silent", False, False), ("silent", True, True),
        ).all  # fmt: skip
        assert (own.recall.hits, own.recall.chances) == (2, 3)
        assert (own.false_fires.hits, own.false_fires.chances, own.unobserved) == (1, 2, 2)

    def test_cases_that_say_nothing_count_nowhere(self):
        assert not trigger_counts((None, True, True)).all.asked

    def test_another_skill_is_not_this_one(self):
        own = trigger_counts(({"words": "fires"}, False, True), ({"codes": "fires"}, True, True)).all
        assert (own.recall.hits, own.recall.chances) == (1, 1)

    @pytest.mark.parametrize(
        ("call", "names"),
        [
            (MadeCall("Skill", None, {"skill": "plugin:codes"}), ["codes"]),
            (MadeCall("Skill", None, {"skill": "codes"}, True), []),
            (MadeCall("Read", None, {"file_path": "/x/skills/codes/SKILL.md"}), ["codes"]),
            (MadeCall("shell", None, {"command": ["bash", "-c", "cat skills/codes/SKILL.md | head"]}), ["codes"]),
            (MadeCall("Read", None, {"file_path": "/x/skills/codes/scripts/find.sh"}), []),
            (MadeCall("Skill", "shop", {"skill": "codes"}), []),
        ],
    )
    def test_what_is_firing(self, call, names):
        from fairtrial.core.skill_use import fired

        assert fired([call]) == names


async def test_numbers_of_skills_are_of_the_held_out_cases(run_suite, tmp_path, monkeypatch):
    """With cases tagged `test`, the others do not count."""
    import msgspec

    own = trigger_counts(("fires", True, True), ("fires", False, True))
    held = trigger_counts(("fires", False, True), tags=("test",))
    assert not own.held_out.asked and (held.held_out.recall.hits, held.held_out.recall.chances) == (0, 1)
    from fairtrial.analyse.tool_report import ArmToolReport, OfferRate, SkillStats, TriggerStats

    rate = OfferRate(hits=3, of=4, share=0.75, ci95=(0.19, 0.99))
    nothing = OfferRate(hits=0, of=0, share=None, ci95=None)
    triggers = TriggerStats(recall=rate, false_fires=nothing, unobserved=1, held_out=True)
    skill = SkillStats(name="codes", tokens=1, as_text=False, use=rate, triggers=triggers)
    empty = {key: [] for key in ("servers", "tools", "never_called", "invalid")}
    arm = ArmToolReport(
        arm="a", target="a", condition="c", tokens=None, trials=4, unknown=0, any_use=nothing, skills=[skill], recovered=nothing,
        unneeded=nothing, confusion=None, resources={}, prompts={}, **empty,
    )  # fmt: skip
    assert (
        "skill codes fired where it should in 3 of 4 trials (19 to 99 %), of the cases tagged `test`"
        in arm_sentences(arm)
    )
    assert "1 trial broke off before skill codes fired, and counts neither way" in arm_sentences(arm)
    assert msgspec.json.encode(arm)


def test_the_example_is_found_to_differ(monkeypatch):
    monkeypatch.setenv("PYTHON", sys.executable)
    suite = pipeline.load(EXAMPLE / "suite.yaml")
    from fairtrial.analyse.offered import OfferedServer, Offers

    offers = {
        arm.name: Offers(servers=[OfferedServer(server="shop", name="shop", version="1", tools=[])])
        for arm in suite.arms
    }
    (pair,) = version_pairs(suite.arms, offers)
    assert (pair.arm.name, pair.baseline.name, pair.what[0].kind) == ("agent/v2", "agent/v1", "server")
