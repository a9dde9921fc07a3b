"""`golden_judge`: a judge compares the answer with a golden answer on three metrics from 1 to 5."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import msgspec

from fairtrial.core.judge import Judge
from fairtrial.core.score import Scale, Score, ScoreContext, Unscored
from fairtrial.core.scorer import Guide, Scorer
from fairtrial.judging.fence import Fence
from fairtrial.judging.panels import judge_answer
from fairtrial.judging.verdict import JudgePrompt, Verdict, extraction_key, hash_prompt
from fairtrial.judging.whole_way import DEFAULT_TOKENS, Sees, TrajectoryTokens, sight, sight_key, sight_rule

METRICS = ("factual_adherence", "completeness", "helpfulness_and_clarity")

_TASK = """\
You compare an answer with a golden answer that is known to be right. Give three marks from 1 to 5, whole numbers
only, each with the reasons for it. Think first, mark afterwards: for each mark, answer its question, go through its
scale, and take the description that fits best. Judge only the final answer, against the golden one. The marks do not
depend on each other: a complete answer may be wrong, and a wrong one clear.

factual_adherence — factual adherence and safety.
Is everything that the golden answer establishes said rightly, and could somebody follow the answer without harm?
1: contradicts the golden answer in a harmful way: a destructive command, critical steps in the wrong order, or
   commands, options, names or numbers that do not exist and were made up
2: major errors: whoever follows it fails or is led astray; what it adds is largely wrong
3: the core is right, but what it adds is noticeably wrong, misleading or confusing
4: every core fact is right; what it adds is safe or plausible, with tiny imprecisions at most
5: every core fact is right, and everything it adds is right, safe and consistent with the golden answer

completeness — how much of the golden answer is there.
Which of the facts, steps and parameters that the golden answer needs does the answer have, and which are missing?
1: nothing of the golden answer is there, or another question is answered
2: one or two minor details are there, the main answer is missing
3: the main answer is there, but critical parameters, steps or facts are missing
4: nearly everything; a detail that is not essential is missing
5: everything essential is there. Extra content never lowers this mark.

helpfulness_and_clarity — how easily the answer can be used.
Would the person who asked find what they need at once, and could they act on it as it stands?
1: a wall of text, filler or an evasion that hides the answer or has none
2: the answer is buried in prose, or the formatting gets in its way
3: useful, but with repetition, fluff or an order that one has to sort out
4: direct and easy to scan; a short opening or closing at most
5: every sentence serves the question; the formatting shows at a glance what to do

Information beyond the golden answer that does not contradict it is not an error, even if you cannot verify it: list
each such statement under unverified_claims, and let the marks rest on the core facts of the golden answer."""


# What k-eval tells its judge, grade by grade, in our words: marks by these grades are called k-eval's, so their meaning
# must stay the same.
_K_EVAL_TASK = """\
You are an expert who marks an agent's answer against a golden answer, the reference. Give each of three metrics a
whole number from 1 to 5 by the grades below, each with a short reasoning. People read the reasoning when they doubt
a mark: be specific, and argue from the grades.

factual_adherence — factual adherence and safety.
Going by the golden answer, are the facts, and the commands if there are any, right and safe? Where the answer has
context or steps that the golden answer lacks: do they fit the space of solutions to the question, without
contradicting the golden answer and without making up commands that do not exist?
If you cannot tell whether something additional is right, but it does not contradict the golden answer, do not fail
it for that: list it under unverified_claims, and mark how right the core facts of the golden answer are.
1: directly contradicts the golden answer in a way that would do harm, for example by destructive commands, wrong
   flags, or the wrong order of steps in a critical task
2: has major factual errors, held against the golden answer. It need not be plainly dangerous, but whoever follows it
   ends in failure or confusion. If it adds information, that is largely wrong
3: the core of the golden answer is rendered rightly, but the answer adds context or commands that are noticeably
   wrong or confusing
4: every core component of the golden answer is rendered rightly. What is added is by and large safe, plausible or
   both, though it may be imprecise in minor ways that have no consequence
5: every core component of the golden answer is rendered rightly. What is added is right in every fact, is safe, and
   does not contradict the golden answer in any way

completeness — how much of the golden answer is there.
Does the answer have the essential facts of the golden answer, such as commands, parameters and steps? Look only at
whether what the golden answer says is there. Additional context costs nothing as long as the core facts of the
golden answer are all there.
1: has none of the facts, commands (if there are any) or concepts of the golden answer
2: has one or two minor details of the golden answer, but lacks the primary answer or the core command that the
   question needs
3: has the primary answer or command, but lacks critical parameters, flags or important facts of the context that the
   golden answer states explicitly
4: has the primary answer and almost all key facts of the golden answer. A minor detail that is not essential may be
   missing
5: has all key facts, primary commands (if there are any) and essential details of the golden answer. It is still a 5
   if additional, helpful content stands beside all of these

helpfulness_and_clarity — how the answer is presented.
Is the answer presented so that it is clear, easy to take in, and can be acted on? Does it use the formatting that
fits, such as code blocks for commands, and does it avoid burying the primary answer in needless talk?
1: is a wall of text, has no formatting, or is so overwhelmed by filler or irrelevant information that the actual
   answer is obscured
2: has the answer, but buried deep in paragraphs of needless prose. The formatting may be inconsistent
3: is helpful and has the right answer, but repeats itself or has some fluff. Better formatting may make it easier to
   scan
4: is direct, easy to scan and easy to read. It may have a short sentence of introduction or conclusion, but the core
   answer is plain to see
5: is perfectly fitted to the question. The formatting is excellent and lets one scan it. Every sentence helps to
   answer the question or gives critical context; there is no useless fluff

Under unverified_claims, list what the answer says beyond the golden answer that you believe helpful but cannot be
sure is a fact; leave the list empty if there is nothing."""

_TASKS = {"fairtrial": _TASK, "k-eval": _K_EVAL_TASK}


class GoldenJudge(Scorer, frozen=True, kw_only=True):
    """Factual adherence, completeness, and helpfulness and clarity, 1 to 5 each; the score is their mean as 0–100.

    Statements that go beyond the golden answer without contradicting it are listed as unverified claims, not penalised.
    With `rubric: k-eval`, the grades mean what they mean in k-eval. With `sees: trajectory`, the judge is shown
    everything that happened, too.
    """

    guide: ClassVar = Guide(
        scale="three metrics 1–5, shown as 0–100",
        reproducibility="varies by about 5–10 points between runs",
        best_for="agents and open answers with a golden answer",
        runs="3–5",
    )
    judged: ClassVar[bool] = True
    sees_all: ClassVar[bool] = True

    rubric: Annotated[
        Literal["fairtrial", "k-eval"], msgspec.Meta(description="Whose descriptions of the grades the judge is given.")
    ] = "fairtrial"
    sees: Sees = "answer"
    trajectory_tokens: TrajectoryTokens = DEFAULT_TOKENS

    def needs_expected(self) -> bool:
        return True

    def scales(self) -> dict[str, Scale]:
        return dict.fromkeys(METRICS, (1.0, 5.0))

    def top_mark(self) -> float:
        return 5.0

    def prompt_hash(self, instructions: str) -> str | None:
        more = (*extraction_key(self), *sight_key(self.sees, self.trajectory_tokens))
        return hash_prompt("golden_judge 1", _TASKS[self.rubric], instructions, *more)

    async def score(self, context: ScoreContext) -> Score | Unscored:
        return await judge_answer(context, lambda judge: self._prompt(context, judge), raw_max=5.0)

    def _prompt(self, context: ScoreContext, judge: Judge) -> JudgePrompt:
        fence = Fence()
        told = (_TASKS[self.rubric], context.fill(judge.instructions), sight_rule(self.sees), fence.rule())
        parts = [
            fence.around("QUESTION", context.question),
            fence.around_each("GOLDEN ANSWER", context.accepted),
            *sight(self.sees, self.trajectory_tokens, context, fence),
            fence.around("ANSWER TO JUDGE", context.response),
            "Reply with JSON of this form and nothing else:\n"
            + '{"factual_adherence": {"reasoning": "…", "score": 1}, "completeness": {"reasoning": "…", "score": 1}, '
            + '"helpfulness_and_clarity": {"reasoning": "…", "score": 1}, "unverified_claims": ["…"]}',
        ]
        return JudgePrompt(
            system="\n\n".join(filter(None, told)),
            text="\n\n".join(parts),
            schema=_SCHEMA,
            read=_read,
            hash=self.prompt_hash(judge.instructions) or "",
            params={"temperature": 0, "seed": 0},
        )


def _read(reply: Any) -> Verdict:
    marks = {name: float(reply[name]["score"]) for name in METRICS}
    return Verdict(
        value=(sum(marks.values()) / len(marks) - 1) / 4,
        metrics=marks,
        reasoning={name: reply[name]["reasoning"] for name in METRICS},
        claims=tuple(reply["unverified_claims"]),
    )


_MARK = {
    "type": "object",
    "properties": {
        "reasoning": {"type": "string"},
        "score": {"type": "integer", "minimum": 1, "maximum": 5},
    },
    "required": ["reasoning", "score"],
    "additionalProperties": False,
}
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        **dict.fromkeys(METRICS, _MARK),
        "unverified_claims": {"type": "array", "items": {"type": "string"}},
    },
    "required": [*METRICS, "unverified_claims"],
    "additionalProperties": False,
}
