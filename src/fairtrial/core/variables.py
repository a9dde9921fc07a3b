"""`${VAR}` and `${VAR:-default}`: filled in for the run, and never written down.

Three forms of a text:
    template   as the author wrote it, `${VAR}` inside, `$${` for a literal `${`; this is what is stored
    live       with the values filled in; this is what is sent
    hidden     a live text from outside (an answer, an error) with values turned back into `${VAR}`
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_REFERENCE = re.compile(r"\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_SHORTEST_HIDDEN = 4  # a shorter value ("1", "on") is no secret, and hiding it would tear texts apart


def escape(text: str) -> str:
    """The template whose live form is this text."""
    return text.replace("${", "$${") if "${" in text else text


def display(template: str) -> str:
    """A template as people read it: variables stay unfilled, escapes are undone."""
    return template.replace("$${", "${") if "$${" in template else template


class Variables:
    """The environment of one suite: which variables it uses, and how to keep their values out of sight."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.environment = environment
        self._used: dict[str, str] = {}
        self._templates: dict[str, str] = {}
        self.missing: set[str] = set()

    def fill(self, template: str) -> str:
        """The live form; a variable that is not set is remembered in `missing` and left as it stands."""
        if "${" not in template:
            return template
        live = _REFERENCE.sub(self._value, template)
        if live != template:
            self._templates[live] = template
        return live

    def _value(self, match: re.Match[str]) -> str:
        name, default = match.group(1), match.group(2)
        if name is None:
            return "${"
        # Like the shell's `:-`, a default also stands in for a variable that is set but empty.
        value = self.environment.get(name, "")
        if value:
            self._used[name] = value
            return value
        if default is not None:
            return default
        self.missing.add(name)
        return match.group(0)

    def fill_all(self, value: Any) -> Any:
        """The live form of every text inside a JSON-like value."""
        return _map_texts(value, self.fill)

    def template(self, live: str) -> str:
        """The template of a live text: the one it came from, or the text itself with values hidden."""
        if not self._used and "${" not in live and not self._templates:
            return live
        return self._templates.get(live) or escape_unknown(self.hide(live), self._used)

    def template_all(self, value: Any) -> Any:
        """The template form of every text inside a JSON-like value."""
        return _map_texts(value, self.template)

    def hide(self, text: str) -> str:
        """The text with every value of a used variable turned back into `${VAR}`."""
        for name, value in self._used.items():
            if len(value) >= _SHORTEST_HIDDEN and value in text:
                text = text.replace(value, f"${{{name}}}")
        return text

    def hide_all(self, value: Any) -> Any:
        """`hide` for every text inside a JSON-like value."""
        return _map_texts(value, self.hide) if self._used else value

    def reveal(self, hidden: str) -> str:
        """The live form of a hidden text."""
        if "${" in hidden:
            for name, value in self._used.items():
                hidden = hidden.replace(f"${{{name}}}", value)
        return hidden


def escape_unknown(hidden: str, used: Mapping[str, str]) -> str:
    """Escape a hidden text into a template, leaving the references to used variables alive."""
    if "${" not in hidden:
        return hidden
    template = escape(hidden)
    for name in used:
        template = template.replace(f"$${{{name}}}", f"${{{name}}}")
    return template


def _map_texts(value: Any, change: Any) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {key: _map_texts(item, change) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_map_texts(item, change) for item in value]
    return value
