"""Detection of secrets, and hiding them in every encoded form in which they may reappear."""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit

from fairtrial.core.key_forms import ADDRESS, ASSIGNMENT, FORMS, HEADER, LONGEST_NAME, NAME, is_key

SHORTEST = 8  # shorter values are not secrets, and hiding them would garble texts
_SHORTEST_NAMED = 4  # the same for variables named in a suite
_SHORTEST_PREFIX = 20  # of a truncated secret: a shorter prefix may be common to all keys of a provider
_SHORTEST_RANDOM = 16
_SHORTEST_KEY = 12  # with what it is known by
_SHORTEST_CORE, _SHORTEST_SPREAD = 4, 12  # letters and digits
_LOWER = bytes(range(256)).lower()
_DIGITS = bytes(byte if chr(byte) not in "0123456789abcdefux" else ord("0") for byte in range(256))
_ROW = b"0" * 24
_OTHER_BYTES = bytes(byte for byte in range(256) if not (byte < 128 and chr(byte).isalnum()))
_LONG = 20  # a value of this length is a key even without digits
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
    """Return whether a variable, key or header of this name holds a secret: OPENAI_API_KEY, apiKey, X-Auth-Token."""
    return bool(_CREDENTIAL.search(_HUMP.sub("_", name).replace("-", "_").upper()))


def is_private(name: str, value: str) -> bool:
    """Return whether a variable holds a secret, by its name or because its value is a key."""
    return is_credential(name) or is_key(value)


def looks_secret(value: str) -> bool:
    """Return whether a value can be a secret: long enough, and not a common word, number, path or plain address."""
    if len(value) < SHORTEST or _COMMON.fullmatch(value):
        return False
    return not (_FIGURES.fullmatch(value) or _PATH.fullmatch(value) or _ADDRESS.match(value))


def looks_random(value: str) -> bool:
    """Return whether a value looks like a key, regardless of its name."""
    key_like = len(value) >= _SHORTEST_RANDOM and not any(c.isspace() for c in value)
    return key_like and looks_secret(value) and any(c.isdigit() for c in value) and any(c.isalpha() for c in value)


def secrets_in_url(value: str) -> Iterator[str]:
    """Yield the secrets in a URL: its password, and query values under the name of a credential."""
    if not _ADDRESS.match(value):
        return
    try:
        parts = urlsplit(value)
        password = unquote(parts.password or "")
    except ValueError:
        return
    query_secrets = [text for name, text in parse_qsl(parts.query) if is_credential(name)]
    yield from (text for text in (password, *query_secrets) if looks_secret(text))


def key_spans(text: str) -> list[tuple[int, int]]:
    """Return where keys are in a text, in order and without overlaps."""
    if len(text) < _SHORTEST_KEY:
        return []
    spans: list[tuple[int, int]] = []
    for start, end in sorted(_all_key_spans(text)):
        if spans and start < spans[-1][1]:
            spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
        else:
            spans.append((start, end))
    return spans


def _all_key_spans(text: str) -> Iterator[tuple[int, int]]:
    for form in FORMS:
        if form.is_possible(text):
            yield from (match.span() for match in form.pattern.finditer(text))
    if HEADER.is_possible(text):
        yield from (match.span("key") for match in HEADER.pattern.finditer(text))
    if ADDRESS.is_possible(text):
        yield from (match.span("key") for match in ADDRESS.pattern.finditer(text) if looks_secret(match["key"]))
    if ASSIGNMENT.is_possible(text):
        yield from (match.span("key") for match in ASSIGNMENT.pattern.finditer(text) if _assigns_key(match))


def keys_in(text: str) -> Iterator[str]:
    """Yield the keys in a text."""
    return (text[start:end] for start, end in key_spans(text))


def without_keys(text: str, instead: str) -> tuple[str, int]:
    """Return a text with something else in place of every key, and how many there were."""
    spans = key_spans(text)
    for start, end in reversed(spans):
        text = f"{text[:start]}{instead}{text[end:]}"
    return text, len(spans)


def _assigns_key(match: re.Match[str]) -> bool:
    """Return whether a name precedes the value and the value can be a key: not `api_key=config.api_key`."""
    name = NAME.pattern.search(match.string, max(0, match.start() - LONGEST_NAME), match.start())
    if name is None:
        return False
    value = match["key"]
    if name["vague"]:
        return looks_random(value)
    varied = any(c.isdigit() for c in value) and any(c.isalpha() for c in value)
    return looks_secret(value) and "${" not in value and (varied or (len(value) >= _LONG and value.isalnum()))


class Secret(NamedTuple):
    """A value to hide.

    Args:
        variable: Whether `${name}` stands for exactly this value.
        loose: Whether it is hidden in every encoded form, not only verbatim.
    """

    name: str
    value: str
    variable: bool = True
    loose: bool = True


def ambient_secrets(environment: Mapping[str, str], files: Mapping[str, str]) -> Iterator[Secret]:
    """Yield the secrets to hide even if no suite names them: credentials in the environment, all of `.env` files."""
    for name, value in {**files, **environment}.items():
        if (name in files or is_private(name, value)) and looks_secret(value):
            yield Secret(name, value)
        for part in secrets_in_url(value):
            yield Secret(name, part, variable=False)


def named_secrets(name: str, value: str, *, from_file: bool) -> Iterator[Secret]:
    """Yield the value of a variable named in a suite, if it must be hidden."""
    if len(value) >= _SHORTEST_NAMED and not _COMMON.fullmatch(value):
        credential = (is_credential(name) or from_file) and looks_secret(value)
        yield Secret(name, value, loose=credential or looks_random(value))


class _Form(NamedTuple):
    whole: str
    needle: str  # the part that is searched for: a secret may be truncated after it
    secret: Secret


class Hider:
    """Replaces secrets in texts. Fast if there is nothing to hide, which is almost always the case.

    Most texts are read once, without anything that is neither a letter nor a digit: what is not in there is in no form
    in the text, however it is escaped, spaced or broken into lines.
    """

    def __init__(self, secrets: Iterable[Secret]) -> None:
        self._exact: list[_Form] = []
        self._loose: list[_Form] = []
        self._spread: list[_Form] = []  # with anything between their letters and digits
        for secret in sorted(set(secrets), key=lambda secret: -len(secret.value)):
            if secret.loose:
                self._loose += [_Form(form, _needle(form), secret) for form in _forms(secret.value)]
                self._spread += _spread_forms(secret)
            else:
                self._exact.append(_Form(secret.value, secret.value, secret))
        cores = {form.needle: _core(form.needle) for form in self._loose}
        self._cores = list(dict.fromkeys(core for core in cores.values() if len(core) >= _SHORTEST_CORE))
        spread = dict.fromkeys(form.needle for form in self._spread)
        self._numbers = [needle for needle in spread if _has_number(needle)]
        self._letters = [needle for needle in spread if not _has_number(needle)]
        self._needles = list(dict.fromkeys([*self._cores, *self._letters]))
        self._coreless = [needle for needle, core in cores.items() if len(core) < _SHORTEST_CORE]
        self._values = [form.whole for form in self._exact]
        self._shortest = min(map(len, (*self._needles, *self._numbers, *self._coreless, *self._values)), default=0)
        self.idle = not self._exact and not self._loose

    def hide(self, text: str, between: Callable[[str], str] | None = None) -> str:
        """Replace a variable's value with `${NAME}`, and other forms of it with `[NAME hidden]`.

        `between` is applied to the text around them.
        """
        if self.idle or not (hits := self._find(text)):
            return between(text) if between else text
        parts: list[str] = []
        position = 0
        for start, end, secret in hits:
            before = text[position:start]
            parts.append(between(before) if between else before)
            # `$${` is an escape, so a reference cannot follow a `$`.
            exact = secret.variable and text[start:end] == secret.value and not before.endswith("$")
            parts.append(f"${{{secret.name}}}" if exact else f"[{secret.name} hidden]")
            position = end
        parts.append(between(text[position:]) if between else text[position:])
        return "".join(parts)

    def _find(self, text: str) -> list[tuple[int, int, Secret]]:
        if len(text) < self._shortest and text.isascii():  # lower() lengthens a few letters
            return []
        hits = list(self._exact_hits(text)) if any(map(text.__contains__, self._values)) else []
        core = _core(text)
        lowered = text.lower() if self._coreless else ""
        if any(map(core.__contains__, self._needles)) or self._has_numbers(core):
            hits += self._loose_hits(text, lowered or text.lower())
            hits += self._spread_hits(text, core)
        elif self._coreless and any(map(lowered.__contains__, self._coreless)):
            hits += self._loose_hits(text, lowered)
        return _merge_overlaps(hits) if hits else hits

    def split(self, texts: Sequence[str]) -> list[str] | None:
        """Return texts that follow each other without the parts of secrets that go on from one to the next.

        None if there are none, which is almost always the case.
        """
        joined = "\0".join(texts)
        core = _core(joined)
        if not any(map(core.__contains__, self._letters)) and not self._has_numbers(core):
            return None
        changed, start = [], 0
        hits = _merge_overlaps(list(self._spread_hits(joined, core)))
        for text in texts:
            end, position, parts = start + len(text), start, list[str]()
            for first, last, secret in hits:
                if first < end and last > start:
                    parts += [joined[position : max(first, start)], f"[{secret.name} hidden]"]
                    position = min(last, end)
            changed.append("".join([*parts, joined[position:end]]))
            start = end + 1
        return changed

    def _has_numbers(self, core: str) -> bool:
        """Return whether a secret is in a text as numbers: a text without a long row of digits need not be searched."""
        return _has_number(core) and any(map(core.__contains__, self._numbers))

    def _spread_hits(self, text: str, core: str) -> Iterator[tuple[int, int, Secret]]:
        places: list[int] = []
        for form in self._spread:
            start = core.find(form.needle)
            while start >= 0:
                places = places or [place for place, letter in enumerate(text) if letter.isascii() and letter.isalnum()]
                end = start + _match_length(form.whole, core, start)
                yield places[start], places[end - 1] + 1, form.secret
                start = core.find(form.needle, end)

    def _exact_hits(self, text: str) -> Iterator[tuple[int, int, Secret]]:
        for form in self._exact:
            for start in _occurrences(text, form.whole):
                yield start, start + len(form.whole), form.secret

    def _loose_hits(self, text: str, lowered: str) -> Iterator[tuple[int, int, Secret]]:
        if len(lowered) != len(text):  # lower() lengthens a few letters, which would shift positions
            lowered = "".join(c.lower() if len(c.lower()) == 1 else c for c in text)
        for form in self._loose:
            for start in _occurrences(lowered, form.needle):
                yield start, start + _match_length(form.whole, lowered, start), form.secret


def _occurrences(text: str, part: str) -> Iterator[int]:
    start = text.find(part)
    while start >= 0:
        yield start
        start = text.find(part, start + len(part))


def _match_length(form: str, text: str, start: int) -> int:
    """Return how many characters of a form the text has at a position."""
    if text.startswith(form, start):
        return len(form)
    return next(n for n, c in enumerate(form) if text[start + n : start + n + 1] != c)


def _merge_overlaps(hits: list[tuple[int, int, Secret]]) -> list[tuple[int, int, Secret]]:
    """Sort the hits and merge those that overlap, under the secret that starts first (the longest, if several do)."""
    merged: list[tuple[int, int, Secret]] = []
    for start, end, secret in sorted(hits, key=lambda hit: (hit[0], -hit[1])):
        if not merged or start >= merged[-1][1]:
            merged.append((start, end, secret))
        elif end > merged[-1][1]:
            merged[-1] = (merged[-1][0], end, merged[-1][2])
    return merged


def _needle(form: str, width: int = 1) -> str:
    """Return the part of a form that is searched for; `width` is how many characters stand for one of the secret."""
    return form[: max(_SHORTEST_PREFIX * width, len(form) // 2)]


def _core(text: str) -> str:
    """Return the letters and digits of a text, in lower case, without anything else."""
    return text.encode("utf-8", "replace").translate(_LOWER, _OTHER_BYTES).decode("ascii")


def _has_number(core: str) -> bool:
    """Return whether a text has a row of digits as long as a secret that is written in numbers."""
    return _ROW in core.encode("ascii").translate(_DIGITS)


def _spread_forms(secret: Secret) -> Iterator[_Form]:
    """Yield the forms in which a key is recognised whatever is between its letters and digits.

    Only for what is a key by its name or form, and long enough: another value may be an ordinary phrase.
    """
    value = secret.value
    if not (is_credential(secret.name) or is_key(value)) or not (looks_random(value) or len(value) >= _LONG):
        return
    encoded = value.encode("utf-8", "surrogatepass")
    written = [
        (value, 1),
        (value[::-1], 1),
        *((form, 1) for form in _in_base64(encoded)),
        (encoded.hex(), 2),  # also %73 %6b, 73:6b, and dumps
        ("".join(f"x{byte:02x}" for byte in encoded), 3),  # \x73, &#x73;
        ("".join(f"0x{byte:02x}" for byte in encoded), 4),
        ("".join(f"u{ord(letter):04x}" for letter in value), 5),
        ("".join(f"{byte}" for byte in encoded), 3),  # [115, 107], &#115;
        ("".join(f"{byte:03o}" for byte in encoded), 3),
        *((_partly_escaped(value, form), 1) for form in ("u{:04x}", "x{:02x}", "{:02x}", "{}")),
    ]
    seen = set()
    for form, width in written:
        whole, needle = _core(form), _core(_needle(form, width))
        if len(needle) >= _SHORTEST_SPREAD and whole not in seen:
            seen.add(whole)
            yield _Form(whole, needle, secret)


def _partly_escaped(value: str, form: str) -> str:
    """Return a value in which only what is neither letter nor digit is escaped; `-`, `_` and `.` never need it."""
    return "".join(c if c.isalnum() or c in "-_." else form.format(ord(c)) for c in value)


def _forms(value: str) -> list[str]:
    """Return the forms in which a value may reappear, in lower case: URL, JSON, HTML and Python escapes, base 64."""
    escaped = json.dumps(value)[1:-1]
    forms = [
        value,
        value.upper(),  # upper case is not always reversible: ß becomes SS
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
    """Yield base 64 forms of a value at every offset, such as after `user:`, without digits that neighbours affect."""
    for before in range(3):
        encoded = base64.b64encode(b"\0" * before + value)
        inner = encoded[(8 * before + 5) // 6 : 8 * (before + len(value)) // 6].decode()
        yield inner
        yield inner.replace("+", "-").replace("/", "_")
