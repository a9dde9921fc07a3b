"""Caveats in words: the notes shown next to a comparison, a ranking or a gate."""

from __future__ import annotations

from functools import singledispatch

from fairtrial.analyse.caveats import (
    AgainstFirst,
    ComparedApart,
    CountCaveat,
    DifferentCases,
    ForeignRun,
    GateChanged,
    HeavyUnits,
    PlainCaveat,
    RatedOnFewer,
    RecordingFavours,
    RepeatedQuestions,
    TellingWeights,
    UnevenCoverage,
    Unfinished,
    Unranked,
)
from fairtrial.core.formatting import Scale
from fairtrial.core.many_arms import MOST_ARMS
from fairtrial.core.questions import repeated_words
from fairtrial.core.showing import ResultFact
from fairtrial.present.words.asked import asked_words
from fairtrial.present.words.many_arms import against_first_words

_KNOWN = {
    "interval_bounded": "There are few cases, or few of them account for the difference: its interval allows for what "
    "other cases could show (bounded by the scale). Stating the largest difference that a case can show narrows it.",
    "interval_rough": "Few cases account for this difference, and no scale bounds what others could show: its interval "
    "is rough.",
    "scored_differently": "Not all arms were scored in the same way (different scorer or judge): that may cause the "
    "difference.",
    "stopping_allowed_for": "A run was allowed to stop as soon as its result was sure: intervals and p are valid "
    "whenever it stopped, and wider for it. Differences and scores are the midpoints of their intervals, so that a "
    "difference need not be that of the two scores. Among runs that stop early it is still too large on average; "
    "whether it differs between kinds of cases is only a hint.",
    "stopping_ignored": "A run was allowed to stop as soon as its result was sure, and this comparison cannot account "
    "for that (several runs, weights, or a metric without a scale): the difference is too large on average, and its "
    "interval is too narrow.",
    "noise_unknown": "Judged by a model, with one answer per case: how much another run would differ is not known; "
    "three repeats or runs measure it.",
    "earlier_unused": "The earlier run was not used: it must have both arms and all of these cases and more, without "
    "weights or clusters, and the difference must be one for which a t interval is valid.",
    "style_confounded": "Strength cannot be separated from style: an arm's answers always differ from the others in "
    "the same way.",
    "strength_unbounded": "An arm, or a group of arms, only wins or only loses: its strength has no bound, so there "
    "are no ratings.",
    "orders_differ": "Scores and ratings give different orders: a rating counts who won a case, not by how much.",
    "ratings_left_out": "A run was allowed to stop as soon as its result was sure. Ranks and scores allow for that; "
    "ratings do not, and are left out.",
    "battles_do_not_fit": "No single strength for each arm explains who won, as when A beats B, B beats C, and C beats "
    "A: there are no ratings, and no ranks by them. The matrix shows every pair.",
    "too_many_to_rate": f"There are no ratings of more than {MOST_ARMS} arms: they take every pair.",
    "means_only": "Categories and guards were not checked: --these-cases compares means only.",
}
_SOME = {
    "few_cases": "Few cases ({}): only large differences can be detected.",
    "few_clusters": "Few clusters ({}): only large differences can be detected.",
    "corrected_by_labels": "Human labels (on {} cases) correct the judges' scores of both arms.",
    "corrected_by_second_judge": "A second judge (on {} cases) corrects the first judge's scores of both arms.",
    "looks_allowed_for": "{} looks were planned: intervals and p hold for all of them together, and are a little wider "
    "for it. Among runs that stop early, differences are still too large on average.",
    "looked_again": "This is look {} at these arms: some of these cases were looked at before. All such looks together "
    "err in 5 % at most, so this one has a small part of it, and its intervals are wider.",
    "weighted_unevenly": "{} cases have a different weight or cluster in another run: those of the run named first are "
    "used.",
    "matched_by_question": "{} cases were matched by their question or id alone: the runs write their expected answers "
    "in different ways.",
}


@singledispatch
def in_words(caveat: ResultFact) -> str:
    """Return a caveat as a sentence."""
    raise TypeError(f"no one has said how to word a {type(caveat).__name__}")


@in_words.register
def _known(caveat: PlainCaveat) -> str:
    return _KNOWN[caveat.what]


@in_words.register
def _some(caveat: CountCaveat) -> str:
    if caveat.what == "few_cases" and caveat.count == 1:
        return "One case: what it shows need not be so on others."
    return _SOME[caveat.what].format(caveat.count)


@in_words.register
def _against_first(caveat: AgainstFirst) -> str:
    return against_first_words(caveat.pairs)


@in_words.register
def _different_cases(caveat: DifferentCases) -> str:
    fewest, most = caveat.fewest, caveat.most
    shown = f"{fewest}" if fewest == most else f"{fewest} to {most}"
    return f"The runs have different cases: they are compared on the {shown} that they have in common."


@in_words.register
def _repeated_questions(caveat: RepeatedQuestions) -> str:
    return f"{repeated_words(caveat.repeated, caveat.cases)}."


@in_words.register
def _heavy_units(caveat: HeavyUnits) -> str:
    what = "clusters" if caveat.clusters else "cases"
    return (
        f"A few {what} carry most of the weight: {caveat.count} count as {caveat.effective:.0f} of equal weight; the "
        "interval allows for that."
    )


@in_words.register
def _telling_weights(caveat: TellingWeights) -> str:
    scale, (a, b) = Scale(caveat.metric), caveat.arms
    bounds = f" (95 % CI {scale.words(caveat.ci95)})" if caveat.ci95 else ""
    return (
        "Heavy cases differ from light ones: the interval allows for an unseen heavy case. With equal "
        f"weights, {a} against {b} is {scale.signed(caveat.difference)}{bounds}."
    )


@in_words.register
def _uneven_coverage(caveat: UnevenCoverage) -> str:
    (high, low), (most, least) = caveat.arms, caveat.shares
    details = "; the details say what the failures could change" if caveat.failures else ""
    return (
        f"Different coverage: {high} has a score for {100 * most:.0f} % of its trials, {low} for "
        f"{100 * least:.0f} %{details}."
    )


@in_words.register
def _recording_favours(caveat: RecordingFavours) -> str:
    (favoured, other), (least, most) = caveat.arms, caveat.shares
    return (
        f"The recording favours {favoured}: {100 * most:.0f} % of the trials of {other} have no score, because it "
        f"called what was not recorded, and {100 * least:.0f} % of those of {favoured}. Record with both."
    )


@in_words.register
def _imported(caveat: ForeignRun) -> str:
    missing = f", which did not record {', '.join(caveat.unknown)}" if caveat.unknown else ""
    return f"Run {caveat.run} was imported from {caveat.tool}{missing}."


@in_words.register
def _unfinished(caveat: Unfinished) -> str:
    if caveat.asked is None:
        return f"Run {caveat.run} is {caveat.status}: these results are not final."
    return asked_words(caveat.asked, "" if caveat.alone else caveat.run)


@in_words.register
def _unranked(caveat: Unranked) -> str:
    return f"Not ranked, without a score: {', '.join(caveat.arms)}."


@in_words.register
def _compared_apart(caveat: ComparedApart) -> str:
    apart = " | ".join(", ".join(group) for group in caveat.groups)
    return f"Never compared with each other, not even through others: {apart}. So there are no ratings."


@in_words.register
def _rated_on_fewer(caveat: RatedOnFewer) -> str:
    return (
        f"Ratings are from the {caveat.cases} of {caveat.of} cases that every arm has a score for; ranks compare every "
        "two arms on the cases that both have."
    )


@in_words.register
def _gate_changed(caveat: GateChanged) -> str:
    return f"The gate itself was changed since {caveat.baseline}: {', '.join(caveat.demands)}."
