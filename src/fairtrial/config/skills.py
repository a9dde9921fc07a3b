"""Skills in suites: folders with `SKILL.md`, packed so that a run needs nothing but its store."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from msgspec.structs import replace

from fairtrial.agents.workspace.archive import entries, write
from fairtrial.config.case_document import listed
from fairtrial.config.descriptions import skill_texts
from fairtrial.config.document import ConditionEntry, SuiteDocument
from fairtrial.config.source import SuiteSource
from fairtrial.core import registry
from fairtrial.core.experiment import Condition
from fairtrial.core.file import File, attachment_of
from fairtrial.core.options import Path as KeyPath
from fairtrial.core.skill import FOLDER, Skill
from fairtrial.core.trust import within
from fairtrial.core.workspace import ARCHIVE, WorkspaceSpec
from fairtrial.text.printable import estimated_tokens
from fairtrial.text.yaml_text import read_yaml

SKILL = "SKILL.md"
EVALS = "evals"  # next to it: cases and expected results, which an agent must not see
_MAX_BYTES = 50 * 2**20
_HEADER = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)\r?\n---[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class SkillText(NamedTuple):
    """What `SKILL.md` says."""

    name: str
    description: str
    body: str


def read_skill(folder: Path) -> SkillText:
    """Read the `SKILL.md` of a folder; raise ValueError with what is wrong with it."""
    file = folder / SKILL
    if not file.is_file():
        raise ValueError(f"there is no {file}: a skill is a folder with a {SKILL}")
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{file} cannot be read: {error}") from None
    match = _HEADER.match(text)
    header = _header(file, match[1]) if match else {}
    name = str(header.get("name") or folder.resolve().name)
    description = " ".join(str(header.get("description") or "").split())
    if not _NAME.fullmatch(name):
        raise ValueError(f"{file}: the name of a skill has letters, digits and hyphens, not {name!r}")
    if not description:
        raise ValueError(f"{file} has no `description` in its header: agents choose skills by it")
    return SkillText(name, description, text[match.end() :].strip() if match else text.strip())


def _header(file: Path, text: str) -> dict[str, Any]:
    try:
        header = read_yaml(text)
    except yaml.YAMLError:
        raise ValueError(f"the header of {file} is not valid YAML") from None
    if not isinstance(header, dict):
        raise ValueError(f"the header of {file} must have `name` and `description`")
    return header


def resolve_skills(source: SuiteSource, path: KeyPath, entry: ConditionEntry) -> tuple[Skill, ...]:
    """Return the skills of a condition, as agents get them that take skills."""
    skills: dict[str, Skill] = {}
    texts = skill_texts(source, path, entry)
    for index, name in enumerate(listed(entry.skills)):
        try:
            skill = _skill(within(source.folder, name), texts)
        except ValueError as error:
            source.problem((*path, "skills", index), str(error))
            continue
        if skill.name in skills:
            source.problem((*path, "skills", index), f"two skills of the condition have the name `{skill.name}`")
        skills[skill.name] = skill
    for name in texts if len(skills) == len(listed(entry.skills)) else ():
        if name not in skills:
            hint = registry.nearest(name, list(skills)) if skills else ": the condition has no `skills`"
            source.problem((*path, "descriptions", name), f"no skill has the name `{name}`{hint}")
    return tuple(skills.values())


def _skill(folder: Path, texts: Mapping[str, str]) -> Skill:
    text = read_skill(folder)
    description = texts.get(text.name, text.description)
    return Skill(
        name=text.name,
        description=description,
        files=attachment_of(_packed(folder, texts)),
        tokens=estimated_tokens(f"{text.name}: {description}"),
        rest=attachment_of(_packed(folder, {text.name: ""})).sha256,
        more_files=any(name != SKILL and path.is_file() for name, path in _entries(folder)),
    )


def given_as_text(condition: Condition, entry: ConditionEntry, folder: Path, *, with_files: bool) -> Condition:
    """Return a condition whose skills are part of the system prompt; `with_files`: their files are in the workspace."""
    texts, skills = [condition.system] if condition.system else [], []
    places = dict(zip((skill.name for skill in condition.skills), listed(entry.skills), strict=True))
    for skill in condition.skills:
        text = _as_text(skill, folder / places[skill.name], with_files=with_files)
        skills.append(replace(skill, as_text=True, tokens=estimated_tokens(text)))
        texts.append(_literal(text) if condition.templates else text)
    return replace(condition, system="\n\n".join(texts), skills=tuple(skills))


def _literal(text: str) -> str:
    """Return a text as part of a template: it is none itself, although the system prompt around it is one."""
    return (
        f"{{{{ {json.dumps(text, ensure_ascii=False)} }}}}" if "endraw" in text else f"{{% raw %}}{text}{{% endraw %}}"
    )


def _as_text(skill: Skill, folder: Path, *, with_files: bool) -> str:
    text = f"# Skill: {skill.name}\n\n{skill.description}\n\n{read_skill(folder).body}".rstrip()
    if with_files and skill.more_files:
        text += f"\n\nThe files of this skill are in {FOLDER}/{skill.name} in your working folder."
    return text


def with_skill_files(workspace: WorkspaceSpec | None, condition: Condition) -> WorkspaceSpec:
    """Return a workspace that starts with the files of a condition's skills too."""
    return replace(workspace or WorkspaceSpec(), skills=tuple(skill.files for skill in condition.skills))


def skill_files(source: SuiteSource, document: SuiteDocument) -> Iterator[File]:
    """Yield the archives of the skills of a suite, each with its content."""
    found = {}
    for name, entry in document.conditions.items():
        texts = skill_texts(source, ("conditions", name), entry)
        for place in _skill_folders([entry], source.folder):
            packed = _packed(place, texts)
            found[attachment_of(packed).sha256] = packed
    return iter(found.values())


def skill_paths(document: SuiteDocument, folder: Path) -> set[Path]:
    """Return the files on disk that the skills of a suite consist of."""
    places = _skill_folders(document.conditions.values(), folder)
    return {place / name for place in places for name, _ in _entries(place)}


def _skill_folders(conditions: Iterable[ConditionEntry], folder: Path) -> list[Path]:
    names = [name for entry in conditions for name in listed(entry.skills)]
    return [folder / name for name in dict.fromkeys(names) if (folder / name / SKILL).is_file()]


def _entries(folder: Path) -> Iterator[tuple[str, Path]]:
    for name, _ in entries(folder):
        if name != EVALS and not name.startswith(f"{EVALS}/"):
            yield name, folder / name


def _packed(folder: Path, texts: Mapping[str, str]) -> File:
    """Return the archive of a skill's folder under its name, without its evals, with another description if it has one.

    Only the description in the header of `SKILL.md` is another one then: all else of the folder is as it was.
    """
    name, found = read_skill(folder).name, list(_entries(folder))
    told = {f"{name}/{SKILL}": _described(folder / SKILL, texts[name])} if name in texts else {}
    try:
        size = sum(path.stat().st_size for _, path in found if path.is_file())
        if size > _MAX_BYTES:
            raise ValueError(f"the skill {folder} has more than {_MAX_BYTES // 2**20} MB of files: leave some out")
        kept = [(f"{name}/{inner}", path) for inner, path in found]
        body = write([(inner, path) for inner, path in kept if inner not in told], texts=told)
    except OSError as error:
        raise ValueError(f"the skill {folder} cannot be read: {error}") from None
    return File(name=f"skill {name}", media=ARCHIVE, body=body)


def _described(file: Path, description: str) -> bytes:
    """Return a `SKILL.md` with another description in its header."""
    text = file.read_text("utf-8")
    match = _HEADER.match(text)
    header = {**(_header(file, match[1]) if match else {}), "description": description}
    lines = yaml.safe_dump(header, allow_unicode=True, sort_keys=False, width=2**20)
    return f"---\n{lines}---\n{text[match.end() :] if match else text}".encode()
