"""When a run may stop early: by `--stop-when`, at planned looks, or both; and what neither can be combined with."""

from __future__ import annotations

from fairtrial.config.checked_suite import CheckedSuite
from fairtrial.config.document import SuiteDocument
from fairtrial.config.looks import planned_looks
from fairtrial.core.errors import FairtrialError
from fairtrial.core.many_arms import MOST_ARMS
from fairtrial.core.settings import FEWEST_CASES, StopSpec, target_specs


def stop_rule(suite: CheckedSuite, document: SuiteDocument) -> StopSpec | None:
    """Return when the run may stop, or None; raise if this suite cannot stop early."""
    options = suite.options
    if options.stop_when == "equivalent" and options.margin is None:
        raise FairtrialError("--stop-when equivalent needs --margin")
    looks, race = planned_looks(document, options)
    if not options.stop_when and not looks:
        return None
    asked = options.stop_when or options.looks or options.race or options.gap
    few_arms, few_cases = len(suite.arms) < 2, bool(options.selected()) and suite.case_count < FEWEST_CASES
    if not asked and (few_arms or few_cases):
        return None  # the suite plans looks for whole runs, and this is a part of one
    _check(suite, planned=bool(looks))
    gap = document.gap if document.gap is None else document.gap / 100
    return StopSpec(
        when=options.stop_when or "decided",
        margin=options.margin,
        looks=looks,
        race=race,
        gap=gap if options.gap is None else options.gap,
    )


def _check(suite: CheckedSuite, *, planned: bool) -> None:
    what = "looks" if planned else "stopping early"
    needs, takes = ("need", "take") if planned else ("needs", "takes")
    if len(suite.arms) < 2:
        raise FairtrialError(f"{what} {needs} at least two arms to compare: this suite has one")
    if len(suite.arms) > MOST_ARMS:
        raise FairtrialError(
            f"{what} compare{'' if planned else 's'} every pair of arms again and again, which {takes} at most "
            f"{MOST_ARMS} arms: this suite has {len(suite.arms)}"
        )
    if any(case.cluster is not None or case.weight != 1 for case in suite.cases()):
        raise FairtrialError(f"{what} {needs} independent cases of equal weight: remove `weight` and `cluster`")
    if suite.case_count < FEWEST_CASES:
        raise FairtrialError(f"{what} {needs} at least {FEWEST_CASES} cases: this suite has {suite.case_count}")
    batched = [spec.id for spec in target_specs(suite.arms, suite.settings) if spec.batch]
    if batched:
        raise FairtrialError(f"{what} {needs} answers one after the other: remove `batch` from {batched[0]}")
    if not planned:
        return
    if any(case.targets or case.conditions for case in suite.cases()):
        raise FairtrialError("looks need every case asked of every arm: remove `targets` and `conditions` from cases")
    worded = next((arm.condition.name for arm in suite.arms if len(arm.condition.prompts) > 1), None)
    if worded is not None:
        raise FairtrialError(f"looks do not allow for several wordings, as the condition `{worded}` has them: use one")
