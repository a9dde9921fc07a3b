"""Personal data and keys out of recorded texts; what was replaced is counted."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from fairtrial.core.errors import FairtrialError
from fairtrial.core.secrets import without_keys

_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+")
_CARD = re.compile(r"(?<![\d.-])\d(?:[ -]?\d){12,18}(?![\d.-]?\d)")
_PHONE = re.compile(
    r"(?<![\w.+-])(?:\+\d{1,3}[ .-]?(?:\(\d{1,4}\)[ .-]?)?\d(?:[ .-]?\d){5,12}"
    r"|\(\d{2,5}\)[ .-]?\d(?:[ .-]?\d){5,9}|\d{3}[ .-]\d{3}[ .-]\d{4})(?![\w-]|\.\d)"
)


class Redactor:
    """Replaces what the patterns find; `counts` says how often, by kind.

    Args:
        rules: `off` for nothing at all, or regular expressions of the user's, which are applied as well.
    """

    def __init__(self, rules: Sequence[str] = ()) -> None:
        self.counts: Counter[str] = Counter()
        self._off = "off" in rules
        if self._off and len(rules) > 1:
            raise FairtrialError("`--redact off` goes with no other --redact")
        self._own = [_compiled(rule) for rule in rules if rule != "off"]

    def text(self, text: str) -> str:
        """Return a text without what must not be in it."""
        if self._off:
            return text
        for pattern in self._own:
            text = self._replaced(pattern, "redacted", text)
        text = self._counted("API key", *without_keys(text, "[API key]"))
        text = self._replaced(_EMAIL, "e-mail address", text)
        text = _CARD.sub(self._card, text)
        return self._replaced(_PHONE, "phone number", text)

    def all(self, value: Any) -> Any:
        """Return a value of any shape with its texts redacted."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {name: self.all(item) for name, item in value.items()}
        return [self.all(item) for item in value] if isinstance(value, list | tuple) else value

    def _replaced(self, pattern: re.Pattern[str], kind: str, text: str) -> str:
        return self._counted(kind, *pattern.subn(f"[{kind}]", text))

    def _counted(self, kind: str, text: str, count: int) -> str:
        if count:
            self.counts[kind] += count
        return text

    def _card(self, match: re.Match[str]) -> str:
        if not _passes_luhn(match[0]):
            return match[0]
        self.counts["card number"] += 1
        return "[card number]"


def _compiled(rule: str) -> re.Pattern[str]:
    try:
        pattern = re.compile(rule)
    except re.error as error:
        raise FairtrialError(f"--redact `{rule}` is not a regular expression: {error}") from None
    if pattern.search(""):
        raise FairtrialError(f"--redact `{rule}` finds something in every text, even an empty one")
    return pattern


def _passes_luhn(text: str) -> bool:
    digits = [int(character) for character in reversed(text) if character.isdigit()]
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[1::2]]
    return (sum(digits[::2]) + sum(doubled)) % 10 == 0
