"""Sums in SQL: planned trials, and scores with what the cases say of themselves."""

from fairtrial.core.batch import BatchPlace, BatchRecord
from fairtrial.core.judge import Judgement
from fairtrial.core.variables import Variables
from fairtrial.store.batches import batch_row, batches_of, open_requests, request_row, void_batch
from fairtrial.store.browsing import RunQuery, runs_page, suite_names
from fairtrial.store.files import scored_by
from fairtrial.store.opinions import has_judged, judges_asked, pair_row
from fairtrial.store.outcomes import case_facts, taken_metrics, taken_sums
from fairtrial.store.totals import failure_reasons, latencies, planned_trials, score_shares, trial_scores


async def test_a_case_may_have_repeats_of_its_own(run_suite, store):
    cases = [{"id": f"c{n}", "input": str(n), "expected": str(n)} for n in range(3)]
    run = await run_suite(targets=["mock:echo"], repeats=2, cases=[*cases[:2], {**cases[2], "repeats": 3}])
    assert planned_trials(store, run.plan.id, run.plan_arms) == [2 + 2 + 3]
    assert run.status == "completed" and len(list(run.trials())) == 7


async def test_scores_come_with_weights_and_clusters(run_suite, store):
    cases = [
        {"id": "a", "input": "1", "expected": "1", "cluster": "x"},
        {"id": "b", "input": "2", "expected": "3", "cluster": "x", "weight": 2},
        {"id": "c", "input": "4", "expected": "4"},
    ]
    run = await run_suite(targets=["mock:echo"], repeats=2, cases=cases)
    (scores,) = trial_scores(store, run.id, run.plan.id, 0, [0]).values()
    assert scores.by_case == {0: [1.0, 1.0], 1: [0.0, 0.0], 2: [1.0, 1.0]}
    assert scores.weights == {0: 1.0, 1: 2.0, 2: 1.0}
    assert scores.clusters == {0: "x", 1: "x"} and scores.uneven


async def test_reasons_are_those_of_the_run(run_suite, store):
    broken = {"id": "m", "target": "mock:x", "options": {"answer": "x", "faults": {"500": 1}}}
    cases = [{"id": f"c{n}", "input": str(n), "expected": str(n)} for n in range(3)]
    failing = await run_suite(targets=[broken], cases=cases, retry={"attempts": 1})
    assert suite_names(store) == ["test"]
    fine = await run_suite(targets=["mock:echo"], cases=cases)
    assert [(kind, count) for kind, _, count in failure_reasons(store, failing.id, 0)] == [("server", 3)]
    assert failure_reasons(store, fine.id, 0) == []
    assert suite_names(store) == ["test"]


async def test_runs_are_found_by_what_is_typed_and_not_by_a_pattern(run_suite, store):
    run = await run_suite(targets=["mock:echo"], cases=[{"input": "1", "expected": "1"}])
    for text, count in ((run.id[:5], 1), ("TES", 1), ("%", 0), ("_", 0), ("other", 0)):
        assert runs_page(store, RunQuery(text=text), 0, 10)[1] == count, text


def test_a_pair_of_which_one_verdict_is_missing_has_no_value():
    fine, failed = (
        Judgement(judge="j", value=1.0),
        Judgement(judge="j", failure_kind="timeout", failure_message="no answer"),
    )
    row = pair_row("r", (0, 0, 0, 1), (fine, failed), Variables({}))
    assert (row["forward"], row["backward"], row["failure_kind"]) == (None, None, "timeout")
    assert row["failure_message"] == "no answer" and row["asked"] == 2
    row = pair_row("r", (0, 0, 0, 1), (fine, fine), Variables({}))
    assert (row["forward"], row["backward"], row["failure_kind"], row["failure_message"]) == (1.0, 1.0, None, None)


async def test_a_judge_that_has_judged_is_known(run_suite, store):
    judge = {"target": "mock:judge", "options": {"verdict": {"marks": {"good": 5}, "otherwise": 1}}}
    target = {"id": "m", "target": "mock:x", "options": {"answer": "good"}}
    cases = [{"id": "c", "input": "1", "expected": "good"}]
    run = await run_suite(targets=[target], judge=judge, scorer="golden_judge", cases=cases)
    ((_, key, _),) = judges_asked(store, run.id, 0)
    assert has_judged(store, run.id, key) is True and has_judged(store, run.id, "other") is False
    assert scored_by(store, run.id, 0, ["golden_judge"]) is True and scored_by(store, run.id, 0, ["exact"]) is False
    assert len(latencies(store, run.id)[0]) == 1
    assert taken_metrics(store, run.id) == ["latency_ms", "cost_usd"]
    assert list(taken_sums(store, run.id, 0, "cost_usd")) == [((0,), (0,), (1,), (0.0,))]
    (((case,), (position,), (count,), (latency,)),) = taken_sums(store, run.id, 0, "latency_ms")
    assert (case, position, count) == (0, 0, 1) and latency >= 0


async def test_shares_of_full_and_low_scores_are_those_of_the_run(run_suite, store):
    cases = [{"id": f"c{n}", "input": str(n), "expected": str(min(n, 2))} for n in range(5)]
    run = await run_suite(targets=["mock:echo"], cases=cases)
    await run_suite(targets=["mock:echo"], cases=cases[:3])
    assert score_shares(store, run.id, 0) == {0: (5, 3, 2)}


async def test_questions_that_occur_again_have_keys_of_their_own(run_suite, store):
    cases = [{"id": f"c{n}", "input": "the same", "expected": "x"} for n in range(3)]
    run = await run_suite(targets=["mock:echo"], cases=cases)
    first, *others = [facts.key for facts in case_facts(store, run.plan.id)]
    assert others == [f"{first}-2", f"{first}-3"]


async def test_a_batch_that_was_not_submitted_is_over(run_suite, store):
    run = await run_suite(targets=["mock:echo"], cases=[{"input": "1", "expected": "1"}])
    batches = [BatchRecord(number=n, target="t", requests=1, created_at=1.0) for n in (1, 2)]
    places = [BatchPlace(batch=n, position=0, key=f"k{n}", usd=0.0) for n in (1, 2)]
    store.write(
        {
            "batches": [batch_row(run.id, batch) for batch in batches],
            "batch_requests": [request_row(run.id, place, done=False) for place in places],
        }
    )
    with store.lease(run.id) as lease:
        void_batch(lease, batches[0])
    assert [batch.ended_at is None for batch in batches_of(store, run.id)] == [False, True]
    assert open_requests(store, run.id) == [places[1]]
