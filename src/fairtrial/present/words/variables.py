"""The table of variables: what a run keeps fixed, what it controls as well as it can, and what is uncontrolled."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from fairtrial.analyse.scorers_used import scorer_label, scorers_used
from fairtrial.analyse.stored_run import StoredRun
from fairtrial.text.printable import counted

_AGENTS = ("claude_code", "codex", "gemini_cli", "opencode", "tool_agent", "command")


class ControlVariable(msgspec.Struct, frozen=True, kw_only=True):
    """Something that affects results: how well it is controlled, its impact, and how that is mitigated."""

    name: str
    control: str  # fixed, best effort, uncontrolled
    value: str
    impact: str
    mitigation: str


def variables(run: StoredRun) -> list[ControlVariable]:
    """Return every variable of a run. Full reproducibility is not claimed: models behind an API change."""
    return [*_fixed(run), *_targets(run), *_tools(run), *_judges(run), *_chance(run)]


def _fixed(run: StoredRun) -> Iterator[ControlVariable]:
    plan = run.plan
    yield ControlVariable(
        name="dataset",
        control="fixed",
        value=", ".join([counted(plan.case_count, "case"), *_revision(run), f"SHA-256 {plan.dataset_sha256[:16]}…"]),
        impact="different cases give a different result",
        mitigation="stored with the run; comparisons use common cases only",
    )
    yield ControlVariable(
        name="prompts and parameters",
        control="fixed",
        value=", ".join(sorted({arm.condition.name for arm in run.plan_arms})),
        impact="wording and temperature change answers",
        mitigation="stored before variables are filled in; part of every trial's identity",
    )
    yield ControlVariable(
        name="scorers",
        control="fixed",
        value=", ".join(sorted(set(map(scorer_label, scorers_used(run.store, run.record, run.plan_arms))))),
        impact="another scorer measures something else",
        mitigation="stored; `rescore` keeps the earlier scores",
    )


def _revision(run: StoredRun) -> Iterator[str]:
    """Yield the dataset of the Hub and its commit, if the cases come from there."""
    origin = run.context.get("dataset") or {}
    if "revision" in origin:
        yield f"{origin['dataset']} ({origin['split']}) at {origin['revision'][:12]}"


def _targets(run: StoredRun) -> Iterator[ControlVariable]:
    targets = {arm.target.id: arm.target for arm in run.plan_arms}
    agents = [name for name, target in targets.items() if target.kind in _AGENTS]
    models = [name for name in targets if name not in agents]
    if models:
        yield ControlVariable(
            name="models",
            control="uncontrolled",
            value=", ".join(models),
            impact="providers change models behind a name; answers vary between calls",
            mitigation="the model's own name is kept with each answer; repeats and series show the variation",
        )
    if agents:
        yield ControlVariable(
            name="agents",
            control="uncontrolled",
            value=", ".join(agents),
            impact="an agent decides for itself which tools it calls, in which order and how often",
            mitigation="isolated settings and folders; traces are kept; repeats show the variation",
        )


def _tools(run: StoredRun) -> Iterator[ControlVariable]:
    servers = sorted({server.name for arm in run.plan_arms for server in arm.condition.mcp})
    if servers:
        yield ControlVariable(
            name="MCP servers",
            control="best effort",
            value=", ".join(servers),
            impact="a server's data, version or outage changes answers",
            mitigation="restarted for every trial; versions and tools are stored; failed calls are counted",
        )


def _judges(run: StoredRun) -> Iterator[ControlVariable]:
    judges = [judge["name"] for judge in run.settings.get("judges", ())]
    if judges:
        yield ControlVariable(
            name="judges",
            control="best effort",
            value=", ".join(judges),
            impact="a judge's bias and noise go into every score",
            mitigation="prompts and parameters are stored; repeats measure the noise, calibration and labels the bias",
        )


def _chance(run: StoredRun) -> Iterator[ControlVariable]:
    repeats = sorted({arm.repeats for arm in run.plan_arms})
    shown = counted(repeats[0], "repeat") if repeats[0] == repeats[-1] else f"{repeats[0]}–{repeats[-1]} repeats"
    yield ControlVariable(
        name="chance",
        control="uncontrolled",
        value=f"{shown} per case",
        impact="the same question gets different answers",
        mitigation="repeats are independent and averaged first; intervals are over cases; several runs make a series",
    )
    yield ControlVariable(
        name="network and load",
        control="best effort",
        value=f"{run.settings.get('concurrency')} calls at once",
        impact="timeouts and refused calls leave trials without a score",
        mitigation="calls are retried; failures are counted separately and never scored; waiting is not latency",
    )
