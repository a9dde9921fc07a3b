"""What is allowed but should be known before a suite's numbers are believed."""

from __future__ import annotations

from collections.abc import Iterator

from fairtrial.config.suite import Suite
from fairtrial.core.judge import can_see, family_of
from fairtrial.providers.params import not_taken


def warnings(suite: Suite) -> list[str]:
    """What is allowed but should be known before the numbers are believed."""
    found = [*suite.notes, *_confounded(suite), *_unseen(suite), *_not_sent(suite)]
    for judge in suite.settings.judges:
        own = [arm.target.id for arm in suite.arms if family_of(arm.target) == family_of(judge.target)]
        if own and suite.settings.panel.own_family == "flag":
            names = ", ".join(dict.fromkeys(own))
            found.append(f"the judge {judge.name} is of the same family as {names}: it may favour it")
    return found


def _not_sent(suite: Suite) -> Iterator[str]:
    """Parameters that somebody set and a model does not take."""
    asked = [
        (arm.target.id, arm.target, {name: arm.params[name] for name in arm.params if name not in arm.defaulted})
        for arm in suite.arms
    ]
    asked += [(f"the judge {judge.name}", judge.target, judge.params) for judge in suite.settings.judges]
    for name, target, params in asked:
        if left := not_taken(target, params):
            yield f"{name} does not take {' and '.join(left)}: not sent, and not part of the record"


def _unseen(suite: Suite) -> Iterator[str]:
    """Pages that nobody will see."""
    scorers = suite.build_scorers()
    if not any(scorer.looks for scorer in scorers):
        return
    from fairtrial.webpage.browser import NoBrowserError, usable_browser

    try:
        usable_browser()
    except NoBrowserError as error:
        yield f"pages will not be looked at, and what a browser would measure is left open: {error}"
    blind = [judge.name for judge in suite.settings.judges if not can_see(judge)]
    if blind and any(scorer.looks and scorer.judged for scorer in scorers):
        yield (
            f"{', '.join(blind)} judges pages without seeing them, by their code and what a browser measures; "
            "`vision: true` beside a judge says that it can see"
        )


def _confounded(suite: Suite) -> Iterator[str]:
    """Styles that change more than the tone."""
    from fairtrial.optim.styles import confounded

    own = {arm.condition.name: arm.condition for arm in suite.arms if arm.condition.prompts}
    for name, condition in own.items():
        texts = (*condition.prompts, condition.system)
        word = next((word for text in texts if (word := confounded(text))), None)
        if word and len({arm.condition.name for arm in suite.arms}) > 1:
            yield (
                f"the wording of condition `{name}` speaks of the format (`{word}`): what it does to the answers "
                "cannot be told from its tone"
            )
