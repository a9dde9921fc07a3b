"""Sentences and table cells about two versions of a server, of a tool's description or of a skill."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fairtrial.analyse.offer_rates import OfferDifference, RateChange, RateKind, telling
from fairtrial.analyse.tool_counts import NONE
from fairtrial.analyse.tool_report import ToolReport
from fairtrial.analyse.version_gains import VersionGain
from fairtrial.analyse.versions import Changed
from fairtrial.core.formatting import Scale, money, signs
from fairtrial.text.printable import counted

CHANGE_COLUMNS = ("tool or skill", "in how many", "before", "after", "points", "95 % CI")
MOST_CHANGES = 8
_MOST_TEXT = 120
_SHARES: dict[RateKind, str] = {
    "use": "called",
    "chosen": "called when asked for",
    "arguments": "called as asked",
    "success": "calls that worked",
    "valid": "valid arguments",
    "unneeded": "called, none needed",
    "forbidden": "forbidden call",
    "recall": "fired as it should",
    "false_fires": "fired, should not",
}


_TOOLS = {
    "description": "other descriptions of",
    "schema": "other arguments of",
    "added": "also",
    "removed": "without",
}


def version_sentence(gain: VersionGain, metric: str = "") -> str:
    """Say whether the later version is better, by how much, and in what the two differ."""
    return f"{_verdict(gain, metric)} {differ_words(gain.what)}"


def _verdict(gain: VersionGain, metric: str) -> str:
    arm, baseline, one = gain.arm, gain.baseline, gain.score
    if one is None:
        return f"{arm} and {baseline} have no scored case in common."
    said = {
        "better": f"{arm} is better than {baseline}",
        "worse": f"{arm} is worse than {baseline}",
        "equivalent": f"{arm} and {baseline} make no relevant difference",
        "depends on failures": f"Whether {arm} is better than {baseline} depends on the failed trials",
    }.get(one.verdict, f"Too few cases to tell whether {arm} is better than {baseline}")
    scale = Scale(metric)
    size = f"{signs(scale.signed(one.difference))}{scale.unit}"
    bounds = f" (95 % CI {scale.words(one.ci95)})" if one.ci95 else ""
    costs = [cost_words(one) for one in gain.taken if one.metric == "cost_usd" and one.verdict in ("better", "worse")]
    return ", ".join([f"{said}: {size}{bounds}", *costs]) + "."


def cost_words(difference: OfferDifference) -> str:
    """Say how much more or less money an answer takes."""
    value = difference.difference or 0.0
    return f"for {money(abs(value))} {'more' if value > 0 else 'less'} per answer"


def differ_words(what: Sequence[Changed]) -> str:
    """Say in what two arms differ, and that several things cannot be told apart."""
    if len(what) == 1:
        return f"They differ in {changed_words(what[0])}."
    return f"They differ in more than one thing: {'; '.join(map(changed_words, what))}."


def changed_words(one: Changed) -> str:
    """Name one thing in which two arms differ."""
    if one.how != "version":
        return f"the {one.kind} {one.name} ({one.how})"
    if one.kind == "server":
        renamed = f" ({one.before} → {one.after})" if one.before != one.after else ""
        tools = "; ".join(f"{_TOOLS[how]} {', '.join(names)}" for how, names in one.tools.items())
        return f"the server {one.name}{renamed}{f': {tools}' if tools else ''}"
    if one.kind in ("tool", "skill"):
        return f"the {' and '.join(one.parts)} of the {one.kind} {one.name}"
    return "the system prompt" if one.kind == "system" else f"the {one.kind}"


def short_words(what: Sequence[Changed]) -> str:
    """Name what differs, for a narrow column."""
    return "; ".join(f"{' and '.join(one.parts)} of {one.name}" if one.parts else one.name or one.kind for one in what)


def text_lines(what: Sequence[Changed]) -> list[str]:
    """Return the descriptions before and after, where both are known and they differ."""
    return [
        f"{one.name}: “{_clipped(one.before)}” → “{_clipped(one.after)}”"
        for one in what
        if one.kind in ("tool", "skill") and one.before != one.after
    ]


def _clipped(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _MOST_TEXT else f"{flat[:_MOST_TEXT].rsplit(' ', 1)[0]} …"


def shown_changes(gain: VersionGain) -> list[RateChange]:
    """Return the differences in the use of tools and skills that are shown."""
    return telling(gain.changes, MOST_CHANGES)


def change_cells(change: RateChange, short: Callable[[str], str] = str) -> list[str]:
    """Return a difference as a row of a table, in the order of `CHANGE_COLUMNS`; names may be shortened."""
    bounds = "–" if change.ci95 is None else signs(f"{100 * change.ci95[0]:.0f} to {100 * change.ci95[1]:.0f}")
    return [
        short(change.name) if change.name else "any tool",
        share_words(change, short),
        f"{change.before.hits} of {change.before.of}",
        f"{change.after.hits} of {change.after.of}",
        signs(f"{100 * (change.difference or 0.0):+.0f}"),
        bounds,
    ]


def share_words(change: RateChange, short: Callable[[str], str] = str) -> str:
    """Say what a share is of."""
    if change.kind == "mistaken":
        return "no tool instead" if change.called == NONE else f"{short(change.called)} instead"
    return _SHARES[change.kind]


def without_server(changes: Sequence[RateChange]) -> Callable[[str], str]:
    """Return what shortens the names of tools: their server is left out where it is the only one."""
    names = [name for one in changes for name in (one.name, one.called) if "." in name]
    servers = {name.partition(".")[0] for name in names}
    prefix = f"{servers.pop()}." if len(servers) == 1 else ""
    return lambda name: name.removeprefix(prefix)


def rest_words(gain: VersionGain) -> str:
    """Say what the table of differences leaves out; empty if nothing."""
    shown = len(shown_changes(gain))
    if not gain.changes:
        return ""
    if not shown:
        return "Tools and skills were used alike."
    left = [one for one in gain.changes if one.difference]
    more = len(left) - shown
    return f"and {counted(more, 'smaller difference')}" if more > 0 else ""


def version_notes(report: ToolReport) -> list[str]:
    """Return what a reader should know before trusting differences between versions."""
    if not report.versions:
        return []
    notes = []
    if any(gain.changes for gain in report.versions):
        notes.append("Differences in the use of tools are paired, case by case; their intervals hold for all together.")
    triggers = [skill.triggers for arm in report.arms for skill in arm.skills if skill.triggers is not None]
    if any(one.held_out for one in triggers):
        notes.append(
            "Whether skills fire is counted on the cases tagged `test` alone. A version that is picked by these "
            "numbers needs other cases for its own."
        )
    else:
        notes.append(
            "A version that was made or picked after a look at these cases does better on them than elsewhere: report "
            "it on cases that had no part in that" + (" (tag them `test`)." if triggers else ".")
        )
    return notes
