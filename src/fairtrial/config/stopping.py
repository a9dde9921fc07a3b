"""Checks whether a run may stop early: only if its cases can be analysed one by one."""

from __future__ import annotations

from fairtrial.config.checked_suite import CheckedSuite
from fairtrial.core.errors import FairtrialError
from fairtrial.core.settings import StopSpec, target_specs
from fairtrial.core.stopping import FEWEST


def stop_rule(suite: CheckedSuite) -> StopSpec | None:
    """Return the stopping rule of the run options, or None; raise if this suite cannot stop early."""
    when, margin = suite.options.stop_when, suite.options.margin
    if when is None:
        return None
    if when == "equivalent" and margin is None:
        raise FairtrialError("--stop-when equivalent needs --margin")
    if len(suite.arms) < 2:
        raise FairtrialError("stopping early needs at least two arms to compare: this suite has one")
    if any(case.cluster is not None or case.weight != 1 for case in suite.cases()):
        raise FairtrialError("stopping early needs independent cases of equal weight: remove `weight` and `cluster`")
    if suite.case_count < FEWEST:
        raise FairtrialError(f"stopping early needs at least {FEWEST} cases: this suite has {suite.case_count}")
    batched = [spec.id for spec in target_specs(suite.arms, suite.settings) if spec.batch]
    if batched:
        raise FairtrialError(f"stopping early needs answers one after the other: remove `batch` from {batched[0]}")
    return StopSpec(when=when, margin=margin)
