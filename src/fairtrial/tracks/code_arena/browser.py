"""`browser`: score a web page in a real browser, by the case's checks or, without checks, by general probes."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar

from fairtrial.core.experiment import Case
from fairtrial.core.score import Scale, Score, ScoreContext, Unscored
from fairtrial.core.scorer import Guide, Scorer
from fairtrial.webpage.checks import Check, problems_of, share_of_checks
from fairtrial.webpage.looking import SCALES, Looked, look
from fairtrial.webpage.probes import share_of_probes


class Browser(Scorer, frozen=True, kw_only=True):
    """The weighted share of `checks` that pass; without checks, the share of probes that pass.

    Probes (script errors, contrast, labels, width on a phone, dead controls …) are always measured, and screenshots are
    kept. An answer without a page gets 0.
    """

    guide: ClassVar = Guide(
        scale="0–100, the share of checks that pass",
        reproducibility="exact in virtual time (with chromium-headless-shell)",
        best_for="front-end code: does the page do what was asked for?",
    )
    looks: ClassVar[bool] = True
    sees_all: ClassVar[bool] = True
    checks: list[Check] = []

    def scales(self) -> dict[str, Scale]:
        return SCALES

    def check(self, case: Case, folder: Path) -> Iterable[str]:
        return problems_of(case.metadata, self.checks)

    async def score(self, context: ScoreContext) -> Score | Unscored:
        looked = await look(context, self.checks)
        if isinstance(looked, Unscored):
            return looked
        if looked.blind:
            return Unscored(kind="browser", message=looked.blind, retryable=True)
        value, words = _value_and_notes(looked)
        notes = "; ".join(filter(None, (words, looked.time)))
        return Score(
            value=value,
            raw=100 * value,
            max=100.0,
            notes=notes,
            details={"page": looked.details()},
            metrics=looked.metrics(),
            files=looked.files(),
        )


def _value_and_notes(looked: Looked) -> tuple[float, str]:
    if looked.missing:
        return 0.0, looked.missing
    problems_found = [probe.words for probe in looked.probes if probe.passed is False]
    if not looked.checks:
        return share_of_probes(looked.probes) or 0.0, "; ".join(problems_found) or "no problems found"
    failed = [check for check in looked.checks if not check.passed]
    passed = f"{len(looked.checks) - len(failed)} of {len(looked.checks)} checks passed"
    reasons = [f"{check.name}: {check.reason}" for check in failed]
    return share_of_checks(looked.checks), "; ".join([passed, *reasons, *problems_found])
