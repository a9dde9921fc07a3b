"""What all assertions share: what a configuration asks for, and the scorer that it becomes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from fairtrial.tracks.interchange.importers._promptfoo.conversion import Conversion, dict_of
from fairtrial.tracks.interchange.importers._promptfoo.providers import Providers

Scorer = dict[str, Any]


class Converted(NamedTuple):
    """A scorer, and the text that it compares answers with, if it does."""

    scorer: Scorer
    reference: str | None = None


class Assertion(NamedTuple):
    """An assertion in one test: its parts after templates were filled in, and what is at hand to convert it."""

    kind: str
    value: Any
    threshold: float | None
    entry: dict[str, Any]
    where: str
    values: dict[str, Any]  # the variables of the test
    at: Conversion
    providers: Providers

    @property
    def text(self) -> str:
        """The value as text."""
        return text_of(self.value)

    @property
    def texts(self) -> list[str]:
        """The value as texts: those of a list, or one."""
        return [text_of(item) for item in (self.value if isinstance(self.value, list) else [self.value])]

    @property
    def words(self) -> list[str]:
        """The texts of the value; in short forms, commas are between them."""
        if isinstance(self.value, str):
            return [word.strip().strip('"') for word in self.value.split(",") if word.strip()]
        return self.texts

    @property
    def provider(self) -> str:
        """The name of the model that the assertion asks for; "" if it names none."""
        given = self.entry.get("provider")
        return str(given.get("id") if isinstance(given, dict) else given or "")

    @property
    def settings(self) -> dict[str, Any]:
        """The value if it is a mapping."""
        return dict_of(self.value)

    def limit(self, default: float) -> float:
        """Return the threshold, or the usual one."""
        return default if self.threshold is None else self.threshold

    def limits(self) -> dict[str, int]:
        """Return `min` and `max` of the value, if they are whole numbers."""
        return {key: int(self.settings[key]) for key in ("min", "max") if isinstance(self.settings.get(key), int)}

    def by_function(self, function: str, **arguments: Any) -> Converted:
        """Return the scorer that is a function of the runtime."""
        return Converted({"type": "python", "function": self.at.code.function(function), "arguments": arguments})


Make = Callable[[Assertion], Converted | None]


def named(value: Any) -> Any:
    """Return the name or pattern in a mapping; any other value is the name itself."""
    return value.get("name") or value.get("pattern") if isinstance(value, dict) else value


def limited(scorer: Scorer, threshold: float | None) -> Scorer:
    """Return a scorer with a threshold, if there is one."""
    return scorer if threshold is None else {**scorer, "threshold": threshold}


def text_of(value: Any) -> str:
    """Return a value as text."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def parsed(text: str) -> Any:
    """Return what a text says as YAML or JSON; None if it is neither."""
    import yaml

    from fairtrial.text.yaml_text import read_yaml  # yaml: few checks need it

    try:
        return read_yaml(text)
    except yaml.YAMLError:
        return None


def number_of(value: Any) -> float | None:
    """Return a value as a number; None if it is none."""
    try:
        return None if value is None or isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return None
