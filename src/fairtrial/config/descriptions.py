"""Other descriptions of tools and skills than their own: `descriptions` of a condition."""

from __future__ import annotations

from fairtrial.config.document import ConditionEntry, DescriptionEntry
from fairtrial.config.source import SuiteSource
from fairtrial.config.wording import read_file
from fairtrial.core import registry
from fairtrial.core.options import Path as KeyPath
from fairtrial.core.tool_text import ToolText
from fairtrial.core.trust import within


def tool_texts(source: SuiteSource, path: KeyPath, entry: ConditionEntry) -> dict[str, tuple[ToolText, ...]]:
    """Return what a condition says of the tools of its servers, by server; report what is of no server or skill."""
    found: dict[str, list[ToolText]] = {}
    for name, given in entry.descriptions.items():
        where = (*path, "descriptions", name)
        server, dot, tool = name.partition(".")
        if dot and server in entry.mcp:
            text = description_of(source, where, given)
            parameters = given.parameters if isinstance(given, DescriptionEntry) else {}
            if text is None and not parameters:
                source.problem(where, "say what the tool does (`text` or `file`), or what its `parameters` are")
            found.setdefault(server, []).append(ToolText(tool=tool, description=text, parameters=parameters))
        elif name in entry.mcp:
            source.problem(where, f"`{name}` is a server: name one of its tools, as in `{name}.TOOL`")
        elif dot and not entry.skills:
            hint = registry.nearest(server, list(entry.mcp)) if entry.mcp else ": it has none"
            source.problem(where, f"the condition has no MCP server `{server}`{hint}")
    return {server: tuple(texts) for server, texts in found.items()}


def skill_texts(source: SuiteSource, path: KeyPath, entry: ConditionEntry) -> dict[str, str]:
    """Return what a condition says of its skills, by name, with whatever is not of a tool."""
    found = {}
    for name, given in entry.descriptions.items():
        where = (*path, "descriptions", name)
        if name.partition(".")[0] in entry.mcp:
            continue
        if isinstance(given, DescriptionEntry) and given.parameters:
            source.problem(where, "a skill has no `parameters`")
        text = description_of(source, where, given)
        if text is None or not text.strip():
            source.problem(where, "say when the skill is to be used (`text` or `file`): agents choose skills by it")
        found[name] = " ".join((text or "").split())
    return found


def description_of(source: SuiteSource, path: KeyPath, given: str | DescriptionEntry) -> str | None:
    """Return the text of one entry; None if it has none, or it cannot be read, which is reported."""
    if isinstance(given, str):
        return given
    if given.text is not None and given.file is not None:
        source.problem(path, "set `text` or `file`, not both")
    if given.file is None:
        return given.text
    text = read_file(source, (*path, "file"), within(source.folder, given.file))
    return None if text is None else text.strip()
