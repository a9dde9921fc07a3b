"""Regular expressions from suites, searched in untrusted text without ever hanging."""

from __future__ import annotations

import asyncio
from functools import lru_cache
from typing import Any

import regex

PatternError = regex.error
_SLASHED_FLAGS = frozenset("dgimsuvy")
_FLAGS = {"i": regex.IGNORECASE, "m": regex.MULTILINE, "s": regex.DOTALL}
_INLINE_TIMEOUT = 0.005  # seconds a search may take on the event loop before it moves to a thread


@lru_cache(maxsize=1024)
def compile_pattern(text: str) -> Any:
    """Compile a pattern; the text after the last slash counts as flags only if all its letters are flags."""
    body, flags = text, ""
    if text.startswith("/") and (end := text.rfind("/")) > 0 and set(text[end + 1 :]) <= _SLASHED_FLAGS:
        body, flags = text[1:end], text[end + 1 :]
    combined = regex.VERSION0
    for letter in flags:
        combined |= _FLAGS.get(letter, 0)
    return regex.compile(body, combined)


async def search(pattern: Any, text: str, timeout: float) -> Any:
    """Return the first match or None; raise TimeoutError after this many seconds. The event loop is never blocked."""
    try:
        return pattern.search(text, timeout=min(_INLINE_TIMEOUT, timeout))
    except TimeoutError:
        return await asyncio.to_thread(pattern.search, text, timeout=timeout, concurrent=True)
