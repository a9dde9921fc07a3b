"""Tools and skills of a run: a Markdown section for a README, and the published document."""

from __future__ import annotations

from typing import Any

import msgspec

from fairtrial.analyse.offer_rates import OfferDifference, OfferRate, RateChange
from fairtrial.analyse.offered import OfferedServer
from fairtrial.analyse.tool_report import ArmToolReport, Confusion, ToolReport, ToolStats, TriggerStats
from fairtrial.analyse.units import points
from fairtrial.analyse.version_gains import VersionGain
from fairtrial.present.words.tools import (
    GAIN_COLUMNS,
    TOOL_COLUMNS,
    arm_sentences,
    confusion_heading,
    gain_cells,
    gain_sentence,
    notes_on,
    tool_cells,
)
from fairtrial.present.words.versions import (
    CHANGE_COLUMNS,
    change_cells,
    rest_words,
    shown_changes,
    text_lines,
    version_sentence,
)
from fairtrial.reports.json import fields_of
from fairtrial.reports.markdown import plain, table

_CONFUSED = 12  # tools up to which a table can be read


def render(report: ToolReport, *, title: str = "Do the tools help?") -> str:
    """Return the report as Markdown, to be put into a README."""
    origin = f"Run `{report.run_id}` of {plain(report.suite)}, by fairtrial."
    return "\n".join([*section(report, title), "", origin, ""])


def section(report: ToolReport, title: str) -> list[str]:
    """Return the lines of the section of a report."""
    lines = [f"## {plain(title)}", ""]
    for gain in report.gains:
        lines += [f"**{plain(gain_sentence(gain, report.metric))}**", ""]
    if report.gains:
        lines += [*table(GAIN_COLUMNS, [gain_cells(gain, report) for gain in report.gains]), ""]
    for version in report.versions:
        lines += _version(version, report.metric)
    for arm in report.arms:
        lines += _arm(arm)
    lines += [f"> {plain(note)}" for note in notes_on(report)]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _version(gain: VersionGain, metric: str) -> list[str]:
    lines = [f"**{plain(version_sentence(gain, metric))}**", ""]
    if texts := text_lines(gain.what):
        lines += [*(f"- {plain(line)}" for line in texts), ""]
    if changes := shown_changes(gain):
        lines += [*table(CHANGE_COLUMNS, [change_cells(one) for one in changes]), ""]
    if rest := rest_words(gain):
        lines += [plain(rest), ""]
    return lines


def _arm(arm: ArmToolReport) -> list[str]:
    lines = [f"### {plain(arm.arm)}", ""]
    if arm.tools:
        lines += [*table(TOOL_COLUMNS, [tool_cells(tool) for tool in arm.tools]), ""]
    lines += [f"- {plain(line)}" for line in arm_sentences(arm)]
    if arm.confusion is not None and len(arm.confusion.called) > 1:
        said = confusion_heading(arm, _CONFUSED)
        heading = "Trials by the tool that the case asks for, and the tool that was called"
        lines += ["", f"{heading}{f' ({said})' if said else ''}:", ""]
        lines += _confusion(arm.confusion.among(_CONFUSED))
    return [*lines, ""]


def _confusion(confusion: Confusion) -> list[str]:
    rows = [
        [name, *(str(count) if count else "" for count in row)]
        for name, row in zip(confusion.expected, confusion.counts, strict=True)
    ]
    return table(["asked for ↓ called →", *map(plain, confusion.called)], rows)


def document(report: ToolReport) -> dict[str, Any]:
    """Return the published document: scores and shares are 0–100, differences of metrics on their own scales."""
    return {
        "run_id": report.run_id,
        "suite": report.suite,
        "gains": [
            {
                "what": [{"kind": kind, "name": name} for kind, name in gain.what],
                "arm": gain.arm,
                "baseline": gain.baseline,
                "other_system": gain.other_system,
                "score": _difference(gain.score),
                **{one.metric: _difference(one) for one in gain.taken},
            }
            for gain in report.gains
        ],
        "versions": [_version_document(gain) for gain in report.versions],
        "arms": [_arm_document(arm) for arm in report.arms],
    }


def _version_document(gain: VersionGain) -> dict[str, Any]:
    return {
        "what": [msgspec.to_builtins(one) for one in gain.what],
        "arm": gain.arm,
        "baseline": gain.baseline,
        "score": None if gain.score is None else _difference(gain.score),
        **{one.metric: _difference(one) for one in gain.taken},
        "changes": [_change_document(change) for change in gain.changes],
    }


def _change_document(change: RateChange) -> dict[str, Any]:
    bounds = None if change.ci95 is None else [points(bound) for bound in change.ci95]
    return {
        **fields_of(change, ("kind", "name", "called")),
        "before": _rate(change.before),
        "after": _rate(change.after),
        "difference": points(change.difference),
        "ci95": bounds,
        "cases": change.count,
    }


def _difference(one: OfferDifference) -> dict[str, Any]:
    def shown(value: float | None) -> float | None:
        return value if one.metric else points(value)

    return {
        "metric": one.metric or "score",
        "difference": shown(one.difference),
        "ci95": None if one.ci95 is None else [shown(bound) for bound in one.ci95],
        "verdict": one.verdict,
        "cases": one.count,
    }


def _rate(rate: OfferRate | None) -> dict[str, Any] | None:
    if rate is None:
        return None
    bounds = None if rate.ci95 is None else [points(bound) for bound in rate.ci95]
    return {"count": rate.hits, "of": rate.of, "share": points(rate.share), "ci95": bounds}


def _arm_document(arm: ArmToolReport) -> dict[str, Any]:
    return {
        **fields_of(arm, ("arm", "target", "condition", "trials", "unknown")),
        "description_tokens": arm.tokens,
        **fields_of(arm, ("offered", "covered", "never_called")),
        **{name: _rate(getattr(arm, name)) for name in ("any_use", "recovered", "unneeded")},
        "tools": [_tool(tool) for tool in arm.tools],
        "skills": [
            {
                **fields_of(skill, ("name", "tokens", "as_text")),
                "use": _rate(skill.use),
                "triggers": _triggers(skill.triggers),
            }
            for skill in arm.skills
        ],
        "forbidden": [{**fields_of(own, ("tool", "arguments")), "made": _rate(own.made)} for own in arm.forbidden],
        "any_forbidden": _rate(arm.any_forbidden),
        "servers": [_server(server) for server in arm.servers],
        "resources_read": arm.resources,
        "prompts_got": arm.prompts,
        "wrong_arguments": [{"tool": tool, "reason": reason, "count": count} for tool, reason, count in arm.invalid],
        "confusion": None if arm.confusion is None else msgspec.to_builtins(arm.confusion),
    }


def _triggers(triggers: TriggerStats | None) -> dict[str, Any] | None:
    if triggers is None:
        return None
    rates = {name: _rate(getattr(triggers, name)) for name in ("recall", "false_fires")}
    return {**rates, **fields_of(triggers, ("unobserved", "held_out"))}


def _tool(tool: ToolStats) -> dict[str, Any]:
    rates = ("use", "success", "valid", "chosen", "arguments")
    return fields_of(tool, ("name", "offered", "tokens")) | {name: _rate(getattr(tool, name)) for name in rates}


def _server(server: OfferedServer) -> dict[str, Any]:
    named = fields_of(server, ("server", "name", "version", "tokens"))
    return {**named, "tools": len(server.tools), **fields_of(server, ("resources", "prompts"))}
