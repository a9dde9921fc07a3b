"""The cases themselves: hard, dead and suspicious ones, and how few of them would do."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from fairtrial.analyse.items import analyse_cases, choose_cases
from fairtrial.analyse.score_table import read_scores, sources_of
from fairtrial.cli.main import cli
from fairtrial.core.errors import FairtrialError
from fairtrial.stats.items import items, subsets
from tests.analyse.test_compare import arm, cases


def said(store, *args):
    return CliRunner().invoke(cli, ["cases", *args, "--store", store.address], standalone_mode=False)


@pytest.mark.slow
async def test_dead_and_suspicious_cases(run_suite, store):
    """Case 0 has a wrong golden answer: both good arms say the same, and only the worst is called right."""
    good = {f"c{n:02}": "42" for n in range(1, 40)} | {"c00": "Forty-one."}
    fine = {key: value for key, value in good.items() if key != "c39"} | {"c39": "x"}
    run = await run_suite(
        targets=[
            {"id": "good", "target": "mock:x", "options": {"answers": good}},
            {"id": "fine", "target": "mock:x", "options": {"answers": fine}},
            arm("poor", {0, *range(1, 12)}),
        ],
        cases=cases(),
    )
    found = analyse_cases(read_scores(sources_of(run)))
    assert [case.id for case in found.suspicious] == ["c00"]
    assert found.suspicious[0].suspicious == "better arms miss it, worse ones get it right"
    assert {case.id for case in found.dead} == {f"c{n:02}" for n in range(1, 12)}
    hard = next(case for case in found.cases if case.id == "c39")
    assert hard.difficulty == pytest.approx(2 / 3) and hard.discrimination > 0
    shown = said(store, run.id).output
    assert "look at c00" in shown and "every answer of every arm is right" in shown
    document = json.loads(said(store, run.id, "--json").output)
    assert len(document["cases"]) == 40 and document["cases"][0]["scores"] == {"good": 0, "fine": 0, "poor": 100}


@pytest.mark.slow
async def test_a_common_wrong_answer_is_said(run_suite):
    answers = {f"c{n:02}": "42" for n in range(20)} | {"c03": "It is 43!"}
    run = await run_suite(
        repeats=2,
        targets=[{"id": name, "target": "mock:x", "options": {"answers": answers}} for name in ("a", "b")],
        cases=cases(20),
    )
    found = analyse_cases(read_scores(sources_of(run)))
    (case,) = found.suspicious
    assert case.id == "c03" and case.suspicious.startswith("4 of 4 answers say `it is 43")
    assert found.cheapest is None


@pytest.mark.slow
async def test_fewer_cases_keep_the_order(run_suite, store, tmp_path):
    rng = np.random.default_rng(1)
    run = await run_suite(
        targets=[
            arm(name, set(np.flatnonzero(rng.random(200) < p).tolist()), 200)
            for name, p in (("a", 0.9), ("b", 0.6), ("c", 0.2))
        ],
        cases=cases(200),
        concurrency=20,
    )
    scores = read_scores(sources_of(run))
    found = analyse_cases(scores)
    assert found.cheapest is not None and found.cheapest < 100
    sizes = [subset.cases for subset in found.subsets]
    assert sizes == sorted(sizes) and all(
        a.off >= b.off - 0.01 for a, b in zip(found.subsets, found.subsets[1:], strict=False)
    )
    chosen = choose_cases(scores, found.cheapest)
    assert len(set(chosen)) == found.cheapest
    kept = {
        name: np.mean([trial.score for trial in run.trials() if trial.arm == name and trial.case_id in set(chosen)])
        for name in "abc"
    }
    assert kept["a"] > kept["b"] > kept["c"]
    assert said(store, run.id, "--subset", "30", "-o", str(tmp_path / "ids.txt")).exit_code == 0
    assert len((tmp_path / "ids.txt").read_text().split()) == 30
    assert len(choose_cases(scores, 150)) == 150
    missing = said(store, run.id, "--subset", "30", "-o", "/proc/nowhere/ids.txt")
    assert "cannot be written" in str(missing.exception)
    both = said(store, run.id, "--subset", "30", "-o", str(tmp_path / "more.txt"), "--json")
    assert len(json.loads(both.stdout)["cases"]) == 30
    assert "choose 1 to 200" in str(said(store, run.id, "--subset", "999").exception)
    assert "-o needs --subset N" in str(said(store, run.id, "-o", "x").exception)
    with pytest.raises(FairtrialError, match="no arm has a score"):
        analyse_cases(scores._replace(arms=()))


def test_discrimination_is_the_item_rest_correlation():
    rng = np.random.default_rng(2)
    scores = rng.random((6, 15))
    for place, item in enumerate(items(scores)):
        rest = np.delete(scores, place, axis=1).mean(axis=1)
        assert item.discrimination == pytest.approx(np.corrcoef(scores[:, place], rest)[0, 1])
    assert items(scores[:2])[0].discrimination is None


def test_all_cases_are_never_off():
    scores = np.random.default_rng(3).random((3, 30))
    (whole,) = subsets(scores, np.zeros((3, 3), dtype=bool), [30])
    assert whole.off == pytest.approx(0) and whole.kept == 1 and whole.wider == 1


def test_weights_count_in_the_mean_over_fewer_cases():
    scores, weights = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]]), np.array([8.0, 1.0, 1.0])
    (whole,) = subsets(scores, np.array([[False, True], [False, False]]), [3], weights)
    assert whole.kept == 1 and whole.off == pytest.approx(0)
    (one,) = subsets(scores, np.zeros((2, 2), dtype=bool), [1], weights)
    # One case gives 1 and 0, or 0 and 1, against 0.8 and 0.2 over all: off by 0.2 or by 0.8.
    assert 0.2 < one.off < 0.8
