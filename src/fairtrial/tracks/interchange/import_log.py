"""Writing one log of another tool as a run: scales of its metrics, trials in batches, and where it came from."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from typing import Any, NamedTuple

import msgspec

from fairtrial.core.answer import Answer, Outcome
from fairtrial.core.errors import FairtrialError
from fairtrial.core.experiment import Arm, Case, Condition, TargetSpec
from fairtrial.core.ids import canonical_json
from fairtrial.core.money import Cost
from fairtrial.core.score import ANY, Scale, Score, Unscored
from fairtrial.core.settings import Settings
from fairtrial.core.trial import Trial, TrialIds
from fairtrial.core.variables import Variables
from fairtrial.foreign.results import SHARE, Columns, Contestant, Log, Question, Sample
from fairtrial.store import Store, rows
from fairtrial.store.imports import ImportedRun
from fairtrial.text.printable import counted, paired
from fairtrial.tracks.interchange.values import name_of

_BATCH = 2000
_HELD = 32 * 2**20  # characters of answers and questions that are kept until they are written
_MAX_REPEATS = 2**20
_OF_ANSWER = tuple(set(Answer.__struct_fields__) & set(Sample.__struct_fields__) - {"cost_usd"})  # an outcome's


class ImportChoice(NamedTuple):
    """What the user chose."""

    columns: Columns
    scales: dict[str, Scale]  # by metric; "" is the chosen one

    def shown(self) -> dict[str, Any]:
        """Return it as data to be kept with the run."""
        given = {name: value for name, value in msgspec.structs.asdict(self.columns).items() if value is not None}
        scales = {name: list(ends) for name, ends in self.scales.items()}
        return {**given, **({"scale": scales} if scales else {})}


class OutsideError(Exception):
    """A value outside the scale that was assumed for its metric."""


class Ranges:
    """The scales of metrics: as the tool or the user says, else 0 to 1 as long as all values are."""

    def __init__(self, log: Log, choice: ImportChoice, primary: str | None) -> None:
        named = {name: scale for name, scale in choice.scales.items() if name}
        self.scales: dict[str, Scale] = {**log.scales, **named}
        if "" in choice.scales and primary is not None:
            self.scales[primary] = choice.scales[""]
        self.assumed: set[str] = set()

    def of(self, metric: str) -> Scale:
        """Return the scale of a metric."""
        scale = self.scales.get(metric)
        if scale is None:
            self.assumed.add(metric)
            scale = self.scales[metric] = SHARE
        return scale

    def widen(self, samples: Iterable[Sample]) -> None:
        """Take metrics with values outside 0 to 1 for unbounded ones."""
        for sample in samples:
            for name, value in sample.scores.items():
                if self.of(name) == SHARE and name in self.assumed and not 0 <= value <= 1:
                    self.scales[name] = ANY
                    self.assumed.discard(name)


class LogWriter:
    """Writes one log. If a value is outside the scale assumed for its metric, the log is read again."""

    def __init__(self, log: Log, choice: ImportChoice, store: Store, variables: Variables, target: ImportedRun) -> None:
        self.log, self.choice, self.store, self.variables, self.target = log, choice, store, variables, target
        self.primary = self._choose()
        self.ranges = Ranges(log, choice, self.primary)
        self.notes: list[str] = []

    def _choose(self) -> str | None:
        """Return the metric that becomes the score."""
        wanted, metrics = self.choice.columns.score, self.log.metrics
        if self.log.tool == "table" or wanted is None:
            return self.log.primary or next(iter(metrics), None)
        if metrics and wanted not in metrics:
            raise FairtrialError(f"{self._name()} has no metric `{wanted}` (--score); it has: {', '.join(metrics)}")
        return wanted

    def _name(self) -> str:
        return ", ".join(source.path.name for source in self.log.sources) or self.log.name

    def write(self) -> dict[str, Any]:
        """Write everything, and return where it came from."""
        try:
            return self._write()
        except OutsideError:
            self.ranges.widen(self.log.samples())
            self._check_primary()
            return self._write()

    def _check_primary(self) -> None:
        if self.primary is not None and None in (scale := self.ranges.of(self.primary)):
            why = "values outside 0 to 1" if scale == ANY else "a scale without bounds"
            raise FairtrialError(
                f"the metric `{self.primary}` of {self._name()} has {why}: say its worst and best "
                f"value with --scale WORST..BEST, or choose another metric with --score"
            )

    def _write(self) -> dict[str, Any]:
        log = self.log
        self.arms: dict[str, Arm] = {}
        self.ids: dict[str, TrialIds] = {}
        self.positions: dict[str, int] = {}  # of cases: all that is kept of them
        self.taken: dict[str, set[int]] = {}
        self.counts: dict[tuple[str, int], int] = {}
        self.metrics: dict[str, int] = {}
        self.graded: set[str] = set()
        self.samples = self.scored = self.failed = self.doubled = self.unmarked = 0
        self.answers = self.inputs = self.repeats = 0
        started = log.created or time.time()
        settings = canonical_json(msgspec.to_builtins(Settings()))
        plan = {
            "suite_name": name_of(log.name) or "results",
            "suite_text": "",
            "suite_sha256": "",
            "dataset_sha256": log.dataset_sha256,
            "folder": "",
        }
        self.target.begin(plan, {"settings": settings, "context": b"{}", "created_at": started})
        for name in log.arms:
            self._arm(name)
        self._write_samples()
        if not self.samples:
            raise FairtrialError(f"{self._name()} has no samples: nothing was imported")
        if log.graded and not self.metrics and not self.failed and not log.unfinished:
            raise FairtrialError(f"{self._name()} has no scores: is it the right file? --format says what it is")
        origin, known = self._origin(), self.log.arms
        sent = [{"arm": name, "sent": known[name].params if name in known else None} for name in self.arms]
        context = {"packages": {"fairtrial": version("fairtrial")}, "arms": sent, "imported": origin}
        run = {
            "status": "incomplete" if origin["unfinished"] else "completed",
            "reason": origin["unfinished"] or None,
            "context": canonical_json(self.variables.hide_all(context)),
            "ended_at": log.ended or started,
        }
        repeats = max(log.repeats or 1, self.repeats)
        self.target.finish(
            self._arms(), len(self.positions), 0 if log.repeats and origin["unfinished"] else repeats, run
        )
        return origin

    def _arms(self) -> bytes:
        repeats = max(self.log.repeats or 1, self.repeats)
        scorer = {"type": "imported", "tool": self.log.tool, "metric": self.primary or ""}
        arms = [msgspec.structs.replace(arm, repeats=repeats, scorer=scorer) for arm in self.arms.values()]
        return canonical_json(self.variables.template_all(msgspec.to_builtins(arms)))

    def _write_samples(self) -> None:
        known = held = 0
        cases: list[dict[str, Any]] = []
        trials: list[dict[str, Any]] = []
        scores: list[dict[str, Any]] = []
        for sample in self.log.samples():
            self._add(sample, cases, trials, scores)
            held += len(sample.answer or "") + len(sample.question.input)
            if len(trials) >= _BATCH or held >= _HELD:
                self.target.write(cases, trials, scores, self._arms() if len(self.arms) > known else None)
                cases, trials, scores, known, held = [], [], [], len(self.arms), 0
        self.target.write(cases, trials, scores, self._arms() if len(self.arms) > known else None)

    def _add(self, sample: Sample, cases: list[Any], trials: list[Any], scores: list[Any]) -> None:
        arm, name = self._arm(sample.arm), sample.question.id
        position = self.positions.get(name)
        if position is None:
            position = self.positions[name] = len(self.positions)
            cases.append(rows.case_row(self.target.plan_id, _case_of(sample.question, position), self.variables))
            self.inputs += bool(sample.question.input)
        case = Case(id=name, input="", position=position)  # what a trial needs
        place = (sample.arm, position)
        if sample.repeat is None:
            repeat = self.counts[place] = self.counts.get(place, -1) + 1
        else:
            repeat = sample.repeat
            taken = self.taken.setdefault(sample.arm, set())
            place_number = position * _MAX_REPEATS + min(repeat, _MAX_REPEATS - 1)
            if place_number in taken:
                self.doubled += 1
                return
            taken.add(place_number)
        self.samples += 1
        self.repeats = max(self.repeats, repeat + 1)
        trial = Trial(self.ids[sample.arm].make(case, repeat, {}), case, arm, repeat, {})
        trials.append(rows.trial_row(self.target.run_id, trial, _outcome_of(sample), self.variables))
        if sample.failure is not None:
            self.failed += 1
        else:
            self.answers += sample.answer is not None
            scores.append(self._score_row(trial, sample))

    def _score_row(self, trial: Trial, sample: Sample) -> dict[str, Any]:
        if self.primary is None:
            self.primary = next(iter(sample.scores), None)
            if self.primary is not None and "" in self.choice.scales:
                self.ranges.scales[self.primary] = self.choice.scales[""]
        metrics = {name: [value, *self._within(name, value)] for name, value in sample.scores.items()}
        primary = self.primary or ""
        for name, value in sample.scores.items():
            self.metrics[name] = self.metrics.get(name, 0) + 1
            if 0 < value < 1:
                self.graded.add(name)
        if primary in metrics:
            self.scored += 1
            scale = self.ranges.of(primary)
            if scale == SHARE:
                del metrics[primary]
            result: Score | Unscored = _score_of(sample.scores[primary], scale, sample.notes.get(primary, ""))
        else:
            self.unmarked += 1
            reason = sample.unscored.get(primary) or f"the tool recorded no {primary or 'score'} for it"
            result = Unscored(kind="unknown", message=reason)
        row = rows.score_row(self.target.run_id, trial, 0, {"type": primary or "none"}, result, self.variables)
        row["metrics"] = rows.encode(metrics) if metrics else None
        row["details"] = rows.encode(self.variables.hide_all(sample.details)) if sample.details else None
        return row

    def _within(self, name: str, value: float) -> Scale:
        scale = self.ranges.of(name)
        low, high = scale
        if low is None or high is None:
            if name == self.primary:
                self._check_primary()
            return scale
        if not min(low, high) <= value <= max(low, high):
            if name in self.ranges.assumed:
                raise OutsideError
            raise FairtrialError(f"{self._name()}: {name} is {value:g}, outside its scale {low:g} to {high:g}")
        return scale

    def _arm(self, name: str) -> Arm:
        arm = self.arms.get(name)
        if arm is None:
            contestant = self.log.arms.get(name) or Contestant(name=name)
            arm = self.arms[name] = _arm_of(contestant, len(self.arms), self.log.tool)
            self.ids[name] = TrialIds(arm)
        return arm

    def _origin(self) -> dict[str, Any]:
        """Return where the run came from: what a reader of its numbers has to know."""
        log = self.log
        stopped = [source.stopped for source in log.sources if source.stopped]
        return {
            "tool": log.tool,
            "version": log.version,
            "files": [{"name": name_of(source.path.name), "sha256": source.sha256} for source in log.sources],
            "part": log.part,
            "lineage": log.lineage,
            "choice": self.choice.shown(),
            "imported_at": time.time(),
            "metric": self.primary or "",
            "metrics": list(self.metrics),
            "scales": {name: list(self.ranges.of(name)) for name in self.metrics},
            "samples": self.samples,
            "scored": self.scored,
            "failed": self.failed,
            "unscored": self.unmarked,
            "unfinished": "; ".join([*([log.unfinished] if log.unfinished else []), *stopped]),
            "notes": [*log.notes, *self.notes, *self._remarks()],
            "missing": self._missing(),
        }

    def _remarks(self) -> Iterator[str]:
        others = [name for name in self.metrics if name != self.primary]
        if others:
            why = "as chosen" if self.choice.columns.score else "the first that the tool names; --score chooses another"
            yield f"`{self.primary}` is the score ({why}); other metrics: {', '.join(others)}"
        graded = [name for name in self.metrics if name in self.ranges.assumed and name in self.graded]
        if graded:
            yield f"{', '.join(graded)}: taken to go from 0 to 1, as all values do; --scale says otherwise"
        if self.failed:
            yield f"{counted(self.failed, 'failed sample')}: failures are not scores, and no mean here counts them as 0"
        if self.doubled:
            yield f"{counted(self.doubled, 'sample')} left out: duplicates of the same sample and epoch"

    def _missing(self) -> list[str]:
        missing = list(self.log.missing)
        if not self.inputs and "what was asked" not in missing:
            missing.append("what was asked")
        if not self.answers and "the answers" not in missing:
            missing.append("the answers")
        return missing


def _score_of(value: float, scale: Scale, notes: str) -> Score:
    worst, best = scale
    assert worst is not None and best is not None  # it was checked against its scale before
    return Score(value=(value - worst) / (best - worst), raw=value, max=best, notes=notes)


def _arm_of(contestant: Contestant, position: int, tool: str) -> Arm:
    target = TargetSpec(
        id=contestant.name,
        kind="imported",
        provider=contestant.provider or tool,
        model=contestant.model or contestant.name,
    )
    prompts = (contestant.prompt,) if contestant.prompt else ()
    condition = Condition(name=contestant.condition, system=contestant.system, prompts=prompts)
    params = contestant.params or {}
    return Arm(
        name=contestant.name,
        target=target,
        condition=condition,
        params=params,
        scorer={"type": "imported"},
        position=position,
    )


def _case_of(question: Question, position: int) -> Case:
    return Case(
        id=question.id,
        input=paired(question.input),
        expected=question.expected,
        weight=question.weight,
        tags=question.tags,
        category=question.category,
        difficulty=question.difficulty,
        cluster=question.cluster,
        metadata=question.metadata or None,
        targets=question.arms,
        position=position,
    )


def _outcome_of(sample: Sample) -> Outcome:
    """Return how a sample ended, as the outcome of a trial."""
    cost = sample.cost_usd
    known = Cost(known=cost, charged=cost) if cost is not None and 0 <= cost < 1e9 else Cost(unknown=1)
    result = sample.failure or Answer(text=sample.answer or "", **{name: getattr(sample, name) for name in _OF_ANSWER})
    if sample.failure is not None:
        result = msgspec.structs.replace(sample.failure, usage=sample.usage, trace=sample.trace)
    return Outcome(
        result=result,
        attempts=1 + len(sample.tried),
        cost=known,
        waited_ms=sample.waited_ms,
        tried=sample.tried,
        started_at=sample.started_at or 0.0,
    )
