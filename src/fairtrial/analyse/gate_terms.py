"""The terms of a gate: what a person or a suite demands, and which demands cannot be meant."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from fairtrial.analyse.gate_result import Unsure
from fairtrial.analyse.score_table import SCORE
from fairtrial.analyse.stored_run import StoredRun
from fairtrial.core.amounts import check_amount
from fairtrial.core.errors import FairtrialError
from fairtrial.core.gate import GateSpec
from fairtrial.stats.mean import ALPHA

DEFAULT_MARGIN = 0.05  # the acceptable loss if no margin is given
DEFAULT_COVERAGE = 0.95
ROUNDING = 1e-9


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """The requirements of a gate. Scores are 0–1; `these_cases` asks about these very cases, not cases like them."""

    min_score: float | None = None
    margin: float | None = None
    min_coverage: float | None = None
    metric: str = SCORE
    arms: tuple[str, ...] = ()
    these_cases: bool = False
    largest: float | None = None  # the largest difference a case can show, if that is less than the scale allows
    unsure: Unsure = "101"
    rules: GateSpec = GateSpec()  # about cases, categories and guards
    level: float = ALPHA  # of all statistical checks: less than 5 % for one of several looks

    @property
    def compared(self) -> list[str]:
        """What only a comparison with a baseline can check."""
        demands = {
            "margin": self.margin is not None,
            "categories": self.rules.categories,
            "guards": self.rules.guards,
        }
        return [name for name, demanded in demands.items() if demanded]

    @property
    def coverage(self) -> float:
        """The share of trials that must have a score; asked for whether or not a person did."""
        return DEFAULT_COVERAGE if self.min_coverage is None else self.min_coverage


def terms_of(run: StoredRun, given: Terms, *, named: frozenset[str]) -> Terms:
    """Return the terms with what the suite of a run says under `gate`; what a person `named` comes before it.

    Minimum and margin of the suite are about the score: they say nothing about another metric.
    """
    spec = gate_spec(run)
    if spec is None:
        return given
    stated: dict[str, Any] = {
        "min_score": None if spec.min_score is None or given.metric else spec.min_score / 100,
        "margin": None if spec.margin is None or given.metric else spec.margin / 100,
        "min_coverage": None if spec.min_coverage is None else spec.min_coverage / 100,
        "unsure": None if spec.unsure is None else str(spec.unsure),
    }
    changes = {name: value for name, value in stated.items() if value is not None and name not in named}
    return msgspec.structs.replace(given, **changes, rules=spec)


def gate_spec(run: StoredRun) -> GateSpec | None:
    """Return what the suite of a run says under `gate`."""
    return msgspec.convert(run.settings.get("gate"), GateSpec | None)


def check_terms(terms: Terms, against: object | None) -> None:
    """Reject thresholds that cannot be intended."""
    check_amount("margin", terms.margin, positive=True)
    check_amount("min_coverage", terms.min_coverage)
    if terms.metric and terms.min_score is not None and not math.isfinite(terms.min_score):
        raise FairtrialError(f"`min_score` must be a finite number, not {terms.min_score:g}")
    if terms.metric:
        if against is not None and terms.margin is None:
            raise FairtrialError(
                f"no acceptable loss of `{terms.metric}` is known: give --margin, on the metric's own scale"
            )
        return
    least = terms.min_score
    if least is not None and 0 < least <= 0.01:
        raise FairtrialError(
            f"scores are 0 to 100: a minimum of {100 * least:g} demands nothing; did you mean {1e4 * least:g}?"
        )
    if least is not None and not 0 <= least <= 1:
        raise FairtrialError(f"scores are 0 to 100: a minimum of {100 * least:g} is out of range")
    if terms.margin is not None and terms.margin > 1:
        raise FairtrialError(f"scores are 0 to 100: a margin of {100 * terms.margin:g} points allows any loss")
