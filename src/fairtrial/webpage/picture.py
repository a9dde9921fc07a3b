"""Take a picture of a page that we wrote ourselves, with an installed Chromium and nothing else."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from fairtrial.webpage.browser import ARGUMENTS, NoBrowserError, find_browser, sandboxed

_TIME_LIMIT = 60.0  # seconds; a picture takes about one


def take_picture(html: str, file: Path, *, width: int, height: int) -> bool:
    """Write a PNG of a page and return True; False if there is no browser, or if it fails."""
    try:
        program = find_browser()
    except NoBrowserError:
        return False
    with tempfile.TemporaryDirectory(prefix="fairtrial-", ignore_cleanup_errors=True) as folder:
        page = Path(folder, "page.html")
        page.write_text(html, "utf-8")
        command = [
            program,
            "--headless",
            *ARGUMENTS,
            *([] if sandboxed() else ["--no-sandbox"]),
            "--disable-dev-shm-usage",
            "--no-first-run",
            f"--user-data-dir={folder}/profile",
            f"--window-size={width},{height}",
            f"--screenshot={file.absolute()}",
            page.as_uri(),
        ]
        try:
            subprocess.run(command, timeout=_TIME_LIMIT, capture_output=True, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return False
    return file.is_file() and file.stat().st_size > 0
