"""Why a file of another tool does not fit, in words, from the error that its reader ended with."""

from __future__ import annotations

import re

from fairtrial.text.printable import clipped, one_line

MISFITS = (TypeError, AttributeError, KeyError, ValueError, IndexError, RecursionError, OverflowError)
_PLACE = re.compile(r" - at `\$\.?([^`]*)`")
_LONGEST = 200


def reason_of(error: Exception) -> str:
    """Return what is wrong with a file in which something was not as the reader expected it."""
    if isinstance(error, KeyError):
        return clipped(f"`{one_line(str(error.args[0]))}` is missing" if error.args else "a key is missing", _LONGEST)
    if isinstance(error, IndexError):
        return "a list in it is too short"
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, UnicodeError):
        return "it is not Unicode text"
    if isinstance(error, TypeError | AttributeError | OverflowError):
        return "a value in it is not what it should be"
    said = _PLACE.sub(lambda match: f" at {match[1]}" if match[1] else "", str(error))
    return clipped(one_line(said), _LONGEST) or "a value in it is not what it should be"
