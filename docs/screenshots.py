"""Pictures of every page in light, dark and on a phone: `python -m docs.screenshots [FOLDER]` (`make screenshots`).

The pages show the made-up results of docs/showcase.py. The pictures of the README and of the start page are written to
docs/pictures as well.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path
from typing import Any

from docs.showcase import build
from fairtrial.store import Store
from fairtrial.web.serving import serve_site
from fairtrial.webpage.browser import find_browser

PICTURES = Path(__file__).parent / "pictures"
TOKEN = "a-token-for-pictures"  # noqa: S105  # of a server that lives for a minute
KINDS = {"light": ("light", 1440), "dark": ("dark", 1440), "phone": ("light", 390)}
_READY = "() => !document.querySelector('.pending, [data-pending], #preview > .dim:only-child')"
_HEIGHT = {"run-light": 1000, "run-dark": 1000}  # of the pictures of the documentation: the first screen


def pages(runs: dict[str, str]) -> dict[str, str]:
    """Every page worth a picture, by name."""
    run = f"/runs/{runs['support']}"
    return {
        "home": "/",
        "suites": "/suites",
        "suite": "/suites/edit?file=refund-agent.yaml",
        "new-run": "/new?file=support-qa.yaml",
        "runs": "/runs",
        "run": run,
        "run-differing": f"{run}?show=differing#cases",
        "case": f"{run}/cases/3",
        "trial": f"{run}/cases/3/4/1",
        "agent": f"/runs/{runs['agent']}",
        "series": "/series/nightly",
        "compare": f"/compare?runs={runs['support']}",
        "pair": f"/compare?runs={runs['support']}&a=gpt-6-luna&b=llama-70b",
        "plan": f"/plan?run={runs['support']}",
        "leaderboard": "/board?suite=support-qa",
        "arena": "/arena",
        "vote": f"{run}/vote",
        "label": f"{run}/label",
        "judges": "/judges",
        "optimisation": "/optimisation",
        "styles": f"/runs/{runs['styles']}/styles",
        "share": f"{run}/share",
    }


async def photograph(folder: Path) -> list[str]:
    """Take all pictures; return what was wrong with a page: an error, or content wider than the screen."""
    from playwright.async_api import async_playwright

    problems: list[str] = []
    place = Path(tempfile.mkdtemp())
    runs = await build(place)
    store = Store(f"sqlite:///{place / '.fairtrial' / 'fairtrial.db'}")
    async with serve_site(store, place, token=TOKEN) as address, async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=str(find_browser()), args=["--no-sandbox"])
        for name, path in pages(runs).items():
            for kind, (scheme, width) in KINDS.items():
                page = await browser.new_page(
                    viewport={"width": width, "height": 900},
                    color_scheme=scheme,
                    reduced_motion="reduce",
                    extra_http_headers={"authorization": f"Bearer {TOKEN}"},
                )
                problems += await _picture(page, address.rstrip("/") + path, folder / f"{name}-{kind}.png")
                await page.close()
        await browser.close()
    return problems


async def _picture(page: Any, address: str, file: Path) -> list[str]:
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(f"{file.stem}: {error}"))
    page.on("console", lambda said: problems.append(f"{file.stem}: {said.text}") if said.type == "error" else None)
    reply = await page.goto(address)
    await page.wait_for_function(_READY, timeout=120_000)
    if reply.status != 200:
        problems.append(f"{file.stem}: HTTP {reply.status}")
    over = await page.evaluate("() => document.documentElement.scrollWidth - document.documentElement.clientWidth")
    if over > 1:
        problems.append(f"{file.stem}: {over} px wider than the screen")
    await page.screenshot(path=file, full_page=True)
    if file.stem in _HEIGHT:
        clip = {"x": 0, "y": 0, "width": page.viewport_size["width"], "height": _HEIGHT[file.stem]}
        await page.screenshot(path=PICTURES / file.name, clip=clip, full_page=True)
    return problems


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "screenshots")
    target.mkdir(parents=True, exist_ok=True)
    found = asyncio.run(photograph(target))
    print("\n".join(found) or f"no problems; pictures in {target}")
    sys.exit(1 if found else 0)
