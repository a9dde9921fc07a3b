"""`${VAR}` and `${VAR:-default}`: filled in for the run, and never stored.

Two forms of a text:
    live       with the values filled in; this form is sent and scored
    template   with `${VAR}` in place of every value, and `$${` for a literal `${`; this form is stored

The template of a text in the suite file is the text as written. Any other text (a dataset row, a prompt file, an
answer) is escaped, and values in it are replaced by their variables: text from outside can never name a variable.

Hidden are the values of variables named in a suite, credentials in the environment, and everything in `.env` files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from fairtrial.core.secrets import Hider, Secret, ambient_secrets, is_credential, named_secrets

_REFERENCE = re.compile(r"\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-((?:(?!\$\{)[^}])*))?\}")

PLACEHOLDER = "unset"  # the value of a variable that is not set, where a suite is checked without keys


def escape(text: str) -> str:
    """Return the template whose live form is this text."""
    return text.replace("${", "$${") if "${" in text else text


def display(template: str) -> str:
    """Return a template for display: variables are not filled in, escapes are undone."""
    return template.replace("$${", "${") if "$${" in template else template


def escape_all(value: Any) -> Any:
    """Apply `escape` to every text inside a JSON-like value."""
    return _map_texts(value, escape)


def display_all(value: Any) -> Any:
    """Apply `display` to every text inside a JSON-like value."""
    return _map_texts(value, display)


def has_bad_reference(template: str) -> bool:
    """Return whether a template contains something like a variable that cannot be parsed."""
    return "${" in template and "${" in _REFERENCE.sub("", template)


class Variables:
    """The variables of one suite; fills them in and hides their values.

    Args:
        files: The content of `.env` files; the environment takes precedence.
        placeholders: Whether a variable that is not set has a placeholder as its value, to check a suite without keys.
    """

    def __init__(
        self, environment: Mapping[str, str], files: Mapping[str, str] | None = None, *, placeholders: bool = False
    ) -> None:
        self.placeholders = placeholders
        self.assumed: set[str] = set()  # variables with a placeholder
        self._files = files or {}
        self.environment: Mapping[str, str] = {**self._files, **environment}
        self._used: dict[str, str] = {}
        self._secrets: list[Secret] = list(ambient_secrets(environment, self._files))
        self._hider = Hider(self._secrets)
        self._written: dict[str, str] = {}  # live texts with values in them, and their templates in the suite
        self.missing: set[str] = set()

    def fill(self, template: str) -> str:
        """Return the live form of a text in the suite; variables that are not set are added to `missing`."""
        live, filled = self._fill(template)
        if filled:
            self._written[live] = template
        return live

    def reveal(self, template: str) -> str:
        """Return the live form of a stored text."""
        return self._fill(template)[0]

    def _fill(self, template: str) -> tuple[str, int]:
        if "${" not in template:
            return template, 0
        filled = 0

        def replacement(match: re.Match[str]) -> str:
            nonlocal filled
            name, default = match.group(1), match.group(2)
            if name is None:
                return "${"
            # Like the shell's `:-`, a default also replaces a variable that is set but empty.
            value = self.environment.get(name, "")
            if value:
                self._use(name, value)
                filled += 1
                return value
            if self.placeholders and (default is None or (not default and is_credential(name))):
                self.assumed.update([name] if default is None else [])
                return PLACEHOLDER
            if default is None:
                self.missing.add(name)
                return match.group(0)
            return default

        return _REFERENCE.sub(replacement, template), filled

    def _use(self, name: str, value: str) -> None:
        if self._used.get(name) != value:
            self._used[name] = value
            self.keep_hidden(*named_secrets(name, value, from_file=name in self._files))

    def keep_hidden(self, *secrets: Secret) -> None:
        """Add secrets to hide from now on."""
        self._secrets += secrets
        self._hider = Hider(self._secrets)

    def shared(self) -> dict[str, str]:
        """Return what workers on other machines need of the environment: what a suite or its `.env` file names."""
        return {**self._files, **self._used}

    def reveal_all(self, value: Any) -> Any:
        """Return a JSON-like value with every text in its live form."""
        return _map_texts(value, self.reveal)

    def template(self, live: str) -> str:
        """Return the template of a live text: as written in the suite, else like any text from outside."""
        return self._written.get(live) or self.conceal(live)

    def template_all(self, value: Any) -> Any:
        """Return a JSON-like value with every text in its template form."""
        return _map_texts(value, self.template)

    def conceal(self, live: str) -> str:
        """Return the template of a text from outside: references in it are escaped, and values are hidden."""
        return self._hider.hide(live, between=escape)

    def hide(self, text: str) -> str:
        """Replace every value with `${VAR}` in a text for display, such as a message or a note."""
        return self._hider.hide(text)

    def hide_all(self, value: Any) -> Any:
        """Apply `hide` to every text inside a JSON-like value, and hide what is split over texts of the same kind."""
        return value if self._hider.idle else self._hide_split(_map_texts(value, self.hide))

    def _hide_split(self, value: Any) -> Any:
        """Hide values that go on in the same place of the next item of a list, as in pieces of a streamed answer."""
        texts: dict[str, list[str]] = {}
        _collect_texts(value, "", texts)
        changed = {path: new for path, found in texts.items() if len(found) > 1 and (new := self._hider.split(found))}
        if not changed:
            return value
        rest = {path: iter(changed.get(path, found)) for path, found in texts.items()}
        return _replace_texts(value, "", rest)


def _map_texts(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {key: _map_texts(item, change) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_map_texts(item, change) for item in value]
    return value


def _collect_texts(value: Any, path: str, found: dict[str, list[str]]) -> None:
    """Collect the texts inside a JSON-like value by their places, in which items of a list are all alike."""
    if isinstance(value, str):
        found.setdefault(path, []).append(value)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            _collect_texts(item, f"{path}.{key}", found)
    elif isinstance(value, list | tuple):
        for item in value:
            _collect_texts(item, f"{path}[]", found)


def _replace_texts(value: Any, path: str, texts: Mapping[str, Iterator[str]]) -> Any:
    """Return the value with other texts, as they were collected."""
    if isinstance(value, str):
        return next(texts[path])
    if isinstance(value, Mapping):
        return {key: _replace_texts(item, f"{path}.{key}", texts) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_replace_texts(item, f"{path}[]", texts) for item in value]
    return value
