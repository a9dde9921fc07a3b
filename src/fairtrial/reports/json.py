"""JSON documents of results; `write` exports a run with every trial."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import IO, Any

import msgspec

from fairtrial.analyse.asked import AskedCases
from fairtrial.analyse.cases import CaseResult, case_results
from fairtrial.analyse.causes import Causes
from fairtrial.analyse.comparison import Comparison, Comparisons
from fairtrial.analyse.gate import Gate
from fairtrial.analyse.gate_plan import AgainstItself, GatePlan
from fairtrial.analyse.items import CaseAnalysis
from fairtrial.analyse.kind_means import KindMeans, by_kind
from fairtrial.analyse.labels import ArmLabels
from fairtrial.analyse.lift import Lift
from fairtrial.analyse.pairs import PairsSummary
from fairtrial.analyse.planning import Power
from fairtrial.analyse.rank import Ranking
from fairtrial.analyse.run import Run
from fairtrial.analyse.second_judge import SecondOpinion
from fairtrial.analyse.series_summary import SeriesSummary
from fairtrial.analyse.stored_run import TrialRecord
from fairtrial.analyse.summary import ArmSummary, Passes, RunSummary
from fairtrial.analyse.tools import ToolSummary
from fairtrial.analyse.units import as_document, in_points, points
from fairtrial.analyse.variance import ArmVariance
from fairtrial.core.money import Cost
from fairtrial.judging.attacks import Resistance
from fairtrial.judging.calibration import Calibration
from fairtrial.present.words.asked import asked_words
from fairtrial.reports import SCHEMA_VERSION
from fairtrial.stats import Aggregate
from fairtrial.store.late import LateAnswer, late_answers
from fairtrial.store.scorings import scorings_of

_COUNTS = (
    "trials", "scored", "failed", "refused", "filtered", "unscored", "waiting", "truncated", "passed_automatically",
    "coverage", "limits",
)  # fmt: skip


def document(summary: RunSummary) -> dict[str, Any]:
    """Return the published document of a run's summary; scores are 0–100."""
    return {
        **fields_of(summary, ("run_id", "series_id", "suite", "status", "dataset_sha256")),
        "asked": _asked(summary.asked),
        "arms": [_arm(arm) for arm in summary.arms],
        "judging": _judging(summary),
        "lifts": [_lift(lift) for lift in summary.lifts],
        "user": _cost(summary.user_cost),  # the simulated user
        "spent": _cost(summary.spent),
        "late": {"answers": summary.late, **_cost(summary.late_cost)},  # of a session that had lost the run
        "created_at": iso_time(summary.created_at),
        "ended_at": iso_time(summary.ended_at),
        **fields_of(summary, ("reason", "case_count", "failures")),
    }


def fields_of(struct: Any, names: Sequence[str]) -> dict[str, Any]:
    """Return these fields of a struct as they are."""
    return {name: msgspec.to_builtins(getattr(struct, name)) for name in names}


def _asked(asked: AskedCases | None) -> dict[str, Any] | None:
    """Return which cases a run has; None if it has all of them."""
    if asked is None:
        return None
    return {"cases": asked.cases, "of": asked.of, "drawn_at_random": asked.drawn, "note": asked_words(asked)}


def _judging(summary: RunSummary) -> dict[str, Any] | None:
    if summary.judging is None:
        return None
    judging = in_points(summary.judging)
    ratings = [{**rating, "created_at": iso_time(rating["created_at"])} for rating in judging["judges"]]
    return {**judging, "judges": ratings}


def run_document(run: Run, baseline: str | None = None, by: str | None = None) -> dict[str, Any]:
    """Return the published document of a run: its summary, and its means by kind of case."""
    return {**document(run.summary(baseline)), **kinds_document(by_kind(run, by))}


def kinds_document(kinds: KindMeans) -> dict[str, Any]:
    """Return the means by kind of case as a flat list; scores are 0–100, the intervals are not adjusted."""
    groups = [
        {"by": by, "value": kind, "arm": arm, **_aggregate(mean)}
        for by, values in kinds.means.items()
        for kind, arms in values.items()
        for arm, mean in arms.items()
    ]
    return {"groups": groups, "groups_left_out": kinds.left_out}


def _aggregate(numbers: Aggregate) -> dict[str, Any]:
    return {
        "mean": points(numbers.mean),
        "std_dev": points(numbers.std_dev),
        "ci95": _interval(numbers.ci95),
        "min": points(numbers.min),
        "max": points(numbers.max),
        "count": numbers.count,
        "total_weight": numbers.total_weight,
        "interval_method": numbers.method,
    }


def _arm(arm: ArmSummary) -> dict[str, Any]:
    return {
        **fields_of(arm, ("arm", "target", "condition")),
        **_aggregate(arm.aggregate),
        "passes": [_passes(passes) for passes in arm.passes],
        "solving": None if arm.solving is None else msgspec.to_builtins(arm.solving),
        **fields_of(arm, _COUNTS),
        **_cost(arm.cost),
        **fields_of(arm, ("prompt_tokens", "completion_tokens", "latency_ms", "params", "answered_by", "metrics")),
        **fields_of(arm, ("judge_verdicts", "judge_calls")),
        **{f"judge_{name}": value for name, value in _cost(arm.judge_cost).items()},
        "labels": labels_document(arm.labels),
        "second_judge": _second_judge(arm.second),
        "tools": _tools(arm.tools),
        **{name: points(value) for name, value in arm.statistics.items()},
    }


def _cost(cost: Cost) -> dict[str, Any]:
    """Return the costs: `cost_usd` is the complete cost or None, then come the known part and what a budget counts."""
    return {
        "cost_usd": cost.usd,
        "cost_at_least_usd": cost.known,
        "charged_usd": cost.charged,
        "unknown_costs": cost.unknown,
    }


def _lift(lift: Lift) -> dict[str, Any]:
    """Return a lift; differences of scores are in points, those of metrics on their own scales."""
    difference = _measured(lift.paired, lift.metric)
    return {"arm": lift.arm, "baseline": lift.baseline, "metric": lift.metric or "score", **difference}


def _passes(passes: Passes) -> dict[str, Any]:
    return {"k": passes.k, "pass_at_k": _share(passes.at_least_once), "pass_hat_k": _share(passes.every_time)}


def _tools(tools: ToolSummary | None) -> dict[str, Any] | None:
    if tools is None:
        return None
    return {
        **fields_of(tools, ("answers", "used", "rate", "calls", "errors")),
        "by_tool": {name: {"calls": calls, "errors": errors} for name, (calls, errors) in tools.tools.items()},
        **fields_of(tools, ("marked", "unknown")),
        "when_used": {**_share(tools.when_used), "count": tools.when_used.count},
    }


_CALIBRATION_POINTS = ("mean_absolute_error", "largest_error", "bias", "spread")
_SAMPLE_POINTS = ("expected", "actual", "error", "absolute_error", "spread")


def calibration_document(result: Calibration | Resistance) -> dict[str, Any]:
    """Return the published document of a judge's calibration, or of attacks on it; marks and errors are 0–100."""
    document: dict[str, Any] = msgspec.to_builtins(result)
    if isinstance(result, Resistance):
        attacks = [_with_points(attack, ("value",)) for attack in document["attacks"]]
        return {**_with_points(document, ("undisturbed",)), "attacks": attacks}
    summary = _with_points(document["summary"], _CALIBRATION_POINTS)
    return {
        **document,
        "samples": [_with_points(sample, _SAMPLE_POINTS) for sample in document["samples"]],
        "summary": {**summary, "created_at": iso_time(result.summary.created_at)},
    }


def _with_points(document: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {**document, **{name: points(document[name]) for name in names}}


def _second_judge(second: SecondOpinion | None) -> dict[str, Any] | None:
    if second is None:
        return None
    return {**in_points(second), "cost": _cost(second.cost)}


def labels_document(labels: ArmLabels | None) -> dict[str, Any] | None:
    """Return the result of an arm's human labels; scores are 0–100."""
    return None if labels is None else in_points(labels)


def pairs_document(summary: PairsSummary) -> dict[str, Any]:
    """Return the published document of pairwise judgements; shares are 0–100."""
    return {
        "run_id": summary.run_id,
        "suite": summary.suite,
        "pairs": [
            {
                "judge": pair.judge,
                "arm": pair.one,
                "against": pair.other,
                **fields_of(pair.orders, ("pairs", "wins", "ties", "losses")),
                "failed": pair.failed,
                **{name: _share(getattr(pair.orders, name)) for name in ("win_rate", "flip_rate", "first_share")},
            }
            for pair in summary.pairs
        ],
        "judges": [
            {
                "judge": judge.judge,
                "pairs": judge.pairs,
                "flip_rate": _share(judge.flip_rate),
                "first_share": _share(judge.first_share),
                "calls": judge.calls,
                **_cost(judge.cost),
            }
            for judge in summary.judges
        ],
        "failures": summary.failures,
        "exhausted": summary.exhausted,
    }


def _measured(struct: msgspec.Struct, metric: str) -> dict[str, Any]:
    """Return a struct as a document; numbers of the score are 0–100, those of a metric on its own scale."""
    return as_document(struct) if metric else in_points(struct)


def comparison_document(comparisons: Comparisons) -> dict[str, Any]:
    """Return the published document of a comparison; scores and their differences are 0–100."""
    return {
        **_measured(comparisons, comparisons.metric),
        "metric": comparisons.metric or "score",
        "pairs": [_comparison(pair) for pair in comparisons.pairs],
        "metrics": [_comparison(pair) for pair in comparisons.metrics],
    }


def _comparison(pair: Comparison) -> dict[str, Any]:
    return {**_measured(pair, pair.metric), "metric": pair.metric or "score"}


def series_document(summary: SeriesSummary) -> dict[str, Any]:
    """Return the published document of a series; scores are 0–100."""
    compared = summary.comparisons
    return {**in_points(summary), "comparisons": None if compared is None else comparison_document(compared)}


def ranking_document(ranking: Ranking) -> dict[str, Any]:
    """Return the published document of a ranking; scores are 0–100, ratings stay as they are."""
    return {**_measured(ranking, ranking.metric), "metric": ranking.metric or "score"}


def power_document(plan: Power) -> dict[str, Any]:
    """Return the published document of a power analysis; scores are 0–100."""
    pairs = [
        {
            **in_points(pair),
            "cases_needed": [
                {"difference": points(delta), "repeats": repeats, "cases": cases}
                for delta, needed in pair.cases_needed
                for repeats, cases in needed
            ],
        }
        for pair in plan.pairs
    ]
    return {"sources": plan.sources, "power": 1 - plan.beta, "pairs": pairs}


def variance_document(run_id: str, arms: Sequence[ArmVariance]) -> dict[str, Any]:
    """Return the published document of a variance analysis; standard errors are in points, variances of scores 0–1."""
    return {"run_id": run_id, "arms": [in_points(arm) for arm in arms]}


def cases_document(analysis: CaseAnalysis) -> dict[str, Any]:
    """Return the published document of a case analysis; scores are 0–100, difficulty is 100 minus the mean score."""
    return in_points(analysis)


def gate_document(gate: Gate, metric: str = "") -> dict[str, Any]:
    """Return the published document of a gate; scores and coverage are 0–100, a metric is on its own scale."""
    own = {"regression": metric, "minimum": metric}
    checks = [_measured(check, check.metric or own.get(check.name, "")) for check in gate.checks]
    return {**as_document(gate), "checks": checks, "result": gate.result, "exit_code": gate.exit_code}


def gate_outlook_document(plan: GatePlan | None, itself: AgainstItself | None) -> dict[str, Any]:
    """Return what a gate can decide and how often it contradicts itself; scores and losses are 0–100, chances 0–1."""
    return {
        "plan": None if plan is None else in_points(plan),
        "against_itself": None if itself is None else in_points(itself),
    }


def _share(share: Aggregate) -> dict[str, Any]:
    return {"mean": points(share.mean), "ci95": _interval(share.ci95)}


def _interval(ci95: tuple[float, float] | None) -> list[float | None] | None:
    return None if ci95 is None else [points(bound) for bound in ci95]


def trial_document(trial: TrialRecord) -> dict[str, Any]:
    """Return one trial: its score is 0–100, its repeat counts from 1, and its time is ISO 8601."""
    fields = msgspec.structs.asdict(trial)
    return {**fields, "score": points(trial.score), "started_at": iso_time(trial.started_at)}


def causes_document(causes: Causes) -> dict[str, Any]:
    """Return the failures of a run by cause, with the first trials of each; repeats count from 1."""
    document: dict[str, Any] = msgspec.to_builtins(causes)
    for cause in document["groups"]:
        for trial in cause["trials"]:
            del trial["place"]
    return document


def late_document(run: Run) -> dict[str, Any]:
    """Return what came too late for a run, each with the row that it would have been."""
    late = late_answers(run.store, run.id)
    return {
        "run": run.id,
        "late": [_late(answer, names) for answer, names in zip(late, late_names(run, late), strict=True)],
    }


def _late(late: LateAnswer, names: tuple[str, str]) -> dict[str, Any]:
    return {
        "what": late.what,
        "case": names[0],
        "arm": names[1],
        "repeat": late.repeat + 1,
        "text": late.text,
        "failed": late.failed,
        **_cost(late.cost),
        "kept_at": iso_time(late.kept_at),
        "session": late.epoch,
        "row": late.row,
    }


def late_names(run: Run, late: Sequence[LateAnswer]) -> list[tuple[str, str]]:
    """Return the case and the arm, or both arms, that each of them is about."""
    positions = sorted({one.case_position for one in late})
    cases = {case.position: case.id for case in run.store.cases_at(run.plan.id, positions)}
    arms = {arm.position: arm.name for arm in run.plan_arms}
    return [(cases[one.case_position], " · ".join(arms[position] for position in one.arms)) for one in late]


def iso_time(seconds: float | None) -> str | None:
    """Return a time as ISO 8601, in UTC and to the millisecond; None for none."""
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def context_document(run: Run) -> dict[str, Any]:
    """Return everything needed to understand or repeat a run."""
    plan = run.plan
    return {
        "suite_text": plan.suite_text,
        "suite_sha256": plan.suite_sha256,
        "settings": run.settings,
        "context": run.context,
        "conditions": {arm.condition.name: arm.condition.system for arm in run.plan_arms},
        "scorings": [
            {
                **msgspec.to_builtins(scoring),
                "created_at": iso_time(scoring.created_at),
                "counts": scoring.number == run.record.scoring,
            }
            for scoring in scorings_of(run.store, run.id)
        ],
    }


def case_document(result: CaseResult) -> dict[str, Any]:
    """Return one case under one arm; its score is 0–100."""
    score = result.score
    shown = score and {"mean": points(score.mean), "std_dev": points(score.std_dev), "count": score.count}
    return {**msgspec.to_builtins(result), "score": shown}


def write(run: Run, file: IO[str]) -> None:
    """Write the summary, the context, every case under every arm, and every trial, streamed."""
    head = {"schema_version": SCHEMA_VERSION, **run_document(run), **context_document(run)}
    file.write(msgspec.json.encode(head).decode()[:-1])
    _write_list(file, "cases", map(case_document, case_results(run)))
    _write_list(file, "trials", map(trial_document, run.trials()))
    file.write("}\n")


def _write_list(file: IO[str], name: str, items: Iterable[dict[str, Any]]) -> None:
    file.write(f',"{name}":[\n')
    for number, item in enumerate(items):
        file.write((",\n" if number else "") + msgspec.json.encode(item).decode())
    file.write("\n]")
