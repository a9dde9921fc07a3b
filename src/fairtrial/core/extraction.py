"""Which part of an answer is scored: the one that `extract` names, without the model's thinking."""

from __future__ import annotations

import inspect
import re
import string
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import msgspec
from msgspec import Meta

from fairtrial.core.calling import call_in_thread
from fairtrial.core.time_limit import time_limit
from fairtrial.core.user_functions import find_function, load_function
from fairtrial.text.choices import find_choice, last_boxed
from fairtrial.text.json_path import follow, parse_path
from fairtrial.text.json_text import find_json
from fairtrial.text.numbers import find_numbers
from fairtrial.text.patterns import PatternError, compile_pattern, search
from fairtrial.text.printable import clipped

_WORDS = ("last_line", "number", "choice", "boxed", "code", "whole")
_KEYS = ("regex", "json", "after", "python")
_PATTERN_TIMEOUT = 1.0
_FUNCTION_TIMEOUT = 30.0
_MAX_QUOTED = 60
_TAG = re.compile(r"<(/?)think>", re.IGNORECASE)
_FENCE = re.compile(r"\s*(`{3,}|~{3,})(.*)")


class Extraction(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Which part of an answer is scored: `{after: "Answer:"}`, `{regex: '= (.+)$'}`, `number` (or `{number: true}`).

    Text inside `<think>…</think>` is not part of an answer unless `keep_thinking` is true. If nothing is found, the
    answer is unscored, or wrong with `missing: wrong`. What was found is in the notes and in `show --trials`. The most
    specific one counts: that of a case before that of the suite's scorer before that of the suite; a scorer on the case
    and a part of a scorer keep their own.
    """

    words: ClassVar[tuple[str, ...]] = _WORDS  # `extract: number` stands for `extract: {number: true}`
    regex: Annotated[
        str | None, Meta(description="The group of the first match of a pattern, as `pattern` or `/pattern/flags`.")
    ] = None
    group: Annotated[
        int | str | None, Meta(description="The number or name of the group; default: the first, or the match.")
    ] = None
    json: Annotated[
        str | None, Meta(description="A path such as `answer.items[0].name` in the last JSON of the answer.")
    ] = None
    after: Annotated[str | None, Meta(description="What comes after the last occurrence of this text.")] = None
    python: Annotated[
        str | None, Meta(description="A function of the text, `file.py:name`, that returns text or None.")
    ] = None
    last_line: Annotated[bool, Meta(description="The last line that is not blank.")] = False
    number: Annotated[bool, Meta(description="The last number, as it is written.")] = False
    choice: Annotated[bool, Meta(description="The letter of a multiple-choice answer, found as in `choice`.")] = False
    boxed: Annotated[bool, Meta(description="What is in the last `\\boxed{…}`.")] = False
    code: Annotated[bool, Meta(description="The last fenced code block.")] = False
    whole: Annotated[bool, Meta(description="The whole answer, to override a less specific setting.")] = False
    keep_thinking: Annotated[bool, Meta(description="Score what is inside `<think>…</think>` as well.")] = False
    missing: Annotated[
        Literal["unscored", "wrong"], Meta(description="What happens to an answer in which nothing is found.")
    ] = "unscored"

    @property
    def form(self) -> str | None:
        """The form that is set; None if the whole answer is scored."""
        return None if self.whole else next(iter(self._forms()), None)

    def as_spec(self) -> dict[str, Any]:
        """Return it as it is stored; never empty, because the whole answer is a choice too."""
        spec: dict[str, Any] = msgspec.to_builtins(self)
        return spec or {"whole": True}

    def _forms(self) -> list[str]:
        forms = [name for name in _KEYS if getattr(self, name) is not None]
        return forms + [name for name in _WORDS if getattr(self, name)]

    def find_problems(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """Yield what is wrong with it, apart from the function of `python`, and where."""
        forms = self._forms()
        if len(forms) > 1:
            yield (), f"`extract` takes one form, not {' and '.join(forms)}"
        if self.group is not None and self.regex is None:
            yield ("group",), "`group` needs a `regex`"
        if self.after is not None and not self.after.strip():
            yield ("after",), "must not be empty"
        yield from self._path_problems()
        yield from self._pattern_problems()

    def _path_problems(self) -> Iterator[tuple[tuple[str, ...], str]]:
        if self.json is None:
            return
        try:
            parse_path(self.json)
        except ValueError as error:
            yield ("json",), str(error)

    def _pattern_problems(self) -> Iterator[tuple[tuple[str, ...], str]]:
        if self.regex is None:
            return
        try:
            pattern = compile_pattern(self.regex)
        except PatternError as error:
            yield ("regex",), f"the pattern {self.regex!r} is not valid: {error}"
            return
        known = pattern.groupindex if isinstance(self.group, str) else range(pattern.groups + 1)
        if self.group is not None and self.group not in known:
            yield ("group",), f"the pattern {self.regex!r} has no group {self.group!r}"

    def check(self, folder: Path) -> Iterator[str]:
        """Yield why its function cannot be used."""
        if self.python is not None:
            try:
                find_function(self.python, folder)
            except ValueError as error:
                yield f"extract: {error}"


class Extracted(NamedTuple):
    """The part of an answer that is scored; without a text, the reason why there is none."""

    text: str | None
    reason: str = ""


def has_thinking(text: str) -> bool:
    """Return whether a text may contain a model's thinking; quick, because every answer is asked."""
    return "hink>" in text or "HINK>" in text


def without_thinking(text: str) -> str:
    """Return the text without `<think>…</think>`; read in one pass.

    Some servers leave out the first tag; an answer that was cut off while thinking lacks the last one.
    """
    kept: list[str] = []
    position, opening = 0, None
    for tag in _TAG.finditer(text):
        if not tag[1]:
            opening = tag.start() if opening is None else opening
        elif opening is not None:
            kept.append(text[position:opening])
            position, opening = tag.end(), None
        elif position == 0:
            position = tag.end()
    if opening is not None and not "".join((*kept, text[position:opening])).strip():
        return ""
    return "".join((*kept, text[position:])).strip() if position else text


async def extract(extraction: Extraction, text: str, folder: Path, letters: str = string.ascii_uppercase) -> Extracted:
    """Return the part of an answer to score. `letters` are those of the case's choices."""
    if not extraction.keep_thinking and has_thinking(text):
        text = without_thinking(text)
    form = extraction.form
    if form is None:
        return Extracted(text)
    if form == "regex":
        return await _by_pattern(extraction, text)
    if form == "python":
        return await _by_function(extraction, text, folder)
    if form == "choice":
        return _found(find_choice(text, letters), "no choice in the answer")
    return _FORMS[form](extraction, text)


def _found(text: str | None, reason: str) -> Extracted:
    return Extracted(None, reason) if text is None else Extracted(text.strip())


async def _by_pattern(extraction: Extraction, text: str) -> Extracted:
    pattern = compile_pattern(extraction.regex or "")
    try:
        match = await search(pattern, text, _PATTERN_TIMEOUT)
    except TimeoutError:
        return Extracted(None, f"the pattern timed out after {_PATTERN_TIMEOUT:g} s")
    group = extraction.group if extraction.group is not None else min(1, pattern.groups)
    return _found(match[group] if match else None, f"no match of {clipped(extraction.regex or '', _MAX_QUOTED)!r}")


async def _by_function(extraction: Extraction, text: str, folder: Path) -> Extracted:
    name = extraction.python or ""
    try:
        function = load_function(name, folder)
        async with time_limit(_FUNCTION_TIMEOUT):
            result = function(text) if inspect.iscoroutinefunction(function) else call_in_thread(function, text)
            value = await result
    except TimeoutError:
        return Extracted(None, f"{name} took longer than {_FUNCTION_TIMEOUT:g} s")
    except (Exception, SystemExit) as error:  # user code may raise anything
        return Extracted(None, f"{name} raised {type(error).__name__}: {error}")
    if value is None or isinstance(value, str):
        return _found(value, f"{name} found nothing")
    if isinstance(value, bool | int | float):
        return Extracted(msgspec.json.encode(value).decode())
    return Extracted(None, f"{name} returned {type(value).__name__} instead of text")


def _by_path(extraction: Extraction, text: str) -> Extracted:
    steps = parse_path(extraction.json or "")
    kind: Any = (dict | list) if not steps else list if isinstance(steps[0], int) else dict
    value: Any = None
    missing = True
    for item in find_json(text):  # a reference such as [1] is no object to look for a key in
        if isinstance(item.value, kind):
            value, missing = item.value, False
    if missing:
        return Extracted(None, "no JSON in the answer")
    try:
        value = follow(value, steps)
    except LookupError:
        return Extracted(None, f"the JSON in the answer has no `{extraction.json}`")
    if value is None:
        return Extracted(None, f"`{extraction.json}` is null")
    return Extracted(value if isinstance(value, str) else msgspec.json.encode(value).decode())


def _after(extraction: Extraction, text: str) -> Extracted:
    mark = extraction.after or ""
    at = text.rfind(mark)
    if at < 0:  # a model may write "ANSWER:" for "Answer:"
        at = text.lower().rfind(mark.lower()) if len(text.lower()) == len(text) else -1
    rest = text[at + len(mark) :].strip() if at >= 0 else ""
    if at < 0:
        return Extracted(None, f"no {clipped(mark, _MAX_QUOTED)!r} in the answer")
    return Extracted(rest) if rest else Extracted(None, f"nothing after {clipped(mark, _MAX_QUOTED)!r}")


def _last_line(_: Extraction, text: str) -> Extracted:
    lines = text.strip().splitlines()
    return _found(lines[-1] if lines else None, "the answer is empty")


def _number(_: Extraction, text: str) -> Extracted:
    numbers = find_numbers(text)
    return _found(numbers[-1].text if numbers else None, "no number in the answer")


def _boxed(_: Extraction, text: str) -> Extracted:
    return _found(last_boxed(text), "no \\boxed{…} in the answer")


def _code(_: Extraction, text: str) -> Extracted:
    """Return the last fenced block; as in Markdown, one that is not closed goes on to the end."""
    block: list[str] | None = None
    fence = ""
    for line in text.splitlines():
        match = _FENCE.fullmatch(line)
        if fence:
            if match and match[1].startswith(fence) and not match[2].strip():
                fence = ""
            else:
                assert block is not None
                block.append(line)
        elif match and "`" not in match[2]:
            fence, block = match[1], []
    return Extracted("\n".join(block)) if block is not None else Extracted(None, "no code block in the answer")


_FORMS = {"json": _by_path, "after": _after, "last_line": _last_line, "number": _number, "boxed": _boxed, "code": _code}
