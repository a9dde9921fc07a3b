"""HTML: a run as one self-contained file with figures, verdicts, conditions and every answer."""

from __future__ import annotations

import base64
import gzip
import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

import msgspec

from fairtrial.analyse import Run, TrialRecord
from fairtrial.analyse.compare import compared
from fairtrial.analyse.comparison import Comparisons
from fairtrial.analyse.kind_means import by_kind
from fairtrial.analyse.lines import arm_lines, notes
from fairtrial.analyse.rank import rank
from fairtrial.analyse.run import JudgeComment
from fairtrial.analyse.score_table import read_scores, sources_of
from fairtrial.analyse.sent import sent_text
from fairtrial.analyse.summary import ranked
from fairtrial.analyse.variables import variables
from fairtrial.analyse.wording.cases import case_findings
from fairtrial.analyse.wording.comparisons import brief_lines, detail_lines, pair_cells, pair_columns, sentence
from fairtrial.analyse.wording.comparisons import subject_line as comparison_headline
from fairtrial.analyse.wording.kinds import NOTE, kind_tables, more_text
from fairtrial.analyse.wording.ranks import COLUMNS, ranked_cells, ranking_headline
from fairtrial.analyse.wording.runs import arm_cells, arm_columns, failure_line, headline, reporting_line
from fairtrial.core.errors import FairtrialError
from fairtrial.core.experiment import show_expected
from fairtrial.core.text import printable
from fairtrial.reports.html_figures import figures
from fairtrial.reports.html_pages import pages
from fairtrial.store import opinions
from fairtrial.store.votes import votes

_PAGE = Path(__file__).parent / "html_page"
_MAX_BYTES = 3_000_000  # of compressed answers; the whole page stays below 5 MB
_TEXT_LENGTHS = (100_000, 4000, 1500, 600, 250, 100, 0)


def _clean(value: Any) -> Any:
    """Remove control characters from a value shown by the template; Markup is our own HTML and stays."""
    from markupsafe import Markup

    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def write(run: Run, file: IO[str]) -> None:
    """Write the whole page."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(loader=FileSystemLoader(_PAGE), autoescape=True, undefined=StrictUndefined)
    environment.trim_blocks = environment.lstrip_blocks = True
    environment.finalize = _clean
    script = (_PAGE / "report.js").read_text("utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    packed, length = pack(run)
    page = environment.get_template("report.html.j2").render(
        **_context(run),
        style=Markup((_PAGE / "report.css").read_text("utf-8")),  # noqa: S704  # our own file
        script=Markup(script),  # noqa: S704  # our own file
        policy=_policy(digest),
        pages=pages(run),
        data=packed,
        cut=length if length < _TEXT_LENGTHS[0] else None,
        safe=Markup,
    )
    file.write(page)


def _policy(digest: str) -> str:
    """Return a policy that allows only our own script and no network access."""
    return f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'"


def _ranking(run: Run) -> dict[str, Any] | None:
    """Return the ranking if answers were compared in pairs, else None."""
    judged = next(opinions.pairs(run.store, run.id), None) is not None
    voted = next(votes(run.store, run.id), None) is not None
    if not judged and not voted:
        return None
    try:
        ranking = rank(
            read_scores(sources_of(run)), by="both" if judged and voted else "verdicts" if judged else "votes"
        )
    except FairtrialError:
        return None  # with fewer than two arms on common cases there is no ranking
    return {
        "headline": ranking_headline(ranking),
        "columns": COLUMNS,
        "rows": [ranked_cells(place, ranking.metric) for place in ranking.places],
        "notes": ranking.notes,
    }


def _context(run: Run) -> dict[str, Any]:
    summary = run.summary()
    comparisons = compared(run)
    return {
        "summary": summary,
        "headline": headline(summary),
        "made": datetime.fromtimestamp(summary.created_at, UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "columns": arm_columns(summary),
        "rows": [arm_cells(summary, arm) for arm in ranked(summary.arms)],
        "lines": [(reporting_line(arm), arm_lines(summary, arm)) for arm in summary.arms],
        "kinds": kind_tables(by_kind(run), [arm.arm for arm in ranked(summary.arms)]),
        "kinds_note": NOTE,
        "more_kinds": more_text,
        "notes": notes(summary),
        "failures": [failure_line(failure) for failure in summary.failures],
        "verdicts": _verdicts(comparisons),
        "pair_columns": pair_columns(comparisons) if comparisons else [],
        "pair_headline": comparison_headline(comparisons) if comparisons else "",
        "compare_notes": [note for note in comparisons.notes if note not in notes(summary)] if comparisons else [],
        "board": _ranking(run),
        "case_worth": case_findings(run) if comparisons else [],
        "figures": figures(run, summary, comparisons),
        "variables": variables(run),
        "arms": [(arm, sent_text(run.sent(arm), arm)) for arm in run.plan_arms],
        "suite_text": run.plan.suite_text,
        "suite_sha256": run.plan.suite_sha256,
        "settings": msgspec.json.format(msgspec.json.encode(run.settings), indent=2).decode(),
        "context": msgspec.json.format(msgspec.json.encode(run.context), indent=2).decode(),
    }


def _verdicts(comparisons: Comparisons | None) -> list[dict[str, Any]]:
    if comparisons is None:
        return []
    return [
        {
            "sentence": sentence(pair, comparisons.margin),
            "cells": pair_cells(pair),
            "brief": brief_lines(pair),
            "lines": detail_lines(pair),
            "verdict": pair.verdict,
        }
        for pair in comparisons.pairs
    ]


def pack(run: Run) -> tuple[str, int]:
    """Return all cases and trials, compressed, and the length to which texts were cut to keep the page small."""
    for length in _TEXT_LENGTHS:
        packed = _compress(run, length)
        if packed is not None:
            return base64.b64encode(packed).decode(), length
    raise FairtrialError(
        f"run {run.id} has too many trials for one HTML page; `fairtrial export` to another format writes all of them"
    )


def _compress(run: Run, length: int) -> bytes | None:
    """Return the compressed trials, or None as soon as they are too large, to save time."""
    buffer = _CountingBuffer()
    with gzip.GzipFile(fileobj=buffer, mode="wb", compresslevel=6, mtime=0) as file:
        for piece in _pieces(run, length):
            file.write(piece)
            if buffer.size > _MAX_BYTES:
                return None
    return buffer.value() if buffer.size <= _MAX_BYTES else None


class _CountingBuffer:
    """A buffer for compressed bytes that knows its size."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self.size = 0

    def write(self, data: bytes) -> int:
        self._parts.append(data)
        self.size += len(data)
        return len(data)

    def flush(self) -> None:
        """Do nothing: writes are not buffered further."""

    def value(self) -> bytes:
        """Return everything written."""
        return b"".join(self._parts)


def _pieces(run: Run, length: int) -> Iterator[bytes]:
    """Yield one compact JSON document: the arms, then the cases with their trials."""
    encode = msgspec.json.encode
    yield b'{"arms":' + encode([arm.name for arm in run.plan_arms]) + b',"cases":['
    numbers = {arm.name: arm.position for arm in run.plan_arms}
    case: str | None = None
    for trial, verdicts in run.judged_trials():
        if trial.case_id == case:
            yield b","
        else:
            yield (b"]}," if case is not None else b"") + _case_head(trial, length)
        case = trial.case_id
        yield encode(_trial(trial, numbers[trial.arm], verdicts, length))
    yield (b"]}" if case is not None else b"") + b"]}"


def _case_head(trial: TrialRecord, length: int) -> bytes:
    head = {
        "id": trial.case_id,
        "input": _cut(trial.input, length),
        "expected": _cut(show_expected(trial.expected) or None, length),
        "kinds": [kind for kind in (trial.category, trial.difficulty, *trial.tags) if kind],
    }
    return msgspec.json.encode(head)[:-1] + b',"trials":['


def _trial(trial: TrialRecord, arm: int, verdicts: list[JudgeComment], length: int) -> list[Any]:
    """List arm, repeat, score or status, answer, notes, facts, verdicts, tool calls; drop empty items at the end."""
    score = trial.status if trial.score is None else round(100 * trial.score, 2)
    answer = trial.answer if trial.answer is not None else trial.failure_message
    note = trial.notes if trial.score is not None else trial.unscored_message
    facts = [trial.trial_id[:12], trial.model, _rounded(trial.latency_ms), trial.cost_usd, trial.completion_tokens]
    calls = (trial.trace or {}).get("tool_calls") or [] if length else []
    call_texts = [_cut(msgspec.json.encode(call).decode(), max(200, length // 4)) for call in calls]
    comments = [(judge, _points(value), _cut(text, length)) for judge, value, text in verdicts]
    items = [arm, trial.repeat, score, _cut(answer, length), _cut(note, length), facts, comments, call_texts]
    while items and not items[-1]:
        items.pop()
    return items


def _cut(text: str | None, length: int) -> str | None:
    if text is None or len(text) <= length:
        return text
    return f"{text[:length]}…"


def _points(value: float | None) -> float | None:
    return None if value is None else round(100 * value, 1)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value)
