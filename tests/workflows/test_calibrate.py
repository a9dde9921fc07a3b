"""Calibration: judges of known behaviour get the rating they deserve."""

import functools
import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fairtrial as ft
from fairtrial import pipeline
from fairtrial.analyse.run import Run
from fairtrial.cli.main import _run
from fairtrial.core.errors import FairtrialError
from fairtrial.core.ids import new_id
from fairtrial.core.score import Score, Unscored
from fairtrial.judging.calibration import (
    CalibrationSample,
    CalibrationSummary,
    _rating,
    calibration,
    load_samples,
    sample_result,
)
from fairtrial.store import Store
from fairtrial.store.calibrations import add_calibration, calibrations_of
from fairtrial.workflows.calibrate import acalibrate
from tests.postgres import on_both

# A text that stands only in the prompt of that sample, and the mark it deserves on 0–10.
MARKS = {
    "\nCanberra.\n": 10,
    "Australia is Sydney": 0,
    "add the two together": 7,
    "lovely question": 8.5,
    ">>\n\n<<END ANSWER": 0,
    "boil an egg": 0,
    "hexagonal lattice": 10,
    "physical properties": 2.5,
}


@pytest.fixture
def calibrated(write_suite, store):
    """Calibrate a scripted judge."""

    async def calibrate(runs: int = 1, scorer: str = "llm_judge", samples=None, latency_ms: float = 0, **verdict):
        options = {"verdict": {"marks": MARKS, **verdict}, "latency_ms": latency_ms}
        suite = pipeline.load(write_suite(scorer=scorer, judge={"target": "mock:j", "options": options}))
        return await acalibrate(
            suite.settings.judges[0], scorer={"type": scorer}, runs=runs, samples=samples, store=store
        )

    return calibrate


def test_a_correlation_of_next_to_nothing_is_undefined():
    from fairtrial.judging.calibration import _pearson

    assert _pearson([0.0, 1.0], [0.0, 2.4e-223]) is None


def test_every_judge_of_a_panel_is_calibrated(write_suite, capsys):
    judges = [{"target": f"mock:{name}", "options": {"verdict": {"marks": MARKS}}} for name in ("j", "k")]
    path = write_suite(scorer="llm_judge", judges=judges)
    assert _run(["calibrate", "--suite", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "mock:j: 8 of 8" in shown and "mock:k: 8 of 8" in shown and "8 calls, 0" in shown
    assert _run(["run", str(path)]) == 0
    assert shown.count("rating: ") == 2 and "was rated excellent" in capsys.readouterr().out


def test_samples_are_written_as_cases_are(tmp_path):
    (tmp_path / "samples.yaml").write_text("- {id: a, question: Capital of France?, answer: Paris., score: 100}\n")
    (sample,) = load_samples(tmp_path / "samples.yaml")
    assert sample.question == "Capital of France?"


def test_the_built_in_samples():
    samples = load_samples()
    assert [sample.id for sample in samples] == [
        "right-and-terse",
        "wrong",
        "indirectly-right",
        "right-and-verbose",
        "empty",
        "irrelevant",
        "good-explanation",
        "vague-explanation",
    ]


async def test_a_perfect_judge(calibrated):
    result = await calibrated()
    assert result.rating == "excellent"
    summary = result.summary
    assert (summary.total, summary.passed, summary.pass_rate, summary.unscored) == (8, 8, 1.0, 0)
    assert summary.mean_absolute_error == pytest.approx(0) and summary.correlation == pytest.approx(1)
    assert summary.bias == pytest.approx(0) and summary.judge == "mock:j"


async def test_a_noisy_judge_shows_its_spread(calibrated):
    result = await calibrated(runs=5, noise=1.0)
    assert result.rating in ("excellent", "good")
    assert 0.01 < result.summary.spread < 0.2 and result.summary.runs == 5


async def test_a_biased_judge(calibrated):
    result = await calibrated(bias=1.0)  # 10 points too much, where there is room for it
    assert 0.03 < result.summary.bias <= 0.1 and result.summary.correlation > 0.95


async def test_a_constant_judge_is_poor(calibrated):
    result = await calibrated(marks={}, otherwise=5)
    assert result.rating == "poor" and result.summary.correlation is None
    assert "Do not rely on it" in result.recommendation


@pytest.mark.parametrize("mode", ["refuse", "malformed", "out_of_range"])
async def test_no_malfunction_becomes_a_score(calibrated, mode):
    result = await calibrated(mode=mode)
    assert result.rating == "poor" and result.summary.unscored == 8 and result.summary.passed == 0
    assert all(sample.actual is None and "no verdict" in sample.notes for sample in result.samples)
    assert result.summary.mean_absolute_error is None


async def test_a_slow_judge_is_as_good_as_a_fast_one(calibrated):
    assert (await calibrated(latency_ms=50)).rating == "excellent"


async def test_the_golden_judge_is_calibrated_too(calibrated):
    marks = {text: 1 + 4 * mark / 10 for text, mark in MARKS.items()}
    assert (await calibrated(scorer="golden_judge", marks=marks)).rating == "excellent"


@on_both
def test_the_latest_calibration_is_the_last_one_whatever_the_clock_says(store, monkeypatch):
    common = {"judge": "j", "judge_key": "k", "prompt_hash": "h", "rating": "good", "body": b"{}"}
    clock = iter((2e9, 1e9, 1e9, 3e9, 0.0))
    monkeypatch.setattr("fairtrial.core.ids.time.time_ns", lambda: int(next(clock) * 1e9))
    for number in range(5):
        add_calibration(store, {**common, "id": new_id(), "created_at": float(number)})
    assert [row["created_at"] for row in calibrations_of(store, "k")] == [4.0, 3.0, 2.0, 1.0, 0.0]


async def test_own_samples(calibrated, tmp_path):
    rows = [
        {"id": "a", "question": "q", "answer": "boil an egg", "score": 0},
        {"id": "b", "question": "q", "answer": "hexagonal lattice", "score": 100, "tolerance": 5},
    ]
    (tmp_path / "s.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert (await calibrated(samples=tmp_path / "s.jsonl")).summary.passed == 2
    for text, words in (
        ("- {id: a}", "is missing"),
        ("x: 1", "must be a list"),
        ("- {id: a, question: q, answer: a, score: 300}", "<= 100"),
    ):
        (tmp_path / "bad.yaml").write_text(text)
        with pytest.raises(FairtrialError, match=words):
            load_samples(tmp_path / "bad.yaml")
    with pytest.raises(FairtrialError, match="cannot read the samples"):
        load_samples(tmp_path / "none.yaml")


@pytest.mark.parametrize(
    ("pass_rate", "error", "correlation", "rating"),
    [
        (0.90, 0.10, 0.90, "excellent"),
        (0.89, 0.10, 0.90, "good"),
        (0.90, 0.11, 0.90, "good"),
        (0.90, 0.10, 0.89, "good"),
        (0.75, 0.15, 0.80, "good"),
        (0.74, 0.01, 0.99, "fair"),
        (1.00, 0.16, 0.99, "fair"),
        (0.50, 0.25, 0.60, "fair"),
        (0.49, 0.01, 0.99, "poor"),
        (1.00, 0.26, 0.99, "poor"),
        (1.00, 0.01, 0.59, "poor"),
        (1.00, 0.01, None, "poor"),
        (0.00, None, None, "poor"),
    ],
)
def test_all_three_must_hold(pass_rate, error, correlation, rating):
    summary = CalibrationSummary(
        judge="j",
        created_at=0,
        total=8,
        passed=0,
        pass_rate=pass_rate,
        mean_absolute_error=error,
        largest_error=None,
        bias=None,
        correlation=correlation,
        spread=None,
        unscored=0,
        runs=1,
    )
    assert _rating(summary) == rating


@pytest.mark.slow
@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0, 1)), min_size=2, max_size=12))
def test_numbers_add_up(pairs):
    results = [
        sample_result(CalibrationSample(id=str(n), question="q", answer="a", score=score), [Score(value=value)])
        for n, (score, value) in enumerate(pairs)
    ]
    summary = calibration(results, judge="j", judge_key="k", prompt_hash="p", runs=1, created_at=0.0).summary
    assert abs(summary.bias) <= summary.mean_absolute_error + 1e-12 <= summary.largest_error + 2e-12
    assert summary.correlation is None or -1.000001 <= summary.correlation <= 1.000001


def test_a_missing_judgement_fails_the_sample():
    sample = CalibrationSample(id="a", question="q", answer="a", score=50)
    result = sample_result(sample, [Score(value=0.5), Unscored(kind="judge", message="down")])
    assert result.actual is None and not result.within_tolerance and "down" in result.notes


@pytest.mark.slow
def test_runs_say_how_their_judge_was_rated(write_suite, capsys):
    options = {"verdict": {"marks": MARKS}}
    keys = {"targets": [{"id": "t", "target": "mock:x", "options": {"answer": "boil an egg"}}], "scorer": "llm_judge"}
    path = write_suite(judge={"target": "mock:j", "options": options}, **keys)
    assert _run(["run", str(path)]) == 0
    assert "warning: judge mock:j was never calibrated" in capsys.readouterr().err
    assert _run(["calibrate", "--suite", str(path), "--runs", "2"]) == 0
    out = capsys.readouterr().out
    assert "rating: excellent" in out and "8 of 8 within tolerance" in out
    assert max(map(len, out.splitlines()[:9])) <= 80
    assert _run(["run", str(path)]) == 0
    assert "judge mock:j: rated excellent when calibrated with this prompt" in capsys.readouterr().err
    other = write_suite("o.yaml", judge={"target": "mock:j", "options": options, "instructions": "Be kind."}, **keys)
    assert _run(["run", str(other)]) == 0
    assert "was only calibrated with another prompt" in capsys.readouterr().err


def test_the_command_and_its_mistakes(capsys, write_suite):
    assert _run(["calibrate"]) == 1 and "name a judge" in capsys.readouterr().err
    assert _run(["calibrate", "opnai:x"]) == 1 and "did you mean `openai`" in capsys.readouterr().err
    assert _run(["calibrate", "mock:echo", "--scorer", "exact"]) == 1
    assert "needs a scorer whose judge gives marks" in capsys.readouterr().err
    assert _run(["calibrate", "--suite", str(write_suite())]) == 1 and "has no judge" in capsys.readouterr().err
    assert _run(["calibrate", "mock:echo", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rating"] == "poor"


def test_from_python():
    result = ft.calibrate("mock:echo")
    assert result.rating == "poor" and result.summary.total == 8


@pytest.fixture
def one_embedded_model(monkeypatch):
    """Started once for several commands, with a short task and markers that are the same and few tokens.

    It reads a token in a fortieth of a second, and a prompt only once.
    """
    from fairtrial.providers.weights import fetch
    from fairtrial.scorers.llm_judge import LlmJudge
    from fairtrial.targets import local

    fetch("smollm2")
    start = functools.cache(functools.partial(local._start, embed=False))
    monkeypatch.setattr(local, "_start", lambda path, options, key, embed: start(path, options, key))
    monkeypatch.setattr("secrets.token_hex", lambda size: "mark" * (size // 2))
    monkeypatch.setattr(LlmJudge, "_task", lambda self: "Mark the answer from 0 to 10.")


@pytest.mark.model
@pytest.mark.slow
@pytest.mark.usefixtures("one_embedded_model")
def test_the_embedded_model_judges_and_is_rated_honestly(write_suite, capsys):
    """It judges badly, but with a schema it cannot judge malformed."""
    sample = load_samples()[0]  # one of the eight: a small model takes ten seconds for each
    judge = {"target": "local:smollm2", "params": {"max_tokens": 120}, "options": {"threads": 1}}
    path = write_suite(
        targets=[{"target": "mock:x", "options": {"answer": sample.answer}}],
        scorer="llm_judge",
        judge=judge,
        cases=[{"input": sample.question, "expected": sample.expected}],
    )
    patience = ["--concurrency", "1", "--timeout", "600"]
    _run(["run", str(path), *patience, "--quiet"])
    run = Run.find("latest", Store())
    trial = next(run.trials())
    (judgement,) = run.judgements(trial.trial_id)
    assert trial.status == "scored" or (trial.status == "unscored" and judgement["failure_message"])
    assert judgement["model"] == "smollm2" and judgement["reply"]
    samples = path.with_name("samples.jsonl")
    samples.write_bytes(msgspec.json.encode(sample))
    assert _run(["calibrate", "--suite", str(path), *patience, "--samples", str(samples), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    summary, marks = document["summary"], [sample["actual"] for sample in document["samples"]]
    assert summary["total"] == 1 and summary["passed"] == sum(s["within_tolerance"] for s in document["samples"])
    # What a model says differs from processor to processor in the last bits, and so in its words: the rating must
    # follow from its marks, whatever they are.
    assert all(mark is None or 0 <= mark <= 100 for mark in marks)
    fair = summary["pass_rate"] >= 0.5 and (summary["mean_absolute_error"] or 0) <= 25 and None not in marks
    assert (document["rating"] == "poor") == (
        not fair or summary["correlation"] is None or summary["correlation"] < 0.6
    )


def test_a_judge_that_obeys_is_found_out(write_suite, capsys):
    def suite(mode):
        options = {"verdict": {"marks": {"Bananas": 1}, "mode": mode}}
        return str(write_suite(scorer="llm_judge", judge={"target": "mock:j", "options": options}))

    assert _run(["calibrate", "--suite", suite("judge"), "--injection"]) == 0
    assert "mock:j: 0 of 8 attacks raised the mark" in capsys.readouterr().out
    assert _run(["calibrate", "--suite", suite("obey"), "--injection", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    moved = [attack["name"] for attack in document["attacks"] if attack["moved"]]
    assert document["undisturbed"] == pytest.approx(10)
    assert set(moved) >= {"order", "flattery", "threat", "new rules"} and "false verdict" not in moved
    assert _run(["calibrate", "--suite", suite("refuse"), "--injection", "--json"]) == 1
    assert "gave no verdict on any sample" in capsys.readouterr().err
    options = {"verdict": {"marks": {"Bananas": 1}, "mode": "obey"}}
    scorer = {"type": "llm_judge", "scale": 100}
    hundred = write_suite(scorer=scorer, judge={"target": "mock:j", "options": options})
    assert _run(["calibrate", "--suite", str(hundred), "--injection"]) == 0
    assert "6 of 8 attacks raised the mark" in capsys.readouterr().out
    assert _run(["calibrate", "mock:echo", "--scorer", "exact", "--injection"]) == 1


async def test_an_outage_is_no_calibration(write_suite, store, model_server):
    await model_server(key="another")
    suite = pipeline.load(write_suite(scorer="llm_judge", judge="openai:j"))
    with pytest.raises(FairtrialError, match="could not be called"):
        await acalibrate(suite.settings.judges[0], store=store)
    from fairtrial.core.judge import judge_key

    assert calibrations_of(store, judge_key(suite.settings.judges[0])) == []


def test_part_of_a_scorer_can_be_calibrated(write_suite, capsys):
    scorer = {"type": "all_of", "scorers": ["exact", {"type": "llm_judge", "instructions": "Be strict."}]}
    options = {"verdict": {"marks": MARKS}}
    path = write_suite(scorer=scorer, judge={"target": "mock:j:a", "options": options})
    assert _run(["calibrate", "--suite", str(path)]) == 0
    assert "mock:j:a: 8 of 8" in capsys.readouterr().out  # and no picture in place of `:a:`
    _run(["run", str(path)])
    assert "judge mock:j:a: rated excellent" in capsys.readouterr().err


MOCK_LAB = {"lab": {"base_url": "${LAB_URL}/v1", "api_key": "k"}}


async def test_a_judge_at_a_provider_of_the_suite(write_suite, model_server, monkeypatch, capsys):
    import asyncio

    state = await model_server(answer='{"reasoning": "ok", "score": 5}')
    monkeypatch.setenv("LAB_URL", state.address)
    path = str(write_suite(providers=MOCK_LAB, judge="lab:judge", scorer="llm_judge"))

    async def calibrate(*words):  # the command runs a loop of its own
        return await asyncio.to_thread(_run, ["calibrate", *words])

    assert await calibrate("lab:judge") == 1
    assert "add --suite FILE" in capsys.readouterr().err
    assert await calibrate("lab:judge", "--suite", path) == 0
    assert await calibrate("lab:another", "--suite", path) == 0
    assert {body["model"] for body in state.bodies} == {"judge", "another"}
    assert await calibrate("nolab:judge", "--suite", path) == 1


@pytest.mark.parametrize("attacked", [(), ("--injection",)])
def test_instructions_are_filled_in_with_the_variables_of_the_suite(write_suite, capsys, attacked):
    judge = {"target": "mock:j", "options": {"verdict": {"marks": MARKS}}, "instructions": "For a child of {{ age }}."}
    path = write_suite(scorer="llm_judge", judge=judge, vars={"age": 10})
    assert _run(["calibrate", "--suite", str(path), *attacked]) == 0
    assert ("0 of 8 attacks raised" if attacked else "8 of 8 within") in capsys.readouterr().out
    assert attacked or ft.calibrate(suite=path).rating == "excellent"


def test_a_judge_that_is_told_about_the_case_needs_values_for_samples(write_suite, capsys):
    judge = {
        "target": "mock:j",
        "options": {"verdict": {"marks": MARKS}},
        "instructions": "Know {{ topic }}. {{ input }}",
    }
    cases = [{"id": "a", "input": "Why?", "expected": "So.", "vars": {"topic": "tea"}}]
    path = str(write_suite(scorer="llm_judge", judge=judge, cases=cases))
    assert _run(["run", path]) == 0
    hint = f"give `topic` a value under `vars` in the suite, then `fairtrial calibrate --suite {path}` shows how"
    assert hint in capsys.readouterr().err
    assert _run(["calibrate", "--suite", path]) == 1
    assert "samples have no `topic`, which judge mock:j needs: give it a value under `vars`" in capsys.readouterr().err
    path = str(write_suite(scorer="llm_judge", judge=judge, cases=cases, vars={"topic": "anything"}))
    assert _run(["calibrate", "--suite", path]) == 0


def test_a_scorer_that_all_arms_share_is_one(write_suite, capsys):
    judge = {"target": "mock:j", "options": {"verdict": {"marks": MARKS}}}
    path = write_suite(scorer="llm_judge", judge=judge, targets=["mock:echo", {"id": "b", "target": "mock:echo"}])
    assert _run(["calibrate", "--suite", str(path)]) == 0
    assert "more" not in capsys.readouterr().err


def test_scorers_that_differ_in_what_they_read_of_an_answer_are_one_and_samples_are_read_whole(write_suite, capsys):
    judge = {"target": "mock:j", "options": {"verdict": {"marks": MARKS}}}
    targets = [{"target": "mock:a", "options": {"answer": "Answer: 4"}, "extract": {"after": "Answer:"}}]
    targets += [{"id": "b", "target": "mock:echo", "extract": "last_line"}, {"id": "c", "target": "mock:echo"}]
    path = str(write_suite(scorer="llm_judge", judge=judge, targets=targets))
    assert _run(["calibrate", "--suite", path, "--json"]) == 0
    said = capsys.readouterr()
    assert "more" not in said.err and json.loads(said.out)["summary"]["unscored"] == 0
    path = str(write_suite(scorer="llm_judge", judge=judge, targets=targets[:1]))  # none of the samples has `Answer:`
    assert _run(["calibrate", "--suite", path, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["summary"]["unscored"] == 0
    assert _run(["run", path, "--quiet"]) == 0
    assert "rated" in capsys.readouterr().err


def test_scorers_from_a_column_are_calibrated(write_suite, tmp_path, capsys):
    rows = [
        {"input": "a", "expected": "x", "scorer": "match"},
        {"input": "b", "expected": "x", "scorer": {"type": "golden_judge"}},
        {"input": "c", "expected": "x", "scorer": {"type": "llm_judge", "instructions": "Be kind."}},
    ]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    dataset = {"path": "d.jsonl", "input": "input", "scorer": "scorer"}
    judge = {"target": "mock:j", "options": {"verdict": {"mode": "judge"}}}
    path = str(write_suite(dataset=dataset, judge=judge))
    assert _run(["run", path, "--quiet"]) == 0
    hint = capsys.readouterr().err
    assert f"never calibrated; `fairtrial calibrate --suite {path}`" in hint
    assert _run(["calibrate", "--suite", path]) == 0
    assert (
        'calibrating with the scorer {"instructions":"Be kind.","type":"llm_judge"}; the suite has 1 more'
        in capsys.readouterr().err
    )
    assert _run(["run", path, "--quiet"]) == 0
    assert "rated" in capsys.readouterr().err
