"""Folders of answers made by any tool: every layout, with the problem or with its baseline alone."""

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from fairtrial import pipeline
from fairtrial.cli.main import cli
from fairtrial.core.errors import FairtrialError
from fairtrial.tracks.optimisation.analysis import optimisation_report
from fairtrial.tracks.optimisation.answer import STEPS, read_answer, read_reference
from fairtrial.tracks.optimisation.folders import describe_folder, read_folder, write_folder
from fairtrial.tracks.optimisation.problem import Baseline
from fairtrial.tracks.optimisation.text import FORMAT
from fairtrial.tracks.optimisation.verify import compare_with_baseline

WYNDOR = Path(__file__).parents[3] / "examples" / "problems" / "wyndor.yaml"
BEST = {"x": [2, 6], "objective_value": 36, "status": "optimal"}
ANSWERS = {
    "baseline.json": json.dumps(BEST),
    "polite_1.json": json.dumps(BEST),
    "polite_2.json": 'Sure! {"x": [4, 3], "objective_value": 27}',
    "strict_1.json": '{"x": [4, 6], "objective_value": 42, "status": "optimal"}',  # infeasible, and says otherwise
    "strict_2.json": "hello",
    "very_terse_1.txt": '{"x": [0, 0], "objective_value": 36}',  # a lie
    "plain.json": json.dumps(BEST),
}


@pytest.fixture
def instance(tmp_path, monkeypatch):
    """A flat folder with its problem."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "mine"
    folder.mkdir()
    for name, text in ANSWERS.items():
        (folder / name).write_text(text)
    shutil.copy(WYNDOR, folder / "problem.yaml")
    return folder


def evaluated(folder, *, ok=True):
    found = CliRunner().invoke(cli, ["optim", "evaluate", str(folder), "--json"], standalone_mode=False)
    if not ok:
        return found
    assert found.exception is None, found.exception
    arms = {arm["arm"]: arm["overall"] for arm in json.loads(found.stdout)["arms"]}
    return arms, found.stderr


@pytest.mark.slow
def test_with_the_problem_and_without_it(instance, tmp_path):
    with_problem, told = evaluated(instance)
    assert set(with_problem) == {"polite", "strict", "very_terse", "plain"}
    assert "mine: the problem is known (problem.yaml); objective and constraints are computed from x" in told
    assert with_problem["polite"]["feasible"] == 1 and with_problem["strict"]["feasible"] == 0
    assert with_problem["plain"]["quality"] == pytest.approx(100)
    assert with_problem["very_terse"]["normalised_gap"] == 1 and with_problem["very_terse"]["misreported"] == 1

    # The same in a folder of instances, one of them without its problem.
    many = tmp_path / "many"
    shutil.copytree(instance, many / "known")
    shutil.copytree(instance, many / "alone")
    (many / "alone" / "problem.yaml").unlink()
    suite = read_folder(many)
    told = describe_folder(many, suite)
    assert [line.partition(":")[0] for line in told] == ["known", "alone"] and "only baseline.json" in told[1]
    (instance / "problem.yaml").unlink()
    alone, told = evaluated(instance)
    assert "mine: no problem file, only baseline.json" in told
    assert {arm["feasible"] for arm in alone.values()} == {None}
    assert alone["polite"]["relative_gap"] == pytest.approx((0 + 9 / 36) / 2)
    assert alone["very_terse"]["normalised_gap"] == 0  # nobody can know
    assert alone["polite"]["format_steps"] == pytest.approx(4.5) and alone["strict"]["format_steps"] == 2.5


def test_a_baseline_that_is_not_that_of_the_problem_is_told(instance):
    for text, says in [
        ('{"x": [2, 6], "objective_value": 35}', "has the objective 36, not 35"),
        ('{"x": [4, 6], "objective_value": 42}', "violates a constraint"),
        ('{"x": [4, 3], "objective_value": 27}', "which is worse than 36"),
        ('{"x": null, "objective_value": null, "status": "infeasible"}', "says infeasible"),
    ]:
        (instance / "baseline.json").write_text(text)
        assert any(says in line for line in describe_folder(instance, read_folder(instance))), says


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"baseline.json": "nothing"}, "is not a baseline"),
        ({"baseline.json": '{"x": [1], "objective_value": 1}'}, "has 1 number in x, and its problem has 2 variables"),
        ({"other.yaml": "variables: []", "problem.yaml": None}, "must not be empty"),
        ({"baseline.json": None, "problem.yaml": None}, "neither a problem file nor baseline.json"),
        ({"inside/polite_1.json": "{}"}, "next to folders with answers"),
    ],
)
def test_what_is_wrong_with_a_folder(instance, change, says):
    for name, text in change.items():
        path = instance / name
        path.parent.mkdir(exist_ok=True)
        path.unlink() if text is None else path.write_text(text)
    error = evaluated(instance, ok=False).exception
    assert isinstance(error, FairtrialError) and says in str(error)


async def test_own_problems_come_back(run_suite, tmp_path, monkeypatch):
    """A run on a file, written as a folder and evaluated again: the problem goes with it."""
    monkeypatch.chdir(tmp_path)
    run = await run_suite(
        suite={"kind": "optimisation", "problems": str(WYNDOR), "styles": ["polite", "strict"]},
        repeats=1,
        targets=[{"id": "m", "target": "mock:x", "options": {"answer": json.dumps(BEST)}}],
    )
    folder = tmp_path / "out"
    assert write_folder(run, folder) == 2
    assert {path.name for path in (folder / "wyndor").iterdir()} >= {"problem.yaml", "baseline.json", "polite_1.json"}
    again = await pipeline.arun(read_folder(folder), store=run.store)
    assert optimisation_report(again).arms[0].overall.mean("quality") == pytest.approx(100)
    assert not describe_folder(folder, read_folder(folder))[1:]


REFERENCE = read_reference('{"x": [2, 6], "objective_value": 36, "sense": "maximise", "random_objective": 16}', "p")


def test_a_baseline_with_its_random_objective_gives_the_usual_gap():
    answer = read_answer('{"x": [4, 3], "objective_value": 31}', 2)
    found = compare_with_baseline(REFERENCE, answer)
    assert found.normalised_gap == pytest.approx(0.25) and found.quality == pytest.approx(75)
    assert found.feasible is None and found.distance == pytest.approx(13**0.5)
    assert compare_with_baseline(REFERENCE, read_answer('{"x": [4], "objective_value": 31}', 2)).quality == 0
    infeasible = read_reference('{"x": null, "objective_value": null, "status": "infeasible"}', "p")
    assert isinstance(infeasible, Baseline)
    right = read_answer('{"x": null, "objective_value": null, "status": "infeasible"}', 0)
    assert compare_with_baseline(infeasible, right).quality == 100


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("I do not know.", 0),
        ('{"answer": 3}', 1),
        ('{"x": [1, 2, 3], "objective_value": 3}', 2),
        ('{"x": "1, 2", "objective_value": 3}', 2),
        ('{"x": [1, "2"], "objective_value": 3}', 3),
        ('{"x": [1, 2], "objective_value": 3, "status": "great"}', 3),
        ('Here: {"x": [1, 2], "objective_value": 3}', 4),
        ('{"x": [1, 2], "objective_value": 3}', 5),
    ],
)
def test_the_format_is_kept_in_steps(text, steps):
    assert read_answer(text, 2).steps == steps <= len(STEPS)


PROMPT = "Please solve this problem.\nMinimise f(x) = x_1 + x_2 with x_1 >= 1.\n" + FORMAT.format(n=2, tolerance="1e-6")
EXAMPLE = '{"x": [1, 2], "objective_value": 3, "status": "optimal"}'


@pytest.mark.parametrize(
    ("prompt", "text", "echo"),
    [
        (PROMPT, PROMPT, True),
        (PROMPT, f"You wrote: {PROMPT}", True),
        (f"{PROMPT}\n{EXAMPLE}", f"{PROMPT}\n{EXAMPLE}", True),  # even if the prompt has a literal answer
        (PROMPT, f"{PROMPT}\n{EXAMPLE}", False),
        (PROMPT, EXAMPLE, False),
        (PROMPT, "Please solve this problem.", False),
    ],
)
def test_an_echo_is_told_from_an_answer(prompt, text, echo):
    answered = read_answer(text, 2, prompt=prompt)
    assert answered.echo is echo
    assert (answered.findings == ("echo",)) is echo and (answered.x is not None) is (EXAMPLE in text and not echo)


@pytest.mark.slow
async def test_an_echo_follows_nothing_in_any_style(run_suite, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = await run_suite(
        targets=["mock:echo"],
        suite={"kind": "optimisation", "problems": [str(WYNDOR), "box_qp-10", "infeasible-10"]},
        conditions={
            "polite": {"style": "polite"},
            "with-example": {"prompt": '{{problem}}\n{"x": [2, 6], "objective_value": 36, "status": "optimal"}'},
        },
        repeats=1,
    )
    for arm in optimisation_report(run).arms:
        assert arm.overall.echoes == arm.overall.trials == 3
        assert arm.overall.mean("instruction_following") == arm.overall.mean("quality") == 0
        assert arm.overall.steps == [0, 0, 0, 0, 0]
