"""Results of other tools become ordinary runs: read, given ids from their content, and stored in batches."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from fairtrial.analyse import Run
from fairtrial.config import variables_of
from fairtrial.core.answer import Answer, Outcome
from fairtrial.core.errors import FairtrialError
from fairtrial.core.experiment import Arm, Case, Condition, Settings, TargetSpec
from fairtrial.core.ids import canonical_json, dated_id
from fairtrial.core.money import Cost
from fairtrial.core.score import ANY, Scale, Score, Unscored
from fairtrial.core.text import counted
from fairtrial.core.trial import Trial, TrialIds
from fairtrial.core.variables import Variables
from fairtrial.results import SHARE, Columns, Contestant, Log, Question, Sample, reader_of, recognise
from fairtrial.results._frame import frame_log, is_frame
from fairtrial.results._source import Source
from fairtrial.results._values import name_of
from fairtrial.store import Store, rows
from fairtrial.store.imports import ImportedRun, attempts_at, find_imported, is_cared_for

_BATCH = 2000
_MAX_REPEATS = 2**20
Happened = Literal["imported", "already there", "older attempt"]


class Import(NamedTuple):
    """One log and what became of it."""

    run: Run
    happened: Happened
    origin: dict[str, Any]
    replaced: tuple[str, ...] = ()  # runs of earlier attempts that were removed


class _Choice(NamedTuple):
    columns: Columns
    scales: dict[str, Scale]  # by metric; "" is the chosen one


async def aimport_results(data: Any, *, store: Store, **options: Any) -> list[Import]:
    """Import results without blocking the event loop."""
    return await asyncio.to_thread(import_all, data, store=store, **options)


def import_all(
    data: Any,
    *,
    store: Store,
    format: str | None = None,
    columns: Columns | None = None,
    scales: Mapping[str, Scale] | None = None,
) -> list[Import]:
    """Import files, folders or a data frame; every log in them becomes a run."""
    choice = _Choice(columns or Columns(), dict(scales or {}))
    logs = [frame_log(data, choice.columns)] if is_frame(data) else _logs(data, format, choice.columns)
    variables = variables_of()
    done = [_import(log, choice, store, variables) for log in sorted(logs, key=lambda log: log.created or 0.0)]
    if not done:
        raise FairtrialError("there are no results in these files: nothing was imported")
    return done


# -- which files, which format --------------------------------------------------------------------


def _logs(data: Any, format: str | None, columns: Columns) -> Iterator[Log]:
    paths = [data] if isinstance(data, str | Path) else list(data)
    by_format: dict[str, list[Source]] = {}
    seen: set[Path] = set()
    for path in map(Path, paths):
        for source, named in _files(path):
            if source.path.resolve() in seen:
                continue
            seen.add(source.path.resolve())
            found = format or recognise(source)
            if found is None and named and (columns.case or columns.arm):
                found = "table"  # columns that the user names make it one
            source.release()
            if found is None and named:
                raise FairtrialError(_unknown(source))
            if found is not None:
                by_format.setdefault(found, []).append(source)
    for name, sources in by_format.items():
        yield from _read(name, sources, columns)


def _read(name: str, sources: Sequence[Source], columns: Columns) -> Iterator[Log]:
    try:
        yield from reader_of(name).read(sources, columns)
    except (TypeError, AttributeError, KeyError, ValueError, IndexError, RecursionError) as error:
        raise _misfit(name, sources, error) from error


def _misfit(name: str, sources: Sequence[Source], error: Exception) -> FairtrialError:
    files = ", ".join(source.path.name for source in sources[:3])
    return FairtrialError(f"{files} does not have the structure of {name} results: {type(error).__name__}: {error}")


def _files(path: Path) -> Iterator[tuple[Source, bool]]:
    """Yield the files that a path stands for, and whether the user named them."""
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.is_file() and not file.name.startswith("."))
        yield from ((Source(file), False) for file in files)
    elif path.is_file():
        yield Source(path), True
    else:
        raise FairtrialError(f"{path} is not there: give a file or a folder with results")


def _unknown(source: Source) -> str:
    return (
        f"{source.path.name} is not recognised as results of a tool: say what it is with --format, or give a table "
        "with columns for case, arm and score (--case, --arm, --score)"
    )


# -- one log --------------------------------------------------------------------------------------


def _import(log: Log, choice: _Choice, store: Store, variables: Variables) -> Import:
    key = canonical_json([log.tool, log.part, [s.sha256 for s in log.sources], log.lineage, choice])
    digest = hashlib.sha256(key).digest()
    run_id = dated_id(log.created, digest)
    known = find_imported(store, run_id)
    if known is not None and known.status != "running":
        return Import(Run(store, known), "already there", known.origin or {})
    older: list[str] = []
    if log.lineage:
        for record, origin in attempts_at(store, log.tool, log.lineage):
            if origin.get("part", "") == log.part and origin.get("choice") == _shown(choice):
                if record.created_at > (log.created or 0.0) or (
                    record.created_at == log.created and record.status == "completed"
                ):
                    return Import(Run(store, record), "older attempt", origin)
                older.append(record.id)
    writer = _Writer(log, choice, store, variables, ImportedRun(store, run_id, f"imported-{digest.hex()[:32]}"))
    with store.lease(run_id):
        try:
            origin = writer.write()
        except (TypeError, AttributeError, KeyError, ValueError, IndexError, RecursionError) as error:
            writer.target.discard()
            raise _misfit(log.tool, log.sources, error) from error
        except BaseException:
            writer.target.discard()
            raise
    replaced = [name for name in older if not is_cared_for(store, name)]
    for name in replaced:
        store.delete_run(name)
    return Import(Run(store, store.run_of_id(run_id)), "imported", origin, tuple(replaced))


def _shown(choice: _Choice) -> dict[str, Any]:
    given = {name: value for name, value in msgspec.structs.asdict(choice.columns).items() if value is not None}
    return {**given, **({"scale": {name: list(ends) for name, ends in choice.scales.items()}} if choice.scales else {})}


class _OutsideError(Exception):
    """A value outside the scale that was assumed for its metric."""


class _Ranges:
    """The scales of metrics: as the tool or the user says, else 0 to 1 as long as all values are."""

    def __init__(self, log: Log, choice: _Choice, primary: str | None) -> None:
        named = {name: scale for name, scale in choice.scales.items() if name}
        self.scales: dict[str, Scale] = {**log.scales, **named}
        if "" in choice.scales and primary is not None:
            self.scales[primary] = choice.scales[""]
        self.assumed: set[str] = set()

    def of(self, metric: str) -> Scale:
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


class _Writer:
    """Writes one log. If a value is outside the scale assumed for its metric, the log is read again."""

    def __init__(self, log: Log, choice: _Choice, store: Store, variables: Variables, target: ImportedRun) -> None:
        self.log, self.choice, self.store, self.variables, self.target = log, choice, store, variables, target
        self.primary = self._choose()
        self.ranges = _Ranges(log, choice, self.primary)
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
        try:
            return self._write()
        except _OutsideError:
            self.ranges.widen(self.log.samples())
            self._check_primary()
            return self._write()

    def _check_primary(self) -> None:
        if self.primary is not None and self.ranges.of(self.primary) == ANY:
            raise FairtrialError(
                f"the metric `{self.primary}` of {self._name()} has values outside 0 to 1: say its worst and best "
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
            "dataset_sha256": "",
            "folder": "",
        }
        self.target.begin(plan, {"settings": settings, "context": b"{}", "created_at": started})
        for name in log.arms:
            self._arm(name)
        self._write_samples()
        if not self.samples:
            raise FairtrialError(f"{self._name()} has no samples: nothing was imported")
        if not self.metrics and not self.failed and not log.unfinished:
            raise FairtrialError(f"{self._name()} has no scores: is it the right file? --format says what it is")
        origin = self._origin()
        run = {
            "status": "incomplete" if origin["unfinished"] else "completed",
            "reason": origin["unfinished"] or None,
            "context": canonical_json(self.variables.hide_all(self._context(origin))),
            "ended_at": log.ended or started,
        }
        repeats = max(log.repeats or 1, self.repeats)
        arms = [msgspec.structs.replace(arm, repeats=repeats, scorer=self._scorer()) for arm in self.arms.values()]
        blob = canonical_json(self.variables.template_all(msgspec.to_builtins(arms)))
        self.target.finish(blob, len(self.positions), 0 if log.repeats and origin["unfinished"] else repeats, run)
        return origin

    def _write_samples(self) -> None:
        cases: list[dict[str, Any]] = []
        trials: list[dict[str, Any]] = []
        scores: list[dict[str, Any]] = []
        for sample in self.log.samples():
            self._add(sample, cases, trials, scores)
            if len(trials) >= _BATCH:
                self.target.write(cases, trials, scores)
                cases, trials, scores = [], [], []
        self.target.write(cases, trials, scores)

    def _add(self, sample: Sample, cases: list[Any], trials: list[Any], scores: list[Any]) -> None:
        arm, name = self._arm(sample.arm), sample.question.id
        position = self.positions.get(name)
        if position is None:
            position = self.positions[name] = len(self.positions)
            cases.append(rows.case_row(self.target.plan_id, _case(sample.question, position), self.variables))
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
        trials.append(rows.trial_row(self.target.run_id, trial, _outcome(sample), self.variables))
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
            result: Score | Unscored = _score(sample.scores[primary], scale, sample.notes.get(primary, ""))
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
                raise _OutsideError
            raise FairtrialError(f"{self._name()}: {name} is {value:g}, outside its scale {low:g} to {high:g}")
        return scale

    def _arm(self, name: str) -> Arm:
        arm = self.arms.get(name)
        if arm is None:
            contestant = self.log.arms.get(name) or Contestant(name=name)
            arm = self.arms[name] = _arm(contestant, len(self.arms), self.log.tool)
            self.ids[name] = TrialIds(arm)
        return arm

    def _scorer(self) -> dict[str, Any]:
        return {"type": "imported", "tool": self.log.tool, "metric": self.primary or ""}

    def _context(self, origin: dict[str, Any]) -> dict[str, Any]:
        sent = [{"arm": arm.name, "sent": self._sent(arm.name)} for arm in self.arms.values()]
        return {"packages": {"fairtrial": version("fairtrial")}, "arms": sent, "imported": origin}

    def _sent(self, name: str) -> dict[str, Any] | None:
        contestant = self.log.arms.get(name)
        return contestant.params if contestant else None

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
            "choice": _shown(self.choice),
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
            yield f"`{self.primary}` is the score ({why}); metrics beside it: {', '.join(others)}"
        graded = [name for name in self.metrics if name in self.ranges.assumed and name in self.graded]
        if graded:
            yield f"{', '.join(graded)}: taken to go from 0 to 1, as all values do; --scale says otherwise"
        if self.failed:
            yield f"{counted(self.failed, 'failed sample')}: failures are not scores, and no mean here counts them as 0"
        if self.doubled:
            yield f"{counted(self.doubled, 'sample')} left out: the same sample and epoch stood there before"

    def _missing(self) -> list[str]:
        missing = list(self.log.missing)
        if not self.inputs and "what was asked" not in missing:
            missing.append("what was asked")
        if not self.answers and "the answers" not in missing:
            missing.append("the answers")
        return missing


def _score(value: float, scale: Scale, notes: str) -> Score:
    worst, best = scale
    assert worst is not None and best is not None  # `_within` has made sure
    return Score(value=(value - worst) / (best - worst), raw=value, max=best, notes=notes)


def _arm(contestant: Contestant, position: int, tool: str) -> Arm:
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


def _case(question: Question, position: int) -> Case:
    return Case(
        id=question.id,
        input=rows.clean(question.input),
        expected=question.expected,
        weight=question.weight,
        tags=question.tags,
        category=question.category,
        difficulty=question.difficulty,
        cluster=question.cluster,
        metadata=question.metadata or None,
        position=position,
    )


def _outcome(sample: Sample) -> Outcome:
    cost = sample.cost_usd
    known = Cost(known=cost, charged=cost) if cost is not None and 0 <= cost < 1e9 else Cost(unknown=1)
    result = sample.failure or Answer(
        text=sample.answer or "",
        finish_reason=sample.finish_reason,
        usage=sample.usage,
        model=sample.model,
        latency_ms=sample.latency_ms,  # type: ignore[arg-type]  # unknown times are stored as unknown
        reasoning=sample.reasoning,
        trace=sample.trace,
    )
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
