"""Which of its cases a run has, in words."""

from __future__ import annotations

from fairtrial.analyse.asked import AskedCases, by_budget


def asked_words(asked: AskedCases, run: str = "") -> str:
    """Say why a run has some of its cases only, and whether they stand for the others; `run` names it among several.

    `Stopped by the budget of $5: 63 of 200 cases, drawn at random, so they stand for the rest.`
    """
    why = _why(asked)
    named = f"Run {run}, {why[:1].lower()}{why[1:]}" if run else why
    return f"{named}: {asked_brief(asked)}{_worth(asked)}."


def asked_brief(asked: AskedCases) -> str:
    """Return the same in few words, for a list: `63 of 200 cases, drawn at random`."""
    of = f"at least {asked.of:,}" if asked.more else f"{asked.of:,}"
    return f"{asked.cases:,} of {of} cases{_how(asked)}"


def _why(asked: AskedCases) -> str:
    if asked.status == "running":
        return "Still running"
    if asked.status == "interrupted":
        return "Interrupted"
    if asked.reason and by_budget(asked.reason):
        return f"Stopped by the {asked.reason.partition(' reached')[0]}"
    return "Incomplete"


def _how(asked: AskedCases) -> str:
    if not asked.cases:
        return ""
    return {None: ", chosen by another tool", True: ", drawn at random", False: ", the first of the suite"}[asked.drawn]


def _worth(asked: AskedCases) -> str:
    if not asked.cases:
        return ""
    return ", so they stand for the rest" if asked.drawn else ": they may not be like the rest"
