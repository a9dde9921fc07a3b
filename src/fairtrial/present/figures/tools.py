"""Whether tools and skills help, and how they were used: the section of a page or a report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from markupsafe import Markup

from fairtrial.analyse.comparison import Verdict
from fairtrial.analyse.lift import Lift
from fairtrial.analyse.offer_rates import OfferDifference, OfferRate
from fairtrial.analyse.summary import RunSummary
from fairtrial.analyse.tool_report import ArmToolReport, Gain, ToolReport, ToolStats
from fairtrial.analyse.version_gains import VersionGain
from fairtrial.core.formatting import signs
from fairtrial.present.charts import ForestRow, confusion_matrix, small_forest
from fairtrial.present.charts.marks import Tone, scaled
from fairtrial.present.charts.svg import safe
from fairtrial.present.figures.leaders import TONES, Figure, Links, difference_row
from fairtrial.present.figures.versions import VersionView, version_view
from fairtrial.present.words.tools import arm_sentences, confusion_heading, gain_sentence, items_words, notes_on
from fairtrial.present.words.versions import short_words

_MOST_ARMS = 12  # with figures of their own
_MOST_TOOLS = 20
_MOST_METRICS = 6
_CONFUSED = 12  # tools up to which a matrix can be read
_TAKEN = (("cost_usd", "cost of 1,000 answers, in USD", 1000.0), ("latency_ms", "latency, in seconds", 0.001))

_ONE_PAIR: dict[Verdict, str] = {
    "better": "The later version is better.",
    "worse": "The later version is worse.",
    "equivalent": "There is no relevant difference between the two versions.",
    "cannot tell": "Too few cases to tell which version is better.",
    "depends on failures": "Which version is better depends on the failed trials.",
}


class ArmTools(NamedTuple):
    """How one arm used its tools: figures with an interval for each tool, what words can say, and mistaken tools."""

    name: str
    words: str
    figures: list[Figure]
    lines: list[str]
    confusion: Markup
    confused: str  # of which tools, if not all


class ToolsSection(NamedTuple):
    """Whether tools help: a sentence, the gain of each server, tool and skill, and how arms used them."""

    words: str
    gains: list[Figure]
    versions: list[VersionView]
    arms: list[ArmTools]
    more: int  # arms that are not drawn
    notes: list[str]


def tools_section(summary: RunSummary, report: ToolReport | None, links: Links) -> ToolsSection | None:
    """Return what a run with tools or skills shows about them; None for a run without."""
    if report is None or not report.arms:
        return None
    arms = [arm for arm in report.arms if arm.servers or arm.skills]
    return ToolsSection(
        _headline(report),
        [*_gain_figures(report, links), *_metric_figures(summary, report, links)][:_MOST_METRICS],
        [version_view(gain, report.metric, links) for gain in report.versions],
        [_arm(arm) for arm in arms[:_MOST_ARMS]],
        max(0, len(arms) - _MOST_ARMS),
        notes_on(report),
    )


def _headline(report: ToolReport) -> str:
    """Say whether they help; of several, how many."""
    if not report.gains:
        known = [version.score.verdict for version in report.versions if version.score]
        return _versions_headline(known) if known else "There is no condition without them to compare with."
    if len(report.gains) == 1:
        return gain_sentence(report.gains[0], report.metric)
    verdicts = [gain.score.verdict for gain in report.gains]
    words = [("better", "help"), ("worse", "hurt"), ("cannot tell", "unknown")]
    counts = [f"{verdicts.count(verdict)} {said}" for verdict, said in words if verdict in verdicts]
    return f"Of {len(verdicts)} comparisons with and without: {', '.join(counts) or 'no relevant difference'}."


def _versions_headline(verdicts: Sequence[Verdict]) -> str:
    """Say whether later versions are better; of several pairs, how many."""
    if len(verdicts) == 1:
        return _ONE_PAIR[verdicts[0]]
    said = {"better": "better", "worse": "worse", "cannot tell": "unknown"}
    counts = [f"{verdicts.count(verdict)} {words}" for verdict, words in said.items() if verdict in verdicts]
    return f"Of {len(verdicts)} later versions against earlier ones: {', '.join(counts) or 'no relevant difference'}."


def _gain_figures(report: ToolReport, links: Links) -> list[Figure]:
    rows = [_gain_row(gain, report.metric, links) for gain in report.gains]
    rows += [_version_row(gain, gain.score, report.metric, links) for gain in report.versions if gain.score]
    if not rows:
        return []
    html = small_forest(rows, name=_column(report), number_name="Gain", zero=0.0)
    return [Figure((report.metric or "score").replace("_", " "), safe(html)), *_taken_figures(report, links)]


def _taken_figures(report: ToolReport, links: Links) -> list[Figure]:
    """Return what the same things take: money and time, where they are known for every arm."""
    figures = []
    for metric, name, factor in _TAKEN:
        named: list[tuple[str, Gain | VersionGain]] = [(items_words(gain.what), gain) for gain in report.gains]
        named += [(short_words(version.what), version) for version in report.versions]
        pairs = [(label, gain, one) for label, gain in named for one in gain.taken if one.metric == metric]
        if any(one.difference for *_, one in pairs):
            rows = [_taken_row(label, gain, one, factor, links) for label, gain, one in pairs]
            html = small_forest(rows, name=_column(report), number_name="More", zero=0.0)
            figures.append(Figure(name, safe(html)))
    return figures


def _column(report: ToolReport) -> str:
    """Return what the rows of gains are."""
    if not report.versions:
        return "With it, against without"
    return "What differs" if report.gains else "The later version, against the earlier"


def _taken_row(label: str, gain: Gain | VersionGain, one: OfferDifference, factor: float, links: Links) -> ForestRow:
    value = factor * (one.difference or 0.0)
    bounds = scaled(one.ci95, factor)
    words = "" if bounds is None else signs(f"{bounds[0]:.2f} to {bounds[1]:.2f}")
    href, shown = links.pair(gain.arm, gain.baseline), signs(f"{value:+.2f}")
    return ForestRow(label, value, bounds, shown, words, href=href, tone=TONES[one.verdict])


def _gain_row(gain: Gain, metric: str, links: Links) -> ForestRow:
    href, rank = links.pair(gain.arm, gain.baseline), f"{gain.arm} against {gain.baseline}"
    tone = TONES[gain.score.verdict]
    return difference_row(items_words(gain.what), metric, gain.score, tone=tone, rank=rank, href=href)


def _version_row(gain: VersionGain, score: OfferDifference, metric: str, links: Links) -> ForestRow:
    href, rank = links.pair(gain.arm, gain.baseline), f"{gain.arm} against {gain.baseline}"
    return difference_row(short_words(gain.what), metric, score, tone=TONES[score.verdict], rank=rank, href=href)


def _metric_figures(summary: RunSummary, report: ToolReport, links: Links) -> list[Figure]:
    """Return the gains in other metrics than the primary one, for every condition."""
    names = {arm.arm for arm in report.arms if arm.servers or arm.skills}
    lifts = [lift for lift in summary.lifts if lift.arm in names and lift.paired.difference is not None]
    figures = []
    for metric in dict.fromkeys(lift.metric for lift in lifts if lift.metric != report.metric):
        rows = [_lift_row(lift, links) for lift in lifts if lift.metric == metric][:_MOST_TOOLS]
        html = small_forest(rows, name="Condition", number_name="Gain", zero=0.0)
        figures.append(Figure((metric or "score").replace("_", " "), safe(html)))
    return figures


def _lift_row(lift: Lift, links: Links) -> ForestRow:
    href = links.pair(lift.arm, lift.baseline)
    return difference_row(
        lift.arm, lift.metric, lift.paired, tone=_tone(lift), rank=f"against {lift.baseline}", href=href
    )


def _tone(lift: Lift) -> Tone:
    """Return whether the interval leaves out 0, and on which side."""
    bounds = lift.paired.ci95
    if bounds is None or bounds[0] <= 0 <= bounds[1]:
        return "unsure"
    worst, best = lift.scale
    lower_is_better = best is not None and (worst is None or best < worst)
    return "lead" if (bounds[0] > 0) != lower_is_better else "behind"


def _arm(arm: ArmToolReport) -> ArmTools:
    prefix = f"{arm.servers[0].server}." if len(arm.servers) == 1 else ""  # all are of the one server

    def short(name: str) -> str:
        return name.removeprefix(prefix)

    columns: list[tuple[str, Callable[[ToolStats], OfferRate]]] = [
        ("Trials that called it", lambda tool: tool.use),
        ("Calls that worked", lambda tool: tool.success),
        ("Calls with valid arguments", lambda tool: tool.valid),
        ("Called where cases ask for it", lambda tool: tool.chosen),
    ]
    figures = [figure for name, rate in columns if (figure := _rates(arm.tools, name, rate, short))]
    confusion = arm.confusion and arm.confusion.among(_CONFUSED)
    drawn = safe("")
    if confusion is not None and len(confusion.called) > 1:
        expected, called = list(map(short, confusion.expected)), list(map(short, confusion.called))
        drawn = safe(confusion_matrix(expected, called, confusion.counts, corner="asked for ↓ called →"))
    words = "" if arm.tokens is None else f"about {arm.tokens:,} tokens of descriptions in every prompt"
    lines = [line for line in arm_sentences(arm) if "tokens of descriptions" not in line]
    confused = confusion_heading(arm, _CONFUSED) if drawn else ""
    return ArmTools(arm.arm, words, figures, lines, drawn, confused)


def _rates(
    tools: Sequence[ToolStats], name: str, rate: Callable[[ToolStats], OfferRate], short: Callable[[str], str]
) -> Figure | None:
    """Return a share with its interval for every tool that has one."""
    rows = [_rate_row(tool, rate(tool), short) for tool in tools[:_MOST_TOOLS] if rate(tool).share is not None]
    if not rows:
        return None
    return Figure(name, safe(small_forest(rows, name="Tool", number_name="%", within=(0.0, 100.0))))


def _rate_row(tool: ToolStats, rate: OfferRate, short: Callable[[str], str]) -> ForestRow:
    interval = scaled(rate.ci95, 100)
    shown = f"{100 * (rate.share or 0.0):.0f}"
    bounds = "" if interval is None else f"{interval[0]:.0f} to {interval[1]:.0f}"
    label = short(tool.name) if tool.offered else f"{short(tool.name)} (not offered)"
    return ForestRow(label, 100 * (rate.share or 0.0), interval, shown, bounds, rank=f"{rate.hits} of {rate.of}")
