"""Prompt styles: several wordings of the same tone around the same problem, built in or from files.

A YAML or JSON file has styles by name, each with a wording or a list of wordings. A text file (`pirate.md`) is one
style, whose wordings are separated by lines of `---`. `styles.yaml:pirate` takes one style of a file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import yaml

from fairtrial.config.document import ConditionEntry, SuiteEntry
from fairtrial.config.source import SuiteSource
from fairtrial.core.errors import FairtrialError
from fairtrial.core.experiment import INPUT
from fairtrial.core.registry import nearest
from fairtrial.core.trust import within
from fairtrial.text.yaml_text import read_yaml, reason_of

_TABLES = (".yaml", ".yml", ".json")
_TEXTS = (".md", ".txt")
_NAME = re.compile(r"[^/\\:\x00-\x1f]{1,80}")
Styles = dict[str, tuple[str, ...]]  # wordings by name
_FORMAT_WORDS = re.compile(
    r"json|yaml|xml|markdown|objective_value|\bkeys\b|\bfield|\bformat|```|\bdecimal|\bdigits?\b|\bround(ed)?\b|\blist\b"
    r"|\barray\b|nothing else|\bonly with\b|no explanation|\brequirements?\b|\binstructions?\b",
    re.IGNORECASE,
)


@lru_cache
def styles() -> dict[str, tuple[str, ...]]:
    """Return the built-in styles, each with its wordings."""
    document = yaml.safe_load((Path(__file__).parent / "styles.yaml").read_text("utf-8"))
    return {name: tuple(wordings) for name, wordings in document.items()}


# Sentences of 2 to 9 words without a tone: what a short wording is padded with.
_PADDING = (
    "",
    "",
    "It follows.",
    "Here it is.",
    "It is stated below.",
    "The problem is stated below.",
    "The problem in question is below.",
    "The problem in question is stated below.",
    "The problem to be solved is stated below.",
    "The problem to be solved is stated in full.",
)
_LONGEST = len(_PADDING) - 1


def padded(template: str, words: int) -> str:
    """Return a wording with this many more words in neutral sentences before the problem; one alone cannot be added."""
    sentences = []
    while words > 1:
        take = words if words <= _LONGEST else _LONGEST if words - _LONGEST != 1 else _LONGEST - 1
        sentences.append(_PADDING[take])
        words -= take
    if not sentences:
        return template
    match = INPUT.search(template)
    assert match is not None
    before = template[: match.start()].rstrip()
    return f"{before}{' ' if before else ''}{' '.join(sentences)}\n\n{template[match.start() :]}"


def added_words(template: str) -> int:
    """Return how many words a wording adds to the problem."""
    return len(INPUT.sub(" ", template).split())


def matched(wordings: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Return the wordings of all styles made equally long, to within a word: as long as the longest."""
    longest = max((added_words(text) for texts in wordings.values() for text in texts), default=0)
    return {
        name: tuple(padded(text, longest - added_words(text)) for text in texts) for name, texts in wordings.items()
    }


def confounded(template: str) -> str | None:
    """Return a word of a style about the format, which would change more than the tone; None if there is none."""
    match = _FORMAT_WORDS.search(INPUT.sub("", template))
    return None if match is None else match.group()


# -- files ---------------------------------------------------------------------------------------


def find_styles(names: Sequence[str], folder: Path) -> Styles:
    """Return styles with their wordings, built in or from files; raise an error that says what is wrong."""
    found: Styles = {}
    for name in names:
        for style, wordings in _styles_of(name, folder).items():
            if found.setdefault(style, wordings) != wordings:
                raise FairtrialError(f"two styles are called `{style}`: rename the one in {name}")
    return found


def style_file(name: str) -> bool:
    """Return whether a style is meant as a file."""
    return Path(name.partition(":")[0]).suffix.lower() in (*_TABLES, *_TEXTS)


def _styles_of(name: str, folder: Path) -> Styles:
    if not style_file(name):
        built_in = styles()
        if name not in built_in:
            raise FairtrialError(f"unknown style `{name}`{nearest(name, list(built_in))}")
        return {name: built_in[name]}
    file, _, chosen = name.partition(":")
    path = within(folder, file)
    read = _read_table(path) if path.suffix.lower() in _TABLES else {path.stem: _read_wordings(path)}
    if chosen and chosen not in read:
        raise FairtrialError(f"{path} has no style `{chosen}`{nearest(chosen, list(read))}")
    return {chosen: read[chosen]} if chosen else read


def _read_table(path: Path) -> Styles:
    try:
        document = read_yaml(_text(path))
    except yaml.YAMLError as error:
        raise FairtrialError(f"{path} is neither valid YAML nor valid JSON: {reason_of(error)}") from None
    if not isinstance(document, Mapping) or not document:
        raise FairtrialError(f"{path} has no styles: it needs names, each with a list of wordings")
    return {str(name): _checked(path, str(name), wordings) for name, wordings in document.items()}


def _read_wordings(path: Path) -> tuple[str, ...]:
    parts = re.split(r"^---[ \t]*$", _text(path), flags=re.MULTILINE)
    return _checked(path, path.stem, [part.strip("\r\n") for part in parts])


def _checked(path: Path, name: str, wordings: object) -> tuple[str, ...]:
    texts = [wordings] if isinstance(wordings, str) else wordings
    if not _NAME.fullmatch(name):
        raise FairtrialError(f"{path}: `{name}` cannot be the name of a style: leave out slashes and colons")
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
        raise FairtrialError(f"{path}: the style `{name}` needs a text or a list of texts")
    for number, text in enumerate(texts, 1):
        if not INPUT.search(text):
            raise FairtrialError(f"{path}: wording {number} of `{name}` has no {{{{problem}}}}: say where it goes")
    return tuple(texts)


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FairtrialError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def style_entries(source: SuiteSource, suite: SuiteEntry, names: list[str]) -> dict[str, ConditionEntry]:
    """Return a condition for every style of a suite; a file may have several."""
    try:
        found = find_styles(names, source.folder)
    except FairtrialError as error:
        source.problem(("suite", "styles"), str(error))
        return {}
    note_files(source, names)
    wordings = matched(found) if suite.match_length else found
    own = suite.match_length or any(map(style_file, names))
    return {
        name: ConditionEntry(prompt=list(texts)) if own else ConditionEntry(style=name)
        for name, texts in wordings.items()
    }


def note_files(source: SuiteSource, names: Sequence[str]) -> None:
    """Note the files of styles as files of the suite."""
    source.files += [source.folder / name.partition(":")[0] for name in names if style_file(name)]
