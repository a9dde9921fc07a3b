"""Sentences and table cells about tools and skills, shared by the terminal, Markdown and web pages."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fairtrial.analyse.offer_rates import OfferDifference, OfferRate
from fairtrial.analyse.tool_report import ArmToolReport, Confusion, Gain, ToolReport, ToolStats, TriggerStats
from fairtrial.core.formatting import Scale, interval_words, milliseconds, money, signs
from fairtrial.present.words.versions import cost_words, version_notes
from fairtrial.text.printable import clipped, counted

GAIN_COLUMNS = ("what", "target", "gain", "95 % CI", "verdict", "cost", "latency")
TOOL_COLUMNS = ("tool", "tokens", "used in", "calls", "worked", "valid arguments")
_VERDICTS = {
    "better": "helps",
    "worse": "hurts",
    "equivalent": "no relevant difference",
    "cannot tell": "cannot tell",
    "depends on failures": "depends on failures",
}
_MOST_NAMES = 8
_LONGEST = 80


def items_words(what: Sequence[tuple[str, str]]) -> str:
    """Name what was added: `server graph and skill house-style`."""
    names = [f"{kind} {name}" for kind, name in what]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def gain_sentence(gain: Gain, metric: str = "") -> str:
    """Say whether something helps, by how much, and for how much money, if that differs beyond chance."""
    scale, what, one = Scale(metric), items_words(gain.what), len(gain.what) == 1
    size = signs(scale.signed(gain.score.difference))
    bounds = f" (95 % CI {scale.words(gain.score.ci95)})" if gain.score.ci95 else ""
    verdict = {
        "better": f"The {what} {'helps' if one else 'help'}",
        "worse": f"The {what} {'hurts' if one else 'hurt'}",
        "equivalent": f"The {what} {'makes' if one else 'make'} no relevant difference",
        "depends on failures": f"Whether the {what} {'helps' if one else 'help'} depends on the failed trials",
    }.get(gain.score.verdict, f"Too few cases to tell whether the {what} {'helps' if one else 'help'}")
    costs = [cost_words(one) for one in gain.taken if one.metric == "cost_usd" and one.verdict in ("better", "worse")]
    size += f"{scale.unit}{bounds}"
    return ", ".join([f"{verdict}: {size}", *costs]) + "."


def gain_cells(gain: Gain, report: ToolReport) -> list[str]:
    """Return a gain as a row of a table, in the order of `GAIN_COLUMNS`."""
    scale = Scale(report.metric)
    taken = {one.metric: one for one in gain.taken}
    return [
        items_words(gain.what),
        target_of(report, gain.arm),
        signs(scale.signed(gain.score.difference)),
        interval_words(gain.score.ci95, report.metric) if gain.score.ci95 else "–",
        _VERDICTS[gain.score.verdict],
        _signed(taken.get("cost_usd"), money),
        _signed(taken.get("latency_ms"), milliseconds),
    ]


def _signed(difference: OfferDifference | None, shown: Callable[[float], str]) -> str:
    if difference is None or difference.difference is None:
        return "–"
    value = difference.difference
    return f"{'−' if value < 0 else '+' if value > 0 else ''}{shown(abs(value))}"


def target_of(report: ToolReport, arm: str) -> str:
    """Return the target of an arm."""
    return next((one.target for one in report.arms if one.arm == arm), arm)


def percent(rate: OfferRate | None) -> str:
    """Return a share: `83 %`, or a dash if there is none."""
    return "–" if rate is None or rate.share is None else f"{100 * rate.share:.0f} %"


def rate_words(rate: OfferRate | None, noun: str = "") -> str:
    """Return a share with what it is of: `5 of 6 trials (36 to 100 %)`."""
    if rate is None or not rate.of:
        return "–"
    counts = f"{rate.hits} of {counted(rate.of, noun) if noun else rate.of}"
    if rate.ci95 is None:
        return counts
    low, high = (100 * bound for bound in rate.ci95)
    return f"{counts} ({low:.0f} to {high:.0f} %)"


def rate_cell(rate: OfferRate) -> str:
    """Return a share for a narrow table: `5/6 (36–100 %)`."""
    return rate_words(rate).replace(" of ", "/").replace(" to ", "–")


def tool_cells(tool: ToolStats, rate: Callable[[OfferRate], str] = rate_words) -> list[str]:
    """Return a tool as a row of a table, in the order of `TOOL_COLUMNS`."""
    return [
        tool.name if tool.offered else f"{tool.name} (not offered)",
        "–" if tool.tokens is None else f"{tool.tokens:,}",
        rate(tool.use),
        str(tool.success.of),
        rate(tool.success),
        rate(tool.valid),
    ]


def arm_sentences(arm: ArmToolReport) -> list[str]:
    """Say what there is to know about an arm and its tools, besides the table."""
    return [
        *_offer_lines(arm),
        *_use_lines(arm),
        *_double_lines(arm),
        *_error_lines(arm),
        *_choice_lines(arm),
        *_skill_lines(arm),
    ]


def _offer_lines(arm: ArmToolReport) -> list[str]:
    lines = []
    if arm.offered:
        called = f"{arm.covered} of {counted(arm.offered, 'tool')} called"
        never = f"; never: {_listed(arm.never_called)}" if arm.never_called else ""
        lines.append(f"{called}{never}")
    if arm.tokens is not None and (arm.offered or arm.skills):
        lines.append(f"about {arm.tokens:,} tokens of descriptions in every prompt, before any call")
    resources = sum(len(server.resources) for server in arm.servers)
    prompts = sum(len(server.prompts) for server in arm.servers)
    if resources:
        read = f"{len(arm.resources)} read ({_listed(list(arm.resources))})" if arm.resources else "none read"
        lines.append(f"{counted(resources, 'resource')} offered: {read}")
    if prompts:
        got = f"{_listed(list(arm.prompts))} asked for" if arm.prompts else "none asked for"
        lines.append(f"{counted(prompts, 'prompt')} offered: {got}")
    return lines


def _use_lines(arm: ArmToolReport) -> list[str]:
    if arm.unknown and not arm.trials:
        return [f"tool use is unknown: the target does not report it ({counted(arm.unknown, 'trial')})"]
    lines = [f"a tool was called in {rate_words(arm.any_use, 'trial')}"] if arm.offered else []
    return lines + ([f"tool use of {counted(arm.unknown, 'more trial')} is unknown"] if arm.unknown else [])


def _double_lines(arm: ArmToolReport) -> list[str]:
    if arm.stood_in is None:
        return []
    return [f"recordings and mocks answered {rate_words(arm.stood_in, 'call')} to their servers"]


def _error_lines(arm: ArmToolReport) -> list[str]:
    lines = []
    if arm.recovered.of:
        lines.append(f"after an error, the same tool worked later in {rate_words(arm.recovered, 'trial')}")
    lines += [f"{count} × wrong arguments for {tool}: {reason}" for tool, reason, count in arm.invalid]
    return lines


def _choice_lines(arm: ArmToolReport) -> list[str]:
    lines = []
    for tool in arm.tools:
        if tool.arguments.of:
            lines.append(f"{tool.name} got the arguments that cases ask for in {rate_words(tool.arguments, 'trial')}")
    if arm.unneeded.of:
        lines.append(f"a tool was called although none was needed in {rate_words(arm.unneeded, 'trial')}")
    lines += confusion_lines(arm.confusion) if arm.confusion else []
    return lines + _forbidden_lines(arm)


def confusion_lines(confusion: Confusion) -> list[str]:
    """Say which tools were taken for which, the most frequent first."""
    trials = dict(zip(confusion.expected, confusion.trials, strict=False))
    found = confusion.mistakes()
    lines = [
        f"{called} was called for {expected} in {count} of {counted(trials.get(expected, count), 'trial')}"
        for count, expected, called in found[:_MOST_NAMES]
    ]
    more = len(found) - len(lines)
    return (
        [*lines, f"{counted(more, 'more pair')} of tools {'was' if more == 1 else 'were'} confused"]
        if more > 0
        else lines
    )


def confusion_heading(arm: ArmToolReport, most: int) -> str:
    """Say what the matrix shows, and of which tools, where there are too many to be read."""
    assert arm.confusion is not None
    left = len(arm.confusion.called) - len(arm.confusion.among(most).called)
    return f"those confused most; {counted(left, 'more tool')} left out" if left else ""


def _forbidden_lines(arm: ArmToolReport) -> list[str]:
    lines = []
    for own in arm.forbidden:
        given = "" if own.arguments is None else f" with {_patterns(own.arguments)}"
        lines.append(f"{own.tool}{given}, which is forbidden, was called in {rate_words(own.made, 'trial')}")
    if len(arm.forbidden) > 1 and arm.any_forbidden is not None:
        lines.append(f"any forbidden call was made in {rate_words(arm.any_forbidden, 'trial')}")
    return lines


def _patterns(arguments: Mapping[str, Any]) -> str:
    """Return the arguments that a call must not have: `amount >100`."""
    texts = (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False) for value in arguments.values())
    return clipped(", ".join(f"{name} {text}" for name, text in zip(arguments, texts, strict=True)), _LONGEST)


def _skill_lines(arm: ArmToolReport) -> list[str]:
    lines = []
    for skill in arm.skills:
        how = "in the system prompt" if skill.use is None else f"used in {rate_words(skill.use, 'trial')}"
        lines.append(f"skill {skill.name}: {how}")
        lines += _trigger_lines(skill.name, skill.triggers) if skill.triggers else []
    return lines


def _trigger_lines(name: str, triggers: TriggerStats) -> list[str]:
    where = ", of the cases tagged `test`" if triggers.held_out else ""
    shares = [("fired where it should", triggers.recall), ("fired where it should not", triggers.false_fires)]
    lines = [f"skill {name} {said} in {rate_words(rate, 'trial')}{where}" for said, rate in shares if rate.of]
    if triggers.unobserved:
        number = counted(triggers.unobserved, "trial")
        count = "counts" if triggers.unobserved == 1 else "count"
        lines.append(f"{number} broke off before skill {name} fired, and {count} neither way")
    return lines


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f"{', '.join(names[:_MOST_NAMES])}{more}"


def _of_doubles(report: ToolReport) -> list[str]:
    """Say that a recording which has more of one arm's calls than of another's favours that arm."""
    arms = [arm for arm in report.arms if arm.stood_in is not None]
    most, least = (choose(arms, key=_share_stood_in, default=None) for choose in (max, min))
    if most is None or least is None or _share_stood_in(most) == _share_stood_in(least):
        return []
    return [
        f"Recordings and mocks answered {percent(most.stood_in)} of the calls of {most.arm} and "
        f"{percent(least.stood_in)} of those of {least.arm}: what was recorded favours {most.arm}. Record with both."
    ]


def _share_stood_in(arm: ArmToolReport) -> float:
    return arm.stood_in.hits / arm.stood_in.of if arm.stood_in else 0.0


def notes_on(report: ToolReport) -> list[str]:
    """Return what a reader should know before trusting the gains."""
    notes = []
    mixed = [gain for gain in report.gains if gain.other_system]
    if mixed:
        which = "Its system prompt differs" if len(report.gains) == 1 else "Some system prompts differ"
        notes.append(f"{which} from that of the baseline too: the gain is that of both together.")
    notes += version_notes(report)
    if not (report.gains or report.versions) and any(arm.servers or arm.skills for arm in report.arms):
        notes.append("No condition lacks only one of these: add one without, and the gain is measured.")
    notes += _of_doubles(report)
    if any(arm.tokens for arm in report.arms):
        notes.append("Tokens are estimated at four characters each; every model counts in its own way.")
    return notes
