"""`llm_judge`: a judge marks the answer from 0 to 10 (or 100), following your instructions."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from fairtrial.core.experiment import Case
from fairtrial.core.judge import Judge
from fairtrial.core.score import Scale, Score, ScoreContext, Unscored
from fairtrial.core.scorer import Guide, Scorer
from fairtrial.judging.fence import Fence
from fairtrial.judging.panels import judge_answer, with_judges
from fairtrial.judging.verdict import JudgePrompt, Verdict, extraction_key, hash_prompt
from fairtrial.judging.whole_way import DEFAULT_TOKENS, Sees, TrajectoryTokens, sight, sight_key, sight_rule

_BANDS = """\
{ten}: perfect, nothing to improve
{eight} to {nine}: excellent, with minor issues
{six} to {seven}: good, but something is missing
{four} to {five}: partly right
{two} to {three}: mostly wrong
0 to {one}: wrong, irrelevant or empty"""


class Criterion(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A criterion that is marked separately, and its weight in the score."""

    name: str
    description: str = ""
    weight: Annotated[float, msgspec.Meta(gt=0)] = 1.0


class LlmJudge(Scorer, frozen=True, kw_only=True):
    """A mark from 0 to `scale` by the suite's judge; `criteria` are marked separately and combined by weight.

    The expected text, if any, is shown to the judge as a reference unless `reference` is false. Of several `judges`,
    `by` names those that mark; default: all. With `sees: trajectory`, a judge is shown everything that happened, too.
    """

    guide: ClassVar = Guide(
        scale="0–100, graded",
        reproducibility="varies by about 5–10 points between runs",
        best_for="open answers: explanations, style, usefulness",
        runs="3–5",
    )
    judged: ClassVar[bool] = True
    sees_all: ClassVar[bool] = True
    scale: Literal[10, 100] = 10
    reference: bool = True
    instructions: str = ""
    criteria: list[Criterion] = []
    by: list[str] = []
    sees: Sees = "answer"
    trajectory_tokens: TrajectoryTokens = DEFAULT_TOKENS

    def check(self, case: Case, folder: Path) -> Iterable[str]:
        names = [criterion.name for criterion in self.criteria]
        if len(set(names)) < len(names):
            yield "the criteria of an llm_judge need different names"

    def judges(self) -> frozenset[str]:
        return frozenset(self.by)

    def scales(self) -> dict[str, Scale]:
        return {criterion.name: (0.0, float(self.scale)) for criterion in self.criteria}

    def top_mark(self) -> float:
        return float(self.scale)

    def prompt_hash(self, instructions: str) -> str | None:
        options: dict[str, Any] = {"scale": self.scale, "reference": self.reference}
        options |= {"instructions": self.instructions, "criteria": self.criteria}
        # In this order, as it was hashed from the start: a verdict is kept as long as nothing that is asked changes.
        return hash_prompt(
            "llm_judge 1",
            msgspec.Raw(msgspec.json.encode(options)),
            instructions,
            *extraction_key(self),
            *sight_key(self.sees, self.trajectory_tokens),
        )

    async def score(self, context: ScoreContext) -> Score | Unscored:
        asked = with_judges(context, self.by)
        return await judge_answer(asked, lambda judge: self._prompt(asked, judge), raw_max=float(self.scale))

    def _prompt(self, context: ScoreContext, judge: Judge) -> JudgePrompt:
        fence = Fence()
        instructions = map(context.fill, (judge.instructions, self.instructions))
        parts = [fence.around("QUESTION", context.question)]
        if self.reference and context.accepted:
            parts.append(fence.around_each("REFERENCE ANSWER", context.accepted))
        parts += sight(self.sees, self.trajectory_tokens, context, fence)
        parts.append(fence.around("ANSWER TO JUDGE", context.response))
        parts.append(f"Reply with JSON of this form and nothing else:\n{msgspec.json.encode(self._example()).decode()}")
        return JudgePrompt(
            system="\n\n".join(filter(None, (self._task(), *instructions, sight_rule(self.sees), fence.rule()))),
            text="\n\n".join(parts),
            schema=self._schema(),
            read=self._read,
            hash=self.prompt_hash(judge.instructions) or "",
            params={"temperature": 0.1},
        )

    def _task(self) -> str:
        step = self.scale // 10
        names = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
        bands = _BANDS.format(**{name: number * step for number, name in enumerate(names, 1)})
        what = "the answer"
        if self.criteria:
            listed = "\n".join(f"- {c.name}: {c.description}".rstrip(": ") for c in self.criteria)
            what = f"the answer on each of these criteria, one by one:\n{listed}\n"
        return (
            f"You are a strict and fair examiner. Mark {what} from 0 to {self.scale}, thinking before you mark. "
            f"Length earns nothing; only what is right and asked for does.\n{bands}"
        )

    def _example(self) -> dict[str, Any]:
        if self.criteria:
            return {"reasoning": "…", "scores": {c.name: f"0 to {self.scale}" for c in self.criteria}}
        return {"reasoning": "…", "score": f"0 to {self.scale}"}

    def _schema(self) -> dict[str, Any]:
        mark = {"type": "number", "minimum": 0, "maximum": self.scale}
        marks: dict[str, Any] = {"score": mark}
        if self.criteria:
            names = [criterion.name for criterion in self.criteria]
            marks = {"scores": _object(dict.fromkeys(names, mark))}
        return _object({"reasoning": {"type": "string"}, **marks})

    def _read(self, reply: Any) -> Verdict:
        reasoning = {"reasoning": reply["reasoning"]}
        if not self.criteria:
            return Verdict(value=reply["score"] / self.scale, reasoning=reasoning)
        marks = {criterion.name: float(reply["scores"][criterion.name]) for criterion in self.criteria}
        total = sum(criterion.weight for criterion in self.criteria)
        value = sum(criterion.weight * marks[criterion.name] for criterion in self.criteria) / total / self.scale
        return Verdict(value=value, metrics=marks, reasoning=reasoning)


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
