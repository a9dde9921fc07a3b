"""Replies of judges and answers of models that were changed at random: each is a verdict or score, or says why not."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from fairtrial.core.accepted import score_answer
from fairtrial.core.experiment import Case
from fairtrial.core.options import build_scorer
from fairtrial.core.score import Score, ScoreContext, Unscored
from fairtrial.judging.verdict import JudgePrompt, NoVerdict, Verdict, read_judgement
from tests.torture.campaign import Campaign
from tests.torture.fuzz import Document, fuzz

SCHEMA = {
    "type": "object",
    "properties": {
        "reasoning": {"type": "string"},
        "score": {"type": "integer", "minimum": 1, "maximum": 5},
        "marks": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
    },
    "required": ["score"],
}
REPLIES = [
    '{"reasoning": "It is right.", "score": 4}',
    'Let me think {about: it}.\n```json\n{"reasoning": "so \\"and\\" so", "score": 2, "marks": [{"name": "x"}]}\n```',
    '<think>{"score": 1}</think>\n{"score": 5}',
    '{"score": 3}\n{"score": 3}',
]
ANSWERS = [
    "The answer is 42.", "**B** is right, for 1,234.5 < 2e3.", '{"a": [1, 2, {"b": null}]}', "<answer>Paris</answer>",
    "\\boxed{\\frac{1}{2}}", "```python\nprint(1)\n```", "<think>no</think>yes", "A) one\nB) two\nAnswer: (C)", "½ or 50 %",
    "<!doctype html><title>x</title><p>y", "I cannot help with that.", "١٢٣ ＡＢＣ", "1:30 or -1/3 or 1 000 000",
]  # fmt: skip
SCORERS: list[dict[str, Any]] = [
    {"type": "match"}, {"type": "exact"}, {"type": "contains"}, {"type": "numeric"}, {"type": "choice"}, {"type": "f1"},
    {"type": "regex", "pattern": "(a|b)+c"}, {"type": "json_schema", "schema": {"type": "object"}}, {"type": "bleu"},
    {"type": "rouge"}, {"type": "levenshtein"}, {"type": "starts_with"}, {"type": "boolean"}, {"type": "length", "max": 9},
    {"type": "refusal"}, {"type": "numeric", "extract": {"boxed": True}}, {"type": "match", "extract": {"regex": "<answer>(.*)</answer>"}},
    {"type": "match", "extract": {"json": "a[0]"}}, {"type": "match", "extract": {"code": True}}, {"type": "numeric", "tolerance": 0.1},
]  # fmt: skip


def test_judges(campaign: Campaign):
    prompt = JudgePrompt(
        system="", text="", schema=SCHEMA, hash="", read=lambda reply: Verdict(value=reply["score"] / 5)
    )

    def read(document: Document) -> str:
        text = document.body.decode("utf-8", "replace")
        verdict = read_judgement(prompt, text)
        assert isinstance(verdict, Verdict | NoVerdict)
        msgspec.json.encode(verdict)
        return type(verdict).__name__

    fuzz(campaign, [Document("reply", text.encode()) for text in REPLIES], read, short=4)


def test_answers(tmp_path: Path, campaign: Campaign):
    scorers = [build_scorer(options) for options in SCORERS]
    case = Case(id="a", input="q", expected="42", metadata={"choices": ["one", "two", "three"]}, position=0)
    count = 0

    def read(document: Document) -> str:
        nonlocal count
        count += 1
        scorer = scorers[count % len(scorers)]
        text = document.body.decode("utf-8", "replace")
        context = ScoreContext(case=case, response=text, folder=tmp_path)
        score = loop.run_until_complete(score_answer(scorer, context))
        assert isinstance(score, Score | Unscored)
        if isinstance(score, Score):
            assert 0 <= score.value <= 1
        msgspec.json.encode(score)
        return f"{type(scorer).__name__} {type(score).__name__}"

    with closing(asyncio.new_event_loop()) as loop:
        fuzz(campaign, [Document("answer", text.encode()) for text in ANSWERS], read, short=4)
