"""Sealing: a generated page runs, but cannot reach the network.

No single measure is enough. The policy in the page forbids requests, but neither WebRTC nor navigation to another
address. The prelude removes what the policy cannot forbid. The browser that shows the page keeps it in place: our own
browser can resolve no host name, and a person's browser shows it in a frame with `SANDBOX`, on its own origin, inside a
document whose `frame-src` allows nothing else.

A person's browser also connects, and looks up names, before it checks any policy. So it gets the page `guarded`:
`Connection-Allowlist` stops Chromium, and the guard ensures that the elements that make Firefox do so never exist, and
that no link leads out of the page: its host would be looked up under the mouse, and a click could open it in a new tab.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

SANDBOX = "allow-scripts"
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'unsafe-inline' 'unsafe-eval'",
        "style-src 'unsafe-inline'",
        "img-src data: blob:",
        "font-src data: blob:",
        "media-src data: blob:",
        "connect-src 'none'",
        "worker-src blob:",
        "frame-src 'none'",
        "object-src 'none'",
        "base-uri 'none'",
        "form-action 'none'",
    )
)
# For our own browser: the same policy, as headers that the page cannot change.
HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": f"{POLICY}; sandbox {SANDBOX}",
    "X-Content-Type-Options": "nosniff",
    "X-DNS-Prefetch-Control": "off",  # Firefox looks up the host names in links; Chromium ignores this
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=(), display-capture=(), usb=(), serial=(), midi=()",
}
# For people's browsers: every text that a script turns into HTML passes through the guard's policy.
_GUARDED_POLICY = f"{POLICY}; require-trusted-types-for 'script'; trusted-types default"
GUARDED_HEADERS = {
    **HEADERS,
    "Content-Security-Policy": f"{_GUARDED_POLICY}; sandbox {SANDBOX}",
    "Connection-Allowlist": "()",
}
# Browsers in which the guarded page was tested against a listener, and the version from which the seal holds.
_HOLDS_FROM = {"Chrome": 152, "Firefox": 153}
HOLDS_IN = "Chrome or Edge 152 or later, or Firefox 153 or later"
_DOCTYPE = re.compile(r"\A\s*<!doctype[^>]*>", re.IGNORECASE)
_SHADOW = re.compile(r"shadowrootmode", re.IGNORECASE)
_SRCDOC = re.compile(
    r"srcdoc", re.IGNORECASE
)  # replaced by a name of the same length, so that a script that uses it stays valid
# Replacements, the same as in `guard.js`: void where the original is, and allowed in the same places.
_REPLACEMENTS = {
    "link": "meta",
    "base": "meta",
    "embed": "wbr",
    "frame": "wbr",
    **{name: f"x-{name}" for name in ("iframe", "object", "portal", "fencedframe")},
}
_REACHING = re.compile(rf"(</?)({'|'.join(_REPLACEMENTS)})(?=[\s/>])", re.IGNORECASE | re.ASCII)
# Where the address of a link to another site begins, in HTML or XML: a `#` is put there, and it leads nowhere. Only its
# beginning is looked at: where a value ends depends on what a browser takes for a tag. A character reference may stand
# for a part of the scheme, or for a slash. Python and JavaScript read these patterns alike.
_REFERENCE = r"&(?:#|colon;|sol;|bsol;|tab;|newline;)"
_LEAVING = (
    rf"(?!javascript:|data:image/)(?:[a-z][a-z0-9+.\-\t\r\n]*(?::|{_REFERENCE})"
    rf"|[/\\][\t\r\n]*(?:[/\\]|{_REFERENCE})|{_REFERENCE})"
)
_LINK = rf"(?<=[\s/\"':])href\s*=[\0-\x20]*(?:[\"'](?=[\0-\x20]*{_LEAVING})|(?={_LEAVING}))"
# Animations in SVG can change an address, too.
_ANIMATION = r"(?<=[\s/\"':])attributename\s*=\s*(?:[\"'](?=\s*[\w:.\-]*(?:href|&))|(?=[\w:.\-]*(?:href|&)))"
_LINKS, _ANIMATIONS = (re.compile(pattern, re.IGNORECASE) for pattern in (_LINK, _ANIMATION))
_BROWSER = re.compile(r"\b(?:Headless)?(Chrome|Firefox)/(\d{1,9})")


def sealed(html: str) -> str:
    """Seal a page for our own browser: the policy comes first, then the prelude, then the page."""
    return _start(POLICY, "prelude.js") + _neutralised(html)


def guarded(html: str) -> str:
    """Seal a page for users' browsers: without the elements and links that connect before a policy is checked."""
    page = _REACHING.sub(lambda match: match[1] + _REPLACEMENTS[match[2].lower()], _neutralised(html))
    page = _ANIMATIONS.sub(r"\g<0>x-", _LINKS.sub(r"\g<0>#", page))
    return _start(_GUARDED_POLICY, "guard.js", "prelude.js") + page


def holds_in(user_agent: str) -> bool:
    """Return whether the guarded page was tested in this browser, or in one that is built from it."""
    match = _BROWSER.search(user_agent)
    return match is not None and int(match[2]) >= _HOLDS_FROM[match[1]]


def _neutralised(html: str) -> str:
    valid = html.encode("utf-8", "replace").decode("utf-8")  # lone surrogates cannot be sent
    return _SRCDOC.sub("srcd0c", _SHADOW.sub("data_shadowroot", _DOCTYPE.sub("", valid)))


@cache
def _start(policy: str, *scripts: str) -> str:
    return (
        f'<!doctype html><meta http-equiv="Content-Security-Policy" content="{policy}">'
        f"<meta http-equiv=x-dns-prefetch-control content=off>{''.join(map(_script, scripts))}"
    )


def _script(name: str) -> str:
    code = (Path(__file__).parent / name).read_text("utf-8")
    bare = re.sub(r"^\s*//.*\n|^\s+", "", code, flags=re.MULTILINE)
    for constant, pattern in (("FAIRTRIAL_LINK", _LINK), ("FAIRTRIAL_ANIMATION", _ANIMATION)):
        bare = bare.replace(constant, json.dumps(pattern))
    return f"<script>{bare}</script>"
