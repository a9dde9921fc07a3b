"""The serious findings of axe on a page."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

_RUN = """(only) => axe.run(document,
  {resultTypes: ['violations'], iframes: false, preload: false, ...(only && {runOnly: [only]})})"""


async def serious(page: Any, only: str | None = None) -> list[str]:
    """What is serious or critical, by all rules or by one."""
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(_axe())
    found = await page.evaluate(_RUN, only)
    return [
        f"{one['impact']}: {one['id']}: {one['help']}: {one['nodes'][0]['html'][:160]}"
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
    ]


@cache
def _axe() -> str:
    import axe_playwright_python

    return (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text("utf-8")
