"""Detection of keys written into a suite, so that they are neither stored nor shared with it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from fairtrial.config.source import SuiteSource
from fairtrial.core.options import Path
from fairtrial.core.secrets import Secret, is_credential, keys_in, looks_secret, secrets_in_url

_SERVERS = ("providers", "mcp_servers", "mcpServers")
_SCHEME = re.compile(r"\A(?:bearer|basic|token)\s+", re.IGNORECASE)
_ASSIGNMENT = re.compile(r"([\w-]+)[\"']?\s*[=:]\s*[\"']?((?:(?:bearer|basic|token)\s+)?[^\s\"'&]+)", re.IGNORECASE)
_LONG = 20  # a value of this length is a key even without digits


def check_literals(source: SuiteSource) -> None:
    """Report every key in the suite text, and hide its value from then on."""
    for path, text in _candidate_texts(source.value):
        for name, value in _keys_in(path, source.variables.hide(text) if path not in source.spelling else text):
            source.variables.keep_hidden(Secret(name, value, variable=False))
            source.problem(path, "secret key in the suite: write ${VAR} here and set VAR in the environment or in .env")


def _candidate_texts(suite: Any) -> Iterator[tuple[Path, str]]:
    """Yield the texts that may hold keys: those of servers, and the options of targets and judges."""
    if not isinstance(suite, dict):
        return
    for key in _SERVERS:
        yield from _texts((key,), suite.get(key))
    for key in ("targets", "judges"):
        for index, entry in enumerate(suite[key] if isinstance(suite.get(key), list) else ()):
            yield from _option_texts((key, index), entry)
    for key in ("judge", "second_judge"):
        yield from _option_texts((key,), suite.get(key))


def _option_texts(path: Path, entry: Any) -> Iterator[tuple[Path, str]]:
    options = entry.get("options") if isinstance(entry, dict) else None
    for name, value in options.items() if isinstance(options, dict) else ():
        # The answers of mocks are text like that of cases; nothing in them is sent anywhere.
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
            previous = str(value[index - 1]) if index else ""
            is_option = previous.startswith("-") and is_credential(previous.strip("-"))
            yield from _texts((*path, previous.strip("-") if is_option else index), item)


def _keys_in(path: Path, text: str) -> Iterator[tuple[str, str]]:
    """Yield the names and values of keys in one text."""
    name = next(part for part in reversed(path) if isinstance(part, str))
    candidates = [(name, text)]
    candidates += [(match[1], match[2]) for match in _ASSIGNMENT.finditer(text)] if isinstance(path[-1], int) else []
    for candidate, value in candidates:
        key = _SCHEME.sub("", value.strip(), count=1)
        if (is_credential(candidate) or key != value.strip()) and _is_key(key):
            yield candidate, key
    yield from ((name, value) for value in (*secrets_in_url(text), *keys_in(text)) if _is_key(value))


def _is_key(value: str) -> bool:
    """Return whether a value is a real key and not a placeholder such as `not-needed`."""
    varied = any(c.isdigit() for c in value) or (value != value.lower() and value != value.upper())
    return looks_secret(value) and "${" not in value and (varied or len(value) >= _LONG)
