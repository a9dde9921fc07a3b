"""What a tool wrote as JSON, read by where it is: `fields.text("output.content")`."""

from __future__ import annotations

from typing import Any

from fairtrial.core.answer import Failure, Usage
from fairtrial.core.expected import Expected
from fairtrial.tracks.interchange import values
from fairtrial.tracks.interchange.values import dict_of, list_of


class Fields:
    """A mapping; what is not there, or is of another kind, is empty.

    A path is a key, or several with dots between them. Of several paths, the first with a value counts.
    """

    def __init__(self, given: Any) -> None:
        self.mapping = dict_of(given)

    def __bool__(self) -> bool:
        return bool(self.mapping)

    def get(self, *paths: str) -> Any:
        """Return the value as it is."""
        value = None
        for path in paths:
            value = self.mapping
            for key in path.split("."):
                value = value.get(key) if isinstance(value, dict) else None
            if value:
                return value
        return value

    def below(self, *paths: str) -> Fields:
        """Return a mapping."""
        return Fields(next((found for path in paths if (found := dict_of(self.get(path)))), None))

    def listed(self, *paths: str) -> list[Any]:
        """Return a list."""
        return next((found for path in paths if (found := list_of(self.get(path)))), [])

    def records(self, *paths: str) -> list[Fields]:
        """Return the mappings in a list."""
        return [Fields(one) for one in self.listed(*paths) if isinstance(one, dict)]

    def name(self, *paths: str, default: str = "") -> str:
        """Return an id or a name as one short line."""
        return values.name_of(self.get(*paths) or default)

    def text(self, *paths: str) -> str:
        """Return any value as text, without what looks like a key."""
        return values.clean_text(self.get(*paths))

    def number(self, *paths: str) -> float | None:
        """Return a finite number."""
        return values.number_of(self.get(*paths))

    def mark(self, *paths: str) -> float | None:
        """Return the number of a mark."""
        return values.mark_of(self.get(*paths))

    def milliseconds(self, *paths: str) -> float | None:
        """Return a duration in seconds as milliseconds."""
        return values.milliseconds_of(self.get(*paths))

    def time(self, *paths: str) -> float | None:
        """Return a time as seconds since 1970."""
        return values.seconds_of(self.get(*paths))

    def expected(self, *paths: str) -> Expected:
        """Return the right answer or answers."""
        return values.expected_of(self.get(*paths))

    def usage(self, prompt: str, completion: str) -> Usage | None:
        """Return token counts."""
        return values.usage_of(self.get(prompt), self.get(completion))

    def tidy(self, path: str) -> dict[str, Any]:
        """Return metadata that may be stored."""
        tidied: dict[str, Any] = values.tidy(self.below(path).mapping)
        return tidied

    def tags(self, path: str) -> tuple[str, ...]:
        """Return tags."""
        return tuple(values.name_of(tag) for tag in self.listed(path))

    def failure(self, *paths: str) -> Failure:
        """Return an error as a failure."""
        return values.failure_of(self.get(*paths))

    def params(self, *paths: str) -> dict[str, Any] | None:
        """Return the parameters in a configuration; None if there is none."""
        config = self.below(*paths)
        return values.params_of(config.mapping) if config else None
