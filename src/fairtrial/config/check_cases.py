"""Checks of the cases before a run."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from fairtrial.config.checked_suite import CheckedSuite
from fairtrial.config.source import SuiteSource
from fairtrial.core import registry
from fairtrial.core.accepted import case_problems
from fairtrial.core.errors import FairtrialError, Problem
from fairtrial.core.experiment import Arm, Case, Condition
from fairtrial.core.ids import canonical_json
from fairtrial.core.options import build_scorer
from fairtrial.core.questions import Questions
from fairtrial.core.scorer import Scorer
from fairtrial.core.skill_use import ANY, wanted_of
from fairtrial.core.target import Target
from fairtrial.core.templates import TemplateError, fill, is_template, names_in
from fairtrial.core.turn_checks import turn_checks
from fairtrial.text.printable import name_problem

_MAX_PROBLEMS = 50
FIRST_CASES = 10_000  # are checked before a run starts; it takes a fraction of a second
_FILLED_CASES = 100  # whose templates are filled in; of later ones only the names are checked, which is quick


def check_cases(suite: CheckedSuite, source: SuiteSource, judges: Sequence[str], *, whole: bool) -> None:
    """Add every problem of the cases to the source, and count the cases.

    `judges` are the names of all judges that the suite has; those that cannot be used were reported before. Unless
    `whole`, later cases of a large dataset are checked when they are read, if nothing else depends on them.
    """
    checker = _Checker(suite, judges)
    last = None if whole or not suite.can_check_later else FIRST_CASES
    count = 0
    for place, case, problem in suite.located_cases():
        if count == last:
            suite.check_later = checker.problems
            break
        count += 1
        reasons = [problem] if case is None else checker.problems(case)
        for reason in reasons:
            source.problems.append(msgspec.structs.replace(place, message=reason))
        if len(source.problems) >= _MAX_PROBLEMS:
            source.problems.append(Problem(f"stopped after {_MAX_PROBLEMS} problems; there may be more", suite.file))
            break
    suite.case_count, suite.scorers, suite.repeated = count, checker.scorers, checker.repeated
    if suite.options.limit is None and suite.options.first is None:
        for name in sorted(set(suite.options.cases) - checker.seen_names):
            source.problem((), f"--case {name}: there is no such case")
    if count == 0 and not source.problems:
        source.problem((), "no cases to run: the suite has none, or the options exclude all of them")


class _Checker:
    def __init__(self, suite: CheckedSuite, judges: Sequence[str]) -> None:
        self._suite = suite
        self._ids = _Seen()
        self._questions, self._asked_before = Questions(suite.arms), _Seen()
        self.repeated = 0  # cases that repeat the question of another one
        self._wanted = set(suite.options.cases)
        self.seen_names: set[str] = set()
        self.scorers: set[bytes] = set()
        specs = [arm.scorer for arm in suite.arms] or [suite.default_scorer]
        self._common = list(dict.fromkeys(canonical_json(spec) for spec in specs))
        self._extract = any(arm.extract for arm in suite.arms)
        self._texts = list(_template_texts(suite))
        self._judges = list(judges)
        self._lacks_judge = False  # said once: the suite lacks it, not the case
        self._filled = 0  # cases whose templates were filled in completely

    def problems(self, case: Case) -> list[str]:
        problems = list(islice(filter(None, map(name_problem, _names(case))), 1))
        if self._ids.seen(case.id):
            problems.append(f"duplicate case id `{case.id}`: give each case its own id")
        if case.id in self._wanted:
            self.seen_names.add(case.id)
        question = self._questions.key(case)
        self.repeated += question is not None and self._asked_before.seen(question)
        if self._texts:
            problems += self._template_problems(case)
        if case.attach:
            blind = [arm.target.id for arm in self._asked(case) if not _kind_of(arm).takes_files]
            problems += [f"{name} cannot be sent {case.attach[0].name}" for name in dict.fromkeys(blind)]
        problems += _skill_problems(case, self._asked(case))
        keys = self._scorer_keys(case)
        self.scorers.update(keys)
        for key in keys:
            problems += self._scorer_problems(key, case)
        return problems

    def _asked(self, case: Case) -> list[Arm]:
        """Return the arms that are asked a case."""
        return [arm for arm in self._suite.arms if arm.is_asked(case.targets, case.conditions)]

    def _scorer_keys(self, case: Case) -> list[bytes]:
        """Return the scorers of a case, as JSON."""
        keys = self._own_keys(case)
        user = self._suite.settings.user
        return keys if user is None else [*keys, *map(canonical_json, user.end)]

    def _own_keys(self, case: Case) -> list[bytes]:
        if self._extract or case.extract or turn_checks(case.metadata):
            return list(dict.fromkeys(canonical_json(arm.scorer_of(case)) for arm in self._asked(case)))
        return [canonical_json(case.scorer)] if case.scorer else self._common

    def _template_problems(self, case: Case) -> Iterator[str]:
        """Yield names without a value, and for the first cases whatever else is wrong once values are filled in."""
        thorough = self._filled < _FILLED_CASES
        self._filled += 1
        asked = {arm.condition.name for arm in self._asked(case)} if case.targets or case.conditions else None
        for condition, what, text, names in self._texts:
            if asked is not None and condition.name and condition.name not in asked:
                continue
            values = condition.values(case)
            if not thorough and names <= values.keys():
                continue
            try:
                fill(text, values)
            except TemplateError as error:
                unknown = next((name for name in sorted(names - values.keys()) if f"`{name}`" in str(error)), None)
                if unknown is None:
                    yield f"{what}: {error}"
                else:
                    hint = registry.nearest(unknown, sorted(values))
                    yield f"{what}: this case has no `{unknown}`{hint}"

    def _scorer_problems(self, key: bytes, case: Case) -> list[str]:
        scorer = _scorer(key)
        if isinstance(scorer, str):
            # A broken scorer is reported where it is written: here only if it is on the case.
            return [scorer] if case.scorer else []
        problems = list(case_problems(scorer, case, self._suite.folder))
        if scorer.needs_judge() and not self._judges and not self._lacks_judge:
            self._lacks_judge = True
            problems.append("its scorer needs a judge: add `judge:` to the suite")
        if scorer.needs_workspace():
            homeless = [arm.target.id for arm in self._asked(case) if not _kind_of(arm).uses_workspace]
            problems += [f"{name} works in no folder that its scorer could look into" for name in homeless[:1]]
        if self._judges and (unknown := sorted(scorer.judges() - set(self._judges))):
            hint = registry.nearest(unknown[0], self._judges)
            problems.append(f"its scorer is to be judged by `{unknown[0]}`, which is not defined as a judge{hint}")
        return problems


def _skill_problems(case: Case, arms: Sequence[Arm]) -> Iterator[str]:
    """Yield skills that a case speaks of and no condition has, and what could be meant of several."""
    wanted = (case.metadata or {}).get("skill") and wanted_of(case)  # a column may have the same name
    if not wanted or not arms:
        return
    given = [[skill.name for skill in arm.condition.skills] for arm in arms]
    known = sorted({name for names in given for name in names})
    if not known:
        yield "`skill` says what a skill should do, and no condition of this case has `skills`"
    elif wanted.get(ANY) == "fires" and (several := next((names for names in given if len(names) > 1), None)):
        yield f"`skill: fires` could mean {' or '.join(several)}: name it, as in `skill: {{{several[0]}: fires}}`"
    for name in wanted.keys() - {ANY, *known} if known else ():
        yield f"`skill`: no condition of this case has the skill `{name}`{registry.nearest(name, known)}"


def _kind_of(arm: Arm) -> type[Target]:
    kind: type[Target] = registry.load("targets", arm.target.kind)
    return kind


class _Seen:
    """Ids or questions of all cases so far, as 8 bytes each: a set of a million would take 100 MB."""

    _MOST = 1 << 17  # in the set; older ones are in sorted arrays

    def __init__(self) -> None:
        self._latest: set[int] = set()
        self._older: list[array[int]] = []

    def seen(self, value: str | bytes) -> bool:
        """Return whether this occurred before, and remember it."""
        key = hash(value)
        if key in self._latest or any(_contains(keys, key) for keys in self._older):
            return True
        self._latest.add(key)
        if len(self._latest) == self._MOST:
            self._older.append(array("q", sorted(self._latest)))
            self._latest.clear()
        return False


def _contains(keys: array[int], key: int) -> bool:
    """Return whether a sorted array contains a key."""
    index = bisect_left(keys, key)
    return index < len(keys) and keys[index] == key


class _Text(NamedTuple):
    """A template, its place, and the names in it."""

    condition: Condition
    what: str
    text: str
    names: frozenset[str]


def _template_texts(suite: CheckedSuite) -> Iterator[_Text]:
    """Yield every template of the suite once, with its place."""
    conditions = {arm.condition.name: arm.condition for arm in suite.arms}
    common = Condition(name="", vars=suite.vars)  # for every case, whatever it is asked under
    texts = [(condition, what, text) for condition in conditions.values() for what, text in _texts_of(condition)]
    texts += [(common, f"the instructions of judge {one.name}", one.instructions) for one in suite.settings.judges]
    if (user := suite.settings.user) is not None:
        texts += [
            (common, "the simulated user's persona", user.persona),
            (common, "the simulated user's goal", user.goal),
        ]
    for condition, what, text in texts:
        if is_template(text):
            yield _Text(condition, what, text, names_in(text))


def _texts_of(condition: Condition) -> Iterator[tuple[str, str]]:
    if not condition.templates:
        return
    yield "the system prompt", condition.system
    for text in (*condition.prompts, *(message.content for message in condition.chat)):
        yield f"prompt `{condition.name}`", text


def _names(case: Case) -> list[str]:
    """Return the id of a case and its labels (tags, category, difficulty, cluster)."""
    labels = (case.category, case.difficulty, case.cluster)
    return [case.id, *case.tags, *filter(None, labels)]


@lru_cache(maxsize=512)
def _scorer(key: bytes) -> Scorer | str:
    spec: Any = msgspec.json.decode(key)
    try:
        return build_scorer(spec)
    except FairtrialError as error:
        return str(error)
