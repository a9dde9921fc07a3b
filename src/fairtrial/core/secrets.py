"""What a secret looks like, and how to keep it out of sight in every form in which it may come back."""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit

SHORTEST = 8  # a shorter value is no secret, and hiding it would tear texts apart
_SHORTEST_NAMED = 4  # the same for a variable that a suite names
_SHORTEST_PREFIX = 20  # of a secret that was cut off: shorter ones may be what all keys of a provider begin with
_SHORTEST_RANDOM = 16
_CREDENTIAL = re.compile(
    r"(?:KEY|TOKEN|PASS(?:WORD|WD|PHRASE|CODE)?|PWD|AUTH(?:ORIZATION|ENTICATION)?|COOKIE|DSN)S?\d*(?:_|$)"
    r"|(?:^|_)PAT(?:_|$)|SECRET|CREDENTIAL|BEARER"
)
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
_COMMON = re.compile(
    "true|false|null|none|test|testing|local|localhost|default|disabled|enabled|undefined|unknown|optional|required"
    "|production|development|staging|password|changeme|anonymous|example|placeholder",
    re.IGNORECASE,
)
_FIGURES = re.compile(r"[\d.,:+\-/ ]{1,15}")
_PATH = re.compile(r"(?:[A-Za-z]:[\\/]|~/|\.{0,2}/)[A-Za-z][a-z_.-]*(?:[\\/][^+=]*)?")
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def is_credential(name: str) -> bool:
    """Whether a variable, key or header of this name holds a secret: OPENAI_API_KEY, apiKey, X-Auth-Token."""
    return bool(_CREDENTIAL.search(_HUMP.sub("_", name).replace("-", "_").upper()))


def looks_secret(value: str) -> bool:
    """Whether a value can be a secret: long enough, and no common word, number, path or plain address."""
    if len(value) < SHORTEST or _COMMON.fullmatch(value):
        return False
    return not (_FIGURES.fullmatch(value) or _PATH.fullmatch(value) or _ADDRESS.match(value))


def looks_random(value: str) -> bool:
    """Whether a value looks like a key, whatever it is called."""
    long = len(value) >= _SHORTEST_RANDOM and not any(c.isspace() for c in value)
    return long and looks_secret(value) and any(c.isdigit() for c in value) and any(c.isalpha() for c in value)


def in_address(value: str) -> Iterator[str]:
    """The secrets inside an address: its password, and what its query says under a credential's name."""
    if not _ADDRESS.match(value):
        return
    try:
        parts = urlsplit(value)
        password = unquote(parts.password or "")
    except ValueError:
        return
    given = [text for name, text in parse_qsl(parts.query) if is_credential(name)]
    yield from (text for text in (password, *given) if looks_secret(text))


class Secret(NamedTuple):
    """A value to hide.

    Args:
        variable: Whether `${name}` stands for exactly this value.
        loose: Whether it is hidden in every form, and not just as it is.
    """

    name: str
    value: str
    variable: bool = True
    loose: bool = True


def ambient(environment: Mapping[str, str], files: Mapping[str, str]) -> Iterator[Secret]:
    """What must be hidden though no suite names it: credentials of the environment, and whatever `.env` files hold."""
    for name, value in {**files, **environment}.items():
        if (name in files or is_credential(name)) and looks_secret(value):
            yield Secret(name, value)
        for part in in_address(value):
            yield Secret(name, part, variable=False)


def named(name: str, value: str, *, from_file: bool) -> Iterator[Secret]:
    """The value of a variable that a suite names."""
    if len(value) >= _SHORTEST_NAMED and not _COMMON.fullmatch(value):
        credential = (is_credential(name) or from_file) and looks_secret(value)
        yield Secret(name, value, loose=credential or looks_random(value))


class _Form(NamedTuple):
    whole: str
    needle: str  # what is looked for: a secret may have been cut off behind it
    secret: Secret


class Hider:
    """Replaces secrets in texts. Quick where there is nothing to hide, which is nearly always."""

    def __init__(self, secrets: Iterable[Secret]) -> None:
        self._exact: list[_Form] = []
        self._loose: list[_Form] = []
        for secret in sorted(set(secrets), key=lambda secret: -len(secret.value)):
            if secret.loose:
                self._loose += [_Form(form, _needle(form), secret) for form in _forms(secret.value)]
            else:
                self._exact.append(_Form(secret.value, secret.value, secret))
        self._needles = [form.needle for form in self._loose]
        self._values = [form.whole for form in self._exact]
        self.idle = not self._exact and not self._loose

    def hide(self, text: str, between: Callable[[str], str] | None = None) -> str:
        """The text with `${NAME}` where a variable's value stood, `[NAME hidden]` where another form of it did.

        With `between`, what is around them goes through it.
        """
        if self.idle or not (found := self._find(text)):
            return between(text) if between else text
        parts: list[str] = []
        place = 0
        for start, end, secret in found:
            before = text[place:start]
            parts.append(between(before) if between else before)
            # `$${` is an escape, so behind a `$` nothing can be a reference.
            exact = secret.variable and text[start:end] == secret.value and not before.endswith("$")
            parts.append(f"${{{secret.name}}}" if exact else f"[{secret.name} hidden]")
            place = end
        parts.append(between(text[place:]) if between else text[place:])
        return "".join(parts)

    def _find(self, text: str) -> list[tuple[int, int, Secret]]:
        hits = list(self._exact_hits(text)) if any(map(text.__contains__, self._values)) else []
        lowered = text.lower()
        if any(map(lowered.__contains__, self._needles)):
            hits += self._loose_hits(text, lowered)
        return _apart(hits) if hits else hits

    def _exact_hits(self, text: str) -> Iterator[tuple[int, int, Secret]]:
        for form in self._exact:
            for start in _places(text, form.whole):
                yield start, start + len(form.whole), form.secret

    def _loose_hits(self, text: str, lowered: str) -> Iterator[tuple[int, int, Secret]]:
        if len(lowered) != len(text):  # a few letters become longer: places would not fit any more
            lowered = "".join(c.lower() if len(c.lower()) == 1 else c for c in text)
        for form in self._loose:
            for start in _places(lowered, form.needle):
                yield start, start + _shared(form.whole, lowered, start), form.secret


def _places(text: str, part: str) -> Iterator[int]:
    start = text.find(part)
    while start >= 0:
        yield start
        start = text.find(part, start + len(part))


def _shared(form: str, text: str, start: int) -> int:
    """How far a text goes like a form from a place on."""
    if text.startswith(form, start):
        return len(form)
    return next(n for n, c in enumerate(form) if text[start + n : start + n + 1] != c)


def _apart(hits: list[tuple[int, int, Secret]]) -> list[tuple[int, int, Secret]]:
    """Hits in their order; of those that overlap the longest, and what others have beyond it goes with it."""
    found: list[tuple[int, int, Secret]] = []
    for start, end, secret in sorted(hits, key=lambda hit: (hit[0], -hit[1])):
        if not found or start >= found[-1][1]:
            found.append((start, end, secret))
        elif end > found[-1][1]:
            found[-1] = (found[-1][0], end, found[-1][2])
    return found


def _needle(form: str) -> str:
    return form[: max(_SHORTEST_PREFIX, len(form) // 2)]


def _forms(value: str) -> list[str]:
    """A value as it may come back, in lower case: encoded for an address, JSON, HTML or Python, and in base 64."""
    escaped = json.dumps(value)[1:-1]
    forms = [
        value,
        value.upper(),  # which some letters do not come back from: ß is SS
        quote(value, safe="", errors="surrogatepass"),
        quote(value, errors="surrogatepass"),
        quote_plus(value, errors="surrogatepass"),
        escaped,
        escaped.replace("/", "\\/"),
        json.dumps(value, ensure_ascii=False)[1:-1],
        repr(value)[1:-1],
        html.escape(value),
        html.escape(value).replace("&#x27;", "&#39;").replace("&quot;", "&#34;"),
        *_in_base64(value.encode("utf-8", "surrogatepass")),
    ]
    return list(dict.fromkeys(form.lower() for form in forms))


def _in_base64(value: bytes) -> Iterator[str]:
    """What base 64 makes of a value wherever it stands, such as behind `user:`; what neighbours change is left out."""
    for before in range(3):
        encoded = base64.b64encode(b"\0" * before + value)
        inner = encoded[(8 * before + 5) // 6 : 8 * (before + len(value)) // 6].decode()
        yield inner
        yield inner.replace("+", "-").replace("/", "_")
