"""What all scorers have in common: `extract`, `threshold`, refusals, and several accepted answers or none."""

from __future__ import annotations

import inspect
import re
import string
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from fairtrial.core.answer import FILTERED, REFUSED
from fairtrial.core.experiment import Case
from fairtrial.core.extraction import Extraction, extract, has_thinking
from fairtrial.core.score import Score, ScoreContext, Unscored
from fairtrial.core.scorer import Scorer
from fairtrial.text.choices import letters_for
from fairtrial.text.printable import clipped

_MISSING = "`expected` is blank or missing, but `{name}` compares answers with it: add the right answer"
DECLINED = {REFUSED: "refused", FILTERED: "filtered"}  # finish reasons, and what they are called
_WHOLE = Extraction()
_MAX_QUOTED = 60
_MAX_NOTES = 500
_MAX_KEPT = 2000  # characters of an extracted text that are stored next to the score
_ROUNDING = 1e-9


def case_problems(scorer: Scorer, case: Case, folder: Path) -> Iterator[str]:
    """Yield the reasons why a case cannot be scored."""
    if scorer.lacks_expected(case):
        yield _MISSING.format(name=_name(scorer))
        return
    if isinstance(case.expected, tuple) and len(case.accepted) < len(case.expected):
        yield "one of the texts in `expected` is blank"
    if scorer.extract is not None and scorer.reads_text:
        yield from scorer.extract.check(folder)
    variants = _split_accepted(scorer, case)
    problems = (problem for variant in variants for problem in scorer.check(variant, folder))
    yield from dict.fromkeys(problems)


async def score_answer(scorer: Scorer, context: ScoreContext) -> Score | Unscored:
    """Score an answer, or the part of it that the scorer extracts; refusals as the suite says."""
    if context.finish_reason in DECLINED and not scorer.sees_refusals():
        return score_declined(scorer, context)
    thinking = context.original is None and has_thinking(context.response)
    if not scorer.reads_text or (scorer.extract is None and not thinking):
        return _decided(scorer, await _score_accepted(scorer, context))
    extraction = scorer.extract or _WHOLE
    text = context.response if context.original is None else context.original
    letters = letters_for(len(context.case.choices)) or string.ascii_uppercase
    extracted = await extract(extraction, text, context.folder, letters)
    if extracted.text is None:
        return _nothing_extracted(extraction, extracted.reason)
    part = msgspec.structs.replace(context, response=extracted.text, original=text)
    result = _decided(scorer, await _score_accepted(scorer, part))
    if isinstance(result, Unscored):
        return result
    return _with_extracted(result, extraction, extracted.text, text)


def _nothing_extracted(extraction: Extraction, reason: str) -> Score | Unscored:
    if extraction.missing == "unscored":
        return Unscored(kind="extract", message=f"nothing to score: {reason}")
    return Score(value=0.0, raw=0.0, notes=f"wrong, nothing to score: {reason}", details={"extracted": None})


def _with_extracted(score: Score, extraction: Extraction, text: str, whole: str) -> Score:
    """Say in a score what it is the score of."""
    if extraction.form is not None:
        note, found = f"extracted {clipped(' '.join(text.split()), _MAX_QUOTED)!r}", {"extracted": text[:_MAX_KEPT]}
    elif text != whole and not text:
        note, found = "the answer has nothing but thinking", {"extracted": ""}
    elif text != whole:
        note, found = "without its thinking", {"extracted": text[:_MAX_KEPT]}
    else:
        return score
    return _noted(score, note, details={**(score.details or {}), **found})


def _decided(scorer: Scorer, result: Score | Unscored) -> Score | Unscored:
    """Turn a score into right or wrong, if the scorer has a threshold."""
    threshold = scorer.threshold
    if threshold is None or not isinstance(result, Score) or _redefines_threshold(type(scorer)):
        return result
    right = result.value >= threshold - _ROUNDING
    note = f"{result.value:.2f}, {'at least' if right else 'below'} the threshold of {threshold:g}"
    return _noted(result, note, value=float(right))


def _noted(score: Score, note: str, **changes: Any) -> Score:
    """Return a score with a further note and other changes."""
    return msgspec.structs.replace(score, notes=f"{score.notes} ({note})" if score.notes else note, **changes)


@cache
def _redefines_threshold(cls: type[Scorer]) -> bool:
    """Return whether a plug-in has an option of its own with this name, which may mean anything."""
    own = (base for base in cls.__mro__ if base is not Scorer and issubclass(base, Scorer))
    return any("threshold" in _annotations(base) for base in own)


def _annotations(cls: type) -> dict[str, Any]:
    """Return the annotations of a class itself, without those of its bases."""
    if sys.version_info >= (3, 14):  # which makes them when they are asked for
        import annotationlib

        return annotationlib.get_annotations(cls, format=annotationlib.Format.FORWARDREF)
    return inspect.get_annotations(cls)


def score_declined(scorer: Scorer, context: ScoreContext) -> Score | Unscored:
    """Score a refusal as the suite says, on every metric that has bounds, without looking at the text."""
    kind = DECLINED[context.finish_reason or ""]
    text = " ".join((context.original or context.response).split())
    notes = f"{kind}: {text[:_MAX_NOTES]}" if text else kind
    if context.on_refusal == "unscored":
        return Unscored(kind=kind, message=notes)
    right = context.on_refusal == "right"
    bounds = {name: scale[right] for name, scale in scorer.scales().items()}  # worst or best
    metrics = {name: bound for name, bound in bounds.items() if bound is not None}
    return Score(value=float(right), notes=notes, metrics=metrics)


async def _score_accepted(scorer: Scorer, context: ScoreContext) -> Score | Unscored:
    """Score an answer against each accepted answer; the best score counts, and the notes say which one it was."""
    if scorer.lacks_expected(context.case):
        return Unscored(kind="expected", message=_MISSING.format(name=_name(scorer)))
    cases = _split_accepted(scorer, context.case)
    if len(cases) == 1:
        same = cases[0] is context.case
        return await scorer.score(context if same else msgspec.structs.replace(context, case=cases[0]))
    decisive = 0.0 if scorer.forbids() else 1.0  # no other accepted answer can change the result
    scores: list[tuple[str, Score]] = []
    unscored: Unscored | None = None
    for case in cases:
        result = await scorer.score(msgspec.structs.replace(context, case=case))
        if isinstance(result, Unscored):
            unscored = unscored or result
            continue
        scores.append((case.accepted[0], result))
        if result.value == decisive:
            break
    if unscored is not None and (not scores or scores[-1][1].value != decisive):
        return unscored
    text, score = (min if scorer.forbids() else max)(scores, key=lambda item: item[1].value)
    note = f"against {clipped(text, _MAX_QUOTED)!r}, one of {len(cases)} accepted answers"
    return _noted(score, note)


def _split_accepted(scorer: Scorer, case: Case) -> list[Case]:
    """Return one copy of the case per accepted answer, or the case itself if the scorer sees all of them at once."""
    if scorer.sees_all or not isinstance(case.expected, tuple):
        return [case]
    return [msgspec.structs.replace(case, expected=text) for text in case.expected if text.strip()] or [case]


def _name(scorer: Scorer) -> str:
    """Derive a scorer's name in suites from its class name."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", type(scorer).__name__).lower()
