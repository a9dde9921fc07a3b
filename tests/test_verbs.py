"""Every verb from Python: in scripts, in notebooks and inside a running loop."""

import asyncio
import contextlib
import tomllib
from importlib import resources
from pathlib import Path

import pytest

import fairtrial as ft
from fairtrial.engine.progress import Progress
from fairtrial.workflows.following import follower, progress_text
from tests.data import every_verb

SCRIPT = Path(every_verb.__file__)
NASTY = "<script>alert(1)</script>"


@pytest.mark.slow
def test_a_script_that_uses_every_verb(tmp_path):
    every_verb.main(tmp_path)
    text = SCRIPT.read_text()
    verbs = {name for name in ft.__all__ if name[0].islower()} - {"errors", "plugins", "load_suite"}
    assert {verb for verb in verbs if f"ft.{verb}(" not in text} == set()


def test_its_types_are_checked_with_ours_and_are_there_for_users():
    settings = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["tool"]["mypy"]
    assert settings["strict"] and every_verb.__name__ in settings["modules"]
    assert "# type: ignore" not in SCRIPT.read_text()
    assert resources.files("fairtrial").joinpath("py.typed").is_file()


def echo(input):
    return input


def small(**keys):
    cases = [ft.Case(f"{word} {n}", expected=f"{word} 1", category=word) for word in (NASTY, "b") for n in (1, 2, 3)]
    return ft.Suite(
        **{"name": NASTY, "targets": [echo, {"target": lambda q: NASTY, "id": "x"}], "cases": cases, **keys}
    )


async def test_sync_verbs_inside_a_running_loop():
    run = ft.run(small())
    assert run.status == "completed" and ft.rank(run).places
    with pytest.raises(ft.FairtrialError, match="no file"):
        ft.run("nothing.yaml")


@pytest.mark.slow
def test_results_in_a_notebook_are_escaped():
    run = ft.run(small())
    series = ft.run(small(), runs=2)
    results = [
        run,
        series,
        run.by("category"),
        ft.rank(run),
        ft.power(run),
        ft.variance(run),
        ft.gate(run, min_score=2),
    ]
    results += [ft.compare(run), ft.compare(run, "echo", "x"), ft.cases(run), ft.calibrate("mock:echo")]
    for result in results:
        html = result._repr_html_()
        assert html.startswith(("<div", "<style")) and "<script" not in html and "color:#" not in html
        assert len(repr(result)) < 600 and repr(result).startswith("<")
    assert "<svg" in run._repr_html_() and "&lt;script&gt;" in run.by("category")._repr_html_()


def test_points_that_look_like_shares_are_refused():
    run = ft.run(small())
    with pytest.raises(ft.FairtrialError, match=r"`min_score` is in points from 0 to 100.* did you mean 80"):
        ft.gate(run, min_score=0.8)
    with pytest.raises(ft.FairtrialError, match=r"`delta` is in points .* did you mean 3"):
        ft.power(run, delta=0.03)
    assert not ft.gate(run, min_score=99)


def test_a_polars_frame():
    polars = pytest.importorskip("polars")
    run = ft.run(small())
    frame = run.frame("polars")
    assert isinstance(frame, polars.DataFrame) and frame.height == 12 and frame["started_at"].dtype.time_zone == "UTC"
    assert set(frame.columns) == set(run.frame().columns)


def test_kinds_of_cases():
    means = ft.run(small()).by("category").means["category"]
    assert means["b"]["echo"].mean == pytest.approx(1 / 3)
    with pytest.raises(ft.FairtrialError, match="did you mean `category`"):
        ft.run(small()).by("categori")


def test_a_series_must_be_independent():
    with pytest.raises(ft.FairtrialError, match="turn `cache` off"):
        ft.run(small(cache=True), runs=2)
    with pytest.raises(ft.FairtrialError, match="`runs` must be from 1 to 10,000, not 0"):
        ft.run(small(), runs=0)


def test_a_run_knows_its_functions_in_its_own_session():
    state = [True]

    def flaky(input):
        if state[0]:
            raise RuntimeError("down")
        return input

    run = ft.run(small(targets=[flaky]))
    state[0] = False
    assert ft.retry(run).status == "completed"  # no suite needed: the run still knows it


def test_progress_is_one_line_and_only_where_somebody_sees_it(capsys):
    assert follower() is None and follower(show=False) is None
    progress = Progress(["a"], [10])
    progress.arms[0].scored, progress.arms[0].failed = 3, 1
    assert progress_text(progress, (1, 5)).startswith("run 1 of 5: 4 of 10 trials, 1 failed")
    ft.run(small(), progress=True)
    shown = capsys.readouterr().err
    assert "of 12 trials" in shown and "\n" not in shown and shown.endswith("\x1b[2K")


def test_a_function_can_judge():
    asked = []

    def judge(messages):
        asked.append(messages)
        return "I would rather not say."

    run = ft.run(small(judge=judge, scorer="llm_judge", retry={"attempts": 1}))
    assert asked and all(trial.score is None and trial.unscored_message for trial in run.trials())
    before = len(asked)
    assert ft.pairwise(run).failures and len(asked) > before


def test_a_function_can_judge_where_a_judge_is_chosen():
    asked = []

    def strict(messages):
        asked.append(messages)
        return '{"score": 3, "reasoning": "so-so"}'

    def fair(messages):
        return '{"reasoning": "the first", "better": "first"}'

    run = ft.run(small())
    again = ft.rescore(run, "llm_judge", judge=strict)
    assert len(asked) == 12 and {trial.score for trial in again.trials()} == {0.3}
    assert ft.retry(again).status == "completed"  # it still knows its judge
    calibration = ft.calibrate(strict)
    assert {sample.actual for sample in calibration.samples} == {0.3} and calibration.summary.judge == "strict"
    pairs = ft.pairwise(run, judge=fair)
    assert pairs.run_id == run.id and not pairs.failures
    with pytest.raises(ft.FairtrialError, match="a judge is a model's name or a function, not int"):
        ft.pairwise(run, judge=3)
    with pytest.raises(ft.FairtrialError, match=r"cannot be judged: `strict` was given in Python"):
        ft.resume(_killed_while_scoring(again.id))


def _killed_while_scoring(name):
    """Return a run as a new process would open it that was killed while it was scored."""
    run = ft.open_run(name)
    run.store.set_run(name, status="running")
    return ft.open_run(name)


def test_the_judge_of_a_suite_is_calibrated_with_its_scorer():
    seen = []

    def judge(messages):
        seen.append(str(messages))
        return '{"score": 4, "reasoning": "fine"}'

    suite = small(judge={"target": judge, "instructions": "Prefer short answers."}, scorer="llm_judge")
    result = ft.calibrate(suite=suite)
    assert result.summary.judge == "judge" and "Prefer short answers." in seen[0]
    two = small(judges=[judge, "mock:echo"], scorer="llm_judge")
    with pytest.raises(ft.FairtrialError, match=r"several judges \(`judge`, `mock:echo`\): name the one"):
        ft.calibrate(suite=two)
    assert ft.calibrate("mock:echo", suite=two).summary.judge == "mock:echo"
    with pytest.raises(ft.FairtrialError, match="give a judge, or a suite that has one"):
        ft.calibrate()
    with pytest.raises(ft.FairtrialError, match="has no judge"):
        ft.calibrate(suite=small())


def test_judges_without_source_score_and_compare_and_are_told_apart():
    def typed(reply):
        return eval(f"lambda messages: asked.append({reply!r}) or {reply!r}", {"asked": asked})

    asked = []
    run = ft.run(small())
    scored = ft.rescore(run, "llm_judge", judge=typed('{"score": 3, "reasoning": "so-so"}'))
    assert {trial.score for trial in scored.trials()} == {0.3}
    first, second = (f'{{"reasoning": "it", "better": "{better}"}}' for better in ("first", "second"))
    for reply in (first, second, first):
        assert not ft.pairwise(run, judge=typed(reply)).failures
    assert (
        asked.count(first) == asked.count(second) > 0
    )  # what one has said is not said by the other, and not asked again


async def test_a_stopped_series_goes_on():
    calls, working = [], []

    async def slow_down(input):
        calls.append(input)
        if len(calls) == 9:  # in the second run
            working[0].cancel()
        return input

    suite = small(targets=[slow_down], concurrency=1)
    working.append(asyncio.create_task(ft.arun(suite, runs=3)))
    with contextlib.suppress(asyncio.CancelledError):
        await working[0]
    stopped = ft.open_run()
    assert stopped.status != "completed" and len(calls) < 18
    alone = await ft.aresume(stopped, suite=suite)
    assert isinstance(alone, ft.Run) and alone.status == "completed"
    series = await ft.aresume("latest", suite=suite)
    assert isinstance(series, ft.RunSeries) and [run.status for run in series] == ["completed"] * 3
    assert len({run.id for run in series}) == 3 and len(calls) in (18, 19)  # the call under way may be made again
    before = len(calls)
    for finished in (await ft.aresume(series), await ft.aresume(series.id)):
        assert [run.id for run in finished] == [run.id for run in series] and len(calls) == before


def test_help_is_enough():
    for name in ft.__all__:
        assert getattr(ft, name).__doc__, name
    assert "runs: Run it this many times" in ft.run.__doc__ and "sqlite:///" in ft.run.__doc__
