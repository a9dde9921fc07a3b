"""The arms of runs, series and stores, with their scores case by case, ready to be compared."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np

from fairtrial.analyse.common import Common, common_cases
from fairtrial.analyse.matching import matched
from fairtrial.analyse.run import Run
from fairtrial.analyse.stopping import whenever_stopped
from fairtrial.core.errors import FairtrialError
from fairtrial.core.experiment import Arm, StopSpec
from fairtrial.core.score import Scale
from fairtrial.stats import Aggregate, aggregate
from fairtrial.stats.one_arm import limits
from fairtrial.store import Store, totals
from fairtrial.store.address import shown
from fairtrial.store.opinions import judges_asked, labelled
from fairtrial.store.outcomes import CaseFacts, case_facts, endings

SCORE = ""  # the name of the score among the metrics
Ends = Literal["worst", "best"]  # of a scale
TAKEN = ("latency_ms", "cost_usd")  # time and money: compared only on request


class Source(NamedTuple):
    """One run, or the runs of a series as more answers to the same questions."""

    label: str
    runs: tuple[Run, ...]


class ArmScores:
    """One arm of one source. `values` are lists over repeats, by metric and case."""

    def __init__(self, source: Source, arm: Arm) -> None:
        self.source, self.arm = source, arm
        self.label = arm.name
        self.values: dict[str, dict[str, list[float]]] = {SCORE: {}}
        self.scales: dict[str, Scale] = {SCORE: (0.0, 1.0)}
        self.failed: dict[str, int] = {}
        self.places: dict[str, int] = {}  # position of each case in the arm's own plan
        self.scorers: dict[str, bytes] = {}  # what scored each case
        self.judges: set[tuple[str | None, str]] = set()  # (key, prompt) of every judge that was used
        self.planned = self.ended = self.scored = 0
        self.stop: StopSpec | None = None  # set if its run was allowed to stop early
        self.labels: dict[str, tuple[float, float]] = {}  # human label and judges' score, for labelled cases

    def add(
        self, case: str, value: float | None, metrics: Mapping[str, tuple[float, float | None, float | None]]
    ) -> None:
        """Add one scored trial; a trial of another tool may have metrics and no score."""
        if value is not None:
            self.scored += 1
            self.values[SCORE].setdefault(case, []).append(value)
        for name, (metric_value, worst, best) in metrics.items():
            self.scales[name] = (worst, best)
            self.values.setdefault(name, {}).setdefault(case, []).append(metric_value)

    def means(self, metric: str = SCORE, *, failures: Ends | None = None) -> dict[str, float]:
        """Return every case's mean over repeats; failed trials are left out, or count as the worst or best value."""
        values = self.values.get(metric, {})
        worst, best = self.scales.get(metric, (None, None))
        end = worst if failures == "worst" else best
        if failures is None or end is None:
            return {case: sum(repeats) / len(repeats) for case, repeats in values.items()}
        return {
            case: (sum(values.get(case, ())) + end * self.failed.get(case, 0))
            / (len(values.get(case, ())) + self.failed.get(case, 0))
            for case in values.keys() | self.failed.keys()
        }

    def sign(self, metric: str) -> int:
        """Return 1 if higher is better, −1 if lower is."""
        worst, best = self.scales.get(metric, (None, None))
        if best is None:
            return 1
        return -1 if worst is None or best < worst else 1

    @property
    def coverage(self) -> float:
        """Return the share of finished trials that have a score."""
        return self.scored / self.ended if self.ended else 0.0


class ScoreTable(NamedTuple):
    """All arms, and the cases that they answered."""

    sources: tuple[Source, ...]
    arms: tuple[ArmScores, ...]
    facts: dict[str, CaseFacts]
    weights: dict[str, float]
    clusters: dict[str, str]
    same_cases: bool
    matched: int  # cases of imported runs that were matched by their question or id alone
    uneven_facts: int  # cases whose weight or cluster differs between runs: the first run named counts

    def common(self, a: ArmScores, b: ArmScores, metric: str = SCORE) -> Common:
        """Return the cases that both arms have a value for."""
        return self.joined(a.means(metric), b.means(metric))

    @property
    def primary(self) -> str:
        """Return the metric that the suites call primary; the score if they name none, or different ones."""
        named = {run.settings.get("primary_metric") or SCORE for source in self.sources for run in source.runs}
        return named.pop() if len(named) == 1 else SCORE

    def joined(self, one: Mapping[str, float], other: Mapping[str, float]) -> Common:
        """Return the cases that are in both mappings of values."""
        return common_cases(one, other, self.weights, self.clusters)

    def aggregate(
        self, arm: ArmScores, metric: str = SCORE, *, failures: Ends | None = None, keys: Collection[str] | None = None
    ) -> Aggregate:
        """Return the aggregate of one arm, over all its cases or over `keys`."""
        means = arm.means(metric, failures=failures)
        means = means if keys is None else {key: means[key] for key in keys}
        clusters = [self.clusters.get(key, f"\0{key}") for key in means] if self.clusters else None
        weights = [self.weights[key] for key in means]
        estimate = aggregate(list(means.values()), weights, clusters, scale=arm.scales.get(metric, (0.0, 1.0)))
        if arm.stop is None or len(arm.source.runs) > 1 or not means:
            return estimate
        run, at = arm.source.runs[0], {arm.places[key]: value for key, value in means.items()}
        bounds = limits(arm.scales.get(metric, (None, None)), np.asarray(list(means.values())))
        return whenever_stopped(estimate, at, run.id, run.plan.case_count, bounds)


def find_sources(names: Sequence[str], store: Store) -> list[Source]:
    """Find the named sources: `RUN`, `SERIES` or a tag, each also as `NAME@STORE` for another store."""
    sources = []
    for name in names or ("latest",):
        wanted, _, other = name.partition("@")
        opened = Store(other, create=False) if other else store
        records = opened.find_runs(wanted or "latest")
        label = f"{wanted}@{shown(other)}" if other else name
        sources.append(Source(label, tuple(Run(opened, record) for record in records)))
    ids = [run.id for source in sources for run in source.runs]
    if len(set(ids)) < len(ids):
        raise FairtrialError("the same run is named twice: name it once to compare its arms with each other")
    return sources


def sources_of(runs: Run | Iterable[Run]) -> list[Source]:
    """Return runs as sources; runs of one series form one source."""
    groups: dict[str, list[Run]] = {}
    for run in (runs,) if isinstance(runs, Run) else runs:
        groups.setdefault(run.record.series_id or run.id, []).append(run)
    return [Source(label, tuple(group)) for label, group in groups.items()]


def pooled(sources: Sequence[Source], names: Sequence[str]) -> Sequence[Source]:
    """Pool all sources into one if the named arms are in several of them: more answers to the same questions.

    Only identical arms can be pooled: the same target, condition and parameters under the same name.
    """
    arms_by_name: dict[str, list[tuple[Source, Arm]]] = {
        name: [(source, arm) for source in sources for arm in source.runs[0].plan_arms if arm.name == name]
        for name in names
    }
    if not all(arms_by_name.values()) or all(len(arms) == 1 for arms in arms_by_name.values()):
        return sources
    for name, arms in arms_by_name.items():
        source, first = arms[0]
        for other, arm in arms[1:]:
            if _identity(arm) != _identity(first):
                raise FairtrialError(
                    f"`{name}` has a different target, condition or parameters in {source.label} than in "
                    f"{other.label}: write {name}@{source.label} or {name}@{other.label}"
                )
    runs = tuple(run for source in sources for run in source.runs)
    return [Source(" + ".join(source.label for source in sources), runs)]


def _identity(arm: Arm) -> tuple[Any, ...]:
    """Return what two arms must share to be pooled."""
    return arm.target.identity(), arm.condition.identity(), arm.params


def read_scores(sources: Sequence[Source]) -> ScoreTable:
    """Read every arm of the sources. If an arm's name is in several of them, its label includes the source."""
    facts: dict[str, CaseFacts] = {}
    arms: list[ArmScores] = []
    plans, found = _read_plans(sources)
    uneven = 0
    for cases in plans.values():
        for case in cases:
            first = facts.setdefault(case.key, case)
            uneven += (first.weight, first.cluster) != (case.weight, case.cluster)
    for source in sources:
        own: dict[str, ArmScores] = {}
        for run in source.runs:
            _read(run, source, own, plans[run.store.path, run.plan.id])
        arms += own.values()
    names = [entry.arm.name for entry in arms]
    for entry in arms:
        if names.count(entry.arm.name) > 1:
            entry.label = f"{entry.arm.name}@{entry.source.label}"
    same = len({frozenset(case.key for case in cases) for cases in plans.values()}) == 1
    weights = {key: case.weight for key, case in facts.items()}
    clusters = {key: case.cluster for key, case in facts.items() if case.cluster is not None}
    return ScoreTable(tuple(sources), tuple(arms), facts, weights, clusters, same, found, uneven)


def _read_plans(sources: Sequence[Source]) -> tuple[dict[tuple[str, str], list[CaseFacts]], int]:
    """Read the cases of every plan; where a run was imported, cases are also matched by their question or id."""
    runs = {(run.store.path, run.plan.id): run for source in sources for run in source.runs}
    cases = [list(case_facts(run.store, run.plan.id)) for run in runs.values()]
    if len(cases) < 2 or all(run.record.origin is None for run in runs.values()):
        return dict(zip(runs, cases, strict=True)), 0
    cases, found = matched(cases)
    return dict(zip(runs, cases, strict=True)), found


def _read(run: Run, source: Source, own: dict[str, ArmScores], cases: Sequence[CaseFacts]) -> None:
    arms = [own.setdefault(arm.name, ArmScores(source, arm)) for arm in run.plan_arms]
    scoring: dict[str, Any] = run.store.scoring(run.id, run.record.scoring)
    judges = {(key, prompt) for _, key, prompt in judges_asked(run.store, run.id, run.record.scoring)}
    planned = totals.planned_trials(run.store, run.plan.id, run.plan_arms)
    stop = msgspec.convert(run.settings.get("stop"), StopSpec | None)
    stopped = run.status == "stopped"
    for entry, arm, trials in zip(arms, run.plan_arms, planned, strict=True):
        entry.planned += 0 if stopped else trials  # trials that a stopped run did not need are not missing
        entry.judges |= judges
        entry.stop = entry.stop or stop
        everywhere = msgspec.json.encode(scoring.get("scorer") or arm.scorer, order="deterministic")
        for case in cases:
            entry.scorers[case.key] = everywhere if scoring.get("scorer") or not case.scorer else case.scorer
            entry.places[case.key] = case.position
    _read_labels(run, arms, cases)
    for ending in endings(run.store, run.id, run.record.scoring):
        entry, key = arms[ending.arm], cases[ending.case].key
        if ending.pending:
            continue
        entry.ended += 1
        entry.planned += stopped
        if ending.value is not None or ending.metrics:
            entry.add(key, ending.value, ending.metrics)
        if ending.failed:
            entry.failed[key] = entry.failed.get(key, 0) + 1


def _read_labels(run: Run, arms: Sequence[ArmScores], cases: Sequence[CaseFacts]) -> None:
    """Read human labels and the judges' scores of the same answers, as means over a case's labelled answers."""
    marks: dict[tuple[int, int], dict[int, tuple[list[float], float]]] = {}
    for row in labelled(run.store, run.id, run.record.scoring):
        if not row["stale"] and row["score"] is not None:
            answers = marks.setdefault((row["arm_position"], row["case_position"]), {})
            answers.setdefault(row["repeat"], ([], row["score"]))[0].append(row["value"])
    for (arm, case), answers in marks.items():
        people = [sum(labels) / len(labels) for labels, _ in answers.values()]
        judges = [score for _, score in answers.values()]
        arms[arm].labels[cases[case].key] = (sum(people) / len(people), sum(judges) / len(judges))


def choose(scores: ScoreTable, names: Sequence[str] = ()) -> list[tuple[ArmScores, ArmScores]]:
    """Return the pairs of arms to compare.

    These are the pairs of the named arms. Without names, they are all pairs of arms of a single source; with several
    sources, the same arm in every two sources or, if no arm is in two sources, all pairs of arms of different sources.
    """
    if names:
        return _pairs([pick(scores, name) for name in names])
    arms = list(scores.arms)
    if len(scores.sources) == 1:
        return _pairs(arms)
    apart = [(a, b) for a, b in _pairs(arms) if a.source is not b.source]
    return [(a, b) for a, b in apart if a.arm.name == b.arm.name] or apart


def pick(scores: ScoreTable, name: str) -> ArmScores:
    """Return the arm of that name, or `ARM@SOURCE` if several sources have it."""
    matches = [one for one in scores.arms if name in (one.label, f"{one.arm.name}@{one.source.label}")]
    matches = matches or [one for one in scores.arms if one.arm.name == name]
    if len(matches) == 1:
        return matches[0]
    if not matches:
        labels = ", ".join(one.label for one in scores.arms)
        raise FairtrialError(f"there is no arm `{name}`; the arms are: {labels}")
    raise FairtrialError(f"`{name}` is in several runs: write {' or '.join(one.label for one in matches)}")


def check_metric(arms: Iterable[ArmScores], metric: str) -> None:
    """Reject a metric that no arm has, and list the existing ones."""
    metrics = dict.fromkeys(name for one in arms for name in one.values if name != SCORE)
    if metric != SCORE and metric not in metrics:
        hint = f"the metrics are: {', '.join(metrics)}" if metrics else "these runs have no metrics besides the score"
        raise FairtrialError(f"no arm has a metric `{metric}`; {hint}")


def _pairs(arms: Sequence[ArmScores]) -> list[tuple[ArmScores, ArmScores]]:
    return [(a, b) for number, a in enumerate(arms) for b in arms[number + 1 :]]
