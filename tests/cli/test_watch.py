"""What is shown while a run goes on, in a terminal and in a log."""

import pytest

from fairtrial.cli.watch import ProgressLog, live_lines, progress_line
from fairtrial.core.money import Cost
from fairtrial.engine.progress import ArmProgress, Progress


def progressed(*scored, total=200, names=None):
    """A run whose arms have so many answers, each half right."""
    progress = Progress(names or [f"arm-{n}" for n in range(len(scored))], [total] * len(scored))
    for arm, count in zip(progress.arms, scored, strict=True):
        arm.scored, arm.sum, arm.squares = count, count / 2, count / 2
    progress.title = "suite, run 3"
    return progress


def shown(progress, width=80, **more):
    return [line.plain for line in live_lines(progress, width, **more)]


def test_a_score_needs_ten_answers_and_twenty_to_be_sure():
    lines = live_lines(progressed(9, 10, 20), 80)
    few, some, enough = (line for line in lines if line.plain.startswith(" arm-"))
    assert " to " not in few.plain and " 50   24 to 76" in some.plain and " to " in enough.plain
    dim = [
        {span.style for span in line.spans if line.plain[span.start : span.end].strip("░ ")} for line in (some, enough)
    ]
    assert "dim" in dim[0] and "dim" not in dim[1]


def test_everything_about_the_run_is_said():
    progress = progressed(66, 54)
    progress.failures, progress.arms[1].failed = {"timeout": 2}, 2
    progress.arms[0].cost = Cost(known=0.71, charged=0.8, unknown=1)
    progress.held = lambda: ["openai waits 8 s: rate limit, 12 queued"]
    progress.latest -= 40
    text = "\n".join(shown(progress, budget=5.0))
    for words in (
        "suite, run 3 · 200 cases × 2 arms", "66 of 200", "122 of 400", "≥ $0.71 of $5", "a second", "left", "2 timed out",
        "openai waits 8 s: rate limit, 12 queued", "no answer for 40 s", "Ctrl-C stops and keeps everything",
    ):  # fmt: skip
        assert words in text, words


def test_reasons_of_earlier_sessions_count_unless_they_are_retried():
    progress = progressed(5)
    progress.restore({}, "resume", [("timeout", "no answer in 60 s", 2), ("timeout", "no answer in 9 s", 1)])
    assert progress.reasons() == ["3 timed out"] and not ProgressLog(progress).lines(progress.started + 3)
    progress = progressed(5)
    progress.restore({}, "retry", [("timeout", "no answer in 60 s", 2)])
    assert progress.reasons() == []


@pytest.mark.parametrize("width", [40, 60, 80, 120, 140])
def test_it_fits_with_long_and_wide_names(width):
    names = ["模型" * 30, "a-long-name-of-a-model/with-a-condition", "b"]
    lines = live_lines(progressed(60, 60, 0, names=names), width)
    assert max(line.cell_len for line in lines) <= width - 3


def test_of_many_arms_only_those_are_shown_that_fit():
    lines = shown(progressed(*[20] * 50), height=24)
    assert len(lines) < 24 and " and 35 more arms" in lines


def test_an_interval_holds_for_marks_and_for_right_or_wrong():
    arm = ArmProgress("a", 100)
    assert arm.interval() is None
    arm.scored, arm.sum, arm.squares = 40, 40.0, 40.0
    low, high = arm.interval()
    assert 0.9 < low < 0.92 and high == 1  # all right so far: that is no certainty
    arm.sum, arm.squares = 32.0, 32.0
    wrong = arm.interval()
    arm.squares = 26.0  # marks around 80: they vary less than right and wrong do
    marks = arm.interval()
    assert wrong[0] < marks[0] < 0.8 < marks[1] < wrong[1]
    assert arm.interval(repeats=4)[0] < marks[0]  # answers to the same case are not independent
    arm.squares = None  # of a resumed run: nothing is known of the variance
    assert arm.interval() == pytest.approx(wrong)


def test_a_log_has_a_line_for_every_tenth_and_every_new_kind_of_failure():
    progress = progressed(0, total=100)
    log, start = ProgressLog(progress), progress.started
    progress.arms[0].scored = 35
    assert log.lines(start + 1) == []  # a short run needs no lines
    (line,) = log.lines(start + 3)
    assert line.startswith("35 of 100")
    progress.arms[0].scored, progress.failures = 39, {"timeout": 1}
    assert log.lines(start + 4) == ["1 timed out"] and log.lines(start + 5) == []
    progress.failures["timeout"] = 2
    progress.arms[0].scored = 40
    assert len(log.lines(start + 6)) == 1
    assert len(log.lines(start + 70)) == 1  # a sign of life


def test_an_unknown_cost_is_not_nothing():
    progress = progressed(10)
    progress.arms[0].cost = Cost(known=0.0, charged=0.0, unknown=3)
    assert "cost unknown" in progress_line(progress, budget=5.0) and "$0" not in progress_line(progress)
