"""Keys in every reversible form that a program would print, alone and within other text: none of them stays."""

from __future__ import annotations

import base64
import html
import json
import textwrap
import time
from collections.abc import Callable
from urllib.parse import quote

import pytest

from fairtrial.core.secrets import Hider, ambient_secrets
from fairtrial.core.variables import Variables

KEYS = {
    "OPENAI_API_KEY": "sk-proj-Ab3dE6gH9jK2mN5pQ8sT1vW4yZ7xC0uR",
    "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG+bPxRfiCYzEXAM9LEKE=",
    "MISTRAL_API_KEY": "q8Zr2Lk5Vn7Xw1Tc",
}


def _bytes(key: str) -> bytes:
    return key.encode()


FORMS: dict[str, Callable[[str], str]] = {
    "verbatim": str,
    "capitals": str.upper,
    "reversed": lambda key: key[::-1],
    "spaced": " ".join,
    "spaced by dashes": "-".join,
    "spaced by commas": ", ".join,
    "listed": lambda key: str(list(key)),
    "listed as JSON": lambda key: json.dumps(list(key)),
    "a letter in a line": "\n".join,
    "in groups": lambda key: " ".join(textwrap.wrap(key, 4)),
    "over lines": lambda key: "\n".join(textwrap.wrap(key, 10)),
    "over quoted lines": lambda key: "\n> ".join(textwrap.wrap(key, 10)),
    "as joined strings": lambda key: f'"{key[:12]}" + "{key[12:]}"',
    "bold in the middle": lambda key: f"{key[:9]}**{key[9:]}**",
    "hex": lambda key: _bytes(key).hex(),
    "hex in capitals": lambda key: _bytes(key).hex().upper(),
    "hex with spaces": lambda key: _bytes(key).hex(" "),
    "hex with colons": lambda key: _bytes(key).hex(":"),
    "hex in words": lambda key: _bytes(key).hex(" ", 2),
    "hex over lines": lambda key: "\n".join(textwrap.wrap(_bytes(key).hex(), 16)),
    "hex numbers": lambda key: ", ".join(map(hex, _bytes(key))),
    "hex in Python": lambda key: "".join(f"\\x{byte:02x}" for byte in _bytes(key)),
    "hex in capitals, in C": lambda key: "".join(f"\\x{byte:02X}" for byte in _bytes(key)),
    "unicode escapes": lambda key: "".join(f"\\u{ord(c):04x}" for c in key),
    "unicode escapes in capitals": lambda key: "".join(f"\\u{ord(c):04X}" for c in key),
    "percent": lambda key: "".join(f"%{byte:02X}" for byte in _bytes(key)),
    "percent, small": lambda key: "".join(f"%{byte:02x}" for byte in _bytes(key)),
    "percent where needed": lambda key: quote(key, safe=""),
    "twice percent": lambda key: quote("".join(f"%{byte:02X}" for byte in _bytes(key)), safe="").replace("%25", "%"),
    "HTML": html.escape,
    "HTML numbers": lambda key: "".join(f"&#{ord(c)};" for c in key),
    "HTML hex": lambda key: "".join(f"&#x{ord(c):x};" for c in key),
    "signs as HTML numbers": lambda key: "".join(c if c.isalnum() or c in "-_" else f"&#{ord(c)};" for c in key),
    "signs as unicode escapes": lambda key: "".join(c if c.isalnum() or c in "-_" else f"\\u{ord(c):04x}" for c in key),
    "JSON": json.dumps,
    "octal": lambda key: "".join(f"\\{byte:03o}" for byte in _bytes(key)),
    "numbers": lambda key: str(list(_bytes(key))),
    "numbers in lines": lambda key: "\n".join(map(str, _bytes(key))),
    "base 64": lambda key: base64.b64encode(_bytes(key)).decode(),
    "base 64 for addresses": lambda key: base64.urlsafe_b64encode(_bytes(key)).decode().rstrip("="),
    "base 64 with a name": lambda key: base64.b64encode(f"user:{key}".encode()).decode(),
    "base 64 of a text": lambda key: base64.b64encode(f'{{"a": "{key}", "b": 1}}'.encode()).decode(),
    "base 64 over lines": lambda key: "\n".join(textwrap.wrap(base64.b64encode(f"x{key}".encode()).decode(), 20)),
    "cut off": lambda key: key[: max(20, len(key) - 5)],
}  # fmt: skip


ENCODED_WITH_MORE = ("base 64 with a name", "base 64 of a text")


@pytest.fixture(scope="module")
def hider() -> Hider:
    return Hider(ambient_secrets(KEYS, {}))


@pytest.mark.parametrize("name", KEYS)
@pytest.mark.parametrize("form", FORMS)
def test_no_form_of_a_key_stays(hider: Hider, name: str, form: str) -> None:
    written = FORMS[form](KEYS[name])
    for before, after in (("", ""), ("The key is ", ", is it not?"), ("{'a': 'Größe', 'k': '", "'}"), ("\n", "\n")):
        hidden = hider.hide(before + written + after)
        assert hidden.startswith(before) and (hidden.endswith(after) or not after.strip()), hidden
        assert name in hidden and written not in hidden, hidden
        kept = "".join(c for c in hidden.replace(name, "").replace("hidden", "") if c.isalnum())
        around = "".join(c for c in before + after if c.isalnum())
        # At most the digits of a base that its neighbours affect, and those of what was encoded with it.
        assert len(kept) <= len(around) + (30 if form in ENCODED_WITH_MORE else 6), hidden


@pytest.mark.parametrize("size", [1, 3, 7, 15])
@pytest.mark.parametrize("name", KEYS)
def test_a_key_in_pieces_of_a_stream_is_hidden(name: str, size: int) -> None:
    text = f"It is {KEYS[name]}."
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    trace = [{"type": "delta", "text": piece, "n": number} for number, piece in enumerate(pieces)]
    hidden = Variables(KEYS).hide_all({"events": trace, "lines": pieces})
    for texts in ([event["text"] for event in hidden["events"]], hidden["lines"]):
        assert KEYS[name] not in "".join(texts)
        assert KEYS[name][4:9] not in "".join(texts)
        assert "".join(texts).startswith("It is ") and name in "".join(texts)
    assert [event["type"] for event in hidden["events"]] == ["delta"] * len(pieces)


ORDINARY = [
    "The quick brown fox jumps over the lazy dog, 1234567890 times in 2026-11-18T10:20:30Z.",
    "sk-proj-… is how such a key begins; sk-proj-Ab3dE6 is a part of one.",
    "deadbeef " * 40,
    "[" + ", ".join(str(number % 256) for number in range(400)) + "]",
    "0x73 0x6b 0x2d 0x70",
    "commit 3f2a9c0d1e2b4a5f60718293a4b5c6d7e8f90a1b\nsha256:" + "ab12" * 16,
    "%20".join(["a"] * 60),
    "\\u00e4\\u00f6\\u00fc" * 30,
    "data:image/png;base64," + base64.b64encode(bytes(range(256)) * 4).decode(),
]


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_stays_as_it_is(hider: Hider, text: str) -> None:
    assert hider.hide(text) == text


def test_a_setting_that_is_a_phrase_is_hidden_only_as_it_is_written() -> None:
    hider = Hider(ambient_secrets({}, {"MODEL": "gpt-5-mini-2026-11"}))
    assert hider.hide("We like GPT 5 mini (2026, 11).") == "We like GPT 5 mini (2026, 11)."
    assert hider.hide("gpt-5-mini-2026-11") == "${MODEL}"


def test_hiding_takes_little_time(hider: Hider) -> None:
    text = "".join(
        f"Row {number}: {number * 7919:x} is not a key, and neither is {number}.\n" for number in range(40_000)
    )
    start = time.process_time()
    assert hider.hide(text) == text
    assert time.process_time() - start < 3  # seconds, for 2 MB; it takes a hundredth of that
