"""In what two arms of one target differ: versions of a server, a tool's description or a skill, and whatever else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from fairtrial.analyse.offered import OfferedServer, Offers, own_system
from fairtrial.core.experiment import Arm, McpServer
from fairtrial.core.skill import Skill
from fairtrial.core.tool_text import ToolText

VersionKind = Literal["server", "tool", "skill", "system", "prompt", "parameters", "workspace", "scorer"]
_OFFERED = ("server", "tool", "skill")
MOST_PAIRS = 12


class Changed(msgspec.Struct, frozen=True, kw_only=True):
    """One thing in which an arm differs from an earlier one."""

    kind: VersionKind
    name: str = ""  # of the server, tool or skill
    how: Literal["version", "added", "removed"] = "version"
    parts: list[str] = []  # what of a tool or a skill: its `description`, `parameters`, `files`
    tools: dict[str, list[str]] = {}  # of a server: those with another `description` or `schema`, `added`, `removed`
    before: str = ""  # the descriptions, or the entries of servers
    after: str = ""


class VersionPair(msgspec.Struct, frozen=True, kw_only=True):
    """Two arms of one target, the later one with another version of something."""

    arm: Arm
    baseline: Arm
    what: list[Changed]


def changed(before: Arm, after: Arm, offers: Mapping[str, Offers]) -> list[Changed]:
    """Return everything in which an arm differs from an earlier one, versions first."""
    old, new = offers[before.name], offers[after.name]
    versions = [*_servers(before, after, old, new), *_skills(old.skills, new.skills)]
    return [*versions, *_more_or_less(old, new, versions), *_others(before, after)]


def has_versions(what: Sequence[Changed]) -> bool:
    """Return whether two arms differ in a version, and not only in what one has more, or in their wording."""
    return any(one.kind in _OFFERED and one.how == "version" for one in what)


def version_pairs(arms: Sequence[Arm], offers: Mapping[str, Offers]) -> list[VersionPair]:
    """Return the pairs that differ in a version of one thing; of several things, where an arm has no such pair."""
    pairs = [
        VersionPair(arm=after, baseline=before, what=what)
        for place, before in enumerate(arms)
        for after in arms[place + 1 :]
        if after.target.id == before.target.id and has_versions(what := changed(before, after, offers))
    ]
    single = [pair for pair in pairs if len(pair.what) == 1]
    paired = {name for pair in single for name in (pair.arm.name, pair.baseline.name)}
    several = [pair for pair in pairs if len(pair.what) > 1 and not {pair.arm.name, pair.baseline.name} <= paired]
    return [*single, *several][:MOST_PAIRS]


# -- servers and their tools ---------------------------------------------------------------------


def _servers(before: Arm, after: Arm, old: Offers, new: Offers) -> Iterator[Changed]:
    ours, theirs = ({server.name: server for server in arm.condition.mcp} for arm in (before, after))
    listed = ({server.server: server for server in offers.servers} for offers in (old, new))
    of_old, of_new = listed
    for name in [name for name in ours if name in theirs]:
        yield from _versions(ours[name], theirs[name], of_old[name], of_new[name])
    gone, come = sorted(ours.keys() - theirs.keys()), sorted(theirs.keys() - ours.keys())
    if len(gone) == len(come) == 1:  # one in the place of the other; agents see its other name, too
        tools = _tool_changes(of_old[gone[0]], of_new[come[0]])
        yield Changed(kind="server", name=come[0], tools=tools, before=gone[0], after=come[0])


def _versions(before: McpServer, after: McpServer, old: OfferedServer, new: OfferedServer) -> Iterator[Changed]:
    if _program(before) != _program(after):
        yield Changed(
            kind="server",
            name=after.name,
            tools=_tool_changes(old, new),
            before=before.entry or before.name,
            after=after.entry or after.name,
        )
    ours, theirs = ({text.tool: text for text in server.texts} for server in (before, after))
    for tool in dict.fromkeys((*ours, *theirs)):
        one, other = ours.get(tool, ToolText(tool=tool)), theirs.get(tool, ToolText(tool=tool))
        parts = [part for part in ("description", "parameters") if getattr(one, part) != getattr(other, part)]
        if one != other:
            name, said = f"{after.name}.{tool}", (old.described(tool), new.described(tool))
            yield Changed(kind="tool", name=name, parts=parts, before=said[0], after=said[1])


def _program(server: McpServer) -> dict[str, Any]:
    """Return what a server is, apart from what a condition gives and says of it."""
    own = msgspec.structs.replace(server, only=(), texts=(), name="")
    return {**own.identity(), "headers": sorted(server.headers)}


def _tool_changes(before: OfferedServer, after: OfferedServer) -> dict[str, list[str]]:
    """Return the tools in which two versions of a server differ, by what they said before the run."""
    ours, theirs = before.by_tool(), after.by_tool()
    both = [(name, ours[name], theirs[name]) for name in ours if name in theirs]
    found = {
        "description": [name for name, one, other in both if one.description != other.description],
        "schema": [name for name, one, other in both if one.schema != other.schema],
        "added": [name for name in theirs if name not in ours],
        "removed": [name for name in ours if name not in theirs],
    }
    return {how: names for how, names in found.items() if names}


# -- skills, and whatever else -------------------------------------------------------------------


def _skills(old: Sequence[Skill], new: Sequence[Skill]) -> Iterator[Changed]:
    earlier = {skill.name: skill for skill in old}
    for skill in new:
        before = earlier.get(skill.name)
        if before is not None and before.files.sha256 != skill.files.sha256:
            parts = ["description"] if before.description != skill.description else []
            parts += ["files"] if not parts or before.rest != skill.rest else []
            yield Changed(
                kind="skill", name=skill.name, parts=parts, before=before.description, after=skill.description
            )


def _more_or_less(old: Offers, new: Offers, versions: Sequence[Changed]) -> Iterator[Changed]:
    """Yield what only one of them has: tools of another version of a server belong to that version."""
    whole = {name for one in versions if one.kind == "server" for name in (one.name, one.before)}
    sides: tuple[tuple[Offers, Offers, Literal["added", "removed"]], ...] = ((new, old, "added"), (old, new, "removed"))
    for mine, theirs, how in sides:
        only = sorted(mine.items() - theirs.items())
        servers = {name for kind, name in only if kind == "server"}
        for kind, name in only:
            server = name.partition(".")[0]
            if kind == "skill":
                yield Changed(kind="skill", name=name, how=how)
            elif server not in whole and kind == "server":
                yield Changed(kind="server", name=name, how=how)
            elif server not in whole and server not in servers:
                yield Changed(kind="tool", name=name, how=how)


def _others(before: Arm, after: Arm) -> Iterator[Changed]:
    wordings: dict[VersionKind, tuple[Any, Any]] = {
        "system": (own_system(before), own_system(after)),
        "prompt": (wording(before), wording(after)),
        "parameters": (before.params, after.params),
        "workspace": (_workspace(before), _workspace(after)),
        "scorer": (before.scorer, after.scorer),
    }
    for kind, (one, other) in wordings.items():
        if one != other:
            yield Changed(kind=kind)


def wording(arm: Arm) -> tuple[Any, ...]:
    """Return what an arm asks the cases with, apart from its system prompt."""
    return arm.condition.prompts, arm.condition.chat, arm.condition.function


def _workspace(arm: Arm) -> Any:
    """Return the workspace of an arm without the files of its skills."""
    return None if arm.workspace is None else msgspec.to_builtins(msgspec.structs.replace(arm.workspace, skills=()))
