"""What a suite says under `gate`: rules about cases, categories, guards; one verdict over all of them."""

import json
import xml.etree.ElementTree as ElementTree

import msgspec
import numpy as np
import pytest

import fairtrial as ft
from fairtrial.analyse.compare import compare
from fairtrial.analyse.evidence import Evidence
from fairtrial.analyse.gate import Terms, _at_level, gate, terms_of
from fairtrial.analyse.gate_cases import CasePasses
from fairtrial.analyse.gate_changes import BaselineChanges, _parts
from fairtrial.analyse.gate_claims import Claim, claims, decide
from fairtrial.analyse.gate_reasons import SeveralChecks
from fairtrial.analyse.score_table import read_scores, sources_of
from fairtrial.core.errors import FairtrialError, ProblemsError
from fairtrial.core.experiment import Arm, Condition, TargetSpec
from fairtrial.core.gate import GateSpec
from fairtrial.core.settings import StopSpec
from fairtrial.reports.comment import render
from fairtrial.reports.json import gate_document
from fairtrial.reports.junit import render_gate as junit
from fairtrial.reports.md import render_gate as markdown
from fairtrial.stats.crossed import Between, CrossedMean
from fairtrial.stats.mean import Mean
from tests.analyse.test_compare import arm, cases


def suite(answers, rules, count=60, **keys):
    """One arm: every answer is right, but for what is scripted."""
    cases = [
        {"id": f"c{n:02}", "input": f"case {n}", "expected": "42", "category": "safety" if n < 30 else "rest"}
        for n in range(count)
    ]
    target = {"id": "bot", "target": "mock:x", "options": {"answers": answers, "answer": "42"}}
    return {"targets": [target], "cases": cases, "repeats": 3, "gate": rules, **keys}


def checked(after, before=None, **given):
    source = sources_of(after)[0]
    terms = terms_of(after, Terms(**given), named=frozenset(given))
    return gate(source, sources_of(before)[0] if before else None, terms)


def results(found):
    return {check.name: check.result for check in found.checks}


@pytest.fixture
async def before(run_suite):
    return await run_suite(**suite({"c01": ["42", "x", "42"]}, {}))


RULES = {
    "margin": 20,
    "must_pass": ["c00", "c1*"],
    "k_of_n": {"c0*": 2},
    "categories": {"safety": 25},
    "guards": {"refusals": 20, "latency": 1000000},
}


@pytest.mark.slow
async def test_rules_are_one_verdict(run_suite, before):
    good = await run_suite(**suite({"c01": ["x", "x", "42"]}, RULES))
    found = checked(good, before)
    assert results(found) == {
        "coverage": "passed",
        "must_pass": "passed",
        "k_of_n c0*": "passed",
        "regression": "passed",
        "category safety": "passed",
        "guard refusals": "passed",
        "guard latency": "passed",
    }, found
    assert found.result == "passed" and "Holm" in found.method and "4 statistical checks" in found.method
    assert [(one.case, one.passed, one.answers) for one in found.flaky] == [("c01", 2, 3)]
    (rule,) = [check for check in found.checks if check.name.startswith("k_of_n")]
    assert "flaky before, so not blocking: c01 (1 of 3)" in rule.message
    assert "The gate itself was changed" in " ".join(found.notes)  # the baseline had no rules

    bad = await run_suite(**suite({"c00": ["42", "42", "x"], "c02": ["x", "x", "42"]}, RULES))
    found = checked(bad, before)
    assert (results(found)["must_pass"], results(found)["k_of_n c0*"]) == ("failed", "failed")
    assert found.exit_code == 100 and results(found)["regression"] == "passed"
    (rule,) = [check for check in found.checks if check.name == "must_pass"]
    assert rule.cases == ["c00 (2 of 3)"] and "every answer must pass on 11 cases; not on c00 (2 of 3)" in rule.message
    # Every output says the same.
    document = gate_document(found)
    assert {check["name"]: check["result"] for check in document["checks"]} == results(found)
    assert json.dumps(document["flaky"]) and document["exit_code"] == 100
    tree = ElementTree.fromstring(junit(found))
    assert tree.get("failures") == "2" and tree.get("tests") == str(len(found.checks))
    assert "not on c00 \\(2 of 3\\)" in markdown(found) or "not on c00 (2 of 3)" in markdown(found)


async def test_a_category_blocks_where_the_mean_hides_it(run_suite, before):
    broken = {f"c{n:02}": "x" for n in range(12)}  # 12 of 30 in the category, 12 of 60 in all
    found = checked(await run_suite(**suite(broken, {"margin": 50, "categories": {"safety": 10, "rest": 20}})), before)
    assert results(found)["regression"] == "passed"
    assert results(found)["category safety"] == "failed" and results(found)["category rest"] == "passed"
    assert found.exit_code == 100


BOT = """
def sound(input):
    return "42"

def wrong(input):
    return "x" if int(input.split()[-1]) < 10 else "42"

def down(input):
    assert int(input.split()[-1]) >= 10
    return "42"
"""


@pytest.mark.parametrize(("before", "after"), [("sound", "down"), ("down", "wrong")])
async def test_a_category_does_not_pass_where_failed_trials_could_undo_it(run_suite, tmp_path, before, after):
    """A third of the category has no score on one side: what the answers would have been, nobody knows."""
    (tmp_path / "bot.py").write_text(BOT)
    rules = {"min_coverage": 0, "margin": 90, "categories": {"safety": 30, "rest": 30}}
    keys = {**suite({}, rules), "repeats": 1}
    runs = [
        await run_suite(**{**keys, "targets": [{"id": "bot", "target": f"python:bot.py:{name}"}]})
        for name in (after, before)
    ]
    found = checked(*runs)
    assert (results(found)["category safety"], results(found)["category rest"]) == ("cannot tell", "passed")
    (check,) = (check for check in found.checks if check.name == "category safety")
    assert "failed trial" in check.message
    assert check.interval[0] > check.limit  # without them, it would have passed


async def test_quarantine_leaves_cases_out_and_lists_them(run_suite, before):
    broken = {f"c{n:02}": "x" for n in range(20)}
    rules = {"margin": 10, "must_pass": ["c00"], "quarantine": ["c0*", "c1*"]}
    found = checked(await run_suite(**suite(broken, rules)), before)
    assert len(found.quarantined) == 20 and not found.flaky
    assert results(found) == {"coverage": "passed", "must_pass": "passed", "regression": "passed"}
    (check,) = [check for check in found.checks if check.name == "regression"]
    assert check.value == 0


@pytest.mark.slow
async def test_what_was_typed_comes_before_the_suite(run_suite, before):
    run = await run_suite(**suite({}, {"margin": 1, "unsure": "pass", "min_score": 99}))
    assert checked(run, before).exit_code == 0  # cannot tell, which this suite lets pass
    assert checked(run, before, unsure="101").exit_code == 101
    assert checked(run, before, margin=0.2, min_score=0.5).result == "passed"


@pytest.mark.parametrize(
    ("rules", "says"),
    [
        ({"must_pass": ["c0O"]}, "must_pass: no case is `c0O`"),
        ({"k_of_n": {"c00": 4}}, "4 answers must pass, but `c00` has 3: use `repeats: 4`"),
        ({"quarantine": ["tag:none"]}, "quarantine: no case is `tag:none`"),
        ({"categories": {"safty": 5}}, "no case has the category `safty`; they have"),
        ({"guards": {"toxicity": 5}}, "no arm has a metric `toxicity`"),
    ],
)
async def test_rules_about_nothing_are_said(run_suite, before, rules, says):
    run = await run_suite(**suite({}, rules, count=30))
    with pytest.raises(FairtrialError, match=says):
        checked(run, before)


async def test_an_answer_without_a_score_has_not_passed(run_suite, tmp_path):
    (tmp_path / "sometimes.py").write_text(
        "asked = []\n\ndef score(response, expected):\n    asked.append(1)\n    if len(asked) > 1:\n"
        "        raise RuntimeError('out of order')\n    return 1.0\n"
    )
    cases = [{"id": "c00", "input": "case", "expected": "42"}]
    scorer = {"type": "python", "function": "sometimes.py:score"}
    targets = [{"id": "bot", "target": "mock:x", "options": {"answer": "42"}}]
    run = await run_suite(
        targets=targets, cases=cases, scorer=scorer, repeats=2, concurrency=1, gate={"must_pass": ["c00"]}
    )
    assert results(checked(run, min_coverage=0.5)) == {"coverage": "passed", "must_pass": "cannot tell"}


@pytest.mark.slow
async def test_a_case_with_another_text_is_one_case(run_suite, before):
    """The old text is in the baseline only; a case that is there no more is unknown."""
    changed = suite({}, {"margin": 20, "must_pass": ["c00"], "k_of_n": {"c0*": 2}})
    changed["cases"][0]["input"] = "another text"
    found = results(checked(await run_suite(**changed), before))
    assert (found["must_pass"], found["k_of_n c0*"]) == ("passed", "passed")
    changed["cases"] = changed["cases"][1:]
    found = results(checked(await run_suite(**changed), before))
    assert (found["must_pass"], found["k_of_n c0*"]) == ("cannot tell", "cannot tell")


async def test_rules_hold_for_another_metric_too(run_suite, before):
    """Only minimum and margin of the suite are on the scale of scores."""
    run = await run_suite(
        **suite({"c00": "x"}, {"min_score": 99, "margin": 20, "must_pass": ["c00"], "unsure": "pass"})
    )
    found = checked(run, before, metric="latency_ms", margin=1e9)
    assert results(found)["must_pass"] == "failed" and "minimum" not in results(found) and found.unsure == "pass"
    (regression,) = [check for check in found.checks if check.name == "regression"]
    assert (regression.metric, regression.limit) == ("latency_ms", 1e9)  # lower is better: it may rise
    assert "●" not in render(found, BaselineChanges(differences=[], answers=1, reused=0, cost_usd=0, cost_known=True), suite="s",
                             run_id="1")  # fmt: skip


async def test_the_baseline_of_the_suite_holds_in_python_too(run_suite, before, store):
    store.set_tag("golden", before.id)
    run = await run_suite(**suite({}, {"against": "golden", "margin": 20}))
    assert ft.gate(run).against == [before.id]


async def test_early_stopping_leaves_categories_and_guards_open(run_suite, before):
    run = await run_suite(**suite({}, {}))
    scores = read_scores([sources_of(run)[0], sources_of(before)[0]])
    after, earlier = scores.arms
    spec = GateSpec(categories={"safety": 50.0}, guards={"latency": 1000000.0})
    assert [check.result for check in decide(list(claims(scores, [(after, earlier)], spec)), [])] == ["passed"] * 2
    after.stop = StopSpec(when="decided")
    found = list(decide(list(claims(scores, [(after, earlier)], spec)), []))
    assert [check.result for check in found] == ["cannot tell"] * 2 and "could stop early" in found[0].message


@pytest.mark.slow
async def test_wordings_are_a_sample_in_categories_and_with_failures_too(run_suite):
    """The second of three wordings fails everywhere; another three could fail more often, or never."""
    asked = {"conditions": {"c": {"prompt": [f"{word} {{{{input}}}}" for word in ("Say", "Give", "Tell")]}}}
    keys = {"repeats": 6, "retry": {"attempts": 1}, **asked}
    earlier = await run_suite(**suite({}, {}, **keys))
    wrong = suite({f"c{n:02}": ["42", "x"[: n % 7 != 0] or "42", "42"] * 2 for n in range(60)}, {}, **keys)
    scores = read_scores([sources_of(await run_suite(**wrong))[0], sources_of(earlier)[0]])
    after, before = scores.arms
    after.failed[0] += 1  # as if one more trial had failed
    (claim,) = claims(scores, [(after, before)], GateSpec(categories={"safety": 50.0}))
    evidence = Evidence(scores, after, before, "")
    over_cases = evidence.plain.interval()
    for low, high in (claim.gain.interval(), claim.worst.interval(), evidence.with_failures(against=1, level=0.05)[1]):
        assert high - low > 2 * (over_cases[1] - over_cases[0])


@pytest.mark.parametrize(("gain", "result"), [(-0.5, "failed"), (-0.05, "passed"), (0.0, "passed"), (0.5, "passed")])
def test_the_same_on_every_case_is_no_doubt(gain, result):
    mean = Mean([gain] * 20)
    for one in (mean, CrossedMean(mean, Between(0.0, 2.0, 3))):
        (check,) = decide([Claim("guard cost", "bot", one, 0.1, "rise", percent=True)], [])
        assert check.result == result and "on each of 20 cases" in check.message


async def test_keys_are_checked_with_the_suite(run_suite):
    with pytest.raises(ProblemsError, match="unknown key; did you mean `must_pass`"):
        await run_suite(**suite({}, {"must_pas": ["c00"]}))


def _claim(gains, margin=0.1):
    return Claim("category k", "bot", Mean(gains, bounds=(-1.0, 1.0), span=1.0), margin)


@pytest.mark.simulation
def test_the_family_errs_as_promised():
    """Six checks: a run that is nowhere worse is blocked by any of them in 2.5 % at most; one at its margin passes in
    2.5 % at most."""
    rng = np.random.default_rng(11)
    blocked = passed = 0
    trials = 600
    for _ in range(trials):
        clean = [_claim(rng.normal(0, 0.3, 40).clip(-1, 1)) for _ in range(6)]
        blocked += any(check.result == "failed" for check in decide(clean, []))
        worse = [*clean[:5], _claim(rng.normal(-0.1, 0.3, 40).clip(-1, 1))]
        passed += all(check.result == "passed" for check in decide(worse, []))
    assert blocked / trials <= 0.045 and passed / trials <= 0.045


def test_intervals_are_called_by_the_level_of_a_look():
    for level, name in ((Terms().level, " 95 % CI"), (0.025, " 97.5 % CI")):
        assert name in str(SeveralChecks(checks=2, level=level))


def test_only_cases_with_answers_of_both_kinds_are_mixed():
    passes = CasePasses(answers=np.array([3, 3, 3]), passed=np.array([0, 1, 3]))
    assert passes.mixed.tolist() == [1]


def test_what_differs_between_two_arms_is_named():
    arm = Arm(
        name="a",
        target=TargetSpec(id="t", kind="mock", provider="mock", model="m"),
        condition=Condition(name="c"),
        scorer={"type": "boolean"},
        params={},
    )
    assert _parts(arm, arm) == []
    changed = {
        "prompt": {"condition": Condition(name="c", system="Be brief.")},
        "parameters": {"params": {"seed": 1}},
        "scorer": {"scorer": {"type": "exact"}},
        "code": {"target": msgspec.structs.replace(arm.target, code="x")},
    }
    for what, fields in changed.items():
        assert _parts(msgspec.structs.replace(arm, **fields), arm) == [what]


async def test_a_stricter_level_moves_only_the_limit_that_blocks(run_suite):
    run = await run_suite(targets=[arm("a", set(range(30))), arm("b", set(range(5, 25)))], cases=cases())
    scores = read_scores(sources_of(run))
    before, after = scores.arms
    (pair,) = compare(scores, [(after, before)], margin=0.5).pairs
    wide = _at_level(scores, after, before, pair, 0.01, Terms(margin=0.5))
    assert wide.ci95[0] == pair.ci95[0] and wide.ci95[1] > pair.ci95[1]
