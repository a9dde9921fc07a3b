"""`trigger`: did a skill fire where it should, and only there?"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar

from fairtrial.core.calls import read_calls
from fairtrial.core.events import LimitEvent
from fairtrial.core.experiment import Case
from fairtrial.core.score import Score, ScoreContext, Unscored
from fairtrial.core.scorer import Guide, Scorer
from fairtrial.core.skill_use import ANY, fired, wanted_of


class Trigger(Scorer, frozen=True, kw_only=True):
    """Scores 1 if the skills of an agent did what the case's `skill` says: it `fires`, or it stays `silent`; else 0.

    A skill fires if the agent calls it by its name, or reads its `SKILL.md`. An agent that reached a limit before is
    unscored: it may have fired later. So is one that does not tell which tools it called.
    """

    guide: ClassVar = Guide(
        scale="0 or 100",
        reproducibility="deterministic",
        best_for="skills: whether their descriptions are read as they are meant",
    )
    reads_text: ClassVar[bool] = False
    scores_refusals: ClassVar[bool] = True  # what it scores happened before

    def check(self, case: Case, folder: Path) -> Iterable[str]:
        if not wanted_of(case):
            yield "it is scored by `trigger`, but does not say `skill: fires` or `skill: silent`"

    async def score(self, context: ScoreContext) -> Score | Unscored:
        made = context.tool_calls
        if made is None:
            return Unscored(kind="trace", message="the target does not report which tools were used")
        used = fired(read_calls(made))
        cut = any(isinstance(event, LimitEvent) for event in context.events)
        reasons, unseen = [], []
        for name, wanted in wanted_of(context.case).items():
            did = bool(used) if name == ANY else name in used
            unseen += [name or "a skill"] if cut and not did else []
            if did != (wanted == "fires"):
                reasons.append(f"{name or 'a skill'} {'fired' if did else 'did not fire'}")
        if unseen:
            message = f"it reached a limit before {', '.join(unseen)} fired: it may have done so later"
            return Unscored(kind="limit", message=message)
        notes = "; ".join(reasons) or (f"fired: {', '.join(used)}" if used else "no skill fired")
        return Score(value=float(not reasons), raw=float(not reasons), confidence=1.0, notes=notes)
