"""`turns`: checks after single turns of a conversation, and the scorer of its last answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import msgspec

from fairtrial.core.accepted import case_problems, score_answer
from fairtrial.core.answer import limit_words
from fairtrial.core.composite import Composite, PartSpec, built_part, judgements_of
from fairtrial.core.expected import Expected, read_expected
from fairtrial.core.experiment import Case
from fairtrial.core.one_turn import case_of_turn, turn_of, turns_in
from fairtrial.core.options import scorer_problems
from fairtrial.core.score import Scale, Score, ScoreContext, Unscored
from fairtrial.core.scorer import Guide, Scorer
from fairtrial.text.printable import counted

_TOP = 100.0
_ANSWER = "answer"


class TurnCheck(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What must hold after one turn: one scorer or several, of which the lowest score counts.

    They see what happened in that turn and its answer; `expected` is what is right there. `weight` is its part of the
    score. After a check with `stop` that is not satisfied, nothing more is asked.
    """

    after: Annotated[int, msgspec.Meta(ge=1)]
    check: Annotated[list[str | dict[str, Any]], msgspec.Meta(min_length=1)]
    expected: Any = None
    weight: Annotated[float, msgspec.Meta(ge=0)] = 1.0
    stop: bool = False

    @property
    def accepted(self) -> Expected:
        """What is right after this turn."""
        return read_expected(self.expected)


class _Part(NamedTuple):
    """A check or the scorer of the last answer, and what came of it; None: its turn was not reached."""

    name: str
    shown: str
    weight: float
    result: Score | Unscored | None
    turn: int


class Turns(Composite, frozen=True, kw_only=True):
    """The weighted mean of checks after turns of a conversation, and of `answer`, the scorer of its last answer.

    With `combine: all` the lowest counts, with `last` the last answer alone; every check is a metric of its own anyway.
    Turns that were not reached, because a check with `stop` failed, earn nothing and have no metric. In a suite, checks
    are written with the turns of a case.
    """

    guide: ClassVar = Guide(
        scale="0–100, a weighted mean, or the lowest",
        reproducibility="as its parts",
        best_for="conversations in which more than the last answer matters",
    )
    checks: Annotated[list[TurnCheck], msgspec.Meta(min_length=1)]
    answer: str | dict[str, Any] | None = None
    combine: Literal["mean", "all", "last"] = "mean"

    def parts(self) -> Sequence[PartSpec]:
        own = [spec for check in self.checks for spec in check.check]
        return own if self.answer is None else [*own, self.answer]

    def scales(self) -> dict[str, Scale]:
        names = [f"turn {check.after}" for check in self.checks]
        return dict.fromkeys(names if self.answer is None else [*names, _ANSWER], (0.0, _TOP))

    def sees_refusals(self) -> bool:
        return True  # the answer that was refused is that of one turn

    async def stop(self, context: ScoreContext) -> Score | Unscored | None:
        turn = turns_in(context)
        check = next((check for check in self.checks if check.stop and check.after == turn), None)
        return None if check is None else await self._after_turn(check, context)

    # -- before the run --------------------------------------------------------------------------

    def check(self, case: Case, folder: Path) -> Iterable[str]:
        turns = [check.after for check in self.checks]
        if len(set(turns)) < len(turns):
            yield "a turn has one check: write several as a list"
        if case.turns and max(turns) > len(case.turns) + 1:
            yield f"there is a check after turn {max(turns)}, but the case has {counted(len(case.turns) + 1, 'turn')}"
        if self.combine == "mean" and self.answer is None and not any(check.weight for check in self.checks):
            yield "at least one check after a turn needs a weight above 0"
        for check in self.checks:
            own = case_of_turn(case, check.after, check.accepted)
            yield from (f"turn {check.after}: {problem}" for problem in self._problems(check, own, folder))
        if self.answer is not None:
            yield from _part_problems(self, self.answer, case, folder)

    def _problems(self, check: TurnCheck, case: Case, folder: Path) -> Iterator[str]:
        for spec in check.check:
            problems = list(_part_problems(self, spec, case, folder))
            yield from problems
            if check.stop and not problems and self._scorer(spec).needs_judge():
                yield "`stop` needs a check without a judge, which is asked only when the conversation is over"

    def _scorer(self, spec: PartSpec) -> Scorer:
        return built_part(self, spec)

    # -- scoring ---------------------------------------------------------------------------------

    async def score(self, context: ScoreContext) -> Score | Unscored:
        reached = turns_in(context)
        parts = [await self._checked(check, context, reached) for check in self.checks]
        failed = next((part for part, check in zip(parts, self.checks, strict=True) if _has_stopped(part, check)), None)
        expected = len(context.case.turns) + 1
        if self.answer is not None:
            result = await score_answer(self._scorer(self.answer), context) if reached >= expected else None
            parts.append(_Part(_ANSWER, _name(self.answer), 1.0, result, expected))
        limit = _limit(context)
        if reached < expected and failed is None and not limit:
            message = f"the conversation ended after turn {reached} of {expected}, for no reason that its checks know"
            return Unscored(kind="turns", message=message, judgements=_judgements(parts))
        return self._combined(parts, f"the check after {failed.name} failed" if failed else limit, reached)

    async def _checked(self, check: TurnCheck, context: ScoreContext, reached: int) -> _Part:
        shown = ", ".join(map(_name, check.check))
        result = await self._after_turn(check, context) if check.after <= reached else None
        return _Part(f"turn {check.after}", shown, check.weight, result, check.after)

    async def _after_turn(self, check: TurnCheck, context: ScoreContext) -> Score | Unscored:
        """Return the score of one turn: the lowest of its scorers."""
        own = turn_of(context, check.after, check.accepted)
        scores: list[tuple[str, Score]] = []
        for spec in check.check:
            scorer = self._scorer(spec)
            if scorer.needs_workspace() and own.workspace is None and context.workspace is not None:
                return Unscored(kind="workspace", message="the workspace as it was after this turn is not kept")
            result = await score_answer(scorer, own)
            if isinstance(result, Unscored):
                return msgspec.structs.replace(result, judgements=(*judgements_of(scores), *result.judgements))
            scores.append((_name(spec), result))
        lowest = min((score for _, score in scores), key=lambda score: score.value)
        files = tuple({file.name: file for _, score in scores for file in score.files}.values())
        return msgspec.structs.replace(lowest, judgements=judgements_of(scores), files=files)

    def _combined(self, parts: list[_Part], stopped: str, reached: int) -> Score | Unscored:
        """Return the score of all parts; `stopped` says why turns were not reached that should have been."""
        counted_parts = self._counted(parts)
        for part in counted_parts:
            if isinstance(part.result, Unscored):
                message = f"{part.name}: {part.result.message}"
                return msgspec.structs.replace(part.result, message=message, judgements=_judgements(parts))
        # Turns that a simulated user did not need are nobody's failure; after a failed check or a limit they earn
        # nothing.
        valued = [(part, _value(part)) for part in counted_parts if part.result is not None or stopped]
        if not valued:
            return Unscored(kind="turns", message=f"the conversation ended after turn {reached}, before any check")
        weights = [part.weight if self.combine == "mean" else 1.0 for part, _ in valued]
        mean = sum(w * value for w, (_, value) in zip(weights, valued, strict=True)) / sum(weights)
        value = mean if self.combine == "mean" else min(value for _, value in valued)
        scored = [(part.name, part.result) for part in parts if isinstance(part.result, Score)]
        why = stopped or "the conversation ended before"
        return Score(
            value=value,
            raw=value,
            notes="; ".join(_words(part, why) for part in parts),
            details={"turns": [_details(part, why) for part in parts]},
            metrics={name: _TOP * score.value for name, score in scored},
            judgements=_judgements(parts),
            files=tuple({file.name: file for _, score in scored for file in score.files}.values()),
        )

    def _counted(self, parts: list[_Part]) -> list[_Part]:
        """Return the parts that have a say in the score."""
        if self.combine == "last":
            return parts[-1:] if self.answer is not None else [max(parts, key=lambda part: part.turn)]
        return [part for part in parts if part.weight > 0] or parts


def _limit(context: ScoreContext) -> str:
    """Return at which limit the agent was stopped; empty if at none."""
    answer = context.answer
    if answer is None or answer.limit is None:
        return ""
    return f"the agent was {limit_words(answer.limit, answer.limit_value)}"


def _has_stopped(part: _Part, check: TurnCheck) -> bool:
    return check.stop and isinstance(part.result, Score) and part.result.value < 1


def _value(part: _Part) -> float:
    return part.result.value if isinstance(part.result, Score) else 0.0


def _judgements(parts: list[_Part]) -> tuple[Any, ...]:
    return tuple(judgement for part in parts if part.result is not None for judgement in part.result.judgements)


def _words(part: _Part, why: str) -> str:
    if part.result is None:
        return f"{part.name}: not reached, {why}"
    if isinstance(part.result, Unscored):
        return f"{part.name}: no score, {part.result.message}"
    notes = f" ({part.result.notes})" if part.result.notes else ""
    return f"{part.name}: {_TOP * part.result.value:.3g}{notes}"


def _details(part: _Part, why: str) -> dict[str, Any]:
    known: dict[str, Any] = {"name": part.name, "turn": part.turn, "scorer": part.shown, "weight": part.weight}
    if part.result is None:
        return {**known, "not_reached": why}
    if isinstance(part.result, Unscored):
        return {**known, "unscored": part.result.message}
    return {**known, "value": part.result.value, "notes": part.result.notes}


def _part_problems(scorer: Turns, spec: PartSpec, case: Case, folder: Path) -> Iterator[str]:
    problems = [message for _, message in scorer_problems(spec)]
    yield from problems
    if not problems:
        yield from case_problems(built_part(scorer, spec), case, folder)


def _name(spec: PartSpec) -> str:
    return spec if isinstance(spec, str) else str(spec["type"])
