"""Human labels: drawn blind, taken in whole or not at all, tied to a judge, and corrected means that hold."""

import csv
import json

import numpy as np
import pytest

from fairtrial.analyse.run import Run
from fairtrial.analyse.score_table import read_scores, sources_of
from fairtrial.cli.main import _run
from fairtrial.core.errors import FairtrialError
from fairtrial.stats import corrected_mean, corrected_share
from fairtrial.workflows.label import PersonLabel, add_labels, drawn_mark, read_labels, read_mark, write_sample
from fairtrial.workflows.resume import arescore
from tests.judging.test_judges import judge

WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa"]
MARKS = {f"says {word}": mark for mark, word in enumerate(WORDS)}


def talker(name: str = "talker") -> dict:
    """A target whose answers are worth 0 to 9 marks, case by case."""
    answers = {f"c{n:03}": f"says {WORDS[n % 10]}" for n in range(200)}
    return {"id": name, "target": "mock:x", "options": {"answers": answers}}


def cases(count: int, **more) -> list[dict]:
    return [{"id": f"c{n:03}", "input": f"case {n:03}", **more} for n in range(count)]


@pytest.fixture
def judged(run_suite):
    async def run(count: int = 40, **keys):
        keys = {"targets": [talker()], "judge": judge(marks=MARKS), **keys}
        return await run_suite(scorer="llm_judge", cases=keys.pop("cases", None) or cases(count), **keys)

    return run


def read(path) -> list[dict]:
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def drawn(run, trial, value):
    """A label of an answer that a sample had."""
    return PersonLabel(trial.trial_id, value, sample=drawn_mark(run.id, trial.trial_id))


def fill(path, bias: float = 0.0) -> None:
    """A person who marks 20 points lower than the judge of these tests, more or less."""
    rows = read(path)
    for row in rows:
        word = row["answer"].removeprefix("says ")
        row["label"] = str(min(100.0, max(0.0, 10 * WORDS.index(word) + bias)))
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


@pytest.mark.slow
async def test_a_sample_is_blind_and_random(judged, tmp_path):
    run = await judged(targets=[talker("one"), talker("two")])
    path = tmp_path / "marks.csv"
    assert write_sample(run, path, count=15, seed=1) == 30
    rows = read(path)
    assert list(rows[0]) == ["trial", "input", "expected", "answer", "label", "note", "sample"]
    of = {trial.trial_id: (trial.arm, trial.case_id) for trial in run.trials()}
    asked = {name: {of[row["trial"]][1] for row in rows if of[row["trial"]][0] == name} for name in ("one", "two")}
    assert asked["one"] == asked["two"]  # of the same cases: comparisons are corrected where both have labels
    assert len({row["trial"] for row in rows}) == 30 and not any(row["label"] for row in rows)
    again_path, other = tmp_path / "again.csv", tmp_path / "other.csv"
    write_sample(run, again_path, count=15, seed=1)
    assert path.read_text() == again_path.read_text()
    write_sample(run, other, count=15, seed=2)
    assert path.read_text() != other.read_text()
    with pytest.raises(FairtrialError, match="its arms: one, two"):
        write_sample(run, tmp_path / "third.csv", count=3, arms=["three"])
    with pytest.raises(FairtrialError, match="already exists"):
        write_sample(run, path, count=15)


async def test_only_what_a_judge_scored_is_drawn(judged, run_suite, tmp_path):
    from fairtrial.store.opinions import unlabelled

    mixed = [{**case, "scorer": "match", "expected": "x"} if n % 2 else case for n, case in enumerate(cases(20))]
    run = await judged(cases=mixed)
    path = tmp_path / "marks.csv"
    assert write_sample(run, path, count=20, seed=1) == 10
    assert {int(row["input"][-3:]) % 2 for row in read(path)} == {0}
    assert {unlabelled(run.store, run.record, [0])[0] % 2 for _ in range(8)} == {0}
    plain = await run_suite(targets=[talker()], cases=cases(5, expected="x"))  # no judge: any answer will do
    assert write_sample(plain, tmp_path / "plain.csv", count=20) == 5


async def test_every_case_is_drawn_until_none_is_left(run_suite, monkeypatch):
    from fairtrial.store import opinions

    run = await run_suite(targets=[talker()], cases=cases(30, expected="x"), repeats=2)
    monkeypatch.setattr(opinions, "_DRAWS", 3)  # nearly always, all of the few drawn cases have a label by the end
    drawn = []
    while (place := opinions.unlabelled(run.store, run.record, [0])) is not None:
        label = {"case_position": place.case, "arm_position": 0, "repeat": place.repeat, "labeller": "me", "value": 1.0}
        opinions.add_labels(run.store, run.id, run.record.scoring, [{**label, "note": None, "drawn": True}])
        drawn.append(place)
    assert sorted(place.case for place in drawn) == list(range(30))
    assert {place.repeat for place in drawn} == {0, 1} and [place.case for place in drawn] != list(range(30))


@pytest.mark.slow
async def test_a_biased_judge_is_corrected(judged, tmp_path):
    run = await judged(100)
    path = tmp_path / "marks.csv"
    write_sample(run, path, count=40, seed=3)
    fill(path, bias=-10)
    assert add_labels(run, read_labels(path), by="ann") == 40
    (arm,) = run.arms
    assert arm.aggregate.mean == pytest.approx(0.45)
    assert arm.labels.answers == 40 and arm.labels.bias == pytest.approx(0.09, abs=0.02)
    (corrected,) = arm.labels.corrected
    # Ten points lower, but nothing goes below 0: the true mean is 36.
    assert corrected.mean == pytest.approx(0.36, abs=0.02)
    assert corrected.ci95[0] <= 0.36 <= corrected.ci95[1] and corrected.method == "labels and marks"
    # Drawing again draws others.
    more = tmp_path / "more.csv"
    write_sample(run, more, count=100, seed=3)
    assert len(read(more)) == 60


@pytest.mark.slow
async def test_right_or_wrong_is_corrected(judged, tmp_path):
    marks = {key: 10 if mark > 2 else 0 for key, mark in MARKS.items()}  # too mild: people pass what is above 4
    run = await judged(200, judge=judge(marks=marks))
    path = tmp_path / "marks.csv"
    write_sample(run, path, count=80, seed=5)
    rows = read(path)
    labels = [
        PersonLabel(
            row["trial"],
            read_mark("pass" if WORDS.index(row["answer"][5:]) > 4 else "fail"),
            sample=row["sample"],
        )
        for row in rows
    ]
    add_labels(run, labels, by="ann")
    (corrected,) = run.arms[0].labels.corrected
    assert run.arms[0].aggregate.mean == pytest.approx(0.7)
    assert corrected.ci95[0] <= 0.5 <= corrected.ci95[1] and corrected.method == "labels and verdicts"


@pytest.mark.slow
async def test_labels_are_stale_beside_another_judge(judged, store):
    run = await judged(30)
    trials = [trial.trial_id for trial in run.trials()]
    add_labels(run, [PersonLabel(trial, 0.5) for trial in trials[:20]], by="ann")
    assert run.arms[0].labels.answers == 20
    again_run = await arescore(run.id, scorer={"type": "llm_judge", "instructions": "Be kind."}, store=store)
    (arm,) = again_run.arms
    assert (arm.labels.answers, arm.labels.stale, arm.labels.corrected) == (0, 20, ())
    assert _run(["label", run.id, "--renew", "--store", store.address]) == 0
    (arm,) = Run.find(run.id, store).arms
    assert (arm.labels.answers, arm.labels.stale) == (20, 0)


@pytest.mark.slow
async def test_labels_outside_the_labelled_range_are_refused(judged):
    run = await judged(100)
    low = [trial for trial in run.trials() if trial.score < 0.3][:20]
    add_labels(run, [drawn(run, trial, 0.1) for trial in low], by="ann")
    (corrected,) = run.arms[0].labels.corrected
    assert corrected.mean is None and "outside the labelled range (0 to 20)" in corrected.refused


@pytest.mark.slow
async def test_labels_that_somebody_chose_correct_nothing(judged, tmp_path, capsys):
    """Picked where the judge errs, 3 to 1, they decided wrongly in 9 to 41 % of comparisons."""
    run = await judged(60)
    add_labels(run, [PersonLabel(trial.trial_id, 0.1) for trial in list(run.trials())[:25]], by="ann")
    (arm,) = run.arms
    assert (arm.labels.answers, arm.labels.chosen, arm.labels.corrected) == (25, 25, ())
    assert arm.labels.bias is not None and arm.labels.agreement is not None  # shown, as agreement
    assert not read_scores(sources_of(run)).arms[0].labels  # and no comparison knows them
    assert _run(["label", run.id, "--store", run.store.address]) == 0
    assert "correct nothing: 25 labels of hand-picked answers" in " ".join(capsys.readouterr().out.split())
    path = tmp_path / "marks.csv"
    write_sample(run, path, count=35, seed=3)
    fill(path, bias=-10)
    add_labels(run, read_labels(path), by="ann")
    (arm,) = run.arms
    assert (arm.labels.answers, arm.labels.chosen) == (60, 25) and arm.labels.corrected[0].labelled == 35


@pytest.mark.slow
async def test_unequal_weights_are_refused(judged):
    run = await judged(cases=[{**case, "weight": 1 + n % 2} for n, case in enumerate(cases(30))])
    add_labels(run, [drawn(run, trial, 0.5) for trial in list(run.trials())[:10]], by="ann")
    (corrected,) = run.arms[0].labels.corrected
    assert corrected.mean is None and "weights" in corrected.refused


async def test_two_labellers_and_a_change_of_mind(judged):
    run = await judged(10)
    trial = next(run.trials()).trial_id
    add_labels(run, [PersonLabel(trial[:12], 0.2, by="ann"), PersonLabel(trial, 0.6, by="bob")], by="x")
    add_labels(run, [PersonLabel(trial, 0.4)], by="ann")
    assert run.arms[0].labels.answers == 1
    assert run.arms[0].labels.bias == pytest.approx(0.0 - 0.5)


async def test_all_labels_or_none(judged):
    run = await judged(10)
    trial = next(run.trials()).trial_id
    with pytest.raises(FairtrialError, match="`ffff` matches no trial"):
        add_labels(run, [PersonLabel(trial, 0.5), PersonLabel("ffff", 0.5)], by="ann")
    assert run.arms[0].labels is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("trial,label\nabc,101\n", "from 0 to 100"),
        ("trial,label\nabc,good\n", "not `good`"),
        ("trial,label\nabc,nan\n", "not `nan`"),
        ("trial,mark\nabc,1\n", "are required"),
        ("trial,label\nabc,\n", "has no labels"),
        ('trial,label\n"abc,1\n', "cannot be read"),
    ],
)
def test_bad_labels(tmp_path, text, reason):
    path = tmp_path / "marks.csv"
    path.write_text(text)
    with pytest.raises(FairtrialError, match=reason):
        read_labels(path)


@pytest.mark.slow
def test_the_commands(write_suite, tmp_path, capsys):
    path = write_suite(targets=[talker()], scorer="llm_judge", judge=judge(marks=MARKS), cases=cases(60))
    marks = str(tmp_path / "marks.csv")
    assert _run(["run", str(path), "-q"]) == 0
    assert _run(["label"]) == 0
    assert "no answer of this run has a label" in capsys.readouterr().out
    assert _run(["label", "--sample", "30", "-o", marks, "--seed", "1"]) == 0
    fill(marks, bias=-10)
    assert _run(["label", "--import", marks, "--by", "ann"]) == 0
    shown = capsys.readouterr().out
    assert "30 human labels: the judge marks" in shown and "corrected by labels: 3" in shown
    assert _run(["show", "--json"]) == 0
    (arm,) = json.loads(capsys.readouterr().out)["arms"]
    assert arm["labels"]["answers"] == 30
    assert arm["labels"]["corrected"][0]["mean"] == pytest.approx(36, abs=3)
    assert _run(["show"]) == 0
    assert "corrected by labels:" in capsys.readouterr().out
    assert _run(["export", "latest", "-o", str(tmp_path / "run.md")]) == 0
    assert "corrected by labels" in (tmp_path / "run.md").read_text()
    assert _run(["label", "--sample", "3"]) == 1
    assert "--sample and -o go together" in capsys.readouterr().err


@pytest.mark.slow
def test_refusal_is_rare_for_labels_drawn_at_random():
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(2000):
        y = rng.normal(0.5, 0.1, 120)
        refused += corrected_mean(y[:20], y[:20], y[20:]).mean is None
    assert refused <= 35  # 1 % expected
    chosen = np.sort(rng.uniform(0, 1, 120))
    assert corrected_mean(chosen[:20], chosen[:20], chosen[20:]).mean is None
    # People said both, but the judge passed every one of the labelled answers and few of the others.
    marks = np.array([1, 0] * 20)
    assert "outside the labelled range" in corrected_share(marks, np.ones(40), [0] * 90 + [1] * 10).refused
    assert (
        "outside the labelled range" in corrected_mean(np.linspace(0, 1, 20), np.ones(20), [0] * 24 + [1] * 24).refused
    )


@pytest.mark.slow
@pytest.mark.parametrize(("labelled", "left"), [(30, 2), (30, 3), (100, 10), (20, 400)])
def test_few_answers_left_are_no_reason_to_refuse(labelled, left):
    rng = np.random.default_rng(labelled)
    marks = rng.normal(0.5, 0.1, (2000, labelled + left))
    refused = sum(corrected_mean(m[:labelled], m[:labelled], m[labelled:]).mean is None for m in marks)
    assert refused <= 35


def test_labels_of_one_kind_leave_room_for_the_other():
    found = corrected_share([1] * 40, [1] * 40, [1] * 2000)
    assert found.ci95[0] < 0.95 and found.ci95[1] > 0.99
