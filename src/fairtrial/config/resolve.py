"""Resolving the entries of a document into arms: targets × conditions, each with its effective parameters."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec

from fairtrial.config.document import (
    AuthEntry,
    ConditionEntry,
    JudgeEntry,
    McpEntry,
    ParamsEntry,
    SuiteDocument,
    TargetEntry,
)
from fairtrial.config.skills import given_as_text, resolve_skills, with_skill_files
from fairtrial.config.source import Source
from fairtrial.config.style_files import style_entries
from fairtrial.config.suite import RunOptions
from fairtrial.config.targets import TargetResolver
from fairtrial.config.wording import Wording, check_template, needs_templates, prompts_of, system_text, wording_of
from fairtrial.config.workspaces import resolve_workspace
from fairtrial.core import registry
from fairtrial.core.errors import FairtrialError
from fairtrial.core.experiment import (
    BENCHMARK_LOCK,
    DEFAULT_PARAMS,
    EMBEDDER,
    Arm,
    Condition,
    JudgeSpec,
    McpAuth,
    McpServer,
    Settings,
    TargetSpec,
    UserSpec,
)
from fairtrial.core.functions import Functions, is_given, own_name
from fairtrial.core.options import Path as KeyPath
from fairtrial.core.options import read, scorer_problems
from fairtrial.core.providers import api_kinds
from fairtrial.core.variables import Variables
from fairtrial.core.workspace import WorkspaceSpec


def resolve_arms(
    source: Source,
    document: SuiteDocument,
    folder: Path,
    options: RunOptions,
    settings: Settings,
    variables: Variables,
) -> list[Arm]:
    """Return one arm for every selected target and condition."""
    resolver = TargetResolver(source, document, folder, variables)
    targets = list(_chosen_targets(source, document, options, resolver))
    conditions = list(_chosen_conditions(source, document, folder, options))
    styled = document.suite is not None and bool(document.suite.own_styles())
    _check_scorer(source, ("scorer",), document.scorer)
    arms: list[Arm] = []
    for path, entry, spec in targets:
        _check_names(source, (*path, "conditions"), entry.conditions, document)
        for name, condition_entry, common in conditions:
            if entry.conditions and name not in entry.conditions:
                continue
            workspace = _workspace(source, document, entry, path, name, condition_entry, folder)
            condition, workspace = _with_skills(source, spec, common, condition_entry, folder, workspace)
            params, defaulted = _effective(settings, document.params, entry.params, condition_entry.params)
            extract = entry.extract or document.extract
            scorer = _nearest(document.scorer, entry.scorer, condition_entry.scorer)
            arm = Arm(
                name=f"{spec.id}/{name}" if document.conditions or document.prompts or styled else spec.id,
                target=spec,
                condition=condition,
                params=params,
                defaulted=defaulted,
                scorer={"type": scorer} if isinstance(scorer, str) else scorer,
                extract=extract.as_spec() if extract else None,
                workspace=workspace,
                repeats=options.repeats or _nearest(document.repeats, entry.repeats, condition_entry.repeats),
                position=len(arms),
            )
            if any(other.name == arm.name for other in arms):
                source.problem(path, f"duplicate arm `{arm.name}`: give each target its own `id`")
            for problem in _arm_problems(arm, document):
                source.problem(path, problem)
            if arm.target.batch and (reason := _why_no_batch(document)):
                message = f"{arm.target.id} cannot be asked in batches: {reason}; remove `batch`"
                source.problem((*path, "batch"), message)
            arms.append(arm)
    return arms


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
    if arm.workspace is not None and (problem := kind.workspace_problem(spec, arm.workspace)):
        yield problem


def _with_skills(
    source: Source,
    spec: TargetSpec,
    condition: Condition,
    entry: ConditionEntry,
    folder: Path,
    workspace: WorkspaceSpec | None,
) -> tuple[Condition, WorkspaceSpec | None]:
    """Return a condition and a workspace with the condition's skills in the form in which the target takes them."""
    kind = registry.load("targets", spec.kind)
    if not condition.skills or kind.takes_skills or source.problems:
        return condition, workspace
    with_files = kind.uses_workspace and not spec.options.get("cwd")
    condition = given_as_text(condition, entry, folder, with_files=with_files)
    return condition, with_skill_files(workspace, condition) if with_files else workspace


def _workspace(
    source: Source,
    document: SuiteDocument,
    target: TargetEntry,
    path: KeyPath,
    condition: str,
    entry: ConditionEntry,
    folder: Path,
) -> WorkspaceSpec | None:
    """Return the workspace of an arm."""
    where: KeyPath = ("conditions", condition.partition("/")[0]) if document.conditions else ()
    layers = [((), document.workspace), (path, target.workspace), (where, entry.workspace)]
    return resolve_workspace(source, layers, folder)


def resolve_judges(
    source: Source, document: SuiteDocument, folder: Path, variables: Variables
) -> tuple[JudgeSpec, ...]:
    """Return the judges of a suite: one, a panel of several, or none."""
    if document.judge is not None and document.judges:
        source.problem(("judges",), "set `judge` or `judges`, not both")
    entries = [document.judge] if document.judge is not None else document.judges
    paths: list[KeyPath] = [("judge",)] if document.judge is not None else [("judges", n) for n in range(len(entries))]
    names = [entry.id or entry.target for entry in entries]
    judges = []
    for path, entry in zip(paths, entries, strict=True):
        name = entry.id or entry.target
        if names.count(name) > 1:
            source.problem(
                path,
                f"duplicate judge `{name}`: give each judge its own `id`, or set `panel: judgements` to ask one "
                "several times",
            )
        spec = _resolve_judge(source, path, document, folder, variables, entry)
        judges += [spec] if spec else []
    return tuple(judges)


def has_turns(document: SuiteDocument) -> bool:
    """Return whether cases of a suite are conversations."""
    from_rows = document.dataset is not None and document.dataset.turns is not None
    return from_rows or any(case.turns[1:] for case in document.cases)


def _why_no_batch(document: SuiteDocument) -> str:
    """Return why answers are needed one after the other; empty if they can come all at once."""
    talks = has_turns(document) or document.user is not None
    return "in a conversation, each turn needs the answer before it" if talks else ""


def resolve_user(source: Source, document: SuiteDocument, folder: Path, variables: Variables) -> UserSpec | None:
    """Return the simulated user of a suite, if it has one."""
    entry = document.user
    if entry is None:
        return None
    for key, text in (("persona", entry.persona), ("goal", entry.goal)):
        check_template(source, ("user", key), text)
    if not (entry.persona.strip() or entry.goal.strip()):
        source.problem(("user",), "a simulated user needs a `persona` or a `goal`")
    if any(case.turns for case in document.cases) or (document.dataset and document.dataset.turns):
        source.problem(("user",), "a suite has a simulated user, or cases with `turns`, not both")
    target = TargetResolver(source, document, folder, variables).resolve(("user",), entry)
    if target is None:
        return None
    if not registry.load("targets", target.kind).takes_chats:
        source.problem(("user", "target"), f"{entry.target} takes one question: it cannot play a user")
    return UserSpec(
        target=msgspec.structs.replace(target, id=f"user {entry.target}"),
        params=entry.params.given() if entry.params else {},
        persona=entry.persona,
        goal=entry.goal,
        max_turns=entry.max_turns,
    )


def judge_named(
    name: str,
    variables: Variables,
    folder: Path,
    suite_text: str = "name: judge\ntargets: []\n",
    functions: Functions | None = None,
) -> JudgeSpec:
    """Return a judge by its model's name; with a suite's text, its providers and instructions apply.

    `functions` are those given in Python that a name may stand for.
    """
    source, document = _stored_suite(suite_text, variables)
    source.functions = functions or {}
    instructions = document.judge.instructions if document.judge else ""
    own = own_name(name).removeprefix("python:") if is_given(name) else None
    entry = JudgeEntry(target=name, id=own, instructions=instructions)
    spec = _resolve_judge(source, (), document, folder, variables, entry)
    if spec is None or source.problems:
        raise FairtrialError("; ".join(problem.message for problem in source.hidden_problems()))
    return spec


def _stored_suite(text: str, variables: Variables) -> tuple[Source, SuiteDocument]:
    """Read the text of a suite that was checked before it was stored."""
    source = Source(text, "suite", variables)
    document = read(SuiteDocument, source.value, [])
    assert document is not None
    source.problems.clear()
    return source, document


def resolve_embedders(
    source: Source, document: SuiteDocument, folder: Path, variables: Variables, names: Iterable[str]
) -> dict[str, TargetSpec]:
    """Return the models whose embeddings scorers need, by name."""
    embedders = {}
    for name in names:
        spec = TargetResolver(source, document, folder, variables).resolve(("scorer",), JudgeEntry(target=name))
        if spec is not None and not registry.load("targets", spec.kind).embeds:
            source.problem(
                ("scorer",),
                f"{name} has no embeddings: use a model of openai (or a server with its API), google, azure, mistral, "
                "bedrock, or `local:smollm2`",
            )
        elif spec is not None:
            embedders[name] = msgspec.structs.replace(spec, id=f"{EMBEDDER}{name}")
    return embedders


def embedders_named(names: Iterable[str], variables: Variables, folder: Path, suite_text: str) -> dict[str, TargetSpec]:
    """Return embedders by their names; the providers of the suite's text apply."""
    source, document = _stored_suite(suite_text, variables)
    embedders = resolve_embedders(source, document, folder, variables, names)
    if source.problems:
        raise FairtrialError("; ".join(problem.message for problem in source.hidden_problems()))
    return embedders


def _resolve_judge(
    source: Source, path: KeyPath, document: SuiteDocument, folder: Path, variables: Variables, entry: JudgeEntry
) -> JudgeSpec | None:
    target = TargetResolver(source, document, folder, variables).resolve(path, entry)
    if target is None:
        return None
    params = entry.params.given() if entry.params else {}
    if entry.temperature is not msgspec.UNSET:
        params["temperature"] = entry.temperature
    # A separate id, because the same model may also be a target with other options.
    name = entry.id or entry.target
    target = msgspec.structs.replace(target, id=f"judge {name}")
    if entry.vision and not registry.load("targets", target.kind).takes_files:
        source.problem((*path, "vision"), f"{name} cannot receive images: only models behind an API can")
    check_template(source, (*path, "instructions"), entry.instructions)
    return JudgeSpec(name=name, target=target, params=params, instructions=entry.instructions, vision=entry.vision)


def _chosen_targets(
    source: Source, document: SuiteDocument, options: RunOptions, resolver: TargetResolver
) -> Iterator[tuple[KeyPath, TargetEntry, TargetSpec]]:
    names = [entry.id or entry.target for entry in document.targets]
    _check_choice(source, "target", options.targets, names)
    for index, entry in enumerate(document.targets):
        path: KeyPath = ("targets", index)
        _check_scorer(source, (*path, "scorer"), entry.scorer)
        if options.targets and names[index] not in options.targets:
            continue
        spec = resolver.resolve(path, entry)
        if spec is not None:
            yield path, entry, spec


def _chosen_conditions(
    source: Source, document: SuiteDocument, folder: Path, options: RunOptions
) -> Iterator[tuple[str, ConditionEntry, Condition]]:
    common = ConditionEntry(system=document.system, system_file=document.system_file)
    entries = _entries(source, document, common, folder)
    wordings = _wordings(source, document, folder)
    names = [_condition_name(document, name, wording) for name in entries for wording in wordings]
    _check_choice(source, "condition", options.conditions, names)
    system = system_text(source, (), common, folder)
    for entry_name, entry in entries.items():
        chosen = {_condition_name(document, entry_name, wording): wording for wording in wordings}
        if options.conditions and not any(name in options.conditions for name in chosen):
            continue
        path: KeyPath = ("conditions", entry_name) if document.conditions else ()
        condition = _condition(source, path, entry, document, folder, system)
        for name, wording in chosen.items():
            if not options.conditions or name in options.conditions:
                yield name, entry, _worded(source, path, condition, wordings[wording], name, document, folder)


def _condition_name(document: SuiteDocument, entry: str, wording: str) -> str:
    """Return `condition/prompt`, or the only one of the two that the suite has."""
    if not document.prompts:
        return entry
    return f"{entry}/{wording}" if document.conditions else wording


def _wordings(source: Source, document: SuiteDocument, folder: Path) -> dict[str, Wording | None]:
    """Return the suite's prompts by name; without any, the cases are asked as they are."""
    found = {name: wording_of(source, ("prompts", name), prompt, folder) for name, prompt in document.prompts.items()}
    return {name: wording for name, wording in found.items() if wording} or {"": None}


def _condition(
    source: Source, path: KeyPath, entry: ConditionEntry, document: SuiteDocument, folder: Path, system: str
) -> Condition:
    prompts = prompts_of(source, path, entry, folder)
    _check_scorer(source, (*path, "scorer"), entry.scorer if document.conditions else None)
    has_system = entry.system is not None or entry.system_file is not None
    return Condition(
        skills=resolve_skills(source, path, entry, folder),
        system=system_text(source, path, entry, folder) if has_system and document.conditions else system,
        prompts=prompts,
        mcp=_servers_of(source, path, entry, document, folder),
        require_tool_use=entry.require_tool_use,
        require_tool_success=entry.require_tool_success,
        on_missing_tool_use=entry.on_missing_tool_use,
    )


def _worded(
    source: Source,
    path: KeyPath,
    condition: Condition,
    wording: Wording | None,
    name: str,
    document: SuiteDocument,
    folder: Path,
) -> Condition:
    """Return a condition with one of the suite's prompts, under its name."""
    if wording is not None:
        if condition.prompts:
            source.problem(path, "a condition cannot have a prompt or a style of its own beside the suite's `prompts`")
        if wording.system and condition.system:
            source.problem(path, f"prompt `{name}` has a system message, and there is a `system` prompt: keep one")
        condition = msgspec.structs.replace(
            condition,
            prompts=wording.prompts,
            chat=wording.chat,
            system=wording.system or condition.system,
            function=wording.function,
            folder=str(folder.resolve()) if wording.function else "",
        )
    texts = (condition.system, *(message.content for message in condition.chat))
    templates = needs_templates(texts, condition.prompts) or bool(condition.chat or condition.function)
    return msgspec.structs.replace(condition, name=name, templates=templates, vars=document.vars)


def _entries(
    source: Source, document: SuiteDocument, common: ConditionEntry, folder: Path
) -> dict[str, ConditionEntry]:
    """Return the conditions: those of the suite, else the styles of its problems, else one default."""
    if document.conditions:
        if document.suite is not None and document.suite.match_length:
            source.problem(
                ("suite", "match_length"), "`match_length` goes with `styles`, but the suite has `conditions`"
            )
        return document.conditions
    if document.suite is not None and (styles := document.suite.own_styles()):
        return style_entries(source, document.suite, styles, folder)
    return {"default": common}


def _servers_of(
    source: Source, path: KeyPath, entry: ConditionEntry, document: SuiteDocument, folder: Path
) -> tuple[McpServer, ...]:
    """Return the MCP servers that a condition uses."""
    entries = {**document.mcp_servers, **document.mcp_servers_as_desktop}
    servers = []
    for index, name in enumerate(entry.mcp):
        if name not in entries:
            hint = registry.nearest(name, list(entries)) if entries else "; the suite has no `mcp_servers:`"
            source.problem((*path, "mcp", index), f"unknown MCP server `{name}`{hint}")
        elif entry.mcp.index(name) == index:
            key = "mcpServers" if name in document.mcp_servers_as_desktop else "mcp_servers"
            server = _server(source, (key, name), name, entries[name], folder)
            only = tuple(entry.mcp_tools.get(name, ()))
            servers += [msgspec.structs.replace(server, only=only)] if server else []
    for name in sorted(set(entry.mcp_tools) - set(entry.mcp)):
        source.problem((*path, "mcp_tools"), f"`mcp_tools` names `{name}`, which the condition's `mcp` does not have")
    if (entry.require_tool_use or entry.require_tool_success) and not entry.mcp:
        source.problem((*path, "mcp"), "tool use is required, but the condition has no MCP server")
    return tuple(servers)


def _server(source: Source, path: KeyPath, name: str, entry: McpEntry, folder: Path) -> McpServer | None:
    if (entry.command is None) == (entry.url is None):
        source.problem(path, "an MCP server needs either `command` (a program) or `url` (an address)")
        return None
    if entry.disabled:
        source.problem((*path, "disabled"), f"the MCP server `{name}` is disabled, but a condition uses it")
        return None
    if not re.fullmatch(r"[A-Za-z0-9_-]+", name) or "__" in name:
        source.problem(path, "the name of an MCP server may contain only letters, digits, - and single _")
        return None
    if entry.command is None:
        kind: Literal["sse", "http"] = "sse" if (entry.type or entry.transport) == "sse" else "http"
        server = McpServer(
            name=name,
            transport=kind,
            url=entry.url or "",
            headers=entry.headers,
            timeout=entry.timeout,
            roots=entry.roots,
        )
        return _authorised(source, (*path, "auth"), server, entry.auth)
    if entry.auth is not None:
        source.problem((*path, "auth"), "`auth` is for servers with a `url`; a program gets its keys by `env`")
    local = folder / entry.command
    # Symlinks are not resolved: a virtual environment's python is a link and finds its environment by its own path.
    program = str(local.absolute()) if "/" in entry.command and local.is_file() else shutil.which(entry.command)
    if program is None:
        source.problem((*path, "command"), f"there is no program `{entry.command}`")
        return None
    server = McpServer(
        name=name,
        command=program if "/" in entry.command else entry.command,
        args=tuple(entry.args),
        env=entry.env,
        cwd=entry.cwd or ".",
        timeout=entry.timeout,
        roots=entry.roots,
    )
    return _with_place(server, folder)


def _authorised(source: Source, path: KeyPath, server: McpServer, entry: AuthEntry | None) -> McpServer:
    """Return a server with the access that the suite says: a header with a token, or how to get tokens."""
    if entry is None:
        return server
    credentials = (entry.client_id, entry.client_secret)
    if (entry.token is None) == (credentials == (None, None)):
        source.problem(path, "`auth` needs either a `token`, or `client_id` and `client_secret`")
    elif entry.token is not None:
        headers = {**server.headers, "Authorization": f"Bearer {entry.token}"}
        return msgspec.structs.replace(server, headers=headers)
    elif None in credentials:
        source.problem(path, "`auth` needs both `client_id` and `client_secret`")
    auth = McpAuth(
        client_id=entry.client_id or "",
        client_secret=entry.client_secret or "",
        issuer=entry.issuer or "",
        scope=entry.scope or "",
    )
    return msgspec.structs.replace(server, auth=auth)


def _with_place(server: McpServer, folder: Path) -> McpServer:
    """Return a server with the paths of its files: they are beside the suite, also if it works in the workspace."""
    if msgspec.structs.replace(server, args=(), env={}).wants_workspace:
        paths = (folder / argument for argument in server.args)
        pairs = zip(server.args, paths, strict=True)
        arguments = tuple(str(path.absolute()) if path.is_file() else argument for argument, path in pairs)
        return msgspec.structs.replace(server, args=arguments)
    return msgspec.structs.replace(server, cwd=str((folder / server.cwd).resolve()))


def _check_names(source: Source, path: KeyPath, chosen: list[str], document: SuiteDocument) -> None:
    """Report conditions of a target that the suite does not have."""
    entries, wordings = list(document.conditions) or ["default"], list(document.prompts) or [""]
    names = [_condition_name(document, entry, wording) for entry in entries for wording in wordings]
    for name in chosen:
        if name not in names:
            source.problem(path, f"unknown condition `{name}`{registry.nearest(name, names)}")


def _check_choice(source: Source, what: str, chosen: tuple[str, ...], names: list[str]) -> None:
    for name in chosen:
        if name not in names:
            source.problem((), f"--{what} {name}: there is no such {what}{registry.nearest(name, names)}")


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


def _check_scorer(source: Source, path: KeyPath, scorer: Any) -> None:
    if scorer is not None:
        for inner, message in scorer_problems(scorer):
            source.problem((*path, *inner), message)
