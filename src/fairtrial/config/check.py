"""Checks of the cases before a run."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import msgspec

from fairtrial.config.source import Source
from fairtrial.config.suite import Suite
from fairtrial.core.accepted import case_problems
from fairtrial.core.errors import FairtrialError, Problem
from fairtrial.core.experiment import Case, ScorerSpec
from fairtrial.core.ids import canonical_json
from fairtrial.core.options import build_scorer
from fairtrial.core.scorer import Scorer
from fairtrial.core.text import name_problem

_MAX_PROBLEMS = 50


def check_cases(suite: Suite, source: Source) -> None:
    """Add every problem of the cases to the source, and count the cases."""
    checker = _Checker(suite)
    count = 0
    for place, case, problem in suite.located_cases():
        count += 1
        reasons = [problem] if case is None else checker.problems(case)
        for reason in reasons:
            source.problems.append(msgspec.structs.replace(place, message=reason))
        if len(source.problems) >= _MAX_PROBLEMS:
            source.problems.append(Problem(f"stopped after {_MAX_PROBLEMS} problems; there may be more", suite.file))
            break
    suite.case_count, suite.scorers = count, checker.scorers
    if suite.options.limit is None:
        for name in sorted(set(suite.options.cases) - checker.seen_names):
            source.problem((), f"--case {name}: there is no such case")
    if count == 0 and not source.problems:
        source.problem((), "no cases to run: the suite has none, or the options exclude all of them")


class _Checker:
    def __init__(self, suite: Suite) -> None:
        self._suite = suite
        self._ids: set[int] = set()  # hashes, because 100,000 ids would take 10 MB
        self._wanted = set(suite.options.cases)
        self.seen_names: set[str] = set()
        self.scorers: set[bytes] = set()
        self._common = [arm.scorer for arm in suite.arms] or [suite.default_scorer]
        self._extract = any(arm.extract for arm in suite.arms)

    def problems(self, case: Case) -> list[str]:
        problems = [problem for problem in map(name_problem, _names(case)) if problem][:1]
        if hash(case.id) in self._ids:
            problems.append(f"duplicate case id `{case.id}`: give each case its own id")
        self._ids.add(hash(case.id))
        if case.id in self._wanted:
            self.seen_names.add(case.id)
        for key in dict.fromkeys(canonical_json(spec) for spec in self._specs(case)):
            self.scorers.add(key)
            problems += self._scorer_problems(key, case)
        return problems

    def _specs(self, case: Case) -> list[ScorerSpec]:
        if self._extract or case.extract:
            return [arm.scorer_of(case) for arm in self._suite.arms]
        return [case.scorer] if case.scorer else self._common

    def _scorer_problems(self, key: bytes, case: Case) -> list[str]:
        scorer = _scorer(key)
        if isinstance(scorer, str):
            # A broken scorer is reported where it is written: here only if it is on the case.
            return [scorer] if case.scorer else []
        problems = list(case_problems(scorer, case, self._suite.folder))
        if scorer.needs_judge() and not self._suite.settings.judges:
            problems.append("its scorer needs a judge: add `judge:` to the suite")
        return problems


def _names(case: Case) -> Iterator[str]:
    """Yield the id of a case and its labels (tags, category, difficulty, cluster)."""
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
