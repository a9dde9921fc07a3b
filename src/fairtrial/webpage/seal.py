"""Sealing: a generated page runs, and reaches nothing.

Three walls, since each has a gap: the policy in the page (it cannot forbid WebRTC, nor that a page leaves for another
address), the prelude that runs before the page (it takes away what the policy cannot), and whoever shows the page: in
an iframe with `SANDBOX`, on an origin of its own, inside a document whose `frame-src` allows nothing else.
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
# For whoever serves a sealed page: the same policy, out of the page's reach.
HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": f"{POLICY}; sandbox {SANDBOX}",
    "X-Content-Type-Options": "nosniff",
    "X-DNS-Prefetch-Control": "off",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=(), display-capture=(), usb=(), serial=(), midi=()",
}
_DOCTYPE = re.compile(r"\A\s*<!doctype[^>]*>", re.IGNORECASE)
_SHADOW = re.compile(r"shadowrootmode", re.IGNORECASE)
_SRCDOC = re.compile(r"srcdoc", re.IGNORECASE)  # as long, and still a name: a script that has it stays a script


def sealed(html: str) -> str:
    """The page with its policy as the first bytes, and with the prelude before anything of its own."""
    whole = html.encode("utf-8", "replace").decode("utf-8")  # half a character cannot be sent
    page = _SRCDOC.sub("srcd0c", _SHADOW.sub("data_shadowroot", _DOCTYPE.sub("", whole)))
    return f'<!doctype html><meta http-equiv="Content-Security-Policy" content="{POLICY}">{_prelude()}{page}'


@cache
def _prelude() -> str:
    code = (Path(__file__).parent / "prelude.js").read_text("utf-8")
    bare = re.sub(r"^\s*//.*\n|^\s+", "", code, flags=re.MULTILINE)
    return f"<meta http-equiv=x-dns-prefetch-control content=off><script>{bare}</script>"
