"""The arms of runs, series and stores, with their scores case by case, ready to be compared.

Scores are columns with one entry per case: sums by case and arm are made by the database, so that memory and time grow
with cases and arms, not with trials.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache, partial
from itertools import islice
from typing import Any, NamedTuple

import msgspec
import numpy as np

from fairtrial.analyse.arm_scores import SCORE, TAKEN, ArmScores, Ends, RunSource
from fairtrial.analyse.case_table import CaseTable, Floats, Ints, PlanCases
from fairtrial.analyse.common import Common, common_cases
from fairtrial.analyse.matching import matched
from fairtrial.analyse.stopping import left_race, looks_reached, strictest, watched, whenever_stopped
from fairtrial.analyse.stored_run import StoredRun
from fairtrial.core.errors import FairtrialError
from fairtrial.core.experiment import Arm
from fairtrial.core.settings import StopSpec
from fairtrial.stats import Aggregate, aggregate
from fairtrial.stats.mean import ALPHA
from fairtrial.stats.one_arm import limits
from fairtrial.store import Store, outcomes, totals
from fairtrial.store.address import shown
from fairtrial.store.columns import Columns
from fairtrial.store.opinions import judges_asked, labelled
from fairtrial.store.outcomes import case_facts
from fairtrial.store.records import RunRecord
from fairtrial.store.rows import decode
from fairtrial.store.scorings import scoring_choice

__all__ = ["SCORE", "TAKEN", "ArmScores", "Ends", "RunSource", "ScoreTable", "check_metric", "choose", "find_sources"]
__all__ += ["pick", "pooled", "read_scores", "sources_of"]

_BATCH = 10_000


class ScoreTable(NamedTuple):
    """All arms, and the cases that they answered."""

    sources: tuple[RunSource, ...]
    arms: tuple[ArmScores, ...]
    facts: CaseTable
    same_cases: bool
    matched: int  # cases of imported runs that were matched by their question or id alone
    uneven_facts: int  # cases whose weight or cluster differs between runs: the first run named counts

    @property
    def weights(self) -> Floats:
        """The weight of every case."""
        return self.facts.weights

    @property
    def clusters(self) -> Ints | None:
        """The cluster of every case; None if there are none."""
        return self.facts.clusters

    def common(self, a: ArmScores, b: ArmScores, metric: str = SCORE) -> Common:
        """Return the cases that both arms have a value for."""
        return self.joined(a.means(metric), b.means(metric))

    @property
    def primary(self) -> str:
        """Return the metric that the suites call primary; the score if they name none, or different ones."""
        named = {run.settings.get("primary_metric") or SCORE for source in self.sources for run in source.runs}
        return named.pop() if len(named) == 1 else SCORE

    def largest(self, metric: str) -> float | None:
        """Return the largest difference that a case can show, where all suites state one; else None."""
        runs = [run for source in self.sources for run in source.runs]
        stated = [float(run.settings.get("largest") or 0) for run in runs]
        return max(stated) if metric == self.primary and min(stated, default=0) > 0 else None

    def joined(self, one: Floats, other: Floats) -> Common:
        """Return the cases that both columns have a value for."""
        return common_cases(one, other, self.weights, self.clusters)

    def aggregate(
        self,
        arm: ArmScores,
        metric: str = SCORE,
        *,
        failures: Ends | None = None,
        keys: Ints | None = None,
        alpha: float = ALPHA,
        one_sided: bool = False,
    ) -> Aggregate:
        """Return the aggregate of one arm, over all its cases or over `keys`.

        `alpha` is the level of its interval; `one_sided` if each limit is a claim of its own.
        """
        means = arm.means(metric, failures=failures)
        rows = np.flatnonzero(~np.isnan(means)) if keys is None else keys
        values = means[rows]
        clusters = None if self.clusters is None else self.clusters[rows]
        scale = arm.scales.get(metric, (0.0, 1.0))
        level = alpha if arm.look is None else arm.look.of_one_arm.nominal(alpha)
        estimate = aggregate(values, self.weights[rows], clusters, scale=scale, alpha=level, one_sided=one_sided)
        if not watched(arm.stop) or len(arm.source.runs) > 1 or not len(rows):
            return estimate
        known = (metric, failures, alpha, rows.tobytes())
        if known not in arm.whenever_stopped:
            run, at = arm.source.runs[0], dict(zip(arm.places[rows].tolist(), values.tolist(), strict=True))
            bounds = limits(arm.scales.get(metric, (None, None)), values)
            found = whenever_stopped(estimate, at, run.record.order_key, run.plan.case_count, bounds, alpha)
            arm.whenever_stopped[known] = found
        return arm.whenever_stopped[known]


def find_sources(names: Sequence[str], store: Store) -> list[RunSource]:
    """Find the named sources: `RUN`, `SERIES` or a tag, each also as `NAME@STORE` for another store."""
    sources = []
    for name in names or ("latest",):
        wanted, _, other = name.partition("@")
        opened = Store(other, create=False) if other else store
        records = opened.find_runs(wanted or "latest")
        label = f"{wanted}@{shown(other)}" if other else _label(name, records)
        sources.append(RunSource(label, tuple(StoredRun(opened, record) for record in records)))
    ids = [run.id for source in sources for run in source.runs]
    if len(set(ids)) < len(ids):
        raise FairtrialError("the same run is named twice: name it once to compare its arms with each other")
    return sources


def _label(name: str, records: Sequence[RunRecord]) -> str:
    """Return how labels of arms name a source: as the user did, but a run that they named by its id by its number."""
    by_id = len(records) == 1 and bool(name) and records[0].id.startswith(name)
    return str(records[0].number) if by_id else name


def sources_of(runs: StoredRun | Iterable[StoredRun]) -> list[RunSource]:
    """Return runs as sources; runs of one series form one source."""
    groups: dict[str, list[StoredRun]] = {}
    for run in (runs,) if isinstance(runs, StoredRun) else runs:
        groups.setdefault(run.record.series_id or run.id, []).append(run)
    return [RunSource(label, tuple(group)) for label, group in groups.items()]


def pooled(sources: Sequence[RunSource], names: Sequence[str]) -> Sequence[RunSource]:
    """Pool all sources into one if the named arms are in several of them: more answers to the same questions.

    Only identical arms can be pooled: the same target, condition and parameters under the same name.
    """
    arms_by_name: dict[str, list[tuple[RunSource, Arm]]] = {
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
    return [RunSource(" + ".join(source.label for source in sources), runs)]


def _identity(arm: Arm) -> tuple[Any, ...]:
    """Return what two arms must share to be pooled."""
    return arm.target.identity(), arm.condition.identity(), arm.params


def read_scores(sources: Sequence[RunSource]) -> ScoreTable:
    """Read every arm of the sources. If an arm's name is in several of them, its label includes the source."""
    arms: list[ArmScores] = []
    plans, found = _read_plans(sources)
    facts = CaseTable(list(plans.values()))
    rows = dict(zip(plans, facts.rows, strict=True))
    scorers: dict[bytes, int] = {}
    for source in sources:
        own: dict[str, ArmScores] = {}
        for run in source.runs:
            plan = run.store.path, run.plan.id
            entries = [own.setdefault(arm.name, ArmScores(source, arm, len(facts))) for arm in run.plan_arms]
            _read_plan(run, entries, plans[plan], rows[plan], scorers)
            _read_run(run, entries, rows[plan])
        arms += own.values()
    names = [entry.arm.name for entry in arms]
    for entry in arms:
        if names.count(entry.arm.name) > 1:
            entry.label = f"{entry.arm.name}@{entry.source.label}"
    same = all(len(cases) == len(facts) for cases in plans.values())
    return ScoreTable(tuple(sources), tuple(arms), facts, same, found, facts.uneven)


def _read_plans(sources: Sequence[RunSource]) -> tuple[dict[tuple[str, str], PlanCases], int]:
    """Read the cases of every plan; where a run was imported, cases are also matched by their question or id."""
    runs = {(run.store.path, run.plan.id): run for source in sources for run in source.runs}
    if len(runs) < 2 or all(run.record.origin is None for run in runs.values()):
        return {plan: PlanCases(case_facts(run.store, run.plan.id)) for plan, run in runs.items()}, 0
    cases, found = matched([list(case_facts(run.store, run.plan.id, questions=True)) for run in runs.values()])
    return dict(zip(runs, map(PlanCases, cases), strict=True)), found


def _read_plan(
    run: StoredRun, arms: Sequence[ArmScores], cases: PlanCases, rows: Ints, scorers: dict[bytes, int]
) -> None:
    """Read what is known before a trial: the places of cases, what scores them, how many trials are planned.

    `scorers` numbers everything that scores a case of any plan.
    """
    scoring: dict[str, Any] = scoring_choice(run.store, run.id, run.record.scoring)
    judges = {(key, prompt) for _, key, prompt in judges_asked(run.store, run.id, run.record.scoring)}
    planned = totals.planned_trials(run.store, run.plan.id, run.plan_arms)
    stop = msgspec.convert(run.settings.get("stop"), StopSpec | None)
    looks = looks_reached(run.store, run.id, run.settings, run.plan.case_count)
    left = left_race(run.status, stop, looks)
    special = [] if scoring.get("scorer") else [n for n, scorer in enumerate(cases.scorers) if scorer]
    for entry, arm, trials in zip(arms, run.plan_arms, planned, strict=True):
        # Trials that a stopped run did not need are not missing.
        entry.planned += 0 if run.status == "stopped" else trials
        entry.judges |= judges
        entry.stop = entry.stop or stop
        entry.look = strictest(entry.look, looks.get(arm.position))
        entry.left = entry.left or left.get(arm.position)
        everywhere = msgspec.json.encode(scoring.get("scorer") or arm.scorer, order="deterministic")
        entry.places[rows] = np.arange(len(rows))
        entry.scorers[rows] = scorers.setdefault(everywhere, len(scorers))
        for position in special:
            entry.scorers[rows[position]] = scorers.setdefault(cases.scorers[position] or b"", len(scorers))
        is_asked = {
            asked: arm.is_asked(*(decode(names) or () for names in asked)) for asked in set(cases.limited.values())
        }
        for position, asked in cases.limited.items():
            if not is_asked[asked]:
                row = int(rows[position])
                entry.places[row] = entry.scorers[row] = -1
                entry.unasked.add(row)


def _read_run(run: StoredRun, arms: Sequence[ArmScores], rows: Ints) -> None:
    """Read how the trials of a run ended."""
    where = run.store, run.id, run.record.scoring
    stopped = run.status == "stopped"
    for position, entry in enumerate(arms):
        entry.origins.append((run, rows, position))
    for chosen, entry, (counts, sums) in _by_arm(outcomes.score_sums(*where), arms, rows):
        entry.values[SCORE].add(chosen, counts, sums)
        entry.scored += int(counts.sum())
        entry.end(int(counts.sum()), planned=stopped)
    for chosen, entry, (counts,) in _by_arm(outcomes.failed_trials(run.store, run.id), arms, rows):
        entry.failed[chosen] += counts.astype(np.int64)
        entry.end(int(counts.sum()), planned=stopped)
    for chosen, entry, (counts, lacking, unrecorded) in _by_arm(outcomes.unscored_trials(*where), arms, rows):
        entry.failed[chosen] += lacking.astype(np.int64)
        entry.unscored[chosen] += (counts - lacking).astype(np.int64)
        entry.unrecorded += int(unrecorded.sum())
        entry.end(int(counts.sum()), planned=stopped)
    _read_metrics(run, arms, rows)
    _read_labels(run, arms, rows)
    read_spreads = cache(partial(_read_spreads, run, arms, rows))
    for entry in arms:
        entry.spreads.readers.append(read_spreads)
    worded = [n for n, entry in enumerate(arms) if len(entry.arm.condition.prompts) > 1]
    read_wordings = cache(partial(_read_wordings, run, arms, rows, worded))
    for number in worded:
        arms[number].worded.readers.append(read_wordings)
    for name in outcomes.taken_metrics(run.store, run.id):
        read = cache(partial(_read_taken, run, arms, rows, name))  # for all arms at once
        for entry in arms:
            if name not in entry.values or entry.scales[name] == _LOWER_IS_BETTER:
                entry.scales[name] = _LOWER_IS_BETTER
                entry.values.read_later(name, read)


_LOWER_IS_BETTER = (None, 0.0)


def _by_arm(
    batches: Iterable[Columns], arms: Sequence[ArmScores], rows: Ints
) -> Iterator[tuple[Ints, ArmScores, list[Floats]]]:
    """Yield the rows of the table, the arm and the further columns, from columns that begin with case and arm."""
    for cases, positions, *more in batches:
        at, of = rows[np.asarray(cases)], np.asarray(positions)
        columns = [np.asarray(column, dtype=np.float64) for column in more]
        order = np.argsort(of, kind="stable")
        for own in np.split(order, np.flatnonzero(np.diff(of[order])) + 1) if len(of) else ():
            yield at[own], arms[of[own[0]]], [column[own] for column in columns]


def _read_spreads(run: StoredRun, arms: Sequence[ArmScores], rows: Ints) -> None:
    """Read how the scores of a case differ."""
    spreads = outcomes.score_spreads(run.store, run.id, run.record.scoring)
    for chosen, entry, (squares, lowest, highest) in _by_arm(spreads, arms, rows):
        entry.spreads.empty.add(chosen, squares, lowest, highest)


def _read_wordings(run: StoredRun, arms: Sequence[ArmScores], rows: Ints, worded: Sequence[int]) -> None:
    """Read the values of the arms that have several wordings, by wording."""
    for case, arm, repeat, value, metrics in outcomes.repeat_rows(run.store, run.id, run.record.scoring, worded):
        table, row = arms[arm].worded.empty, int(rows[case])
        if value is not None:
            table.add(SCORE, row, repeat, value)
        for name, (number, *_) in metrics.items():
            if number is not None:
                table.add(name, row, repeat, number)


def _read_taken(run: StoredRun, arms: Sequence[ArmScores], rows: Ints, name: str) -> None:
    """Read the latency or the cost of every scored trial."""
    sums_by_case = outcomes.taken_sums(run.store, run.id, run.record.scoring, name)
    for chosen, entry, (counts, sums) in _by_arm(sums_by_case, arms, rows):
        entry.values.column(name).add(chosen, counts, sums)


def _read_metrics(run: StoredRun, arms: Sequence[ArmScores], rows: Ints) -> None:
    """Read the metrics besides the score; a trial of another tool may have metrics and no score."""
    stored = outcomes.metric_rows(run.store, run.id, run.record.scoring)
    while batch := list(islice(stored, _BATCH)):
        found: dict[tuple[int, str], tuple[list[int], list[float]]] = {}
        for case, position, metrics in batch:
            for name, (value, worst, best) in metrics.items():
                arms[position].scales[name] = (worst, best)
                places, values = found.setdefault((position, name), ([], []))
                places.append(case)
                values.append(value)
        for (position, name), (places, values) in found.items():
            column, at = arms[position].values.column(name), rows[places]
            np.add.at(column.counts, at, 1)
            np.add.at(column.sums, at, values)


def _read_labels(run: StoredRun, arms: Sequence[ArmScores], rows: Ints) -> None:
    """Read labels of answers drawn at random, and the judges' scores of them, as means over a case's labelled answers.

    Labels of hand-picked answers correct nothing: those on which the judge errs would be labelled first.
    """
    marks: dict[tuple[int, int], dict[int, tuple[list[float], float]]] = {}
    for row in labelled(run.store, run.id, run.record.scoring):
        if not row["stale"] and row["score"] is not None and row["drawn"] is not False:
            answers = marks.setdefault((row["arm_position"], row["case_position"]), {})
            answers.setdefault(row["repeat"], ([], row["score"]))[0].append(row["value"])
    for (arm, case), answers in marks.items():
        people = [sum(labels) / len(labels) for labels, _ in answers.values()]
        judges = [score for _, score in answers.values()]
        arms[arm].labels[int(rows[case])] = (sum(people) / len(people), sum(judges) / len(judges))


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
    """Return the arm of that name, or `ARM@SOURCE` if several sources have it; or the only arm of a condition."""
    matches = [one for one in scores.arms if name in (one.label, *_names(one))]
    matches = matches or [one for one in scores.arms if one.arm.name == name]
    matches = matches or [one for one in scores.arms if one.arm.condition.name == name]
    if len(matches) == 1:
        return matches[0]
    if not matches:
        labels = ", ".join(one.label for one in scores.arms)
        raise FairtrialError(f"there is no arm `{name}`; the arms are: {labels}")
    where = "runs" if len(scores.sources) > 1 else "arms"
    raise FairtrialError(f"`{name}` is in several {where}: write {' or '.join(one.label for one in matches)}")


def _names(one: ArmScores) -> list[str]:
    """Return an arm with its source as the user may write it: with what they called the run, its number or its id."""
    elsewhere = "@" in one.source.label  # numbers of another store mean other runs
    runs = [] if elsewhere else [name for run in one.source.runs for name in (str(run.record.number), run.id)]
    return [f"{one.arm.name}@{source}" for source in (one.source.label, *runs)]


def check_metric(arms: Iterable[ArmScores], metric: str) -> None:
    """Reject a metric that no arm has, and list the existing ones."""
    metrics = dict.fromkeys(name for one in arms for name in one.values if name != SCORE)
    if metric != SCORE and metric not in metrics:
        if not metrics:
            raise FairtrialError(f"no arm has a metric `{metric}`; these runs have no metrics besides the score")
        raise FairtrialError(f"no arm has a metric `{metric}`; the metrics are: {', '.join(metrics)}")


def _pairs(arms: Sequence[ArmScores]) -> list[tuple[ArmScores, ArmScores]]:
    return [(a, b) for number, a in enumerate(arms) for b in arms[number + 1 :]]
