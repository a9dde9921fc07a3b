"""`check_scorer` finds what breaks the contract of a scorer."""

from __future__ import annotations

import itertools
from typing import Any, ClassVar

import pytest

from fairtrial.core.options import build_scorer
from fairtrial.plugins import Guide, Score, Scorer, Unscored, check_scorer

GUIDE = Guide(scale="0 or 100", reproducibility="deterministic", best_for="tests")
COUNT = itertools.count()


class Given(Scorer, frozen=True, kw_only=True):
    """Gives what the subclass says."""

    guide: ClassVar[Guide] = GUIDE
    result: ClassVar[Any] = Score(value=1.0)

    def scales(self):
        return {"speed": (10.0, 0.0), "free": (None, None)}

    async def score(self, context):
        return type(self).result


def made(name: str, **members: Any) -> Scorer:
    return type(name, (Given,), {"__doc__": "A scorer.", "__module__": __name__, **members}, frozen=True)()


async def another_every_time(self, context):
    return Score(value=1.0, notes=str(next(COUNT)))


BROKEN = {
    "has no docstring": {"__doc__": None},
    "has no `guide`": {"guide": "a text"},
    "which is not from 0 to 1": {"result": Score(value=50.0)},
    "no reason is given": {"result": Unscored(kind="x", message="")},
    "not a Score or Unscored": {"result": 1.0},
    "`depth` is not in `scales": {"result": Score(value=1.0, metrics={"depth": 1.0})},
    "`speed` is 11.0, outside of its scale 10.0 to 0.0": {"result": Score(value=1.0, metrics={"speed": 11.0})},
    "and then as": {"score": another_every_time},
}


@pytest.mark.parametrize("reason", BROKEN)
def test_what_breaks_the_contract_is_named(reason):
    with pytest.raises(AssertionError, match=reason.replace("(", r"\(")):
        check_scorer(made("Broken", **BROKEN[reason]))


@pytest.mark.parametrize(
    "result", [Score(value=0.5, metrics={"speed": 3.0, "free": 1e9}), Unscored(kind="x", message="y")]
)
def test_what_keeps_to_it_passes(result):
    check_scorer(made("Fine", result=result))


@pytest.mark.parametrize("name", ["length", "refusal", "levenshtein"])
def test_our_own_keep_to_it(name):
    from fairtrial.core.experiment import Case

    scorer = build_scorer({"type": name, **({"max": 10} if name == "length" else {})})
    check_scorer(scorer, Case(id="c", input="q", expected="Paris"))
