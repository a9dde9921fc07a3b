"""Resolving the conditions of a suite: what a target is given besides the case."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from fairtrial.config.document import ConditionEntry, SuiteDocument
from fairtrial.config.mcp_servers import servers_of
from fairtrial.config.run_options import RunOptions
from fairtrial.config.skills import resolve_skills
from fairtrial.config.source import SuiteSource, check_choice, check_scorer
from fairtrial.config.styles import style_entries
from fairtrial.config.wording import Wording, needs_templates, prompts_of, system_text, wording_of
from fairtrial.core import registry
from fairtrial.core.experiment import Condition
from fairtrial.core.options import Path as KeyPath


def chosen_conditions(
    source: SuiteSource, document: SuiteDocument, options: RunOptions
) -> Iterator[tuple[str, ConditionEntry, Condition]]:
    """Yield the selected conditions, each with its name and its entry."""
    common = ConditionEntry(system=document.system, system_file=document.system_file)
    entries = _entries(source, document, common)
    wordings = _wordings(source, document)
    names = [_condition_name(document, name, wording) for name in entries for wording in wordings]
    check_choice(source, "condition", options.conditions, names)
    system = system_text(source, (), common)
    for entry_name, entry in entries.items():
        chosen = {_condition_name(document, entry_name, wording): wording for wording in wordings}
        if options.conditions and not any(name in options.conditions for name in chosen):
            continue
        path: KeyPath = ("conditions", entry_name) if document.conditions else ()
        condition = _condition(source, path, entry, document, system)
        for name, wording in chosen.items():
            if not options.conditions or name in options.conditions:
                yield name, entry, _worded(source, path, condition, wordings[wording], name, document)


def _condition_name(document: SuiteDocument, entry: str, wording: str) -> str:
    """Return `condition/prompt`, or the only one of the two that the suite has."""
    if not document.prompts:
        return entry
    return f"{entry}/{wording}" if document.conditions else wording


def _wordings(source: SuiteSource, document: SuiteDocument) -> dict[str, Wording | None]:
    """Return the suite's prompts by name; without any, the cases are asked as they are."""
    found = {name: wording_of(source, ("prompts", name), prompt) for name, prompt in document.prompts.items()}
    return {name: wording for name, wording in found.items() if wording} or {"": None}


def _condition(
    source: SuiteSource, path: KeyPath, entry: ConditionEntry, document: SuiteDocument, system: str
) -> Condition:
    prompts = prompts_of(source, path, entry)
    check_scorer(source, (*path, "scorer"), entry.scorer if document.conditions else None)
    has_system = entry.system is not None or entry.system_file is not None
    return Condition(
        skills=resolve_skills(source, path, entry),
        system=system_text(source, path, entry) if has_system and document.conditions else system,
        prompts=prompts,
        mcp=servers_of(source, path, entry, document),
        require_tool_use=entry.require_tool_use,
        require_tool_success=entry.require_tool_success,
        on_missing_tool_use=entry.on_missing_tool_use,
    )


def _worded(
    source: SuiteSource,
    path: KeyPath,
    condition: Condition,
    wording: Wording | None,
    name: str,
    document: SuiteDocument,
) -> Condition:
    """Return a condition with one of the suite's prompts, under its name."""
    if wording is not None:
        if condition.prompts:
            source.problem(
                path, "a condition cannot have a prompt or a style of its own in addition to the suite's `prompts`"
            )
        if wording.system and condition.system:
            source.problem(path, f"prompt `{name}` has a system message, and there is a `system` prompt: keep one")
        condition = msgspec.structs.replace(
            condition,
            prompts=wording.prompts,
            chat=wording.chat,
            system=wording.system or condition.system,
            function=wording.function,
            folder=str(source.folder.resolve()) if wording.function else "",
        )
    texts = (condition.system, *(message.content for message in condition.chat))
    templates = needs_templates(texts, condition.prompts) or bool(condition.chat or condition.function)
    return msgspec.structs.replace(condition, name=name, templates=templates, vars=document.vars)


def _entries(source: SuiteSource, document: SuiteDocument, common: ConditionEntry) -> dict[str, ConditionEntry]:
    """Return the conditions: those of the suite, else the styles of its problems, else one default."""
    if document.conditions:
        if document.suite is not None and document.suite.match_length:
            source.problem(
                ("suite", "match_length"), "`match_length` goes with `styles`, but the suite has `conditions`"
            )
        return document.conditions
    if document.suite is not None and (styles := document.suite.own_styles()):
        return style_entries(source, document.suite, styles)
    return {"default": common}


def check_condition_names(source: SuiteSource, path: KeyPath, chosen: list[str], document: SuiteDocument) -> None:
    """Report conditions of a target or a case that the suite does not have."""
    entries, wordings = list(document.conditions) or ["default"], list(document.prompts) or [""]
    names = [_condition_name(document, entry, wording) for entry in entries for wording in wordings]
    for name in chosen:
        if name not in names:
            source.problem(path, f"unknown condition `{name}`{registry.nearest(name, names)}")
