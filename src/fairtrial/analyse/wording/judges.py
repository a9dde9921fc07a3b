"""Sentences and table cells about judges, labels and judged pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairtrial.analyse.wording.runs import number
from fairtrial.analyse.wording.tiers import signs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairtrial.analyse.judging import JudgeRating, Judging
    from fairtrial.analyse.labels import ArmLabels
    from fairtrial.analyse.pairs import ArmPair, JudgeOrders
    from fairtrial.analyse.summary import ArmSummary


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
            f"{labels.answers} human labels: the judge marks {abs(100 * labels.bias):.1f} points "
            f"{'higher' if labels.bias >= 0 else 'lower'}{alpha}"
        )
    for corrected in labels.corrected:
        if corrected.mean is None or corrected.ci95 is None:
            lines.append(f"not corrected: {corrected.refused}")
            continue
        low, high = corrected.ci95
        lines.append(f"corrected by labels: {number(corrected.mean)} (95 % CI {number(low)} to {number(high)})")
    if labels.stale:
        lines.append(f"{labels.stale} stale labels (given for another judge or prompt) are not used")
    return lines


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
    on = f"on {answers} labelled answer{'' if answers == 1 else 's'}, the scores are {how}"
    so_far = f"; {corrected} of {len(known)} means are corrected by labels" if corrected else ""
    return f"{on[0].upper()}{on[1:]}{so_far}."


def corrected_words(labels: ArmLabels) -> str:
    """Say what the labels make of an arm's mean: `74.2 becomes 71.0 (95 % CI 66.1 to 75.9)`, or why nothing."""
    for one in labels.corrected:
        if one.mean is None or one.ci95 is None:
            return f"{number(one.uncorrected)}, not corrected yet: {one.refused}"
        bounds = f"95 % CI {number(one.ci95[0])} to {number(one.ci95[1])}"
        return f"{number(one.uncorrected)} becomes {number(one.mean)} ({bounds})"
    return f"{labels.stale} labels belong to another judge or prompt and are not used" if labels.stale else ""


def judging_notes(judging: Judging | None) -> list[str]:
    """Describe the judges: calibration ratings, agreement and noise."""
    if judging is None:
        return []
    notes = [_rating_note(rating) for rating in judging.judges if rating.rating is not None]
    if uncalibrated := [rating.judge for rating in judging.judges if rating.rating is None]:
        notes.append(f"Never calibrated: {', '.join(uncalibrated)}. Calibrating measures how good a judge is.")
    if judging.alpha is not None and judging.alpha.value is not None:
        effective = judging.effective_judges
        notes.append(
            f"The judges agree with α = {judging.alpha.value:.2f}{_bounds(judging.alpha.ci95)}"
            + (f"; going by human labels, they are worth {effective:.1f} independent judges." if effective else ".")
        )
    for kappa in judging.kappas if len(judging.kappas) > 1 else ():
        if kappa.agreement.value is not None:
            shown = f"{kappa.agreement.value:.2f}{_bounds(kappa.agreement.ci95)}"
            notes.append(f"{kappa.one} and {kappa.other}: weighted κ = {shown}.")
    if judging.judge_sd is not None:
        noise = f"Judging the same answer again moves a score by ±{number(judging.judge_sd)}"
        if judging.answer_sd is not None:
            noise += (
                f"; answering the same case again moves it by ±{number(judging.answer_sd)} (without the judges' noise)"
            )
        notes.append(f"{noise}.")
    elif judging.repeat_sd is not None:
        notes.append(
            f"Answering the same case again moves a score by ±{number(judging.repeat_sd)}, including the judge's own "
            "noise; `panel: {judgements: 3}` would separate the two."
        )
    return notes


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
