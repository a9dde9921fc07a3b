"""Keys that were written into a suite: found, so that they are neither stored nor shared with it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from fairtrial.config.source import Source
from fairtrial.core.options import Path
from fairtrial.core.secrets import Secret, in_address, is_credential, looks_secret
from fairtrial.core.variables import Variables

_SERVERS = ("providers", "mcp_servers", "mcpServers")
_SCHEME = re.compile(r"(?:bearer|basic|token)\s+", re.IGNORECASE)
_GIVEN = re.compile(r"([\w-]+)[\"']?\s*[=:]\s*[\"']?((?:(?:bearer|basic|token)\s+)?[^\s\"'&]+)", re.IGNORECASE)
_LONG = 20  # so long a value is a key without digits too


def check_literals(source: Source, variables: Variables) -> None:
    """Note every key that stands in the suite itself; from then on its value is hidden."""
    for path, text in _places(source.value):
        for name, value in _found(path, variables.hide(text) if path not in source.spelling else text):
            variables.keep_hidden(Secret(name, value, variable=False))
            source.problem(
                path, "a key must not stand in a suite: write ${VAR} here and set VAR in the environment or in .env"
            )


def _places(suite: Any) -> Iterator[tuple[Path, str]]:
    """Where a suite may hold keys: whatever is said of servers, and the options of targets and judges."""
    if not isinstance(suite, dict):
        return
    for key in _SERVERS:
        yield from _texts((key,), suite.get(key))
    for key in ("targets", "judges"):
        for index, entry in enumerate(suite[key] if isinstance(suite.get(key), list) else ()):
            yield from _option_texts((key, index), entry)
    yield from _option_texts(("judge",), suite.get("judge"))


def _option_texts(path: Path, entry: Any) -> Iterator[tuple[Path, str]]:
    options = entry.get("options") if isinstance(entry, dict) else None
    for name, value in options.items() if isinstance(options, dict) else ():
        # What mocks answer is text like that of cases; nothing in it is sent anywhere.
        if not isinstance(value, dict) or name in ("env", "headers"):
            yield from _texts((*path, "options", name), value)


def _texts(path: Path, value: Any) -> Iterator[tuple[Path, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _texts((*path, key), item)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            before = str(value[index - 1]) if index else ""
            option = before.startswith("-") and is_credential(before.strip("-"))
            yield from _texts((*path, before.strip("-") if option else index), item)


def _found(path: Path, text: str) -> Iterator[tuple[str, str]]:
    """The names and values of keys in one text."""
    name = next(part for part in reversed(path) if isinstance(part, str))
    given = [(name, text)]
    given += [(match[1], match[2]) for match in _GIVEN.finditer(text)] if isinstance(path[-1], int) else []
    for said, value in given:
        bare = _SCHEME.sub("", value.strip(), count=1)
        if (is_credential(said) or bare != value.strip()) and _is_key(bare):
            yield said, bare
    yield from ((name, value) for value in in_address(text) if _is_key(value))


def _is_key(value: str) -> bool:
    """Whether a value is a key and no stand-in for one, such as `not-needed`."""
    varied = any(c.isdigit() for c in value) or (value != value.lower() and value != value.upper())
    return looks_secret(value) and "${" not in value and (varied or len(value) >= _LONG)
