"""What a condition says: its wordings around the case, and its system prompt."""

from __future__ import annotations

from pathlib import Path

from fairtrial.config.document import ConditionEntry
from fairtrial.config.source import Source
from fairtrial.core import registry
from fairtrial.core.experiment import INPUT, PLACE
from fairtrial.core.options import Path as KeyPath
from fairtrial.optim.styles import styles


def prompts_of(source: Source, path: KeyPath, entry: ConditionEntry, folder: Path) -> tuple[str, ...]:
    """A condition's wordings: its own, from a file, or those of a style."""
    given = [name for name in ("prompt", "prompt_file", "style") if getattr(entry, name) is not None]
    if len(given) > 1:
        source.problem(path, f"{' and '.join(given)} say the same thing twice: choose one")
        return ()
    if entry.style is not None:
        known = styles()
        if entry.style not in known:
            place = (*path, "style") if path else ("suite", "styles")
            source.problem(place, f"there is no style `{entry.style}`{registry.nearest(entry.style, list(known))}")
        return known.get(entry.style, ())
    if entry.prompt_file is not None:
        text = _read(source, (*path, "prompt_file"), folder / entry.prompt_file)
        if text is None:
            return ()
        wordings = [text]
    else:
        wordings = [entry.prompt] if isinstance(entry.prompt, str) else entry.prompt or []
    where = (*path, "prompt_file" if entry.prompt_file else "prompt")
    for wording in wordings:
        if not INPUT.search(wording):
            source.problem(where, "a wording needs {{input}} (or {{problem}}), where the case stands")
        _check_places(source, where, INPUT.sub("", wording), ["input", "problem"])
    return tuple(wordings)


def system_text(source: Source, path: KeyPath, entry: ConditionEntry, folder: Path) -> str:
    """What a target is told before anything else: written in the suite, or from a file."""
    if entry.system is not None and entry.system_file is not None:
        source.problem((*path, "system_file"), "give `system` or `system_file`, not both")
    if entry.system_file is None:
        _check_places(source, (*path, "system"), entry.system or "", [])
        return entry.system or ""
    text = _read(source, (*path, "system_file"), folder / entry.system_file) or ""
    _check_places(source, (*path, "system_file"), text, [])
    return text


def _read(source: Source, path: KeyPath, file: Path) -> str | None:
    try:
        return file.read_text("utf-8")
    except FileNotFoundError:
        source.problem(path, f"there is no file {file}")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not a text file in UTF-8"
        source.problem(path, f"{file} cannot be read: {reason}")
    return None


def _check_places(source: Source, path: KeyPath, text: str, known: list[str]) -> None:
    """Nothing that looks like a place to be filled in is sent as it stands."""
    for name in dict.fromkeys(match[1] for match in PLACE.finditer(text)):
        hint = registry.nearest(name, known) if known else ": a system prompt is the same for every case; use `prompt`"
        source.problem(path, f"nothing fills in {{{{{name}}}}}{hint}")
