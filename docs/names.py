"""Names of models in documentation, examples, templates, pages and messages: of one table, and none that ends soon.

The table is `docs/names.yaml`. Files have the names themselves, so that they read well wherever they
are read; `python -m docs.generate` replaces those that the table calls old. Tests fail while a file has an old name, or
one that the table does not know, and once a model of the table ends within 60 days.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import date, timedelta
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import yaml

REPO = Path(__file__).parent.parent
TABLE = REPO / "docs" / "names.yaml"
NOTICE = timedelta(days=60)
PLACES = ("*.md", "*.yml", "docs", "examples", "src", "benchmarks", "ci", "deploy")
SUFFIXES = {
    ".md",
    ".py",
    ".yaml",
    ".yml",
    ".json",
    ".jsonl",
    ".csv",
    ".j2",
    ".html",
    ".js",
    ".toml",
    ".sh",
    ".svg",
    ".ipynb",
}
_FAMILIES = (
    r"gpt-\d|chatgpt-\d|o[1-9](?![\w.])|o[1-9]-(?:mini|pro|preview|deep)|claude-(?:[a-z]+-)?\d|gemini-\d|gemma-?\d|grok-\d"
    r"|(?:mi|mini|magi|dev|code|pix)stral-(?:[a-z]+-)?(?:\d|latest)|deepseek-(?:[a-z]*\d|chat|reasoner)|llama-?\d(?!\d*b)|qwen\d"
    r"|text-embedding-\d"
)
_HOSTS = "openai|openai-responses|anthropic|google|vertex|mistral|groq|xai|deepseek|perplexity"
NAME = re.compile(
    rf"(?<![\w-])(?:(?P<family>(?:{_FAMILIES})[\w.@-]*)|(?:{_HOSTS}):(?P<hosted>(?=[a-z][\w.-]*\d)[\w.@-]+))"
)


class NamedModel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A model that is named as an example."""

    target: str  # PROVIDER:MODEL
    before: tuple[str, ...] = ()  # names that stood in its place, and are replaced by it wherever they still stand

    @property
    def provider(self) -> str:
        return self.target.partition(":")[0]

    @property
    def model(self) -> str:
        return self.target.partition(":")[2]

    @property
    def short(self) -> str:
        """Its name without what routers and clouds put before it, as it is found in files."""
        plain = self.model.rpartition("/")[2]
        return plain.partition(".anthropic.")[2] or plain


class Exempt(NamedTuple):
    """Lines in which names are neither replaced nor complained about."""

    files: str  # a pattern of paths
    lines: str  # what is found in these lines
    why: str


EXEMPT = (
    Exempt("CHANGELOG.md", "", "what was true when it was written"),
    Exempt("docs/names.yaml", "", "the table itself"),
    Exempt("docs/names.py", "", "the shapes of names"),
    Exempt("src/fairtrial/providers/*", "", "what is known of models"),
    Exempt("src/fairtrial/tracks/interchange/importers/k_eval.py", "startswith", "whose a model is"),
    Exempt("src/fairtrial/tracks/interchange/importers/_promptfoo/*", "", "names, options and defaults of promptfoo"),
    Exempt("src/fairtrial/tracks/interchange/importers/promptfoo.py", "_DEFAULT_JUDGE", "a default of promptfoo"),
    Exempt("src/fairtrial/targets/opencode.py", "patches =", "a rule of opencode"),
    Exempt("benchmarks/agents.py", "claude-test-1", "a model of a test"),
    Exempt("benchmarks/dialects.py", "", "models whose exchanges were recorded"),
    Exempt("benchmarks/strict*.py", "", "what models refuse"),
    Exempt("benchmarks/refusals.jsonl", "", "what models refuse"),
)


class Place(NamedTuple):
    """Where a name stands."""

    path: str
    line: int
    name: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.name}"


@cache
def named_models() -> dict[str, NamedModel]:
    """The models that are named as examples, by what they are an example of."""
    return msgspec.convert(yaml.safe_load(TABLE.read_text("utf-8")), dict[str, NamedModel])


def today() -> date:
    """The day on which the names are looked at."""
    return date.today()


def files(repo: Path = REPO) -> list[Path]:
    """Every file in which names of models are looked for."""
    tops = [top for place in PLACES for top in repo.glob(place)]
    found = [path for top in tops for path in (top.rglob("*") if top.is_dir() else [top])]
    seen = [path for path in found if not any(part.startswith(".") for part in path.relative_to(repo).parts)]
    return sorted(path for path in seen if path.suffix in SUFFIXES and path.is_file())


def current(path: str, text: str, table: Iterable[NamedModel]) -> str:
    """Return the text of a file with today's names in the place of older ones."""
    names = {old: one.model for one in table for old in one.before}
    listed = "|".join(re.escape(old) for old in sorted(names, key=len, reverse=True))
    older = re.compile(rf"(?<![\w.-])(?:{listed})(?![\w-]|[.:@]\w)" if names else r"(?!)")
    lines = text.split("\n")
    for number in _lines_to_check(path, lines):
        for match in reversed(list(older.finditer(lines[number]))):
            lines[number] = _replaced(lines[number], match, names[match[0]])
    return "\n".join(lines)


def _replaced(line: str, match: re.Match[str], name: str) -> str:
    """Return a line with a new name; the next gap takes up the difference, so that what follows stays in its column."""
    rest, longer = line[match.end() :], len(name) - len(match[0])
    gap = re.search(r"(?<=\S) {2,}(?=\S)|^ {2,}(?=\S)", rest)
    if gap:
        rest = f"{rest[: gap.start()]}{' ' * max(2, len(gap[0]) - longer)}{rest[gap.end() :]}"
    return f"{line[: match.start()]}{name}{rest}"


def outdated(repo: Path = REPO) -> dict[Path, str]:
    """Return the files that have older names, each with the text that it should have."""
    texts = {path: path.read_text("utf-8") for path in files(repo)}
    table = named_models().values()
    renamed = {path: current(_inside(path, repo), text, table) for path, text in texts.items()}
    return {path: text for path, text in renamed.items() if text != texts[path]}


def rewrite() -> list[Path]:
    """Write today's names into every file that has older ones; return these files."""
    changed = outdated()
    for path, text in changed.items():
        path.write_text(text, "utf-8")
    return list(changed)


def places(repo: Path = REPO) -> list[Place]:
    """Return every name of a model in every file, except in exempt lines."""
    return [place for path in files(repo) for place in names_in(_inside(path, repo), path.read_text("utf-8"))]


def names_in(path: str, text: str) -> Iterator[Place]:
    """Return the names of models in the text of a file, except in exempt lines."""
    lines = text.split("\n")
    for number in _lines_to_check(path, lines):
        for match in NAME.finditer(lines[number]):
            yield Place(path, number + 1, (match["family"] or match["hosted"]).rstrip(".-@"))


def unknown(found: Iterable[Place], table: Iterable[NamedModel]) -> list[Place]:
    """Return where names stand that the table does not have."""
    known = {one.short for one in table}
    return [place for place in found if place.name not in known]


def ending(
    found: Iterable[Place], table: Iterable[NamedModel], sheet_of: Callable[[str, str], Any], day: date
) -> list[str]:
    """Return which models of the table end within 60 days of a day, or have ended, with every line that names them."""
    found, lines = list(found), []
    for one in table:
        known = sheet_of(one.provider, one.model)
        if known.ends is not None and known.ends - day <= NOTICE:
            after = f" ({known.successor} comes after it)" if known.successor else ""
            lines.append(f"{one.target} ends on {known.ends}{after}: put another one into {TABLE.relative_to(REPO)}")
            lines += [f"  {place.path}:{place.line}" for place in found if place.name == one.short]
    return lines


def _inside(path: Path, repo: Path) -> str:
    return path.relative_to(repo).as_posix()


def _lines_to_check(path: str, lines: list[str]) -> list[int]:
    patterns = [re.compile(one.lines) for one in EXEMPT if fnmatchcase(path, one.files)]
    return [number for number, line in enumerate(lines) if not any(pattern.search(line) for pattern in patterns)]
