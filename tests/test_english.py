"""English: pages, messages, help texts and docstrings keep clear of habits that sound translated."""

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

REPO = Path(__file__).parent.parent
SRC = REPO / "src" / "fairtrial"
PAGES = [REPO / name for name in ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "SECURITY.md")]
PAGES += [*(REPO / "docs").glob("*.md"), *(REPO / "docs" / "cookbook").glob("*.md")]
PAGES += [*SRC.rglob("suites/kinds/*/*.yaml"), *SRC.rglob("suites/template.yaml")]  # what `fairtrial init` writes
NOTES = [*(REPO / "docs" / "design").glob("*.md")]


class Habit(NamedTuple):
    """Words that sound translated."""

    pattern: str
    better: str  # what to write instead
    wrong: str  # an example of it
    right: str  # words that are like it, and are fine


_BE = r"\b(?:is|are|was|were|be|been|being)"
UNMISTAKABLE = [
    Habit(
        rf"(?<![Tt]here ){_BE} no\b(?! (?:longer|more|less|fewer|better|worse|different|\w+er than)\b)",
        "is not a …, is not one of …",
        "`x` is no number",
        "There is no number, the second is no better, and `x` is no longer used",
    ),
    Habit(
        r"\bso (?:many|much)\b(?! (?:as|for|that)\b)", "this many", "at most so many digits", "so many that it hurts"
    ),
    Habit(r"\b[Bb]eside\b(?! the point)", "next to, in addition to", "a file beside the suite", "besides, it is new"),
    Habit(rf"{_BE} (?:\w+ly )?said\b", "says, reports, shows", "what differs is said once", "the page says so"),
    Habit(r"\bsays other things\b", "its answers differ", "the model says other things", "the model says no"),
    Habit(r"\bneeds one says so\b", "tells you which one to install", "What needs one says so", "it says so"),
    Habit(r"\b(?:some|any)body listens\b", "is reachable", "that somebody listens there", "that someone listens"),
    Habit(r"\ba row of 429s\b", "several 429s in a row", "a row of 429s closes it", "429s in a row"),
    Habit(r"\bdearest outcome\b", "could exceed the budget", "a call whose dearest outcome is", "a dear friend"),
    Habit(r"\bask(?:s|ed|ing)? nobody\b", "makes no calls", "it asks nobody", "it asks no model"),
    Habit(r"\bis called one\b", "is reported as …", "A damaged store is called one", "it is called once"),
    Habit(r"\bothers wrote does nothing\b", "is inert", "What others wrote does nothing", "it does nothing"),
    Habit(r"\bhow many would do\b", "how many you need", "says how many would do", "how many it takes"),
    Habit(
        r"\bfollows the dark mode\b|\bfits a phone\b", "supports …, works on …", "it fits a phone", "it fits a suite"
    ),
    Habit(r"\b[Ii]t is no draw\b", "does not mean a tie", "It is no draw: it says", "It is a draw"),
    Habit(r"\bthe quiet begins\b", "restart the timer", "the quiet begins again", "it begins again"),
]
MORE = [
    Habit(r"\b(?:no|some|any|every)body\b", "no model, no call, you, someone", "nobody knows it", "no one, someone"),
    Habit(
        r"\b(?:arm|model|target|judge|process|program|server|provider|worker)s? who\b",
        "that, which",
        "a judge who refuses",
        "a judge that refuses",
    ),
    Habit(
        r"(?<![.\w])(?:stand|stands|stood|standing|lain|lying)\b(?!-in| (?:in )?for\b| still\b| out\b)",
        "is, is in, comes",
        "where the answer stands",
        "functions that stand in for models",
    ),
    Habit(
        r"\b(?:lie|lies|lay)\b(?! (?:\w+ly )?(?:above|below|between|beyond|within|inside|outside)\b)",
        "is, is in",
        "answers that lie in files",
        "the interval lies above 0",
    ),
    Habit(
        rf"{_BE} (?:\w+ly )?told\b(?! apart\b)", "gets, learns", "a target is told more", "they cannot be told apart"
    ),
]
HABITS = UNMISTAKABLE + MORE
# In what users read, they are "you"; docstrings of internal parts may speak of people.
READER = Habit(r"\b[Pp]eople\b(?!\.py)", "you, users", "what people type", "labelled by people")
_ANY = re.compile("|".join(habit.pattern for habit in [*HABITS, READER]))
EXCEPTIONS = {
    r"\bnobody can(?: yet)? tell\b|\bcan nobody tell\b": "the mission's own sentence",
    r"\b(?:by|from|than|as) people\b|\bpeople(?:'s| do\b| and judges| prefer)|\bjudges? (?:and|or) people\b"
    r"|\bpeople (?:who do not know|(?:have |had |would have )?(?:label|mark|judge|vote|chose|given)\w*)"
    r"|\b[Ll]et people label\b|\"People\"": "people who label, vote and judge, as opposed to models",
    r"\bsomebody@example\.org\b": "an address",
}
PROMPTS = {
    "attacks.py": "what judges are attacked with",
    "code_judge.py": "what a judge is asked; other words would be another measurement",
    "draft.py": "what a model is asked",
    "golden_judge.py": "what a judge is asked; other words would be another measurement",
    "looking.py": "what a judge is given",
}
STORIES = ("domains", "problems about people")  # a folder, and why


class Text(NamedTuple):
    """One text that is read: where it begins, and its words with single blanks."""

    path: Path
    line: int
    words: str
    public: bool = True


def _plain(words: str) -> str:
    return " ".join(re.sub(r"`[^`\n]*`", "`…`", words).split())


def paragraphs(path: Path) -> Iterator[Text]:
    """Yield the paragraphs of a file without names in backticks."""
    text = path.read_text("utf-8")
    if path.name == "ARCHITECTURE.md":  # trees and drawings, not sentences
        text = re.sub(r"^```.*?^```", lambda block: "\n" * block[0].count("\n"), text, flags=re.MULTILINE | re.DOTALL)
    line = 1
    for part in re.split(r"(\n\s*\n|\n(?=[|-]))", text):
        yield Text(path, line + len(part) - len(part.lstrip("\n")), _plain(part.replace("\n#", "\n")))
        line += part.count("\n")


def strings(path: Path) -> Iterator[Text]:
    """Yield docstrings, messages and help texts of a module; what is filled in is `…`."""
    source = path.read_text("utf-8")
    if not _ANY.search(re.sub(r"\"\s*f?\"|\s+", " ", source).replace("  ", " ")):
        return  # parsing takes long
    stack: list[ast.AST] = [ast.parse(source)]
    public = not {"api", "cli", "commands"}.isdisjoint(path.parts)
    while stack:
        node = stack.pop()
        if isinstance(node, ast.JoinedStr):
            words = "".join(str(one.value) if isinstance(one, ast.Constant) else "…" for one in node.values)
            stack += [one for one in node.values if not isinstance(one, ast.Constant)]
        elif isinstance(node, ast.Constant):
            words = node.value if isinstance(node.value, str) else ""
        else:
            docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            if docstring and isinstance(node.value.value, str):
                yield Text(path, node.lineno, _plain(node.value.value), public)
            else:
                stack += ast.iter_child_nodes(node)
            continue
        if " " in words:
            yield Text(path, node.lineno, _plain(words))


def script_strings(path: Path) -> Iterator[Text]:
    """Yield the strings of a script."""
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        for words in re.findall(r"\"[^\"]*\"|'[^']*'|`[^`]*`", line):
            yield Text(path, number, words)


def found(texts: Iterable[Text], habits: list[Habit]) -> list[str]:
    """Return the places where a habit shows, each with its words and what to write instead."""
    places = []
    for text in texts:
        if not _ANY.search(text.words):
            continue
        words = re.sub("|".join(EXCEPTIONS), "…", text.words)
        for habit in [*habits, READER] if text.public else habits:
            for match in re.finditer(habit.pattern, words):
                around = words[max(0, match.start() - 50) : match.end() + 40]
                places.append(f"{text.path.relative_to(REPO)}:{text.line}: …{around}… → {habit.better}")
    return places


@cache
def modules() -> list[Text]:
    """Return the texts of all modules but prompts and stories."""
    files = [file for file in SRC.rglob("*.py") if file.name not in PROMPTS and STORIES[0] not in file.parts]
    return [text for file in files for text in strings(file)]


def listed(places: list[str]) -> str:
    return "\n" + "\n".join(places)


def test_pages():
    places = [place for page in PAGES for place in found(paragraphs(page), HABITS)]
    assert not places, listed(places)


def test_design_notes():
    places = [place for page in NOTES for place in found(paragraphs(page), UNMISTAKABLE) if READER.better not in place]
    assert not places, listed(places)


def test_messages_help_texts_and_docstrings():
    places = found(modules(), HABITS)
    assert not places, listed(places)


def test_templates_and_scripts():
    places = [place for file in SRC.rglob("*.j2") for place in found(paragraphs(file), HABITS)]
    places += [place for file in SRC.rglob("*.js") for place in found(script_strings(file), HABITS)]
    assert not places, listed(places)


@pytest.mark.parametrize("habit", [*HABITS, READER], ids=lambda habit: habit.wrong)
def test_a_habit_is_noticed_and_what_is_like_it_is_not(habit):
    assert found([Text(REPO / "x.md", 1, habit.wrong)], [habit])
    assert not found([Text(REPO / "x.md", 1, habit.right)], [habit])


def test_every_exception_is_needed():
    texts = [*modules(), *(text for page in PAGES for text in paragraphs(page))]
    texts += [text for file in SRC.rglob("*.js") for text in script_strings(file)]
    assert not [words for words in EXCEPTIONS if not any(re.search(words, text.words) for text in texts)]
    assert not PROMPTS.keys() - {file.name for file in SRC.rglob("*.py")}
