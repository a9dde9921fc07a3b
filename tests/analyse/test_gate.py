"""The gate for CI, tags, and the pytest plug-in."""

import json
import xml.etree.ElementTree as ElementTree

import pytest
from click.testing import CliRunner

from fairtrial.analyse.gate import Terms, gate
from fairtrial.analyse.score_table import sources_of
from fairtrial.cli.main import cli
from fairtrial.core.errors import FairtrialError
from fairtrial.reports import SCHEMA_VERSION
from tests import forks
from tests.analyse.test_compare import arm, cases

pytest_plugins = ["pytester"]


def check(found, name):
    return {item.arm: item.result for item in found.checks if item.name == name}


async def test_minimum_needs_the_whole_interval(run_suite):
    run = await run_suite(
        targets=[arm("high", 100, 100), arm("middle", 82, 100), arm("low", 40, 100)], cases=cases(100)
    )
    source = sources_of(run)[0]
    found = gate(source, None, Terms(min_score=0.8))
    assert check(found, "minimum") == {"high": "passed", "middle": "cannot tell", "low": "failed"}
    assert (found.result, found.exit_code) == ("failed", 100)
    found = gate(source, None, Terms(min_score=0.8, arms=("middle",)))
    assert (found.result, found.exit_code) == ("cannot tell", 101)
    assert gate(source, None, Terms(min_score=0.8, arms=("middle",), these_cases=True)).exit_code == 0
    assert gate(source, None, Terms(min_score=0.8, arms=("high",))).exit_code == 0


@pytest.mark.slow
async def test_regression(run_suite):
    before = await run_suite(targets=[arm("m", 160, 200), arm("other", 10, 200)], cases=cases(200))
    same = await run_suite(targets=[arm("m", range(1, 161), 200)], cases=cases(200))
    worse = await run_suite(targets=[arm("m", 120, 200)], cases=cases(200))
    vague = await run_suite(targets=[arm("m", range(30, 190), 200), arm("new", 3, 200)], cases=cases(200))
    results = {
        name: gate(sources_of(run)[0], sources_of(before)[0], Terms())
        for name, run in {"same": same, "worse": worse, "vague": vague}.items()
    }
    lost = {"other": "cannot tell"}  # the baseline has it, and these runs do not
    assert check(results["same"], "regression") == {"m": "passed", **lost}
    assert check(results["worse"], "regression") == {"m": "failed", **lost}
    assert check(results["vague"], "regression") == {"new": "cannot tell", "m": "cannot tell", **lost}
    wide = gate(sources_of(vague)[0], sources_of(before)[0], Terms(margin=0.2, arms=("m",)))
    assert check(wide, "regression") == {"m": "passed"}
    strict = gate(sources_of(same)[0], sources_of(before)[0], Terms(these_cases=True, arms=("m",)))
    assert check(strict, "regression") == {"m": "passed"}
    with pytest.raises(FairtrialError, match="against itself"):
        gate(sources_of(same)[0], sources_of(same)[0], Terms())
    with pytest.raises(FairtrialError, match="above 0"):
        gate(sources_of(same)[0], sources_of(before)[0], Terms(margin=0.0))


async def test_numbers_that_mean_what_they_say(run_suite):
    """7 of 10 is 70 %, also in binary; and 0.7 is not meant as 0.7 points."""
    run = await run_suite(targets=[arm("m", 7, 10)], cases=cases(10))
    source = sources_of(run)[0]
    assert gate(source, None, Terms(min_score=70 / 100, these_cases=True)).result == "passed"
    with pytest.raises(FairtrialError, match=r"a minimum of 0\.7 demands nothing; did you mean 70\?"):
        gate(source, None, Terms(min_score=0.007))
    with pytest.raises(FairtrialError, match="a minimum of 500 is out of range"):
        gate(source, None, Terms(min_score=5.0))
    with pytest.raises(FairtrialError, match="no arm has a metric `gap`"):
        gate(source, None, Terms(min_score=1.0, metric="gap"))
    bare = gate(source, None, Terms())
    assert bare.result == "cannot tell" and "only coverage was checked" in bare.baseline


async def test_agreeing_by_chance_proves_no_minimum(run_suite):
    two = await run_suite(
        targets=[arm("m", 4, 4)], cases=[{**c, "cluster": f"k{n // 2}"} for n, c in enumerate(cases(4))]
    )
    assert gate(sources_of(two)[0], None, Terms(min_score=0.99)).result == "cannot tell"


@pytest.mark.slow
async def test_failures_do_not_hide_a_loss(run_suite):
    before = await run_suite(targets=[arm("m", 200, 200)], cases=cases(200))
    frail = await run_suite(
        targets=[arm("m", 200, 200, faults={"refused": 0.06})], cases=cases(200), retry={"attempts": 1}
    )
    found = gate(sources_of(frail)[0], sources_of(before)[0], Terms(min_score=0.97, margin=0.02, min_coverage=0.9))
    assert check(found, "minimum") == {"m": "cannot tell"} and check(found, "regression") == {"m": "cannot tell"}
    assert found.exit_code == 101


@pytest.mark.slow
async def test_hardly_a_case_in_common_proves_nothing(run_suite):
    before = await run_suite(targets=[arm("m", 40)], cases=cases())
    reworded = [{**case, "input": f"other {n}"} if n else case for n, case in enumerate(cases())]
    after = await run_suite(targets=[arm("m", 1)], cases=reworded)
    found = gate(sources_of(after)[0], sources_of(before)[0], Terms(these_cases=True))
    assert check(found, "regression") == {"m": "cannot tell"}
    assert any("different cases" in note for note in found.notes)


@pytest.mark.simulation
async def test_coverage(run_suite):
    run = await run_suite(targets=[arm("frail", 40, faults={"refused": 0.4})], cases=cases(), retry={"attempts": 1})
    assert check(gate(sources_of(run)[0], None, Terms()), "coverage") == {"frail": "failed"}
    assert gate(sources_of(run)[0], None, Terms(min_coverage=0.3)).result == "passed"


@pytest.mark.slow
async def test_the_command(run_suite, store, tmp_path, monkeypatch):
    before = await run_suite(targets=[arm("m", 40)], cases=cases())
    await run_suite(targets=[arm("m", 20)], cases=cases())
    where = ["--store", f"sqlite:///{tmp_path}/test.db"]
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))

    def call(*args):
        found = CliRunner().invoke(cli, [*args, *where], standalone_mode=False)
        assert found.exception is None, found.exception
        return found

    assert "tag main" in call("tag", before.id, "main").stderr
    files = ["-o", str(tmp_path / "g.junit.xml"), "-o", str(tmp_path / "g.md"), "-o", str(tmp_path / "g.json")]
    found = call("gate", "--against", "main", *files)
    assert found.return_value == 100 and "failed: regression of m: −50.0 points" in found.stdout
    suite = ElementTree.parse(tmp_path / "g.junit.xml").getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("2", "1", "0")
    assert "| regression | m | failed |" in (tmp_path / "g.md").read_text()
    assert (tmp_path / "summary.md").read_text() == (tmp_path / "g.md").read_text()
    written = json.loads((tmp_path / "g.json").read_text())
    assert written["result"] == "failed" and written["schema_version"] == SCHEMA_VERSION
    assert call("gate", "main", "--min-score", "80", "--json").return_value == 0
    assert " m lost 50 points (95 % CI " in call("compare", "main", "latest").stdout
    # A name moves, and goes with its run.
    moved = json.loads(call("tag", "latest", "main", "--json").stdout)
    assert moved["before"] == before.id and moved["run"] != before.id
    assert json.loads(call("list", "--json").stdout)["runs"][0]["tags"] == ["main"]
    store.delete_run(moved["run"])
    assert json.loads(call("tag", "--json").stdout) == {"schema_version": SCHEMA_VERSION, "tags": {}}


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["gate", "-o", "x.pdf"], "must end in"),
        (["tag", "latest"], "missing name"),
        (["tag", "latest", "latest"], "is not a valid name"),
        (["tag", "latest", "a b"], "is not a valid name"),
        (["tag", "latest", "1m"], "start of an existing id"),
        (["tag", "--delete", "nobody"], "no run has the name"),
    ],
)
async def test_bad_input(run_suite, tmp_path, args, says):
    await run_suite(targets=[arm("m", 4, 4)], cases=cases(4))
    found = CliRunner().invoke(cli, [*args, "--store", f"sqlite:///{tmp_path}/test.db"], standalone_mode=False)
    assert says in str(found.exception)


CASES = ", ".join(f"{{input: Paris {n}, expected: Paris {n}}}" for n in range(30))
SUITE = f"""
name: capitals
targets: [{{id: echo, target: "mock:echo"}}, {{id: mute, target: "mock:x", options: {{answer: nothing}}}}]
cases: [{CASES}]
"""

TESTS = """
import pytest

@pytest.mark.fairtrial("suite.yaml")
def test_good(fairtrial):
    fairtrial.gate(min_score=80, arms=["echo"])
    assert fairtrial.compare("echo", "mute").verdict == "better"

@pytest.mark.fairtrial("suite.yaml")
def test_bad(fairtrial):
    fairtrial.gate(min_score=80)

@pytest.mark.fairtrial("suite.yaml")
def test_unsure(fairtrial):
    fairtrial.gate(min_score=95, arms=["echo"], unsure="skip")

@pytest.mark.fairtrial("suite.yaml")
def test_misspelt(fairtrial):
    fairtrial.gate(min_score=95, arms=["echo"], unsure="failed")

def test_without_a_suite(fairtrial):
    assert fairtrial.score("numeric", response="about 42", expected="42").value == 1

def test_forgotten(fairtrial):
    fairtrial.gate(min_score=1)
"""


@pytest.mark.slow
def test_plug_in(pytester):
    pytester.makefile(".yaml", suite=SUITE)
    pytester.makepyfile(TESTS)
    found = pytester.run(forks.programs() / "python", "-m", "pytest", "-p", "no:cacheprovider", "-v")
    found.assert_outcomes(passed=2, failed=3, skipped=1)
    found.stdout.fnmatch_lines(["*gate failed*", "*failed: minimum of mute: 0.0*", "*the test has no suite*"])
    from fairtrial.store import Store

    assert len(Store(f"sqlite:///{pytester.path}/.fairtrial/fairtrial.db").runs()) == 1  # shared by the tests


RULES = """
import pytest

@pytest.mark.fairtrial("suite.yaml")
def test_rules_of_the_suite(fairtrial):
    fairtrial.gate(min_score=2)

@pytest.mark.fairtrial("suite.yaml")
def test_nothing_to_compare_with(fairtrial):
    fairtrial.gate(arms=["echo"], against="auto")

@pytest.mark.fairtrial("suite.yaml")
def test_not_yet(fairtrial):
    fairtrial.gate(arms=["echo"], against="golden", unsure="skip")
"""


@pytest.mark.slow
def test_the_gate_of_pytest_is_the_gate_of_the_command(pytester):
    pytester.makefile(".yaml", suite=f"{SUITE}gate: {{must_pass: [case-1]}}\n")
    pytester.makepyfile(RULES)
    found = pytester.run(forks.programs() / "python", "-m", "pytest", "-p", "no:cacheprovider", "-rs")
    found.assert_outcomes(failed=2, skipped=1)
    found.stdout.fnmatch_lines(["*failed: must_pass of mute: every answer must pass on 1 case; not on case-1*"])
    found.stdout.fnmatch_lines(["*gate cannot tell*", "*regression of all arms: no baseline: `auto` found no branch*"])
    found.stdout.fnmatch_lines(["*SKIPPED*no baseline: there is no run `golden`*"])


@pytest.mark.slow
async def test_a_minimum_of_what_should_be_small(run_suite):
    run = await run_suite(targets=[arm("m", 30)], cases=cases())
    with pytest.raises(FairtrialError, match="lower is better for `latency_ms`"):
        gate(sources_of(run)[0], None, Terms(min_score=5, metric="latency_ms"))


@pytest.mark.slow
async def test_a_gate_says_beforehand_what_it_can_decide(run_suite, store, tmp_path):
    run = await run_suite(targets=[arm("m", 80, 100)], cases=cases(100), repeats=2)
    runner = CliRunner()
    place = ["--store", f"sqlite:///{tmp_path}/test.db"]
    found = runner.invoke(cli, ["gate", run.id, "--plan", "--margin", "6", *place])
    assert found.exit_code == 0 and "100 cases × 2 answers, margin 6.0" in found.output
    assert "changes nothing" in found.output and "100 %" in found.output
    document = json.loads(runner.invoke(cli, ["gate", run.id, "--plan", "--aa", "--json", *place]).stdout)
    (planned,) = document["plan"]["arms"]
    assert document["plan"]["margin"] == 5 and planned["outlooks"][0]["passed"] == 1
    assert 5 < planned["caught"] < 20
    (itself,) = document["against_itself"]["arms"]
    assert itself["flips"] == 0 and itself["flips_ci95"] == [0, 0] and not itself["too_noisy"]


@pytest.mark.slow
async def test_what_no_gate_can_decide_is_said_before_it_is_tried(run_suite, tmp_path):
    few = await run_suite(targets=[arm("m", 5, 5)], cases=cases(5), repeats=2)
    once = await run_suite(targets=[arm("m", 5, 5)], cases=cases(5))
    runner = CliRunner()
    place = ["--store", f"sqlite:///{tmp_path}/test.db"]
    found = runner.invoke(cli, ["gate", few.id, "--plan", *place])
    assert found.exit_code == 1 and "impossible with 5 cases" in str(found.exception) + found.output
    assert "72 cases" in str(found.exception) + found.output
    found = runner.invoke(cli, ["gate", once.id, "--aa", *place])
    assert found.exit_code == 1 and "--repeats 2" in str(found.exception) + found.output
