"""Sentences and table cells about a run, shared by the terminal, Markdown and web pages."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fairtrial.core.formatting import Scale as DifferenceScale
from fairtrial.core.formatting import deviation, money, number, plus_minus, signs
from fairtrial.core.many_arms import is_large
from fairtrial.core.money import total
from fairtrial.core.questions import repeated_words
from fairtrial.present.words.asked import asked_words
from fairtrial.present.words.judges import rubric_words
from fairtrial.present.words.limits import limit_note
from fairtrial.present.words.many_arms import against_first_words
from fairtrial.present.words.stopping import stop_notes
from fairtrial.scorers.golden_judge import METRICS
from fairtrial.text.printable import counted, one_line, sentence_of
from fairtrial.webpage.criteria import judged_unseen

if TYPE_CHECKING:
    from fairtrial.analyse.summary import ArmSummary, Metric, RunSummary
    from fairtrial.core.experiment import Arm
    from fairtrial.core.score import Scale
    from fairtrial.stats import Aggregate

_FEW_CASES = 20
_MOST_METRICS = 6


def interval(arm: ArmSummary) -> str:
    """Format the 95 % interval, or say why there is none."""
    if arm.aggregate.ci95 is None:
        return "n = 1" if arm.aggregate.count == 1 else "–"
    low, high = arm.aggregate.ci95
    return f"[{number(low)}, {number(high)}]"


def reporting_line(arm: ArmSummary) -> str:
    """Summarise an arm in one line: `Model X: 85.2 ± 3.1 (95% CI: [82.1, 88.3])`."""
    numbers = arm.aggregate
    if numbers.mean is None:
        return f"{arm.arm}: no score"
    return f"{arm.arm}: {plus_minus(numbers.mean, numbers.ci95)} (95% CI: {interval(arm)})"


def metric_lines(arm: ArmSummary) -> list[str]:
    """Summarise each metric on its own scale: `tone: 4.20 ± 0.30 (95 % CI 3.90 to 4.50, sd 0.92, scale 1–5)`."""
    lines = []
    for name, metric in arm.metrics.items():
        shown = plus_minus(metric.mean, metric.ci95, _on_own_scale)
        bounds = "" if metric.ci95 is None else f"95 % CI {signs(' to '.join(map(_on_own_scale, metric.ci95)))}, "
        rough = "rough: few cases account for the spread, " if metric.rough else ""
        spread = "" if metric.std_dev is None else f"{deviation(metric.std_dev, _on_own_scale)}, "
        within = f"{words}, " if (words := within_words(name, metric, _on_own_scale)) else ""
        details = f"{bounds}{spread}{within}{rough}{scale_words(metric.scale)}".removesuffix(", ")
        lines.append(f"{name}: {shown}" + (f" ({details})" if details else ""))
    if len(lines) > _MOST_METRICS:
        return [*lines[:_MOST_METRICS], f"and {len(lines) - _MOST_METRICS} more metrics, in the JSON export"]
    return lines


def within_words(name: str, metric: Metric, shown: Callable[[float], str]) -> str:
    """Say how much a metric varies between answers to one case: `sd 0.40 within a case`; next to ours, k-eval's."""
    if metric.repeat_sd is None:
        return ""
    words = f"{deviation(metric.repeat_sd, shown)} within a case"
    if name not in METRICS or metric.mean_repeat_sd is None:
        return words
    return f"{words}, {deviation(metric.mean_repeat_sd, shown)} as k-eval averages it"


def within_brief(name: str, metric: Metric, shown: Callable[[float], str]) -> str:
    """Say the same where there is little room, below `within_legend`: `sd 0.40, k-eval's 0.31`."""
    if name not in METRICS or metric.repeat_sd is None or metric.mean_repeat_sd is None:
        return within_words(name, metric, shown)
    return f"{deviation(metric.repeat_sd, shown)}, k-eval's {shown(metric.mean_repeat_sd)}"


def within_legend(name: str, metrics: Iterable[Metric]) -> str:
    """Say what the numbers of `within_brief` are; empty if they say so themselves."""
    both = name in METRICS and any(metric.mean_repeat_sd is not None for metric in metrics)
    return "sd within a case, and as k-eval averages it" if both else ""


def deviation_cell(name: str, metric: Metric) -> str:
    """Return the deviations of a metric for a table: between cases, within a case, and as k-eval has them."""
    kinds = [metric.std_dev, metric.repeat_sd, metric.mean_repeat_sd if name in METRICS else None]
    return " · ".join(_on_own_scale(value) for value in kinds if value is not None) or "–"


def deviation_legend(metrics: Mapping[str, Metric]) -> str:
    """Say what the numbers of `deviation_cell` are."""
    kinds = ["between cases"]
    kinds += ["within a case, pooled"] if any(metric.repeat_sd is not None for metric in metrics.values()) else []
    if any(name in METRICS and metric.mean_repeat_sd is not None for name, metric in metrics.items()):
        kinds.append("within a case, as k-eval averages it")
    return f"sd: {' · '.join(kinds)}"


def metric_cell(metric: Metric) -> str:
    """Return a metric with its interval, for a table: `4.20 (3.90 to 4.50)`; `~` if the interval is rough."""
    if metric.ci95 is None:
        return signs(_on_own_scale(metric.mean))
    low, high = map(_on_own_scale, metric.ci95)
    return signs(f"{_on_own_scale(metric.mean)} ({'~ ' if metric.rough else ''}{low} to {high})")


def _on_own_scale(value: float) -> str:
    return f"{value:.2f}" if abs(value) < 1e6 else f"{value:.2e}"


def scale_words(scale: Scale) -> str:
    """Describe a scale: `scale 1–5`, `scale 0–1, lower is better`, or nothing where it is not known."""
    worst, best = scale
    if worst is None or best is None:
        return "" if best is None else f"best {best:g}"
    return f"scale {min(worst, best):g}–{max(worst, best):g}" + (", lower is better" if best < worst else "")


def lift_lines(summary: RunSummary, arm: ArmSummary) -> list[str]:
    """Give an arm's gain over its baseline: `over t/baseline: +12.0 (95 % CI 3.1 to 20.9), 50 cases`."""
    lines = []
    for lift in summary.lifts:
        paired = lift.paired
        if lift.arm != arm.arm or paired.difference is None:
            continue
        shown = DifferenceScale(lift.metric).signed(paired.difference)
        if paired.ci95 is not None:
            shown += f" (95 % CI {DifferenceScale(lift.metric).words(paired.ci95)})"
        what = f"{lift.metric} over" if lift.metric else "over"
        lines.append(f"{what} {lift.baseline}: {shown}, {counted(paired.count, 'case')}")
    return lines


def pass_lines(summary: RunSummary, arm: ArmSummary) -> list[str]:
    """Give pass@k (right at least once) and pass^k (right every time), for the largest k that all such arms have."""
    common = [{passes.k for passes in other.passes} for other in summary.arms if other.passes]
    return [
        line
        for passes in arm.passes
        if passes.k == max(set.intersection(*common))
        for line in (
            f"right at least once in {passes.k} (pass@{passes.k}): {_with_bounds(passes.at_least_once)}",
            f"right every time (pass^{passes.k}): {_with_bounds(passes.every_time)}",
        )
    ]


def _with_bounds(estimate: Aggregate) -> str:
    if estimate.ci95 is None:
        return number(estimate.mean)
    return f"{number(estimate.mean)} (95 % CI {number(estimate.ci95[0])} to {number(estimate.ci95[1])})"


def tool_lines(arm: ArmSummary) -> list[str]:
    """Describe how an arm used its tools: `tools used in 8 of 10 answers (80 %), 12 calls, 1 failed: time.now 12`."""
    tools = arm.tools
    if tools is None or not tools.answers + tools.unknown:
        return []
    if not tools.answers:
        return [f"tool use is unknown: the target does not report it ({counted(tools.unknown, 'answer')})"]
    failed = f", {tools.errors} failed" if tools.errors else ""
    which = ", ".join(f"{name} {calls}" for name, (calls, _) in tools.tools.items())
    answers, calls = counted(tools.answers, "answer"), counted(tools.calls, "call")
    line = f"tools used in {tools.used} of {answers} ({100 * tools.rate:.0f} %), {calls}{failed}"
    lines = [f"{line}: {which}" if which else line]
    if 0 < tools.used < tools.answers:
        mean, bounds = tools.when_used.mean, tools.when_used.ci95
        shown = "" if bounds is None else f" (95 % CI {number(bounds[0])} to {number(bounds[1])})"
        lines.append(f"where a tool was used: {number(mean)}{shown}")
    if tools.marked:
        lack = "lacks" if tools.marked == 1 else "lack"
        lines.append(f"{counted(tools.marked, 'answer')} {lack} the tool use that the condition requires")
    return lines


def refusal_lines(arm: ArmSummary) -> list[str]:
    """Count the answers that decline: `answers declined: 3 refused, 1 filtered of 40`."""
    counts = [(arm.refused, "refused"), (arm.filtered, "filtered")]
    parts = [f"{count} {what}" for count, what in counts if count]
    return [f"answers declined: {', '.join(parts)} of {arm.trials - arm.waiting - arm.failed}"] if parts else []


def left_out_lines(arm: ArmSummary) -> list[str]:
    """Say which parameters a server has refused: `temperature: refused by its server, and left out`."""
    return [f"{', '.join(arm.left_out)}: refused by its server, and left out"] if arm.left_out else []


def answered_lines(arm: ArmSummary) -> list[str]:
    """Say which other models answered: `answered by gemini-3.8-flash, by what the replies say`."""
    return [f"answered by {' and '.join(arm.answered_by)}, as the replies say"] if arm.answered_by else []


def left_words(status: str) -> str:
    """Say of trials without an outcome what they are: an interrupted one may have been answered, but not scored."""
    return "not run" if status == "stopped" else "not finished"


def headline(summary: RunSummary) -> str:
    """Summarise the run in one line."""
    reason = f" ({summary.reason})" if summary.reason and summary.reason != summary.status else ""
    cases = counted(summary.case_count, "case")
    return f"run {summary.run_id} · {summary.suite} · {cases} · {summary.status}{reason}"


def failure_line(failure: tuple[str, str, int]) -> str:
    """Format one failure reason with how often it happened."""
    kind, message, count = failure
    return f"{count} × {kind}: {one_line(message)}"


def run_notes(summary: RunSummary) -> list[str]:
    """Return what a reader should know before trusting the table."""
    notes = [asked_words(summary.asked)] if summary.asked else []
    counts = [arm.aggregate.count for arm in summary.arms if arm.aggregate.count]
    if counts and min(counts) == 1:
        notes.append("One case: what it shows need not be so on others.")
    elif counts and min(counts) < _FEW_CASES:
        notes.append(f"Few cases ({min(counts)}): the intervals are wide, and small differences mean nothing yet.")
    if is_large(pairs := math.comb(len(counts), 2)):
        notes.append(against_first_words(pairs))
    if summary.repeated:
        notes.append(f"{repeated_words(summary.repeated, summary.case_count)}.")
    if summary.limited:
        notes.append(
            "Some cases were asked of some arms only: each score is over the cases of its arm; comparisons use those "
            "that both were asked."
        )
    if any(arm.failed or arm.unscored for arm in summary.arms):
        notes.append("Some trials have no score; they are left out of the means, not counted as 0.")
    notes += stop_notes(summary)
    coverages = {round(arm.scored / max(1, arm.trials - arm.waiting), 3) for arm in summary.arms}
    if len(coverages) > 1:
        notes.append("The arms have scores for different shares of their trials: compare them with care.")
    automatic = sum(arm.passed_automatically for arm in summary.arms)
    if automatic:
        have = "its case has" if automatic == 1 else "their cases have"
        notes.append(f"{counted(automatic, 'answer')} passed automatically: {have} no expected text.")
    truncated = sum(arm.truncated for arm in summary.arms)
    if truncated:
        notes.append(f"{counted(truncated, 'answer')} {'was' if truncated == 1 else 'were'} cut off at max_tokens.")
    notes += filter(None, [limit_note(summary.arms)])
    notes += _judge_notes(summary)
    notes += _unseen_notes(summary)
    return [*notes, *_cost_notes(summary), *origin_notes(summary.origin)]


def _judge_notes(summary: RunSummary) -> list[str]:
    """Say how many judge calls the scores rest on, what they cost and how noisy they are."""
    verdicts = sum(arm.judge_verdicts for arm in summary.arms)
    if not verdicts:
        return []
    calls = sum(arm.judge_calls for arm in summary.arms)
    basis = f"{counted(verdicts, 'verdict')} reused from an earlier scoring, no new calls"
    if calls:
        cost = total(arm.judge_cost for arm in summary.arms)
        basis = counted(calls, "call")
        basis += f", {money(cost)}" if cost.charged or cost.unknown else ""
    how = rubric_words(summary.judging)
    return [f"Judged by a model{how} ({basis}). {noise_words(summary.arms)}", *_hot_notes(summary)]


def _hot_notes(summary: RunSummary) -> list[str]:
    """Warn of judges that were not asked to be as steady as they can be."""
    hot = summary.judging.hot if summary.judging else {}
    return [
        f"Judge {name} had a temperature of {temperature:g}: it may mark the same answer differently each time. Set it "
        "to 0, or ask it several times (`panel: {judgements: 3}`)."
        for name, temperature in hot.items()
    ]


def noise_words(arms: Sequence[ArmSummary]) -> str:
    """Say how much the means of another run would differ, going by this run's repeats."""
    half_widths = [
        1.96 * arm.repeat_sd / math.sqrt(arm.scored) for arm in arms if arm.repeat_sd is not None and arm.scored
    ]
    if not half_widths:
        return "How much another run would differ is not known: three repeats or runs measure it."
    return f"Going by its repeats, the means of another run would differ by up to {number(max(half_widths))} points."


def _cost_notes(summary: RunSummary) -> list[str]:
    """Report costs that the cost column does not include."""
    notes = []
    user = summary.user_cost
    shown = total(cost for arm in summary.arms for cost in (arm.cost, arm.judge_cost)) + user
    if user.charged or user.unknown:
        notes.append(f"The simulated user cost {money(user)}, which is in no arm's cost.")
    if summary.spent.charged - shown.charged > 1e-9 or summary.spent.unknown > shown.unknown:
        others = (
            "earlier scorings, pairs, judge checks, abandoned calls and late answers"
            if summary.late
            else ("earlier scorings, pairs, judge checks and abandoned calls")
        )
        notes.append(f"Total spent, including {others}: {money(summary.spent)}.")
    if summary.late:
        price = f" ({money(summary.late_cost)})" if summary.late_cost.charged or summary.late_cost.unknown else ""
        notes.append(
            f"{counted(summary.late, 'late answer')}{price} kept with the run, not scored: another process had taken "
            "it over (`show --late`)."
        )
    if summary.spent.unknown:
        calls = counted(summary.spent.unknown, "call")
        most = (
            f"; at most {money(summary.spent.charged)} in total" if summary.spent.charged > summary.spent.known else ""
        )
        notes.append(f"The cost of {calls} is unknown{most}.")
        notes += _price_notes(summary) if summary.origin is None else []
    return notes


def _price_notes(summary: RunSummary) -> list[str]:
    """Say how to make unknown costs known; for an abandoned session nothing would."""
    abandoned = {arm.arm: arm.failed + arm.limits.get("time", 0) for arm in summary.arms}
    unpriced = [arm for arm in summary.arms if arm.cost.unknown and arm.trials - arm.waiting > abandoned[arm.arm]]
    notes = []
    if any(arm.prompt_tokens and not arm.cost.charged for arm in unpriced):
        notes.append("Add the price under `prices:` to see it.")
    uncounted = [arm for arm in unpriced if not arm.prompt_tokens]
    unbelieved = dict.fromkeys(arm.target for arm in uncounted if arm.cost.charged)
    if unbelieved:
        notes.append(f"{', '.join(unbelieved)} reported no token counts, or none that can be true: ask its provider.")
    unreported = dict.fromkeys(arm.target for arm in uncounted if not arm.cost.charged)
    if unreported:
        notes.append(
            f"{', '.join(unreported)} does not report its cost: have it report `cost_usd`, or set its price under "
            "`prices:` (0 if it costs nothing)."
        )
    return notes


def origin_notes(origin: Mapping[str, Any] | None) -> list[str]:
    """Say where an imported run came from, and what is not known about it."""
    if origin is None:
        return []
    tool = f"{origin['tool']} {origin['version']}".strip()
    names = [file["name"] for file in origin["files"]]
    files = ", ".join(names[:2]) + (f" and {len(names) - 2} more" if len(names) > 2 else "")
    scored = f"{origin['metric']} is the score" if origin["metric"] else "no score came with it"
    notes = [f"Imported from {f'{files} ({tool})' if files else tool}; {scored}."]
    if origin["unfinished"]:
        notes.append(f"Unfinished: {origin['unfinished']}.")
    notes += map(sentence_of, origin["notes"])
    if origin["missing"]:
        notes.append(f"Not recorded by {origin['tool']}: {', '.join(origin['missing'])}.")
    return notes


def _unseen_notes(summary: RunSummary) -> list[str]:
    """Name the arms whose pages were judged without a browser."""
    unseen = [arm.arm for arm in summary.arms if judged_unseen(arm.metrics)]
    if not unseen:
        return []
    return [f"The pages of {', '.join(unseen)} were judged by their code alone: no browser has rendered them."]


def sent_text(sent: dict[str, Any] | None, arm: Arm) -> str:
    """Describe the parameters sent. For old runs only the configured ones are known, not those that were sent."""
    if sent is not None:
        return _listed(sent) or "none sent"
    return f"not recorded; configured: {_listed(arm.params) or 'none'}"


def _listed(params: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in params.items())
