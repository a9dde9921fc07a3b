"""`trigger`: skills that fire where they should, and only there."""

import pytest

from fairtrial.core.answer import Answer
from fairtrial.core.experiment import Case
from fairtrial.core.score import Score, ScoreContext, Unscored
from fairtrial.scorers.trigger import Trigger

FIRED = {"tool": "Skill", "arguments": {"skill": "codes"}}
LIMIT = {"type": "limit", "kind": "turns"}


def context(skill, trace):
    case = Case(id="c", input="?", metadata={"skill": skill})
    return ScoreContext(case=case, response="", answer=Answer(text="", trace=trace))


@pytest.mark.parametrize(
    ("skill", "calls", "score", "notes"),
    [
        ("fires", [FIRED], 1.0, "fired: codes"),
        ("fires", [], 0.0, "a skill did not fire"),
        ("silent", [FIRED], 0.0, "a skill fired"),
        ("silent", [], 1.0, "no skill fired"),
        ({"codes": "fires", "words": "silent"}, [FIRED], 1.0, "fired: codes"),
        ({"words": "fires"}, [FIRED], 0.0, "words did not fire"),
        ({"words": "fires", "codes": "silent"}, [FIRED], 0.0, "words did not fire; codes fired"),
    ],
)
async def test_scores(skill, calls, score, notes):
    found = await Trigger().score(context(skill, {"tool_calls": calls}))
    assert isinstance(found, Score) and (found.value, found.notes) == (score, notes)


async def test_what_was_not_seen_is_not_scored():
    assert isinstance(await Trigger().score(context("silent", None)), Unscored)
    cut = {"events": [LIMIT], "tool_calls": []}
    found = await Trigger().score(context("silent", cut))
    assert isinstance(found, Unscored) and "it may have done so later" in found.message
    call = {"type": "call", "id": "1", "tool": "Skill", "arguments": {"skill": "codes"}}
    fired = {"events": [call, LIMIT], "tool_calls": [FIRED]}
    assert (await Trigger().score(context("fires", fired))).value == 1.0
