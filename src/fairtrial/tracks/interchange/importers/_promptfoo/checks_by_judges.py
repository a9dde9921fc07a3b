"""Assertions that a model judges."""

from __future__ import annotations

import json

from fairtrial.tracks.interchange.importers._promptfoo.assertion import (
    Assertion,
    Converted,
    Make,
    Scorer,
    limited,
    text_of,
)
from fairtrial.tracks.interchange.importers._promptfoo.files import PREFIX
from fairtrial.tracks.interchange.importers._promptfoo.nunjucks import filled_or_same, literal
from fairtrial.tracks.interchange.importers._promptfoo.prompts import chat_of

_RUBRIC = "What the answer must be or do: {}"
_RELEVANCE = "Judge only whether the answer addresses the question, without evasion or material that was not asked for."
_CONVERSATION = (
    "Judge only this conversation, whatever the answer says: the mark is ten times the share of the assistant's "
    "messages that are relevant to what the user said before them."
)
_INSTEAD = {
    "search-rubric": "`search-rubric`: judges have no web search here; give them the facts in the rubric",
    "pi": "`pi` is judged by the suite's judge instead of that service",
}
_FACTUALITY = {"subset": 1, "superset": 1, "agree": 1, "disagree": 0, "differButFactual": 1}
_CONTEXTS = {
    "context-faithfulness": "Judge only whether every statement in the answer is supported by this context:\n{}",
    "context-recall": "Judge only how much of the reference answer is supported by this context, whatever the answer "
    "says:\n{}",
    "context-relevance": "Judge only how relevant this context is to the question, whatever the answer says:\n{}",
}


def rubric(check: Assertion) -> Converted:
    if check.kind in _INSTEAD:
        check.at.notes.differs(_INSTEAD[check.kind])
    value = check.value
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    check.at.notes.differs(
        "`llm-rubric` and the like give a mark from 0 to 10 instead of pass or fail; with a `threshold`, right or wrong"
    )
    return judged(_with_prompt(_RUBRIC.format(text), text, check), check.threshold)


def closed_question(check: Assertion) -> Converted:
    return judged(f"10 if the answer meets this criterion, else 0: {check.text}", check.limit(0.5))


def factuality(check: Assertion) -> Converted:
    given = check.entry.get("factuality")
    marks = {kind: round(10 * float((given or {}).get(kind, worth))) for kind, worth in _FACTUALITY.items()}
    if given:
        text = (
            f"Compare the facts only, not style. The mark is {marks['subset']} if the answer is a subset of the "
            f"reference answer and agrees with it, {marks['superset']} if it is a superset and agrees with it, "
            f"{marks['agree']} if it has the same details, {marks['disagree']} if they disagree, and "
            f"{marks['differButFactual']} if they differ, but not in what matters for the facts."
        )
    else:
        text = (
            "Compare the facts only, not style. 10 if the answer agrees with the reference answer, is a subset or a "
            "superset of it, or differs in what does not matter; 0 if they disagree."
        )
    scorer = judged(text, check.limit(0.5)).scorer
    return Converted({key: item for key, item in scorer.items() if key != "reference"}, check.text)


def g_eval(check: Assertion) -> Converted:
    criteria = [{"name": f"criterion {i}", "description": text} for i, text in enumerate(check.texts, 1)]
    return Converted({"type": "llm_judge", "reference": False, "criteria": criteria, "threshold": check.limit(0.7)})


def relevance(check: Assertion) -> Converted:
    said = check.values.get("_conversation")
    if check.kind == "conversation-relevance" and isinstance(said, list):
        text = "\n".join(f"User: {turn.get('input')}\nAssistant: {turn.get('output')}" for turn in said)
        return judged(f"{_CONVERSATION}\n{text}", check.limit(0.5))
    return judged(_RELEVANCE, check.limit(0.75 if check.kind == "answer-relevance" else 0.5))


def about_context(check: Assertion) -> Converted:
    template = _CONTEXTS[check.kind]
    context = "{{ context }}"
    if transform := check.entry.get("contextTransform"):
        check.at.notes.differs(
            "`contextTransform`: the judge gets instructions about which part of the answer is the context"
        )
        context = literal(f"the part of the answer that `{transform}` has")
    scorer: Scorer = {
        "type": "llm_judge",
        "instructions": template.format(context),
        "threshold": check.limit(0.75),
    }
    if check.kind == "context-recall":
        return Converted(scorer, check.text)
    return Converted({**scorer, "reference": False})


def _with_prompt(instructions: str, rubric: str, check: Assertion) -> str:
    given = check.entry.get("rubricPrompt")
    if not given:
        return instructions
    if isinstance(given, str) and given.startswith(PREFIX):
        given = check.at.folder.text(given)
    text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
    messages = chat_of(text if isinstance(given, str) else given)
    if messages:
        text = "\n\n".join(text_of(message.get("content")) for message in messages)
    check.at.notes.differs("`rubricPrompt` is the judge's instructions; question, answer and scale follow them")
    known = {**check.values, "rubric": rubric, "output": "(the answer below)"}
    return filled_or_same(text, known)


def judged(instructions: str, threshold: float | None) -> Converted:
    scorer = {"type": "llm_judge", "reference": False, "instructions": literal(instructions)}
    return Converted(limited(scorer, threshold))


JUDGED: dict[str, Make] = {
    **dict.fromkeys(("llm-rubric", "agent-rubric", "trajectory:goal-success", *_INSTEAD), rubric),
    "model-graded-closedqa": closed_question,
    **dict.fromkeys(("factuality", "model-graded-factuality"), factuality),
    "g-eval": g_eval,
    **dict.fromkeys(("answer-relevance", "conversation-relevance"), relevance),
    **dict.fromkeys(_CONTEXTS, about_context),
}
