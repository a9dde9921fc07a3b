"""Find an installed browser, and the arguments that keep it off the network."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from shutil import which

from fairtrial.core.errors import FairtrialError

_SHELLS = ("chromium-headless-shell", "chrome-headless-shell", "headless_shell")  # preferred: they support virtual time
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge")
_PLACES = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
    "C:/Program Files/Google/Chrome/Application/chrome.exe",
    "C:/Program Files (x86)/Google/Chrome/Application/chrome.exe",
    "C:/Program Files (x86)/Microsoft/Edge/Application/msedge.exe",
)
_CHROMIUMS = ("chrome-linux*/chrome", "chrome-mac*/Chromium.app/Contents/MacOS/Chromium", "chrome-win*/chrome.exe")
# Nothing may reach the network: no host name resolves, and IP addresses go to a proxy that does not exist.
ARGUMENTS = (
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--proxy-server=http://127.0.0.1:9",
    "--proxy-bypass-list=<-loopback>",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-gpu",
    "--hide-scrollbars",
    "--mute-audio",
    "--autoplay-policy=no-user-gesture-required",
    "--force-color-profile=srgb",
    "--js-flags=--max-old-space-size=512",
)


class NoBrowserError(FairtrialError):
    """No usable browser is installed."""


def find_browser() -> str:
    """Return the program of an installed Chromium or Chrome; raise NoBrowserError with how to get one."""
    named = os.environ.get("FAIRTRIAL_BROWSER")
    if named:
        if program := which(named):
            return program
        raise NoBrowserError(f"FAIRTRIAL_BROWSER is set to {named}, but there is no such program")
    places = [
        *filter(None, map(which, _SHELLS)),
        *_downloaded(
            "chromium_headless_shell", ("*headless*shell*linux*/*headless*shell", "chrome-linux*/headless_shell")
        ),
        *filter(None, map(which, _NAMES)),
        *(place for place in _PLACES if Path(place).is_file()),
        *_downloaded("chromium", _CHROMIUMS),
    ]
    if places:
        return places[0]
    raise NoBrowserError(f"no browser found: {_install_hint()}, or set FAIRTRIAL_BROWSER to its program")


def usable_browser() -> str:
    """Return the browser's program if the packages that drive it are installed too."""
    program = find_browser()
    if find_spec("playwright") is None or find_spec("PIL") is None:
        raise NoBrowserError("packages to open pages in a browser are missing: pip install 'fairtrial[arena]'")
    return program


def _install_hint() -> str:
    if sys.platform == "linux":
        return "install one (`apt install chromium-headless-shell`, or `playwright install chromium`)"
    return "install Chrome, or run `playwright install chromium`"


def _downloaded(kind: str, names: Iterable[str]) -> list[str]:
    """Return the browsers that `playwright install` has downloaded, newest first."""
    cache = {"linux": "~/.cache", "darwin": "~/Library/Caches"}.get(sys.platform, "~/AppData/Local")
    folder = Path(os.environ.get("PLAYWRIGHT_BROWSERS_PATH") or f"{cache}/ms-playwright").expanduser()
    return [str(path) for name in names for path in sorted(folder.glob(f"{kind}-*/{name}"), reverse=True)]


def gives_frames(program: str) -> bool:
    """Return whether frames can be driven from outside, as virtual time needs: a headless shell on Linux."""
    return sys.platform == "linux" and re.search("headless.shell", Path(program).name) is not None


def sandboxed() -> bool:
    """Return whether to use Chromium's own sandbox: not as root, and not if it is turned off."""
    if os.environ.get("FAIRTRIAL_BROWSER_SANDBOX", "").lower() in ("0", "off", "no", "false"):
        return False
    return getattr(os, "geteuid", lambda: 1)() != 0
