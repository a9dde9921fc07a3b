"""A second judge, as a rule a dear one: it judges a random part of what the others judge, and corrects them by that.

Which cases it judges depends on their ids alone. So it judges the same cases in every run and for every arm, whoever
does the work and in whatever order; and nothing about a case but its name can decide whether it is among them.
"""

from __future__ import annotations

from hashlib import sha256

import msgspec

from fairtrial.core.judge import SECOND_JUDGE, SECOND_JUDGE_TOP, Panel
from fairtrial.core.score import Scale, Score, Unscored
from fairtrial.core.settings import PanelSpec

SCALE: Scale = (0.0, SECOND_JUDGE_TOP)


def is_drawn(case_id: str, share: float) -> bool:
    """Return whether a case is in the part that the second judge judges."""
    number = int.from_bytes(sha256(f"second judge/{case_id}".encode()).digest()[:8], "big")
    return number < share * 2**64


def first_and_second(panel: Panel | None, case_id: str) -> tuple[Panel | None, Panel | None]:
    """Return the panel that scores a case, and the one that scores it again; the second is None where there is none."""
    if panel is None:
        return None, None
    first = tuple(judge for judge in panel.judges if judge.share is None)
    second = tuple(judge for judge in panel.judges if judge.share is not None and is_drawn(case_id, judge.share))
    again = Panel(judges=second, how=PanelSpec(judgements=panel.how.judgements), second=True) if second else None
    return (panel if len(first) == len(panel.judges) else msgspec.structs.replace(panel, judges=first)), again


def scored_twice(score: Score, other: Score | Unscored) -> Score | Unscored:
    """Return a score with that of the second judge as one of its metrics, and the verdicts behind both."""
    judgements = score.judgements + tuple(one for one in other.judgements if one not in score.judgements)
    if isinstance(other, Unscored):
        message = f"the second judge gave no score: {other.message}"
        return msgspec.structs.replace(other, message=message, judgements=judgements)
    metrics = {**score.metrics, SECOND_JUDGE: SECOND_JUDGE_TOP * other.value}
    return msgspec.structs.replace(score, metrics=metrics, judgements=judgements)
