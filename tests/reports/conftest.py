"""Pages in a real browser, with everything that goes wrong or over the network remembered."""

from pathlib import Path

import pytest


@pytest.fixture
async def visit(browser):
    """Open a file, and remember everything that went wrong or over the network."""

    opened = []

    async def open_page(path: Path, **options):
        page = await browser.new_page(**options)
        opened.append(page)
        page.trouble = []
        page.on("console", lambda message: page.trouble.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: page.trouble.append(str(error)))
        page.on(
            "request",
            lambda request: (
                None if request.url.startswith(("file:", "data:", "blob:")) else page.trouble.append(request.url)
            ),
        )
        await page.goto(path.absolute().as_uri())
        await page.wait_for_selector("html[data-ready]")
        return page

    yield open_page
    for page in opened:
        await page.close()
