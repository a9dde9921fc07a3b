"""Resolving the entries of a document into arms: targets × conditions, each with its effective parameters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from fairtrial.config.case_document import CaseSettings, ParamsEntry
from fairtrial.config.conditions import check_condition_names, chosen_conditions
from fairtrial.config.document import ConditionEntry, SuiteDocument, TargetEntry
from fairtrial.config.judges import has_turns
from fairtrial.config.run_options import RunOptions
from fairtrial.config.skills import given_as_text, with_skill_files
from fairtrial.config.source import SuiteSource, check_choice, check_scorer
from fairtrial.config.targets import TargetResolver
from fairtrial.config.workspaces import resolve_workspace
from fairtrial.core import registry
from fairtrial.core.experiment import BENCHMARK_LOCK, DEFAULT_PARAMS, Arm, Condition, TargetSpec
from fairtrial.core.options import Path as KeyPath
from fairtrial.core.options import scorer_spec
from fairtrial.core.providers import api_kinds
from fairtrial.core.settings import Settings
from fairtrial.core.workspace import WorkspaceSpec


def resolve_arms(source: SuiteSource, document: SuiteDocument, options: RunOptions, settings: Settings) -> list[Arm]:
    """Return one arm for every selected target and condition."""
    resolver = TargetResolver(source, document)
    targets = list(_chosen_targets(source, document, options, resolver))
    conditions = list(chosen_conditions(source, document, options))
    styled = document.suite is not None and bool(document.suite.own_styles())
    check_scorer(source, ("scorer",), document.scorer)
    if document.scorer is None:
        source.problem(("scorer",), "is empty: name a scorer, or leave the key out for `match`")
        return []
    arms: list[Arm] = []
    for path, entry, spec in targets:
        check_condition_names(source, (*path, "conditions"), entry.conditions, document)
        for name, condition_entry, common in conditions:
            if entry.conditions and name not in entry.conditions:
                continue
            workspace = _workspace(source, document, entry, path, name, condition_entry)
            condition, workspace = _with_skills(source, spec, common, condition_entry, workspace)
            params, defaulted = _effective(settings, document.params, entry.params, condition_entry.params)
            extract = entry.extract or document.extract
            arm = Arm(
                name=f"{spec.id}/{name}" if document.conditions or document.prompts or styled else spec.id,
                target=spec,
                condition=condition,
                params=params,
                defaulted=defaulted,
                scorer=scorer_spec(_nearest(document.scorer, entry.scorer, condition_entry.scorer)),
                extract=extract.as_spec() if extract else None,
                workspace=workspace,
                repeats=options.repeats or _nearest(document.repeats, entry.repeats, condition_entry.repeats),
                position=len(arms),
                on_limit=entry.on_limit or document.on_limit or msgspec.UNSET,
            )
            if any(other.name == arm.name for other in arms):
                source.problem(path, f"duplicate arm `{arm.name}`: give each target its own `id`")
            for problem in _arm_problems(arm, document):
                source.problem(path, problem)
            if arm.target.batch and (has_turns(document) or document.user is not None):
                reason = "in a conversation, each turn needs the answer before it"
                message = f"{arm.target.id} cannot be asked in batches: {reason}; remove `batch`"
                source.problem((*path, "batch"), message)
            arms.append(arm)
    _check_asked(source, document, arms, options)
    return arms


def _check_asked(source: SuiteSource, document: SuiteDocument, arms: list[Arm], options: RunOptions) -> None:
    """Report targets and conditions of cases that the suite does not have, and cases that no target is asked."""
    targets = [entry.id or entry.target for entry in document.targets]
    entries: list[tuple[KeyPath, CaseSettings]] = [(("case_defaults",), document.case_defaults)]
    entries += [(("cases", index), entry) for index, entry in enumerate(document.cases)]
    chosen = bool(options.targets or options.conditions)  # options may leave out those that are asked
    for path, entry in entries:
        before = len(source.problems)
        check_condition_names(source, (*path, "conditions"), entry.conditions, document)
        for name in entry.targets:
            if name not in targets:
                source.problem((*path, "targets"), f"unknown target `{name}`{registry.nearest(name, targets)}")
        asked = any(arm.is_asked(entry.targets, entry.conditions) for arm in arms)
        if arms and not asked and not chosen and len(source.problems) == before:
            source.problem(path, "no target is asked: none of its `targets` has one of its `conditions`")


def _arm_problems(arm: Arm, document: SuiteDocument) -> Iterator[str]:
    """Yield why a target cannot be asked under a condition."""
    spec, condition = arm.target, arm.condition
    kind = registry.load("targets", spec.kind)
    if condition.history and not kind.takes_chats:
        yield f"{spec.id} takes one question, not the chat of prompt `{condition.name}`"
    talks = kind.takes_chats or kind.takes_turns
    if not talks and has_turns(document):
        yield f"{spec.id} takes one question, not several `turns`"
    if not talks and document.user is not None:
        yield f"{spec.id} takes one question: it cannot talk to a simulated user"
    if condition.mcp and not kind.uses_tools:
        hint = f"; `tool-agent:{spec.id}` can" if spec.kind in api_kinds() else ""
        yield f"{spec.id} cannot use the MCP servers of condition `{condition.name}`{hint}"
    if not kind.limits_tools and any(server.only for server in condition.mcp):
        yield f"{spec.id} gets all tools of a server: the `mcp_tools` of `{condition.name}` cannot be kept from it"
    if not kind.describes_tools and any(server.texts for server in condition.mcp):
        yield (
            f"{spec.id} reads the descriptions of tools from their servers: the `descriptions` of `{condition.name}` "
            "cannot be given to it; use another server under the same name, as in `mcp: {shop: shop-v2}`"
        )
    if arm.workspace is not None and (problem := kind.workspace_problem(spec, arm.workspace)):
        yield problem


def _with_skills(
    source: SuiteSource,
    spec: TargetSpec,
    condition: Condition,
    entry: ConditionEntry,
    workspace: WorkspaceSpec | None,
) -> tuple[Condition, WorkspaceSpec | None]:
    """Return a condition and a workspace with the condition's skills in the form in which the target takes them."""
    kind = registry.load("targets", spec.kind)
    if not condition.skills or kind.takes_skills or source.problems:
        return condition, workspace
    if kind.own_system and not condition.system:
        reason = "the text of a skill would replace its own system prompt, and the two would be compared as one"
        source.problem(("conditions", condition.name), f"{spec.id}: {reason}; give every condition a `system`")
    with_files = kind.uses_workspace and not spec.options.get("cwd")
    condition = given_as_text(condition, entry, source.folder, with_files=with_files)
    return condition, with_skill_files(workspace, condition) if with_files else workspace


def _workspace(
    source: SuiteSource,
    document: SuiteDocument,
    target: TargetEntry,
    path: KeyPath,
    condition: str,
    entry: ConditionEntry,
) -> WorkspaceSpec | None:
    where: KeyPath = ("conditions", condition.partition("/")[0]) if document.conditions else ()
    layers = [((), document.workspace), (path, target.workspace), (where, entry.workspace)]
    return resolve_workspace(source, layers)


def _chosen_targets(
    source: SuiteSource, document: SuiteDocument, options: RunOptions, resolver: TargetResolver
) -> Iterator[tuple[KeyPath, TargetEntry, TargetSpec]]:
    names = [entry.id or entry.target for entry in document.targets]
    check_choice(source, "target", options.targets, names)
    for index, entry in enumerate(document.targets):
        path: KeyPath = ("targets", index)
        check_scorer(source, (*path, "scorer"), entry.scorer)
        if options.targets and names[index] not in options.targets:
            continue
        spec = resolver.resolve(path, entry)
        if spec is not None:
            yield path, entry, spec


def _effective(settings: Settings, *layers: ParamsEntry | None) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the merged parameters, where the most specific layer wins, and the names of those left at the default."""
    explicit: dict[str, Any] = {}
    for layer in layers:
        explicit |= layer.given() if layer else {}
    if settings.benchmark_mode:
        explicit |= BENCHMARK_LOCK
    defaulted = tuple(name for name in DEFAULT_PARAMS if name not in explicit)
    effective = {**DEFAULT_PARAMS, **explicit}
    return {name: value for name, value in effective.items() if value is not None}, defaulted


def _nearest(*values: Any) -> Any:
    return next(value for value in reversed(values) if value is not None)
