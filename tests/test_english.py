"""English: pages, messages, help texts and docstrings keep clear of habits that sound translated."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

REPO = Path(__file__).parent.parent
SRC = REPO / "src" / "fairtrial"
PAGES = [REPO / name for name in ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "SECURITY.md")]
PAGES += [*(REPO / "docs").glob("*.md"), *(REPO / "docs" / "cookbook").glob("*.md")]
NOTES = [*(REPO / "docs" / "design").glob("*.md")]
STARTERS = [*(SRC / "suites" / "kinds").rglob("*.yaml"), SRC / "suites" / "template.yaml"]
_BE = "(?:is|are|was|were|be|been|being)"
_COMPARED = r"(?:longer|more|less|fewer|better|worse|\w+er than|different)\b"

UNMISTAKABLE = {
    "is not a …, is not one of …": rf"(?<!\bthere )(?<!\bThere )\b{_BE} no\b(?! {_COMPARED})",
    "this many, as many as …": r"\bso (?:many|much)\b(?! (?:as|for|that)\b)",
    "next to": r"\bbeside\b(?! the point)",
    "says, reports, is shown": rf"\b{_BE} (?:\w+ly )?said\b",
    # Sentences that were once here:
    "on other processors its answers differ": r"\bsays other things\b",
    "tells you which one to install": r"\bWhat needs one says so\b",
    "is reachable": r"\bsomebody listens\b",
    "after several 429s in a row": r"\ba row of 429s\b",
    "could exceed the budget": r"\bdearest outcome\b",
    "makes no requests": r"\bask(?:s|ed|ing)? (?:nobody|no one)\b",
    "is reported as": r"\bis called one\b",
    "untrusted text is inert": r"\bWhat others wrote does nothing\b",
    "how many you need": r"\bhow many would do\b",
    "supports dark mode, works on a phone": r"\bfollows the dark mode\b|\bfits a phone\b",
    "does not mean a tie": r"\bIt is no draw\b",
    "restart the idle timer": r"\bthe quiet begins\b",
}
HABITS = UNMISTAKABLE | {
    "no calls, nothing, someone": r"\b(?:nobody|somebody|anybody|everybody)\b",
    "that, which (a program is no who)": r"\b(?:arm|model|target|judge|process|program|server|provider|worker)s? who\b",
    "is, is in, comes": r"\b(?:stand|stands|stood|standing|lain|lying)\b(?!-in| (?:in )?for\b| still\b| out\b)",
    "is, is in, is next to": r"\b(?:lie|lies|lay)\b(?! (?:\w+ly )?(?:above|below|between|beyond|within|inside|outside)\b)",
    "is given, gets, learns": rf"\b{_BE} (?:\w+ly )?told\b(?! apart\b)",
    "you, users, readers": r"\bpeople\b",
}


class Exception_(NamedTuple):
    """Words in which a habit is right."""

    words: str
    reason: str


EXCEPTIONS = [
    Exception_(r"\bnobody can(?: yet)? tell\b|\bcan nobody tell\b", "the mission's own sentence"),
]


class Text(NamedTuple):
    """One text that is read: where it begins, and its words with single blanks."""

    path: Path
    line: int
    words: str

    def __str__(self) -> str:
        return f"{self.path.relative_to(REPO)}:{self.line}"


def paragraphs(path: Path) -> Iterator[Text]:
    """Yield the paragraphs of a file without names in backticks."""
    line = 1
    for part in re.split(r"(\n\s*\n|\n(?=[|#-]))", path.read_text("utf-8")):
        words = re.sub(r"`[^`\n]*`", "`…`", part)
        yield Text(path, line + len(part) - len(part.lstrip("\n")), " ".join(words.replace("\n#", "\n").split()))
        line += part.count("\n")


def strings(path: Path) -> Iterator[Text]:
    """Yield docstrings, messages and help texts of a module; what is filled in is `…`."""
    tree = ast.parse(path.read_text("utf-8"))
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            words = "".join(str(one.value) if isinstance(one, ast.Constant) else "…" for one in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            words = node.value
        else:
            continue
        if " " in words:
            yield Text(path, node.lineno, " ".join(re.sub(r"`[^`\n]*`", "`…`", words).split()))


def script_strings(path: Path) -> Iterator[Text]:
    """Yield the strings of a script."""
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        for words in re.findall(r"\"[^\"]*\"|'[^']*'|`[^`]*`", line):
            yield Text(path, number, words)


def found(texts: Iterator[Text], habits: dict[str, str]) -> list[str]:
    """Return the places where a habit shows, each with its words and what to write instead."""
    allowed = re.compile("|".join(one.words for one in EXCEPTIONS))
    places = []
    for text in texts:
        words = allowed.sub("", text.words)
        for better, habit in habits.items():
            for match in re.finditer(habit, words):
                around = words[max(0, match.start() - 50) : match.end() + 40]
                places.append(f"{text}: …{around}… → {better}")
    return places


def listed(places: list[str]) -> str:
    return "\n" + "\n".join(places)


def test_pages():
    places = [place for page in PAGES + STARTERS for place in found(paragraphs(page), HABITS)]
    assert not places, listed(places)


def test_design_notes():
    places = [place for page in NOTES for place in found(paragraphs(page), UNMISTAKABLE)]
    assert not places, listed(places)


def test_messages_help_texts_and_docstrings():
    places = [place for file in SRC.rglob("*.py") for place in found(strings(file), HABITS)]
    assert not places, listed(places)


def test_templates_and_scripts():
    places = [place for file in SRC.rglob("*.j2") for place in found(paragraphs(file), HABITS)]
    places += [place for file in SRC.rglob("*.js") for place in found(script_strings(file), HABITS)]
    assert not places, listed(places)


@pytest.mark.parametrize("better", HABITS)
def test_a_habit_is_noticed_where_it_is_and_nowhere_else(better):
    pytest.fail("examples")
