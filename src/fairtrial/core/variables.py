"""`${VAR}` and `${VAR:-default}`: filled in for the run, and never written down.

Two forms of a text:
    live       with the values filled in; this is what is sent and scored
    template   with `${VAR}` in place of every value, and `$${` for a literal `${`; this is what is stored

A text that the author of a suite wrote has the template as written. Any other text (a dataset's row, a prompt file,
an answer) is escaped, except for the values in it, which are replaced: nothing from outside can name a variable.

Hidden are the values of variables that a suite names, credentials of the environment, and whatever `.env` files hold.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from fairtrial.core.secrets import Hider, Secret, ambient, named

_REFERENCE = re.compile(r"\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-((?:(?!\$\{)[^}])*))?\}")


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
    """The environment of one suite: which variables it uses, and how to keep their values out of sight.

    Args:
        files: What `.env` files say; the environment goes before it.
    """

    def __init__(self, environment: Mapping[str, str], files: Mapping[str, str] | None = None) -> None:
        self._files = files or {}
        self.environment: Mapping[str, str] = {**self._files, **environment}
        self._used: dict[str, str] = {}
        self._secrets: list[Secret] = list(ambient(environment, self._files))
        self._hider = Hider(self._secrets)
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
                self._use(name, found)
                values += 1
                return found
            if default is None:
                self.missing.add(name)
                return match.group(0)
            return default

        return _REFERENCE.sub(value, template), values

    def _use(self, name: str, value: str) -> None:
        if self._used.get(name) != value:
            self._used[name] = value
            self.keep_hidden(*named(name, value, from_file=name in self._files))

    def keep_hidden(self, *secrets: Secret) -> None:
        """Hide these too, from now on."""
        self._secrets += secrets
        self._hider = Hider(self._secrets)

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
        return self._hider.hide(live, between=escape)

    def hide(self, text: str) -> str:
        """A text for people (a message, a note) with `${VAR}` in place of every value."""
        return self._hider.hide(text)

    def hide_all(self, value: Any) -> Any:
        """`hide` for every text inside a JSON-like value."""
        return value if self._hider.idle else _map_texts(value, self.hide)


def _map_texts(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {key: _map_texts(item, change) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_map_texts(item, change) for item in value]
    return value
