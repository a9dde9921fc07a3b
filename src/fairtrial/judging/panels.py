"""Panels of several judges, or one judge asked several times: every verdict is kept, and all combine to one score."""

from __future__ import annotations

import asyncio
import statistics
from collections import Counter
from collections.abc import Callable, Sequence

import msgspec

from fairtrial.core.judge import Judge, Judgement, Panel
from fairtrial.core.score import Score, ScoreContext, Unscored
from fairtrial.core.settings import PanelSpec
from fairtrial.judging.asking import ask_judge
from fairtrial.judging.verdict import JudgePrompt, hash_prompt


class PanelResult(msgspec.Struct, frozen=True):
    """All judgements of a panel on one answer; `own` names the judges of the target's own model family."""

    judgements: tuple[Judgement, ...]
    how: PanelSpec
    own: list[str]


def with_judges(context: ScoreContext, names: Sequence[str]) -> ScoreContext:
    """Return the context with these judges of the panel alone; without names, or with a second judge, as it is."""
    if not names or context.panel is None or context.panel.second:
        return context
    chosen = tuple(judge for judge in context.panel.judges if judge.name in names)
    return msgspec.structs.replace(context, panel=msgspec.structs.replace(context.panel, judges=chosen))


async def judge_answer(
    context: ScoreContext, make: Callable[[Judge], JudgePrompt], *, raw_max: float
) -> Score | Unscored:
    """Return the panel's score of one answer."""
    result = await ask_panel(context, lambda judge, _: make(judge))
    if isinstance(result, Unscored):
        return result
    return combine_judgements(result.judgements, result.how, raw_max=raw_max, own=result.own)


async def ask_panel(
    context: ScoreContext, make: Callable[[Judge, int], JudgePrompt], *, turns: int = 1
) -> PanelResult | Unscored:
    """Ask every judge as often as the panel says, `turns` times each; one missing judgement means no score."""
    panel = context.panel
    if panel is None or not panel.judges:
        return Unscored(kind="judge", message="no judge is configured")
    judges, own = _select_judges(panel, context.family)

    async def judged(judge: Judge, number: int) -> Judgement:
        prompt = _of_part(_with_files(make(judge, number), judge, context), context)
        kept = context.kept.get((judge.key, prompt.hash, number))
        return kept or await ask_judge(judge, prompt, case_id=context.case.id, number=number)

    numbers = range(turns * panel.how.judgements)
    judgements = tuple(await asyncio.gather(*(judged(judge, number) for judge in judges for number in numbers)))
    for judgement in judgements:
        if judgement.failure_kind is not None:
            return Unscored(
                kind="budget" if judgement.failure_kind == "budget" else "judge",
                message=f"{judgement.judge}: {judgement.failure_message}",
                retryable=judgement.retryable,
                judgements=judgements,
            )
    return PanelResult(judgements, panel.how, own)


def _with_files(prompt: JudgePrompt, judge: Judge, context: ScoreContext) -> JudgePrompt:
    """Return a prompt with the files that were sent with the question, if this judge can see them."""
    if not judge.sees or not context.files:
        return prompt
    names = ", ".join(file.name for file in context.files)
    return msgspec.structs.replace(
        prompt,
        text=f"The question comes with files, which you are shown{' last' if prompt.images else ''}: {names}.\n\n"
        + prompt.text,
        images=(*prompt.images, *context.files),
        hash=hash_prompt(prompt.hash, "files of the case"),
    )


def _of_part(prompt: JudgePrompt, context: ScoreContext) -> JudgePrompt:
    """Return a prompt whose verdict is not taken for the same judge's verdict on another part of the trial."""
    return msgspec.structs.replace(prompt, hash=hash_prompt(prompt.hash, context.part)) if context.part else prompt


def _select_judges(panel: Panel, family: str) -> tuple[tuple[Judge, ...], list[str]]:
    """Return the judges to ask, and the names of those of the target's own model family."""
    own = [judge.name for judge in panel.judges if judge.family == family]
    others = tuple(judge for judge in panel.judges if judge.family != family)
    if panel.how.own_family == "leave_out" and others:
        return others, []
    return panel.judges, own


def combine_judgements(judgements: tuple[Judgement, ...], how: PanelSpec, *, raw_max: float, own: list[str]) -> Score:
    """Combine several judgements into one score."""
    value = _combine_values([j.value for j in judgements if j.value is not None], how.combine)
    names = judgements[0].metrics
    metrics = {name: _combine_values([j.metrics[name] for j in judgements], how.combine) for name in names}
    claims = list(dict.fromkeys(claim for j in judgements for claim in j.claims))
    details: dict[str, object] = {"reasoning": [{"judge": j.judge, **j.reasoning} for j in judgements]}
    if claims:
        details["unverified_claims"] = claims
    if own:
        details["own_family"] = own
    notes = " · ".join(" ".join(text.split()) for text in judgements[0].reasoning.values())
    if own:
        notes = f"judged by its own model family ({', '.join(own)}). {notes}"
    return Score(
        value=value,
        raw=value * raw_max,
        max=raw_max,
        notes=notes,
        details=details,
        metrics=metrics,
        judgements=judgements,
    )


def _combine_values(values: list[float], combine: str) -> float:
    if combine == "median":
        return statistics.median(values)
    if combine == "majority":
        counts = Counter(values)
        highest = max(counts.values())
        # Several values may be equally frequent; use their median.
        return statistics.median(value for value, count in counts.items() if count == highest)
    return statistics.fmean(values)
