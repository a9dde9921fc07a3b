"""Score one answer with the right scorer; return a reason instead of raising an exception."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from fairtrial.agents.workspace.making import WorkspaceError
from fairtrial.core.accepted import score_answer
from fairtrial.core.answer import Answer, EarlierTurn, Failure, limit_words
from fairtrial.core.experiment import Resources, ScorerSpec
from fairtrial.core.file import File
from fairtrial.core.functions import Functions
from fairtrial.core.ids import canonical_json
from fairtrial.core.judge import SECOND_JUDGE, Judgement, Panel
from fairtrial.core.options import build_scorer
from fairtrial.core.score import Earlier, MakeWorkspace, Scale, Score, ScoreContext, Unscored
from fairtrial.core.scorer import Scorer
from fairtrial.core.trace import whole_trace
from fairtrial.core.trajectory import Exchanged
from fairtrial.core.trial import Trial
from fairtrial.core.workshop import Workshop
from fairtrial.judging.second import SCALE, first_and_second, scored_twice
from fairtrial.providers.judge_models import family_of

Embed = Callable[[str, str], Awaitable[Sequence[float] | Failure]]  # by an embedder's name, and a text


class Tools(NamedTuple):
    """What checks need that are made while a conversation goes on."""

    workshop: Workshop
    embed: Embed
    workspace: MakeWorkspace | None


class Scoring:
    """One way to score a run: as the suite says, or with one scorer for everything."""

    def __init__(
        self,
        folder: Path,
        override: ScorerSpec | None = None,
        number: int = 0,
        *,
        on_refusal: Literal["wrong", "unscored", "right"] = "wrong",
        functions: Functions | None = None,
    ) -> None:
        self._functions = functions or {}
        self.number = number
        self._on_refusal = on_refusal
        self._folder, self.override = folder, override
        self._scorers: dict[bytes, Scorer] = {}
        self._last: tuple[ScorerSpec, Scorer] | None = None

    def spec_of(self, trial: Trial) -> ScorerSpec:
        """Return the scorer for this trial."""
        return trial.arm.scorer_of(trial.case, self.override)

    def resources_of(self, trial: Trial) -> Resources:
        """Return what scoring this trial takes of a machine."""
        return self.resources_in(self.spec_of(trial))

    def resources_in(self, spec: ScorerSpec) -> Resources:
        """Return what a scorer takes of a machine."""
        return self._scorer(spec).resources or {}

    def scales_of(self, trial: Trial) -> dict[str, Scale]:
        """Return the scales of this trial's extra metrics."""
        return {**self._scorer(self.spec_of(trial)).scales(), SECOND_JUDGE: SCALE}

    async def score(
        self,
        trial: Trial,
        answer: Answer,
        panel: Panel | None = None,
        kept: Sequence[Judgement] = (),
        workshop: Workshop | None = None,
        embed: Embed | None = None,
        files: Sequence[File] = (),
        workspace: MakeWorkspace | None = None,
        earlier: Sequence[MakeWorkspace | None] = (),
    ) -> Score | Unscored:
        """Return the answer's score. Any error becomes a reason for no score, never a 0.

        `earlier` has the workspaces after the turns before the last one.
        """
        if answer.limit is not None and trial.on_limit != "check":
            return self._unjudged(trial, limit_words(answer.limit, answer.limit_value))
        first, second = first_and_second(panel, trial.case.id)
        context = self._context(trial, answer, workspace, earlier)
        context = msgspec.structs.replace(
            context,
            files=tuple(files),
            panel=first,
            family=family_of(trial.arm.target) if panel and panel.judges else "",
            workshop=workshop,
            embed=embed,
            kept={judgement.place: judgement for judgement in kept},
        )
        return await _attempted(self._scored(trial, context, second))

    async def _scored(self, trial: Trial, context: ScoreContext, second: Panel | None) -> Score | Unscored:
        scorer = self._scorer(self.spec_of(trial))
        scored = _validated(await score_answer(scorer, context))
        if second is None or isinstance(scored, Unscored):
            return scored
        if not scorer.needs_judge():  # what no judge scores has one score
            return scored_twice(scored, scored)
        again = await score_answer(scorer, msgspec.structs.replace(context, panel=second))
        return scored_twice(scored, _validated(again))

    async def stops(self, trial: Trial, answer: Answer, tools: Tools) -> Score | Unscored | None:
        """Return what the check says that decides whether a conversation goes on; None if there is none.

        `answer` is that of the conversation so far, and `trial` has the turns before it.
        """
        if type(self._scorer(self.spec_of(trial))).stop is Scorer.stop:
            return None
        return await _attempted(self._scorer(self.spec_of(trial)).stop(self._so_far(trial, answer, tools)))

    async def reached(
        self, trial: Trial, answer: Answer, end: Sequence[ScorerSpec], tools: Tools
    ) -> list[Score | Unscored]:
        """Return what the checks say that end the conversation with a simulated user."""
        context = self._so_far(trial, answer, tools)
        return [await _attempted(score_answer(self._scorer(spec), context)) for spec in end]

    def _so_far(self, trial: Trial, answer: Answer, tools: Tools) -> ScoreContext:
        context = self._context(trial, answer, tools.workspace)
        return msgspec.structs.replace(context, workshop=tools.workshop, embed=tools.embed)

    def _context(
        self,
        trial: Trial,
        answer: Answer,
        workspace: MakeWorkspace | None,
        earlier: Sequence[MakeWorkspace | None] = (),
    ) -> ScoreContext:
        """Return what every scorer sees of a trial."""
        before = _before(trial)
        answer = msgspec.structs.replace(
            answer, trace=whole_trace(answer.trace, [turn.answer.trace for turn in before])
        )
        chat = trial.chat(trial.turns)
        made = [*earlier, *(None for _ in before)]
        return ScoreContext(
            response=answer.text,
            case=trial.case,
            answer=answer,
            vars=trial.arm.condition.variables(trial.case),
            messages=tuple(chat.as_dicts()),
            conversation=bool(trial.turns),
            turns=_exchanged(trial, answer, chat.question),
            earlier=tuple(Earlier(turn.answer, made[number]) for number, turn in enumerate(before)),
            on_refusal=self._on_refusal,
            finish_reason=answer.finish_reason,
            folder=self._folder,
            functions=self._functions,
            workspace=workspace,
        )

    def _unjudged(self, trial: Trial, limit: str) -> Score | Unscored:
        """Return what an answer is worth that ended at a limit, where the suite does not want it looked at."""
        if trial.on_limit == "fail":
            return Unscored(kind="limit", message=f"{limit}, which is a failure by `on_limit`")
        scales = self._scorer(self.spec_of(trial)).scales()
        worst = {name: low for name, (low, _) in scales.items() if low is not None}
        return Score(value=0.0, notes=f"{limit}: wrong by `on_limit`", metrics=worst)

    def _scorer(self, spec: ScorerSpec) -> Scorer:
        if self._last is not None and self._last[0] is spec:  # mostly it is that of the last trial
            return self._last[1]
        self._last = spec, self._built(spec)
        return self._last[1]

    def _built(self, spec: ScorerSpec) -> Scorer:
        key = canonical_json(spec)
        if key not in self._scorers:
            self._scorers[key] = build_scorer(spec)
        return self._scorers[key]


async def _attempted(scoring: Awaitable[Score | Unscored | None]) -> Score | Unscored:
    """Return what comes of scoring; any error becomes a reason for no score."""
    try:
        return _validated(await scoring)
    except WorkspaceError as error:
        return Unscored(kind="workspace", message=str(error), retryable=True)
    except (Exception, SystemExit) as error:  # a plug-in may do anything
        return Unscored(kind="crashed", message=f"the scorer raised {type(error).__name__}: {error}")


def _before(trial: Trial) -> list[EarlierTurn]:
    """Return the turns before the answer that is scored, which is that of the last turn if its user was satisfied."""
    return [turn for turn in trial.turns if turn.reply != ""]


def _exchanged(trial: Trial, answer: Answer, question: str) -> tuple[Exchanged, ...]:
    """Return what was asked and answered, turn by turn."""
    before = _before(trial)
    earlier = [Exchanged(turn.question, turn.answer.text, turn.answer.reasoning) for turn in before]
    return (*earlier, Exchanged(question, answer.text, answer.reasoning))


def _validated(result: object) -> Score | Unscored:
    """Accept only a score from 0 to 1, whatever else a scorer returns."""
    if isinstance(result, Unscored):
        return result
    if not isinstance(result, Score):
        return Unscored(kind="range", message=f"the scorer returned {type(result).__name__} instead of a score")
    value = result.value
    if type(value) is float and 0 <= value <= 1 and not result.metrics:
        return result
    if isinstance(value, bool | int | float) and math.isfinite(value) and 0 <= value <= 1:
        metrics = {name: float(metric) for name, metric in result.metrics.items() if _is_number(metric)}
        return msgspec.structs.replace(result, value=float(value), metrics=metrics)
    return Unscored(kind="range", message=f"the scorer returned {value!r}, which is not a number from 0 to 1")


def _is_number(value: object) -> bool:
    """Return whether a metric is a finite number; anything else would make a run unreadable."""
    return isinstance(value, bool | int | float) and math.isfinite(value)
