"""Sentences and table cells about judges, labels and judged pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fairtrial.core.formatting import deviation, money, number, signs
from fairtrial.text.printable import counted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fairtrial.analyse.judging import JudgeRating, Judging
    from fairtrial.analyse.labels import ArmLabels
    from fairtrial.analyse.pairs import ArmPair, JudgeOrders
    from fairtrial.analyse.summary import ArmSummary, RunSummary
    from fairtrial.judging.calibration import Calibration
    from fairtrial.stats.agreement import Agreement


_CHOSEN = "hand-picked answers (`--sample` draws them at random)"


def label_lines(arm: ArmSummary) -> list[str]:
    """Say how human labels differ from the judge's scores of this arm, and give the mean corrected by them."""
    if arm.labels is None:
        return []
    labels, lines = arm.labels, []
    if labels.bias is not None:
        agreement = labels.agreement
        alpha = (
            f", α {agreement.value:.2f}{_bounds(agreement.ci95)}" if agreement and agreement.value is not None else ""
        )
        lines.append(
            f"{counted(labels.answers, 'human label')}: the judge marks {abs(100 * labels.bias):.1f} points "
            f"{'higher' if labels.bias >= 0 else 'lower'}{alpha}"
        )
    for corrected in labels.corrected:
        if corrected.mean is None or corrected.ci95 is None:
            lines.append(f"not corrected: {corrected.refused}")
            continue
        low, high = corrected.ci95
        lines.append(f"corrected by labels: {number(corrected.mean)} (95 % CI {number(low)} to {number(high)})")
    if labels.chosen:
        lines.append(f"correct nothing: {counted(labels.chosen, 'label')} of {_CHOSEN}")
    if labels.stale:
        lines.append(f"not used: {counted(labels.stale, 'stale label')} (given for another judge or prompt)")
    return lines


def second_lines(arm: ArmSummary) -> list[str]:
    """Say what a second judge says of this arm, the mean corrected by it, and what it would take alone."""
    second = arm.second
    if second is None:
        return []
    alpha = f", α {_with_interval(second.agreement)}" if second.agreement and second.agreement.value is not None else ""
    direction = "higher" if second.bias >= 0 else "lower"
    lines = [
        f"{counted(second.answers, 'answer')} judged again by {second.judge}: the first judge marks "
        f"{abs(100 * second.bias):.1f} points {direction}{alpha}"
    ]
    corrected = second.corrected
    if corrected.mean is None or corrected.ci95 is None:
        return [*lines, f"not corrected: {corrected.refused}"]
    low, high = corrected.ci95
    lines.append(f"corrected by {second.judge}: {number(corrected.mean)} (95 % CI {number(low)} to {number(high)})")
    if corrected.worth:
        saved = f", for {money(second.usd)} instead of {money(second.alone_usd)}" if second.usd is not None else ""
        alone = counted(round(corrected.worth), "case")
        lines.append(f"as sure as {second.judge} alone on {alone}, instead of {corrected.labelled:,}{saved}")
    return lines


def second_note(summary: RunSummary) -> list[str]:
    """Say what a second judge changes, and what not."""
    corrected = [arm.second for arm in summary.arms if arm.second is not None and arm.second.corrected.mean is not None]
    if not corrected or summary.judging is None:
        return []
    cases = counted(min(one.corrected.labelled for one in corrected), "case")
    return [
        f"{summary.judging.second} judged {cases} again: differences between arms are corrected by that; scores are as "
        "the first judge gave them."
    ]


def judges_words(names: Sequence[str], second: str | None) -> str:
    """Name the judges of a run; a second one judges some cases only."""
    return ", ".join(f"{name} (some cases)" if name == second else name for name in names)


def labels_sentence(arms: Mapping[int, ArmLabels]) -> str:
    """Say in one sentence what the labels of all arms say about the judge; empty without labels."""
    known = [own for own in arms.values() if own.bias is not None and own.answers]
    answers = sum(own.answers for own in known)
    if not answers:
        return ""
    bias = 100 * sum((own.bias or 0.0) * own.answers for own in known) / answers
    corrected = sum(any(one.mean is not None for one in own.corrected) for own in known)
    how = (
        "as people do"
        if round(abs(bias)) == 0
        else f"{abs(bias):.0f} points {'higher' if bias > 0 else 'lower'} than people"
    )
    on = f"on {counted(answers, 'labelled answer')}, the scores are {how}"
    so_far = f"; {corrected} of {len(known)} means are corrected by labels" if corrected else ""
    return f"{on[0].upper()}{on[1:]}{so_far}."


def corrected_words(labels: ArmLabels) -> str:
    """Say what the labels make of an arm's mean: `74.2 becomes 71.0 (95 % CI 66.1 to 75.9)`, or why nothing."""
    for one in labels.corrected:
        if one.mean is None or one.ci95 is None:
            return f"{number(one.uncorrected)}, not corrected yet: {one.refused}"
        bounds = f"95 % CI {number(one.ci95[0])} to {number(one.ci95[1])}"
        return f"{number(one.uncorrected)} becomes {number(one.mean)} ({bounds})"
    if labels.chosen:
        return f"not corrected: {counted(labels.chosen, 'label')} of {_CHOSEN}"
    return f"not used: {counted(labels.stale, 'label')} of another judge or prompt" if labels.stale else ""


def rubric_words(judging: Judging | None) -> str:
    """Say that the judges had k-eval's rubric, if they did; only then may marks be called k-eval's."""
    if judging is None or "k-eval" not in judging.rubrics:
        return ""
    return " with k-eval's rubric" if len(judging.rubrics) == 1 else " with k-eval's rubric, where the scorer says so"


def judging_notes(judging: Judging | None) -> list[str]:
    """Describe the judges: calibration ratings, agreement and noise."""
    if judging is None:
        return []
    notes = [_rating_note(rating) for rating in judging.judges if rating.rating is not None]
    if uncalibrated := [rating.judge for rating in judging.judges if rating.rating is None]:
        notes.append(f"Never calibrated: {', '.join(uncalibrated)}. Calibrating measures how good a judge is.")
    return [*notes, *agreement_notes(judging)]


def agreement_notes(judging: Judging) -> list[str]:
    """Describe how far the judges of a run agree, and how much of a score is their noise."""
    notes = []
    if judging.alpha is not None and judging.alpha.value is not None:
        notes.append(f"{agreement_words(judging.alpha)}.")
        if judging.effective_judges:
            notes.append(f"Going by human labels, they are worth {judging.effective_judges:.1f} independent judges.")
    for kappa in judging.kappas if len(judging.kappas) > 1 else ():
        if kappa.agreement.value is not None:
            shown = _with_interval(kappa.agreement)
            notes.append(f"{kappa.one} and {kappa.other}: weighted κ {shown}.")
    if judging.judge_sd is not None:
        noise = f"Judging the same answer again moves a score ({deviation(judging.judge_sd)})"
        if judging.answer_sd is not None:
            shown = deviation(judging.answer_sd)
            noise += f"; answering the same case again moves it too ({shown}, without the judges' noise)"
        notes.append(f"{noise}.")
    elif judging.repeat_sd is not None:
        notes.append(
            f"Answering the same case again moves a score ({deviation(judging.repeat_sd)}, the judge's own noise "
            "included); `panel: {judgements: 3}` would separate the two."
        )
    return notes


def agreement_words(alpha: Agreement) -> str:
    """Say how far judges agree: Krippendorff's α is 1 where they always do, and 0 where chance would do as well."""
    value = alpha.value or 0.0
    low, high = alpha.ci95 or (value, value)
    if high < 0:
        words = "contradict each other: where one gives a high mark, the other tends to give a low one"
    elif value <= 0:
        words = "do not agree"
    elif low <= 0:
        words = "may agree no more than by chance"
    else:
        words = next(words for least, words in _AGREEMENT if value >= least)
    return f"The judges {words} (α {_with_interval(alpha)}; 1 is full agreement, 0 is chance)"


def _with_interval(agreement: Agreement) -> str:
    shown = f"{agreement.value or 0.0:.2f}"
    if agreement.ci95 is not None:
        shown += f", 95 % CI {agreement.ci95[0]:.2f} to {agreement.ci95[1]:.2f}"
    return shown.replace("-", "−")


_AGREEMENT = ((0.8, "agree well"), (0.667, "agree fairly well"), (0.4, "agree only roughly"), (-1.0, "hardly agree"))


class Level(NamedTuple):
    """Answers of one worth, and the judge's mean error on them."""

    name: str
    error: float  # in points; positive if the judge gives too much


def calibration_headline(calibration: Calibration) -> str:
    """Say what a judge is worth, in one sentence."""
    article = "an" if calibration.rating == "excellent" else "a"
    return f"{calibration.summary.judge} is {article} {calibration.rating} judge: it {bias_words(calibration)}."


def bias_words(calibration: Calibration) -> str:
    """Say where a judge gives too much or too little: `gives 8 points too much on poor answers`."""
    summary = calibration.summary
    if summary.bias is None:
        return "gave no verdict that could be used"
    if summary.correlation is None and summary.total - summary.unscored > 1:
        return "gives every answer nearly the same mark"
    levels = [level for level in _levels(calibration) if abs(level.error) >= _CLEAR]
    if not levels:
        error = round(100 * (summary.mean_absolute_error or 0.0))
        return (
            "gives the right marks" if error == 0 else f"is {_points(error)} off on average, neither strict nor lenient"
        )
    parts = [
        f"{_points(abs(level.error)) if not number else f'{abs(level.error):.0f}'} "
        f"too {'much' if level.error > 0 else 'little'} on {level.name}"
        for number, level in enumerate(levels)
    ]
    return f"gives {', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else f"gives {parts[0]}"


def _levels(calibration: Calibration) -> list[Level]:
    names = ("poor answers", "middling answers", "good answers")
    errors: dict[str, list[float]] = {name: [] for name in names}
    for sample in calibration.samples:
        if sample.error is not None:
            errors[names[min(2, int(3 * sample.expected))]].append(100 * sample.error)
    return [Level(name, sum(own) / len(own)) for name, own in errors.items() if own]


def calibration_lines(calibration: Calibration) -> list[str]:
    """Describe a calibration in plain words: how far off, in which order, how steady."""
    summary = calibration.summary
    lines = [f"{summary.passed} of {summary.total} marks are close enough to the right one"]
    if summary.mean_absolute_error is not None and summary.largest_error is not None:
        mean, most = (round(100 * error) for error in (summary.mean_absolute_error, summary.largest_error))
        lines.append(f"off by {_points(mean)} on average, by {most} at most")
    if summary.correlation is not None:
        words = next(words for least, words in _ORDER if summary.correlation >= least)
        lines.append(f"{words} (correlation {summary.correlation:.2f})".replace("-", "−"))
    if summary.spread is not None:
        lines.append(f"asked again, a mark moves ({deviation(summary.spread)})")
    if summary.unscored:
        lines.append(f"no verdict on {summary.unscored} of {summary.total}")
    return lines


_CLEAR = 5.0  # points from which an error is named
_ORDER = (
    (0.9, "puts answers in the right order"),
    (0.6, "puts most answers in the right order"),
    (0.3, "puts answers only roughly in order"),
    (-0.3, "cannot tell good answers from poor ones"),
    (-2.0, "marks poor answers higher than good ones"),
)


def _points(value: float) -> str:
    return f"{value:.0f} point{'' if round(value) == 1 else 's'}"


def _rating_note(rating: JudgeRating) -> str:
    if not rating.fits:
        return f"The judge {rating.judge} was calibrated only with another prompt (rated {rating.rating} there)."
    error = "" if rating.mean_absolute_error is None else f", mean error {number(rating.mean_absolute_error)}"
    return f"The judge {rating.judge} was rated {rating.rating} when calibrated with this prompt{error}."


def _bounds(ci95: tuple[float, float] | None) -> str:
    return "" if ci95 is None else signs(f" (95 % CI {ci95[0]:.2f} to {ci95[1]:.2f})")


def pair_cells(pair: ArmPair) -> list[str]:
    """Return one judge's verdicts on two arms as a table row."""
    orders = pair.orders
    bounds = orders.win_rate.ci95
    return [
        pair.one,
        pair.other,
        *(str(count) for count in (orders.wins, orders.ties, orders.losses)),
        number(orders.win_rate.mean),
        "–" if bounds is None else f"{number(bounds[0])} to {number(bounds[1])}",
    ]


def order_line(judge: JudgeOrders) -> str:
    """Say how much the order of the answers affects a judge."""
    flips, first = judge.flip_rate, judge.first_share
    if flips.mean is None or first.mean is None:
        return "no pair could be judged"
    shares = [f"{number(flips.mean)} %{_percents(flips.ci95)}", f"{number(first.mean)} %{_percents(first.ci95)}"]
    return (
        f"The order decided {shares[0]} of {judge.pairs} pairs, which count as ties; the answer shown first got "
        f"{shares[1]} of the verdicts (50 % is fair)."
    )


def _percents(ci95: tuple[float, float] | None) -> str:
    return "" if ci95 is None else f" (95 % CI {number(ci95[0])} to {number(ci95[1])})"
