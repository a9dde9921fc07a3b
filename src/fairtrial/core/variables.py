"""`${VAR}` and `${VAR:-default}`: filled in for the run, and never written down.

Two forms of a text:
    live       with the values filled in; this is what is sent and scored
    template   with `${VAR}` in place of every value, and `$${` for a literal `${`; this is what is stored

A text that the author of a suite wrote has the template as written. Any other text (a dataset's row, a prompt file,
an answer) is escaped first, and only then are values in it replaced: nothing from outside can name a variable.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

_REFERENCE = re.compile(r"\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-((?:(?!\$\{)[^}])*))?\}")
_SHORTEST_HIDDEN = 4  # a shorter value ("1", "on") is no secret, and hiding it would tear texts apart


def escape(text: str) -> str:
    """The template whose live form is this text."""
    return text.replace("${", "$${") if "${" in text else text


def display(template: str) -> str:
    """A template as people read it: variables stay unfilled, escapes are undone."""
    return template.replace("$${", "${") if "$${" in template else template


def escape_all(value: Any) -> Any:
    """`escape` for every text inside a JSON-like value."""
    return _map_texts(value, escape)


def display_all(value: Any) -> Any:
    """`display` for every text inside a JSON-like value."""
    return _map_texts(value, display)


def has_bad_reference(template: str) -> bool:
    """Whether something in it looks like a variable but is none that can be read."""
    return "${" in template and "${" in _REFERENCE.sub("", template)


class Variables:
    """The environment of one suite: which variables it uses, and how to keep their values out of sight."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.environment = environment
        self._used: dict[str, str] = {}
        self._hidden: list[tuple[str, str]] = []
        self._written: dict[str, str] = {}  # live texts with values in them, and how their author wrote them
        self.missing: set[str] = set()

    def fill(self, template: str) -> str:
        """The live form of what an author wrote; a variable that is not set is remembered in `missing`."""
        live, values = self._fill(template)
        if values:
            self._written[live] = template
        return live

    def reveal(self, template: str) -> str:
        """The live form of a stored text."""
        return self._fill(template)[0]

    def _fill(self, template: str) -> tuple[str, int]:
        if "${" not in template:
            return template, 0
        values = 0

        def value(match: re.Match[str]) -> str:
            nonlocal values
            name, default = match.group(1), match.group(2)
            if name is None:
                return "${"
            # Like the shell's `:-`, a default also stands in for a variable that is set but empty.
            found = self.environment.get(name, "")
            if found:
                if self._used.get(name) != found:
                    self._used[name] = found
                    self._hidden = _longest_first(self._used)
                values += 1
                return found
            if default is None:
                self.missing.add(name)
                return match.group(0)
            return default

        return _REFERENCE.sub(value, template), values

    def reveal_all(self, value: Any) -> Any:
        """The live form of every text inside a JSON-like value."""
        return _map_texts(value, self.reveal)

    def template(self, live: str) -> str:
        """The template of a text of the suite: as its author wrote it, else as that of any other text."""
        return self._written.get(live) or self.conceal(live)

    def template_all(self, value: Any) -> Any:
        """The template form of every text inside a JSON-like value."""
        return _map_texts(value, self.template)

    def conceal(self, live: str) -> str:
        """The template of a text from outside: what looks like a variable stays text, values do not stay."""
        template = escape(live)
        for name, value in self._hidden:
            if value in template:
                template = template.replace(value, f"${{{name}}}")
        return template

    def hide(self, text: str) -> str:
        """A text for people (a message, a note) with `${VAR}` in place of every value."""
        for name, value in self._hidden:
            if value in text:
                text = text.replace(value, f"${{{name}}}")
        return text

    def hide_all(self, value: Any) -> Any:
        """`hide` for every text inside a JSON-like value."""
        return _map_texts(value, self.hide) if self._used else value


def _longest_first(used: Mapping[str, str]) -> list[tuple[str, str]]:
    """Names and values worth hiding; one value may begin like another, so the longest comes first."""
    found = [(name, value) for name, value in used.items() if len(value) >= _SHORTEST_HIDDEN]
    return sorted(found, key=lambda item: -len(item[1]))


def _map_texts(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {key: _map_texts(item, change) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_map_texts(item, change) for item in value]
    return value
