"""The contract of a scorer as a check that tests can make, of a plug-in's scorer too."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import msgspec

from fairtrial.core.answer import Answer
from fairtrial.core.experiment import Case
from fairtrial.core.score import Score, ScoreContext, Unscored
from fairtrial.core.scorer import Guide, Scorer

_ANSWERS = ("", "Paris", "It is Paris.", "42", '{"a": [1, null]}', "<b>\x1b[31mö</b>\x00", "\n \t", "word " * 5000)


def check_scorer(scorer: Scorer, case: Case | None = None, answers: Iterable[str] = ()) -> None:
    """Check that a scorer without a judge keeps to its contract; an AssertionError says where it does not.

    It is asked about `answers` and some awkward ones, from the empty text to a very long one.
    """
    cls = type(scorer)
    assert cls.__doc__, f"{cls.__name__} has no docstring, which is what lists say about it"
    assert isinstance(getattr(cls, "guide", None), Guide), f"{cls.__name__} has no `guide`"
    again = msgspec.json.decode(msgspec.json.encode(scorer), type=cls)
    assert again == scorer, f"{scorer} is {again} once it was stored: its fields must be its options"
    for text in (*answers, *_ANSWERS):
        answer = Answer(text=text, latency_ms=1.0)
        context = ScoreContext(response=text, case=case or Case(id="case", input="question"), answer=answer)
        first, second = (asyncio.run(scorer.score(context)) for _ in range(2))
        assert first == second, f"the answer {text[:40]!r} was scored as {first}, and then as {second}"
        _check_result(scorer, text[:40], first)


def _check_result(scorer: Scorer, text: str, result: Score | Unscored) -> None:
    if isinstance(result, Unscored):
        assert result.message, f"the answer {text!r} is unscored, and no reason is given"
        return
    assert isinstance(result, Score), f"the answer {text!r} got {result!r}, not a Score or Unscored"
    assert 0 <= result.value <= 1, f"the answer {text!r} has the score {result.value}, which is not from 0 to 1"
    scales = scorer.scales()
    for metric, value in result.metrics.items():
        assert metric in scales, f"the metric `{metric}` is not in `scales()`"
        worst, best = scales[metric]
        if worst is not None and best is not None:
            inside = min(worst, best) <= value <= max(worst, best)
            assert inside, f"the metric `{metric}` is {value}, outside of its scale {worst} to {best}"
