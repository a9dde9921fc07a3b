"""What can be known about the cases before anything is asked."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import msgspec

from fairtrial.config.source import Source
from fairtrial.config.suite import Suite
from fairtrial.core.accepted import case_problems
from fairtrial.core.errors import FairtrialError, Problem
from fairtrial.core.experiment import Case
from fairtrial.core.ids import canonical_json
from fairtrial.core.options import build_scorer
from fairtrial.core.scorer import Scorer
from fairtrial.core.text import name_problem

_MOST_PROBLEMS = 50


def check_cases(suite: Suite, source: Source) -> None:
    """Add to the source's problems everything wrong with the cases, and count them."""
    checker = _Checker(suite)
    count = 0
    for place, case, problem in suite.located_cases():
        count += 1
        reasons = [problem] if case is None else checker.problems(case)
        for reason in reasons:
            source.problems.append(msgspec.structs.replace(place, message=reason))
        if len(source.problems) >= _MOST_PROBLEMS:
            source.problems.append(Problem(f"and perhaps more: stopped after {_MOST_PROBLEMS} problems", suite.file))
            break
    suite.case_count, suite.scorers = count, checker.scorers
    if suite.options.limit is None:
        for name in sorted(set(suite.options.cases) - checker.seen_names):
            source.problem((), f"--case {name}: there is no such case")
    if count == 0 and not source.problems:
        source.problem((), "there is nothing to ask: no case is left")


class _Checker:
    def __init__(self, suite: Suite) -> None:
        self._suite = suite
        self._ids: set[int] = set()  # hashes: 100,000 ids should not cost 10 MB
        self._wanted = set(suite.options.cases)
        self.seen_names: set[str] = set()
        self.scorers: set[bytes] = set()
        self._common = [arm.scorer for arm in suite.arms] or [suite.default_scorer]

    def problems(self, case: Case) -> list[str]:
        found = [problem for problem in map(name_problem, _names(case)) if problem][:1]
        if hash(case.id) in self._ids:
            found.append(f"the id `{case.id}` stands twice")
        self._ids.add(hash(case.id))
        if case.id in self._wanted:
            self.seen_names.add(case.id)
        specs = [case.scorer] if case.scorer else self._common
        for key in dict.fromkeys(canonical_json(spec) for spec in specs):
            self.scorers.add(key)
            found += self._scorer_problems(key, case)
        return found

    def _scorer_problems(self, key: bytes, case: Case) -> list[str]:
        scorer = _scorer(key)
        if isinstance(scorer, str):
            # A scorer that cannot be built is reported where it is written: here, if the case wrote it.
            return [scorer] if case.scorer else []
        found = list(case_problems(scorer, case, self._suite.folder))
        if scorer.needs_judge() and not self._suite.settings.judges:
            found.append("its scorer needs a judge: add `judge:` to the suite")
        return found


def _names(case: Case) -> Iterator[str]:
    """What a case is called, and the kinds it belongs to."""
    yield case.id
    yield from case.tags
    yield from (name for name in (case.category, case.difficulty, case.cluster) if name)


@lru_cache(maxsize=512)
def _scorer(key: bytes) -> Scorer | str:
    spec: Any = msgspec.json.decode(key)
    try:
        return build_scorer(spec)
    except FairtrialError as error:
        return str(error)
