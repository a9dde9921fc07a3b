"""Decide what is left to do for a trial from its stored row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

Mode = Literal["resume", "retry", "rescore"]
Step = Literal["ask", "score", "nothing"]


def status_of(row: Mapping[str, Any]) -> str:
    """Return a stored trial's status: failed, answered (not yet scored), unscored or scored."""
    if row["failure_kind"] is not None:
        return "failed"
    if row["score_value"] is not None:
        return "scored"
    return "answered" if row["score_unscored_kind"] is None else "unscored"


def next_step(row: Mapping[str, Any] | None, mode: Mode) -> Step:
    """Return the next step: `resume` continues, `retry` repeats failures, `rescore` only scores stored answers.

    No finished call is repeated.
    """
    if row is None:
        return "ask" if mode == "resume" else "nothing"
    status = status_of(row)
    if status == "failed":
        return "ask" if mode == "retry" else "nothing"
    if status == "answered":
        return "score"
    score_again = status == "unscored" and (mode != "resume" or row["score_retryable"])
    return "score" if score_again else "nothing"
