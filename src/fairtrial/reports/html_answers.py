"""Every answer of a run, packed for a page: a list of all cases with their scores, and the texts in pieces.

A page shows the list at once, and unpacks a piece when one of its cases is opened. The pieces are in the page
itself, or next to it as scripts: those can be loaded from a disk too, where a page cannot fetch.
"""

from __future__ import annotations

import base64
import gzip
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import groupby
from typing import Any, NamedTuple

import msgspec

from fairtrial.analyse.run import Run
from fairtrial.analyse.stored_run import JudgeComment, TrialRecord
from fairtrial.core.errors import FairtrialError
from fairtrial.core.expected import show_expected
from fairtrial.core.experiment import Case
from fairtrial.core.formatting import money
from fairtrial.core.place import Place
from fairtrial.present.trajectory_view import Slice, has_steps, trial_steps
from fairtrial.present.words.limits import trial_limit
from fairtrial.present.words.steps import StepWords, left_words

MAX_BYTES = 3_000_000  # of compressed answers in one file; the whole page stays below 5 MB
_TEXT_LENGTHS = (100_000, 4000, 1500, 600, 250, 100, 0)
_PIECE = 500_000  # bytes of a piece before it is compressed
_SNIPPET = 160
_MOST_STEPS = 200  # of one trial
_MOST_ANSWERS = 20_000  # to one case, of all arms

Judged = tuple[TrialRecord, list[JudgeComment]]


class Packed(NamedTuple):
    """The answers of a run as texts of base64."""

    cases: str  # the index of all cases
    pieces: list[str]
    cut: int | None  # the length that texts were cut to, if they were


def check_size(run: Run) -> None:
    """Refuse a run with more answers to one case than a browser can show; the page has every one."""
    answers = sum(arm.repeats for arm in run.plan_arms)
    if answers > _MOST_ANSWERS:
        raise FairtrialError(
            f"run {run.id} has {answers:,} answers to each case, and an HTML page shows at most {_MOST_ANSWERS:,}: "
            "`fairtrial export` writes them as a table (.csv, .jsonl, .parquet), and the numbers alone as .md"
        )


def pack(run: Run, arms: Sequence[str]) -> Packed:
    """Return all answers, with texts as long as the size of one file allows; `arms` are in the order of columns."""
    for length in _TEXT_LENGTHS:
        pieces: list[str] = []
        size = 0
        for piece in pieces_of(run, arms, length):
            size += len(piece)
            if size > MAX_BYTES:  # shorter texts are tried next: the rest of these would take time for nothing
                break
            pieces.append(encoded(piece))
        else:
            return Packed(pieces[-1], pieces[:-1], length if length < _TEXT_LENGTHS[0] else None)
    raise FairtrialError(
        f"run {run.id} has too many trials for one HTML page; `fairtrial report --site` writes them next to the page, "
        "and `fairtrial export` to another format"
    )


def encoded(piece: bytes) -> str:
    """Return bytes as a text that can be in a page or a script."""
    return base64.b64encode(piece).decode()


def pieces_of(run: Run, arms: Sequence[str], length: int = _TEXT_LENGTHS[0]) -> Iterator[bytes]:
    """Yield the texts in compressed pieces, and the index of all cases as the last one."""
    columns = {name: place for place, name in enumerate(arms)}
    index: list[Any] = []
    texts: list[bytes] = []
    number = size = 0
    for _, group in groupby(run.judged_trials(), key=lambda item: item[0].case_id):
        trials = list(group)
        index.append(_entry(trials, columns, number))
        texts.append(msgspec.json.encode(_texts(run, trials, columns, length)))
        size += len(texts[-1])
        if size > _PIECE:
            yield _compressed(texts)
            texts, size, number = [], 0, number + 1
    if texts:
        yield _compressed(texts)
    yield gzip.compress(msgspec.json.encode({"arms": list(arms), "cases": index}), 6, mtime=0)


def _compressed(texts: Sequence[bytes]) -> bytes:
    return gzip.compress(b"[" + b",".join(texts) + b"]", 6, mtime=0)


def _entry(trials: Sequence[Judged], columns: dict[str, int], piece: int) -> list[Any]:
    """List id, beginning of the question, kinds, piece, and the score of every arm: a mean, or why there is none."""
    case = trials[0][0]
    by_arm: dict[str, list[TrialRecord]] = {}
    for trial, _ in trials:
        by_arm.setdefault(trial.arm, []).append(trial)
    scores: list[Any] = [None] * len(columns)
    for name, own in by_arm.items():
        values = [trial.score for trial in own if trial.score is not None]
        scores[columns[name]] = round(100 * sum(values) / len(values), 2) if values else own[0].status
    kinds = [kind for kind in (case.category, case.difficulty, *case.tags) if kind]
    return [case.case_id, _cut(case.input, _SNIPPET), kinds, piece, scores]


def _texts(run: Run, trials: Sequence[Judged], columns: dict[str, int], length: int) -> dict[str, Any]:
    case = trials[0][0]
    arms = {arm.name: arm for arm in run.plan_arms}

    @cache
    def located() -> tuple[Place, Case]:
        return run.locate(case.case_id, case.arm, case.repeat)

    def steps(trial: TrialRecord) -> list[Any]:
        if not length or not has_steps(arms[trial.arm], trial):
            return []
        place, own = located()
        return _steps(run, place._replace(arm=arms[trial.arm].position, repeat=trial.repeat - 1), own, trial, length)

    return {
        "input": _cut(case.input, length),
        "expected": _cut(show_expected(case.expected) or None, length),
        "trials": [
            _without_end([*_trial(trial, columns[trial.arm], verdicts, length), steps(trial), _diff(trial, length)])
            for trial, verdicts in trials
        ],
    }


def _trial(trial: TrialRecord, arm: int, verdicts: list[JudgeComment], length: int) -> list[Any]:
    """List arm, repeat, score or status, answer, notes, facts, and verdicts."""
    score = trial.status if trial.score is None else round(100 * trial.score, 2)
    answer = trial.answer if trial.answer is not None else trial.failure_message
    noted = trial.notes if trial.score is not None else trial.unscored_message
    note = "; ".join(filter(None, [trial_limit(trial), noted])) or None
    cost = None if trial.cost_usd == 0 else money(trial.cost)
    facts = [trial.trial_id[:12], trial.model, _rounded(trial.latency_ms), cost, trial.completion_tokens]
    comments = [(judge, _points(value), _cut(text, length)) for judge, value, text in verdicts]
    return [arm, trial.repeat, score, _cut(answer, length), _cut(note, length), facts, comments]


def _diff(trial: TrialRecord, length: int) -> str | None:
    return _cut(str(((trial.trace or {}).get("workspace") or {}).get("diff") or ""), length)


def _without_end(items: list[Any]) -> list[Any]:
    """Return items without those at the end that say nothing."""
    while items and not items[-1]:
        items.pop()
    return items


def _steps(run: Run, place: Place, case: Case, trial: TrialRecord, length: int) -> list[Any]:
    """List headline, what is not known of each turn, how many steps are left out, and the steps."""
    most = min(_MOST_STEPS, max(10, length // 10))
    size = Slice(most=most, characters=4 * length, longest=max(200, length // 4))
    view = trial_steps(run, place, case, trial, size=size)
    if view is None:
        return []
    left = left_words(view.after_count) if view.after else ""
    return [view.headline, view.unknown, left, view.turns, [_step(step) for step in view.steps]]


def _step(step: StepWords) -> list[Any]:
    """List number, turn, kind, name, what it comes to, state, result, source, duration, depth, texts, mark, time."""
    texts = [(text.name, text.text + ("…" if text.more else "")) for text in step.texts]
    head = [step.number, step.turn, step.kind, step.name, step.brief, step.state, step.gave, step.source]
    return _without_end([*head, step.took, step.depth, texts, step.mark, step.begun])


def _cut(text: str | None, length: int) -> str | None:
    if text is None or len(text) <= length:
        return text
    return f"{text[:length]}…"


def _points(value: float | None) -> float | None:
    return None if value is None else round(100 * value, 1)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value)
