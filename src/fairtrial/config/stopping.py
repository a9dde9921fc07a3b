"""When a run may end early: only where its cases can be looked at one by one."""

from __future__ import annotations

from fairtrial.config.suite import Suite
from fairtrial.core.errors import FairtrialError
from fairtrial.core.experiment import StopSpec
from fairtrial.core.stopping import FEWEST


def stop_rule(suite: Suite) -> StopSpec | None:
    """The rule that the caller asked for, or None; an error where this suite cannot be stopped early."""
    when, margin = suite.options.stop_when, suite.options.margin
    if when is None:
        return None
    if when == "equivalent" and margin is None:
        raise FairtrialError("equivalent within what? --stop-when equivalent needs --margin")
    if len(suite.arms) < 2:
        raise FairtrialError("a run can stop early only when there are two arms to tell apart: this suite has one")
    if any(case.cluster is not None or case.weight != 1 for case in suite.cases()):
        raise FairtrialError("stopping early needs cases that count alike and stand alone: no `weight`, no `cluster`")
    if suite.case_count < FEWEST:
        raise FairtrialError(f"stopping early begins at {FEWEST} cases, and this suite has {suite.case_count}")
    return StopSpec(when=when, margin=margin)
