"""Checks after the turns of a conversation, as a case has them: data of its own, from which its scorer is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

SCORER = "turns"  # the scorer that is made of them
CHECKS, COMBINE = "turn_checks", "turns_score"  # where the metadata of a case has them, and how they enter its score


class Conversation(Protocol):
    """What of a case matters here."""

    @property
    def turns(self) -> tuple[str, ...]: ...
    @property
    def scorer(self) -> dict[str, Any] | None: ...
    @property
    def expected(self) -> object: ...
    @property
    def metadata(self) -> dict[str, Any] | None: ...


def turn_checks(metadata: Mapping[str, Any] | None) -> Sequence[Mapping[str, Any]]:
    """Return the checks of a case, as the scorer `turns` has them; one without a `check` is the suite's scorer."""
    return (metadata or {}).get(CHECKS) or ()


def scorer_of_turns(
    checks: Sequence[Mapping[str, Any]],
    case: Conversation,
    scorer: dict[str, Any],
    extract: dict[str, Any] | None,
) -> dict[str, Any]:
    """Return the scorer of a case with checks after its turns.

    One after the last turn replaces the scorer of the last answer, unless the case says itself what counts.
    """
    own = scorer if case.scorer is None else case.scorer
    spec: dict[str, Any] = {
        "type": SCORER,
        "checks": [{**check, "check": check.get("check") or [own]} for check in checks],
    }
    last = next((check for check in checks if check["after"] == len(case.turns) + 1), None)
    stated = case.expected is not None or (case.scorer is not None and "check" in (last or {}))
    if last is None or stated:
        spec["answer"] = own
    if extract is not None:
        spec["extract"] = extract
    combine = (case.metadata or {}).get(COMBINE)
    return {**spec, "combine": combine} if combine else spec
