"""From several verdicts to one score, and from marks to a rating."""

import pytest

from fairtrial.core.judge import Judgement
from fairtrial.core.score import Score
from fairtrial.core.settings import PanelSpec
from fairtrial.judging.calibration import CalibrationSample, sample_result
from fairtrial.judging.pairs import combine_orders
from fairtrial.judging.panels import combine_judgements


@pytest.mark.parametrize(("forward", "backward", "value"), [(1, 1, 1), (0, 0, 0), (1, 0, 0.5), (0.5, 1, 0.5)])
def test_orders_that_disagree_are_a_tie(forward, backward, value):
    assert combine_orders(forward, backward) == value


def test_the_notes_are_those_of_the_first_judge():
    verdicts = tuple(
        Judgement(judge=name, value=value, reasoning={"why": f"{name}  says"})
        for name, value in (("a", 1.0), ("b", 0.5))
    )
    found = combine_judgements(verdicts, PanelSpec(), raw_max=10, own=[])
    assert (found.value, found.raw, found.notes) == (0.75, 7.5, "a says")
    assert combine_judgements(verdicts, PanelSpec(), raw_max=10, own=["a"]).notes == (
        "judged by its own model family (a). a says"
    )


@pytest.mark.parametrize(("mark", "within"), [(0.8, True), (0.95, True), (0.96, False), (0.65, True), (0.6, False)])
def test_marks_within_the_tolerance(mark, within):
    sample = CalibrationSample(id="s", question="q", answer="a", score=80, tolerance=15)
    found = sample_result(sample, [Score(value=mark, notes="why")])
    assert found.within_tolerance is within and found.absolute_error == pytest.approx(abs(mark - 0.8))
    assert sample_result(sample, []).actual is None
