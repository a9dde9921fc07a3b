"""Warnings about suites that are valid, but whose results need caution."""

from __future__ import annotations

import math
from collections.abc import Iterator

from fairtrial.config.checked_suite import CheckedSuite
from fairtrial.core import registry
from fairtrial.core.options import read
from fairtrial.core.questions import repeated_words
from fairtrial.core.settings import target_specs
from fairtrial.providers.judge_models import can_see, family_of
from fairtrial.providers.params import remarks, unsupported_params
from fairtrial.providers.retirement import Retirement, retiring

_STOPPING = (
    "a run that may stop early has wider intervals, and finds less, even if nothing is stopped: leave out --stop-when "
    "if all cases can be asked"
)


def warnings(suite: CheckedSuite) -> list[str]:
    """Return what users should know before they trust the results of a valid suite."""
    messages = [*suite.notes, *_confounded_prompts(suite), *_unseen_pages(suite), *_dropped_params(suite)]
    messages += [*_of_targets(suite), *_dropped_files(suite), *_unconfined_code(suite)]
    messages += [known.words for known in ending_models(suite) if known.level != "note"]
    messages += [_STOPPING] if suite.settings.stop is not None and not suite.settings.stop.looks else []
    messages += [repeated_words(suite.repeated, suite.case_count)] if suite.repeated and not suite.has_clusters else []
    messages += _few_judged_again(suite)
    for judge in suite.settings.judges:
        temperature = judge.params.get("temperature")
        if temperature and "temperature" not in unsupported_params(judge.target, judge.params):
            messages.append(
                f"judge {judge.name} has a temperature of {temperature:g}: it may judge the same answer differently "
                "each time; set it to 0, or ask several times (`panel: {judgements: 3}`)"
            )
        own = [arm.target.id for arm in suite.arms if family_of(arm.target) == family_of(judge.target)]
        if own and suite.settings.panel.own_family == "flag":
            names = ", ".join(dict.fromkeys(own))
            messages.append(f"judge {judge.name} is from the same model family as {names}: it may favour their answers")
    return messages


def _few_judged_again(suite: CheckedSuite) -> Iterator[str]:
    for judge in (judge for judge in suite.settings.judges if judge.share is not None):
        from fairtrial.stats.correction import FEWEST_LABELS  # numpy takes a tenth of a second

        cases = round((judge.share or 0.0) * suite.case_count)
        if cases < FEWEST_LABELS:
            share = FEWEST_LABELS / max(1, suite.case_count)
            more = f"set `share: {math.ceil(25 * share) / 20:g}`" if share < 0.7 else "it needs more cases than these"
            yield (
                f"second_judge: {judge.name} judges about {cases} of {suite.case_count:,} cases, and nothing is "
                f"corrected by fewer than {FEWEST_LABELS}: {more}"
            )


def notes(suite: CheckedSuite) -> list[str]:
    """Return what is good to know about a valid suite, but takes nothing away from its results."""
    return [known.words for known in ending_models(suite) if known.level == "note"]


def lines(suite: CheckedSuite) -> list[str]:
    """Return warnings and notes as they are printed, each with what it is."""
    return [*(f"warning: {text}" for text in warnings(suite)), *(f"note: {text}" for text in notes(suite))]


def ending_models(suite: CheckedSuite) -> list[Retirement]:
    """Return what is known about the end of every model that a suite asks, judges and embedders included."""
    return retiring(target_specs(suite.arms, suite.settings))


def _dropped_params(suite: CheckedSuite) -> Iterator[str]:
    """Warn about parameters that are set but that a model does not accept."""
    arms = [(arm.target.id, arm.target, arm.chosen_params, bool(arm.condition.mcp)) for arm in suite.arms]
    judges = [(f"judge {judge.name}", judge.target, judge.params, False) for judge in suite.settings.judges]
    yield from dict.fromkeys(
        f"{name} {remark}"
        for name, target, params, tools in (*arms, *judges)
        for remark in remarks(target, params, tools=tools)
    )


def _of_targets(suite: CheckedSuite) -> Iterator[str]:
    """Warn about whatever a kind of target has to say about those in the suite."""
    for target in {arm.target.id: arm.target for arm in suite.arms}.values():
        cls = registry.load("targets", target.kind)
        if (options := read(cls.options_type, target.options, [])) is not None:
            yield from cls.cautions(target, options)


def _unconfined_code(suite: CheckedSuite) -> Iterator[str]:
    """Warn about programs of models that no sandbox keeps from the rest of the machine."""
    for scorer in suite.build_scorers():
        if getattr(scorer, "answer", "") == "code" and getattr(scorer, "sandbox", "") == "none":
            from fairtrial.agents.workspace.program import UNPROTECTED  # only suites with programs need it

            yield UNPROTECTED
            return


def _dropped_files(suite: CheckedSuite) -> Iterator[str]:
    """Warn about targets that get the text of a skill without its files."""
    for arm in suite.arms:
        without = arm.workspace is None or not arm.workspace.skills
        names = [skill.name for skill in arm.condition.skills if skill.as_text and without and skill.more_files]
        if names:
            listed = ", ".join(names)
            yield f"{arm.target.id} gets only the SKILL.md of {listed}, as text: it works in no folder for other files"


def _unseen_pages(suite: CheckedSuite) -> Iterator[str]:
    """Warn about pages that no browser will open or no judge will see."""
    scorers = suite.build_scorers()
    if not any(scorer.looks for scorer in scorers):
        return
    from fairtrial.webpage.browser import NoBrowserError, usable_browser  # only suites with pages need it

    try:
        usable_browser()
    except NoBrowserError as error:
        yield f"pages will not be opened, and metrics that need a browser will be missing: {error}"
    blind = [judge.name for judge in suite.settings.judges if not can_see(judge)]
    if blind and any(scorer.looks and scorer.judged for scorer in scorers):
        yield (
            f"{', '.join(blind)} will judge pages without seeing them, by their code and browser measurements; "
            "if the judge accepts images, set `vision: true` on it"
        )


def _confounded_prompts(suite: CheckedSuite) -> Iterator[str]:
    """Warn about styles of optimisation problems that change more than the tone; other prompts may vary anything."""
    if not suite.has_problems:
        return
    from fairtrial.config.styles import confounded  # only suites with styles need it

    conditions = {arm.condition.name: arm.condition for arm in suite.arms if arm.condition.prompts}
    for name, condition in conditions.items():
        texts = (*condition.prompts, condition.system)
        word = next((word for text in texts if (word := confounded(text))), None)
        if word and len({arm.condition.name for arm in suite.arms}) > 1:
            yield (
                f"the prompt of condition `{name}` mentions the answer format (`{word}`): the effect of the format "
                "cannot be told apart from the effect of the tone"
            )
