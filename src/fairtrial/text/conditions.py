"""Conditions on JSON values, as suites write them: `>100`, `!=EUR`, `/pattern/`, `inv-*`, or the value itself."""

from __future__ import annotations

import json
import math
import operator
import re
from collections.abc import Mapping
from typing import Any

from fairtrial.text.folding import find_word, fold
from fairtrial.text.json_text import same_json
from fairtrial.text.numbers import read_number
from fairtrial.text.patterns import PatternError, compile_pattern

_NUMERAL, _DATE = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?", r"\d{4}-\d\d(?:-\d\d(?:[T ][\d:.+Z-]*)?)?"
_BOUND = re.compile(rf"(>=|<=|>|<)\s*({_DATE}|{_NUMERAL})")
_UNEQUAL = "!="
_ORDERS = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}
_SECONDS = 0.1  # that a pattern may take: the text comes from a model
_MAX_SHOWN = 60


class IncomparableError(Exception):
    """Nobody can say whether a value fits; the message says why."""


def fits_condition(value: Any, condition: Any) -> bool:
    """Return whether a JSON value is as a condition says; raise IncomparableError if that cannot be known.

    A mapping has conditions by name and may have other names; a list has one for each item. Any other value must be
    equal, but for texts that begin like a comparison or a pattern, or have a `*`, which stands for anything.
    """
    if isinstance(condition, Mapping):
        return isinstance(value, Mapping) and all(
            name in value and fits_condition(value[name], inner) for name, inner in condition.items()
        )
    if isinstance(condition, list):
        return (
            isinstance(value, list)
            and len(value) == len(condition)
            and all(fits_condition(item, inner) for item, inner in zip(value, condition, strict=True))
        )
    return _fits_text(value, condition) if isinstance(condition, str) else same_json(value, condition)


def condition_problem(condition: Any) -> str:
    """Return why a condition cannot be used; empty if it can."""
    if isinstance(condition, Mapping | list):
        inner = condition.values() if isinstance(condition, Mapping) else condition
        return next(filter(None, map(condition_problem, inner)), "")
    if not isinstance(condition, str):
        return ""
    bound = _BOUND.fullmatch(condition.strip())
    if bound and not re.fullmatch(_DATE, bound[2]) and _number(bound[2]) is None:
        return f"nothing can be compared with {condition!r}: write a finite number"
    try:
        if is_pattern(condition):
            compile_pattern(condition)
    except PatternError as error:
        return f"the pattern {condition!r} is not valid: {error}"
    return ""


def is_pattern(text: str) -> bool:
    """Return whether a text is a pattern between slashes, perhaps with flags: `/refund|back/i`, but not `/usr/bin`."""
    return re.fullmatch(r"/.+/[dgimsuvy]*", text, re.DOTALL) is not None


def found_in(text: str, wanted: str) -> bool:
    """Return whether a pattern is found in a text, or words, whatever their case."""
    if not is_pattern(wanted):
        return find_word(fold(wanted), fold(text))
    try:
        return compile_pattern(wanted).search(text, timeout=_SECONDS) is not None
    except TimeoutError:
        raise IncomparableError(f"the pattern {wanted!r} took too long") from None


def _fits_text(value: Any, condition: str) -> bool:
    if bound := _BOUND.fullmatch(condition.strip()):
        return _within(value, bound[1], bound[2])
    if condition.startswith(_UNEQUAL):
        return not _equal(value, condition.removeprefix(_UNEQUAL).strip())
    if is_pattern(condition):
        return found_in(value if isinstance(value, str) else _shown(value), condition)
    if "*" in condition and isinstance(value, str):
        pattern = ".*".join(map(re.escape, condition.split("*")))
        return re.fullmatch(pattern, value, re.DOTALL) is not None
    return same_json(value, condition)


def _within(value: Any, sign: str, bound: str) -> bool:
    """Compare numbers as numbers, and dates as the texts that they are in ISO 8601."""
    if re.fullmatch(_DATE, bound):
        if not isinstance(value, str) or not re.fullmatch(_DATE, value.strip()):
            raise IncomparableError(f"{_shown(value)} is not a date, so it cannot be compared with {sign}{bound}")
        return bool(_ORDERS[sign](value.strip(), bound))
    number, limit = _number(value), _number(bound)
    if number is None or limit is None:
        raise IncomparableError(f"{_shown(value)} is not a number, so it cannot be compared with {sign}{bound}")
    return bool(_ORDERS[sign](number, limit))


def _equal(value: Any, text: str) -> bool:
    """Return whether a value is the one that a text stands for, also as a number."""
    one, other = _number(value), _number(text)
    if one is not None and other is not None:
        return one == other
    return (value if isinstance(value, str) else _shown(value)) == text


def _number(value: Any) -> int | float | None:
    """Return a value as a finite number, as exact as it is; None if it is none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        whole = re.fullmatch(r"\s*[-+]?\d{1,300}\s*", value) is not None
        value = int(value) if whole else next(iter(read_number(value)), None)
    return value if isinstance(value, int | float) and math.isfinite(value) else None


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=repr, ensure_ascii=False)
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 1]}…"
