"""What the report on prompt styles says, the same in the terminal, HTML, Markdown, LaTeX, CSV and pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fairtrial.analyse.comparison import Comparison
from fairtrial.analyse.leaderboard import Leaderboard, comparison_leaderboard
from fairtrial.core.formatting import Scale, signs
from fairtrial.present.words.comparisons import p_words
from fairtrial.present.words.leaderboards import headline_parts
from fairtrial.present.words.verdicts import WORDS, Piece
from fairtrial.text.printable import counted
from fairtrial.tracks.optimisation.analysis import QUALITY_COMPOSITE, OptimisationReport
from fairtrial.tracks.optimisation.style_tables import MEASURES, Group, gap_measures, gap_table, style_table
from fairtrial.tracks.optimisation.verify import GapKind

_GAP_WORDS: dict[GapKind, str] = {
    "chance": "0 at the optimum, 1 at no better than random feasible points",
    "relative": "the relative gap of the claimed objective, at most 1",
    "absolute": "the absolute gap of the claimed objective, at most 1, since the optimum is 0",
    "exact": "0 at the optimum, 1 anywhere else",
}


def leaderboard_of(report: OptimisationReport) -> Leaderboard | None:
    """Return who leads by the composite; None if there is only one arm."""
    return comparison_leaderboard(report.comparisons) if report.comparisons else None


def headline(report: OptimisationReport) -> str:
    """Say in one sentence which style leads by the composite."""
    return "".join(part.text for part in headline_of(report))


def headline_of(report: OptimisationReport) -> list[Piece]:
    """Return the headline in pieces, so that a page can link the arms."""
    leaderboard = leaderboard_of(report)
    if leaderboard is None:
        return [Piece("One style only: there is nothing to compare it with.")]
    return [part if part.arm else Piece(_of_instances(part.text)) for part in headline_parts(leaderboard)]


def _of_instances(text: str) -> str:
    """Say `instance`, as those who work on optimisation do, where there is only one case."""
    return text.replace("there is only one case", "there is only one instance").replace(
        "On this case", "On this instance"
    )


def gap_words(report: OptimisationReport) -> str:
    """Say what the gap of 0–1 is; that depends on what is known of a problem."""
    kinds = report.setup.gaps
    if len(kinds) < 2:
        return next((_GAP_WORDS[kind] for kind in kinds), _GAP_WORDS["chance"])
    return "; ".join(f"on {counted(count, 'problem')} {_GAP_WORDS[kind]}" for kind, count in kinds.items())


def spread_words(report: OptimisationReport) -> str:
    """Say what the deviation and the interval in a cell are over."""
    if report.one_instance:
        return "mean, sd between answers and 95 % CI over them, on this instance"
    return "mean, sd between problems and 95 % CI"


def composite_words(report: OptimisationReport) -> str:
    """Say what the composite of the headline is."""
    following, closeness = report.weights
    return (
        f"The composite is the guide's: {following:g} × followed + {closeness:g} × (1 − gap), each over all answers. "
        "It does not count feasibility; the quality composite does."
    )


def second_opinion(report: OptimisationReport) -> str:
    """Say whether the quality composite, which counts feasibility, leads to the same verdicts; empty without pairs."""
    if report.comparisons is None:
        return ""
    ours = {(one.a, one.b): one for one in report.comparisons.metrics if one.metric == QUALITY_COMPOSITE}
    apart = [pair for pair in report.comparisons.pairs if ours[pair.a, pair.b].verdict != pair.verdict]
    if not apart:
        return "By the quality composite, every verdict is the same."
    shown = "; ".join(
        f"{pair.a} against {pair.b} {_verdict(ours[pair.a, pair.b])}, by the composite {_verdict(pair)}"
        for pair in apart[:3]
    )
    more = f"; and {len(apart) - 3} more" if len(apart) > 3 else ""
    return f"By the quality composite, other verdicts: {shown}{more}."


def _verdict(pair: Comparison) -> str:
    return f"{WORDS[pair.verdict]} ({signs(Scale(pair.metric).signed(pair.difference))})"


def _table_note(report: OptimisationReport) -> str:
    if report.one_instance:
        return (
            "The mean over the answers, their standard deviation (sd), and the 95 % interval of the mean over answers "
            "(Student's t; of rates, and where nothing varies, bounded by the scale): all of it on this instance."
        )
    return (
        "The mean, its standard deviation between problems (sd), and the 95 % interval of the mean over families of "
        "problems. The deviation between answers to one problem is in the CSV file."
    )


GAP_WORDS = "Relative gap: |f − f*| / max(|f*|, 1e-8); absolute gap: |f − f*|."


def gap_note(report: OptimisationReport) -> str:
    """Say what is in a cell of the table of gaps."""
    over = "answers" if report.one_instance else "problems"
    return f"Over answers that give a point: the mean, its standard deviation between {over} (sd), and the median."


def difference_note(report: OptimisationReport) -> str:
    """Say what the differences and their tests are."""
    return f"{_DIFFERENCE_NOTE}{_HERE_NOTE if report.one_instance else ''}"


_HERE_NOTE = (
    " On this instance, the answers are the sample: p is that of the two-sample t-test with pooled variance, followed "
    "by that of the t-test paired by run, and count says how many answers each style has. Nothing follows for other "
    "problems."
)


_DIFFERENCE_NOTE = (
    "Differences are paired by problem. Intervals and p-values hold for all pairs together (Holm), by the composite "
    "and, as a second family, by the other measures; those by difficulty are adjusted for each other too. Also shown: "
    "the p of the paired t-test over problems, which takes no account of families, wordings, limits of the scale or "
    "other pairs."
)


def interaction_lines(report: OptimisationReport) -> list[str]:
    """Say whether the effect differs by difficulty, for every pair."""
    lines = []
    for pair in report.comparisons.pairs if report.comparisons else ():
        for one in pair.differs:
            if one.by == "difficulty":
                found = "differs" if one.p_value < 0.05 else "no sign that it differs"
                lines.append(f"{pair.a} against {pair.b}, effect by difficulty: {found} (p {p_words(one.p_value)})")
    return lines


def length_lines(report: OptimisationReport) -> list[str]:
    """Say how long the styles are, and how much they differ."""
    if not report.lengths:
        return []
    told = ", ".join(
        f"{one.style} {one.words:.0f} ({one.fewest}–{one.most}, {counted(one.wordings, 'wording')})"
        for one in report.lengths
    )
    means = [one.words for one in report.lengths]
    lines = [f"Words that a style adds to a problem: {told}."]
    if len(means) > 1 and max(means) - min(means) >= 3:
        lines.append(
            f"The styles differ by up to {max(means) - min(means):.0f} words, so length and tone cannot be told apart; "
            "`--match-length` evens them out."
        )
    return lines


def warnings(report: OptimisationReport) -> list[str]:
    """Return what a reader must know before trusting the table."""
    lines = []
    if report.beaten:
        shown = ", ".join(report.beaten[:5])
        lines.append(f"BASELINE BEATEN by {counted(len(report.beaten), 'answer')}: {shown}. Check the baseline.")
    if report.left_out:
        lines.append(f"No scored answers: {', '.join(report.left_out)}.")
    if report.setup.known < report.setup.problems:
        missing = report.setup.problems - report.setup.known
        lines.append(f"{counted(missing, 'problem')} known by a baseline alone: nothing about feasibility there.")
    for arm in report.arms:
        faults = {
            ("repeats the question", "repeat the question"): arm.overall.echoes,
            ("is cut off", "are cut off"): arm.overall.truncated,
            ("states a wrong objective", "state a wrong objective"): arm.overall.misreported,
        }
        told = ", ".join(f"{count} {words[count > 1]}" for words, count in faults.items() if count)
        if told:
            lines.append(f"{arm.arm}: of {counted(arm.overall.trials, 'answer')} {told}.")
    return lines


def listed(items: Sequence[str]) -> str:
    """Join names: `a, b and c`."""
    return " and ".join([", ".join(items[:-1]), items[-1]]) if len(items) > 1 else "".join(items)


class MeasuredTable(NamedTuple):
    """Every style on all problems and on each kind of them, by several measures."""

    title: str
    caption: str  # where the title stands below the table
    label: str
    note: str  # what stands in a cell
    columns: list[str]
    groups: list[Group]  # none: there is nothing to show
    notes: list[str]  # what each column is
    between: str  # a mean and what stands beside it


def measured_tables(report: OptimisationReport) -> list[MeasuredTable]:
    """Return the guide's table, and that of gaps and distances."""
    distances = gap_measures(report)
    return [
        MeasuredTable(
            title="Every style",
            caption="Prompt styles",
            label="styles",
            note=_table_note(report),
            columns=[*(one.name for one in MEASURES), "median gap"],
            groups=style_table(report),
            notes=[f"{one.name}: {one.means.format(*report.weights, gap_words(report))}" for one in MEASURES],
            between=" ",
        ),
        MeasuredTable(
            title="Gaps and distances",
            caption="Gaps and distances",
            label="gaps",
            note=gap_note(report),
            columns=[one.name for one in distances],
            groups=gap_table(report),
            notes=[f"{one.name}: {one.means}" for one in distances],
            between=", ",
        ),
    ]
