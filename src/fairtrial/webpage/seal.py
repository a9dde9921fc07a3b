"""Sealing: a generated page runs, and what it tries to reach is not reached.

No wall is enough alone. The policy in the page forbids requests, but not WebRTC, nor that a page leaves for another
address. The prelude takes away what the policy cannot forbid. Whoever shows the page holds it where it is: our own
browser can resolve no name, and a person's browser has it in a frame with `SANDBOX`, on an origin of its own, inside a
document whose `frame-src` allows nothing else.

A person's browser also connects, and looks up names, before it asks any policy. So it gets the page `guarded`: Chromium
is told by `Connection-Allowlist`, and the guard sees to it that the elements that make Firefox do so never exist.
"""

from __future__ import annotations

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
# For our own browser: the same policy, out of the page's reach.
HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": f"{POLICY}; sandbox {SANDBOX}",
    "X-Content-Type-Options": "nosniff",
    "X-DNS-Prefetch-Control": "off",  # Firefox looks up the names in links; Chromium does not care
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=(), display-capture=(), usb=(), serial=(), midi=()",
}
# For people's browsers: every text that a script makes into HTML passes the guard's own policy.
_GUARDED_POLICY = f"{POLICY}; require-trusted-types-for 'script'; trusted-types default"
GUARDED_HEADERS = {
    **HEADERS,
    "Content-Security-Policy": f"{_GUARDED_POLICY}; sandbox {SANDBOX}",
    "Connection-Allowlist": "()",
}
# Where the guarded page was tried against a listener, and the version from which it holds.
_HOLDS_FROM = {"Chrome": 152, "Firefox": 153}
HOLDS_IN = "Chrome or Edge 152 or later, or Firefox 153 or later"
_DOCTYPE = re.compile(r"\A\s*<!doctype[^>]*>", re.IGNORECASE)
_SHADOW = re.compile(r"shadowrootmode", re.IGNORECASE)
_SRCDOC = re.compile(r"srcdoc", re.IGNORECASE)  # as long, and still a name: a script that has it stays a script
# What `guard.js` makes of them too: as void as they were, and allowed where they stood.
_INSTEAD = {
    "link": "meta",
    "base": "meta",
    "embed": "wbr",
    "frame": "wbr",
    **{name: f"x-{name}" for name in ("iframe", "object", "portal", "fencedframe")},
}
_REACHING = re.compile(rf"(</?)({'|'.join(_INSTEAD)})(?=[\s/>])", re.IGNORECASE | re.ASCII)
_BROWSER = re.compile(r"\b(?:Headless)?(Chrome|Firefox)/(\d{1,9})")


def sealed(html: str) -> str:
    """Seal a page for our own browser: its policy as the first bytes, and the prelude before anything of its own."""
    return _start(POLICY, "prelude.js") + _tamed(html)


def guarded(html: str) -> str:
    """Seal a page for people's browsers: without any element that reaches out before a policy is asked."""
    page = _REACHING.sub(lambda found: found[1] + _INSTEAD[found[2].lower()], _tamed(html))
    return _start(_GUARDED_POLICY, "guard.js", "prelude.js") + page


def holds_in(user_agent: str) -> bool:
    """Whether the guarded page was tried in this browser, or in one that is built from it."""
    found = _BROWSER.search(user_agent)
    return found is not None and int(found[2]) >= _HOLDS_FROM[found[1]]


def _tamed(html: str) -> str:
    whole = html.encode("utf-8", "replace").decode("utf-8")  # half a character cannot be sent
    return _SRCDOC.sub("srcd0c", _SHADOW.sub("data_shadowroot", _DOCTYPE.sub("", whole)))


@cache
def _start(policy: str, *scripts: str) -> str:
    return (
        f'<!doctype html><meta http-equiv="Content-Security-Policy" content="{policy}">'
        f"<meta http-equiv=x-dns-prefetch-control content=off>{''.join(map(_script, scripts))}"
    )


def _script(name: str) -> str:
    code = (Path(__file__).parent / name).read_text("utf-8")
    bare = re.sub(r"^\s*//.*\n|^\s+", "", code, flags=re.MULTILINE)
    return f"<script>{bare}</script>"
