"""The chosen letter in an answer to a multiple-choice question.

Looked for in this order, the last one of a kind counting: `\\boxed{B}`; after "answer" (`Answer: (B)`, "the correct
option is B"); at the start of a line (`B`, `(B)`, `**B.**`, `B) Paris`), the last line before the first; after
"option", "I choose" and the like; the only letter in brackets. An answer that names two letters at once ("B or C") has
chosen none.
"""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import regex

from fairtrial.text.folding import find_word, fold, same_text

# Possessive quantifiers (`*+`) throughout: a search takes time linear in the length of an answer, whatever is in it.
_ANSWER = (
    r"(?:answer|(?:correct|right|best|final)\s++(?:option|choice|selection)"
    r"|antwort|lösung|réponse|respuesta|risposta|resposta)"
)
_CHOOSE = r"(?:choice|option|selection|solution|pick|choose|select|go\s++with)"
_LINK = (
    r"(?:\s++(?:to\s++(?:the|this)\s++question|here))?+"
    r"(?:\s*+(?:[:=：\-–—]|\b(?:is|are|(?:would|should|must)\s++be|be|ist|est|es|è|é|lautet)\b)|\*\*|__)*+"
)
_NOUN = r"(?:\s*+\b(?:option|choice|answer|letter|the)\b)*+"
_OPEN = r"[\s*_`\"'“‘(\[{$]*+(?:\\(?:text|mathrm|mathbf|textbf|boxed)\{)*+[(\[*]*+"
_CLOSE = r"[)\]}*_`\"'”’]"
_OTHER = r"\s*+[)\]*}]*+\s*+(?:,|/|&|\bor\b|\band\b|\boder\b|\bou\b|\bund\b)\s*+(?:option\s++)?+[(\[*]*+"
_BOX = re.compile(r"\\(?:boxed|fbox)(?![A-Za-z])\s*(?P<open>\{)?|\\.|[{}]", re.DOTALL)
_BARE = re.compile(r"[^\s$\\]+")


def letters_for(count: int) -> str:
    """Return the letters of this many choices."""
    return string.ascii_uppercase[:count]


def find_choice(text: str, letters: str = string.ascii_uppercase) -> str | None:
    """Return the letter that an answer chooses, in upper case, or None."""
    boxed = last_boxed(text)
    if boxed is not None and (match := _alone(letters).fullmatch(boxed.strip())):
        return str(match["letter"]).upper()
    for find in (_after_answer, _on_a_line, _after_choose, _in_brackets):
        found = find(text, letters)
        if found is not None:
            return found or None
    return None


def index_of(text: str, choices: Sequence[str], letters: str) -> int | None:
    """Return the number of the choice that a text names, by its letter or its words; None if it names none."""
    match = _alone(letters).fullmatch(text.strip())
    if match:
        return letters.index(match["letter"].upper())
    same = [number for number, choice in enumerate(choices) if same_text(text, choice)]
    return same[0] if len(same) == 1 else None


def find_text(text: str, choices: Sequence[str]) -> int | None:
    """Return the number of the only choice whose words an answer contains, or None.

    A choice inside another one that the answer contains too ("York" in "New York") does not count.
    """
    folded = fold(text)
    words = [fold(choice) for choice in choices]
    present = [number for number, word in enumerate(words) if word and find_word(word, folded)]
    longest = [n for n in present if not any(n != m and words[n] in words[m] for m in present)]
    return longest[0] if len(longest) == 1 else None


def _after_answer(text: str, letters: str) -> str | None:
    """Return the letter after the last "answer" or the like; empty if two letters are named there."""
    return _last(_named(_ANSWER, letters), text)


def _after_choose(text: str, letters: str) -> str | None:
    """Return the letter after the last "option", "I choose" or the like."""
    return _last(_named(_CHOOSE, letters), text)


def _on_a_line(text: str, letters: str) -> str | None:
    """Return the letter that the last or the first line starts with."""
    lines = [line for line in text.strip().splitlines() if line.strip()]
    for line in (lines[-1:] + lines[:1]) if lines else ():
        match = _starting(letters).match(line)
        if match:
            letter = str(match["letter"]).upper()
            return "" if match["other"] or {*_bracketed(letters).findall(line)} - {letter} else letter
    return None


def _in_brackets(text: str, letters: str) -> str | None:
    """Return the letter in brackets, if all letters in brackets are the same one."""
    found = set(_bracketed(letters).findall(text))
    return found.pop() if len(found) == 1 else None


def _last(pattern: Any, text: str) -> str | None:
    match = None
    for match in pattern.finditer(text):  # noqa: B007  # only the last one counts
        pass
    if match is None:
        return None
    return "" if match["other"] else str(match["letter"]).upper()


@lru_cache(maxsize=64)
def _alone(letters: str) -> Any:
    either = letters + letters.lower()
    return regex.compile(rf"{_OPEN}(?P<letter>[{either}])[.:]?{_CLOSE}*+[.:]?")


@lru_cache(maxsize=64)
def _named(lead: str, letters: str) -> Any:
    # A small letter counts only where it cannot be a word: "the answer is a", but not "the answer is a city".
    letter = rf"(?P<letter>(?-i:[{letters}])(?![\w'’])|(?-i:[{letters.lower()}])(?=\s*[.,;:)\]}}*`\"'”’]|\s*$))"
    return regex.compile(
        rf"\b{lead}s?{_LINK}{_NOUN}{_OPEN}{letter}(?P<other>{_OTHER}(?-i:[{letters}])(?!\w))?",
        regex.IGNORECASE | regex.MULTILINE,
    )


@lru_cache(maxsize=64)
def _starting(letters: str) -> Any:
    either = letters + letters.lower()
    end = rf"(?:\s*$|[.):\]](?=\s|{_CLOSE}|$)|{_CLOSE}++(?=\s|[.:,]|$))"
    return regex.compile(
        rf"[\s>#*_`(\[\"'“‘$-]*+(?P<letter>[{either}])(?:(?P<other>{_OTHER}[{letters}](?!\w))|{end})", regex.MULTILINE
    )


@lru_cache(maxsize=64)
def _bracketed(letters: str) -> Any:
    return regex.compile(rf"(?<!\w)[(\[]([{letters}])[)\]]")


def last_boxed(text: str) -> str | None:
    """Return what is in the last complete `\\boxed{…}` or `\\fbox{…}` of a text, or None; read in one pass."""
    best: tuple[int, int] | None = None
    stack: list[int | None] = []  # where the open braces' boxes start; None for a brace of something else
    for token in _BOX.finditer(text):
        if token["open"]:
            stack.append(token.end())
        elif token[0] == "{":
            stack.append(None)
        elif token[0] == "}":
            start = stack.pop() if stack else None
            if start is not None and (best is None or start > best[0]):
                best = (start, token.start())
        elif token[0][-1].isspace() and len(token[0]) > 2 and (bare := _BARE.match(text, token.end())):
            best = bare.span()  # \boxed 5
    return text[slice(*best)].strip() if best else None
