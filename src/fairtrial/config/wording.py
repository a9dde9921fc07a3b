"""The texts of a condition: its prompts around the case, and its system prompt."""

from __future__ import annotations

from pathlib import Path

from fairtrial.config.document import ConditionEntry
from fairtrial.config.source import Source
from fairtrial.core import registry
from fairtrial.core.experiment import INPUT, PLACE
from fairtrial.core.options import Path as KeyPath
from fairtrial.optim.styles import styles


def prompts_of(source: Source, path: KeyPath, entry: ConditionEntry, folder: Path) -> tuple[str, ...]:
    """Return a condition's prompts: its own, from a file, or those of a style."""
    keys = [name for name in ("prompt", "prompt_file", "style") if getattr(entry, name) is not None]
    if len(keys) > 1:
        source.problem(path, f"{' and '.join(keys)} are mutually exclusive: set only one")
        return ()
    if entry.style is not None:
        prompts = styles()
        if entry.style not in prompts:
            key = (*path, "style") if path else ("suite", "styles")
            source.problem(key, f"unknown style `{entry.style}`{registry.nearest(entry.style, list(prompts))}")
        return prompts.get(entry.style, ())
    if entry.prompt_file is not None:
        text = _read(source, (*path, "prompt_file"), folder / entry.prompt_file)
        if text is None:
            return ()
        texts = [text]
    else:
        texts = [entry.prompt] if isinstance(entry.prompt, str) else entry.prompt or []
    key = (*path, "prompt_file" if entry.prompt_file else "prompt")
    for text in texts:
        if not INPUT.search(text):
            source.problem(key, "the prompt needs {{input}} (or {{problem}}) where the case goes")
        _check_placeholders(source, key, INPUT.sub("", text), ["input", "problem"])
    return tuple(texts)


def system_text(source: Source, path: KeyPath, entry: ConditionEntry, folder: Path) -> str:
    """Return a condition's system prompt: from the suite, or from a file."""
    if entry.system is not None and entry.system_file is not None:
        source.problem((*path, "system_file"), "set `system` or `system_file`, not both")
    if entry.system_file is None:
        _check_placeholders(source, (*path, "system"), entry.system or "", [])
        return entry.system or ""
    text = _read(source, (*path, "system_file"), folder / entry.system_file) or ""
    _check_placeholders(source, (*path, "system_file"), text, [])
    return text


def _read(source: Source, path: KeyPath, file: Path) -> str | None:
    try:
        return file.read_text("utf-8")
    except FileNotFoundError:
        source.problem(path, f"there is no file {file}")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not a UTF-8 text file"
        source.problem(path, f"{file} cannot be read: {reason}")
    return None


def _check_placeholders(source: Source, path: KeyPath, text: str, known: list[str]) -> None:
    """Report placeholders that nothing fills in, so that they are never sent as they are."""
    for name in dict.fromkeys(match[1] for match in PLACE.finditer(text)):
        hint = (
            registry.nearest(name, known)
            if known
            else ": a system prompt is the same for all cases; use `prompt` instead"
        )
        source.problem(path, f"unknown placeholder {{{{{name}}}}}{hint}")
