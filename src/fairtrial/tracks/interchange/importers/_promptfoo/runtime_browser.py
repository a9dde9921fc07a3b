"""A browser that is driven step by step, which fairtrial has no target for."""

from __future__ import annotations

from typing import Any

from fairtrial.tracks.interchange.importers._promptfoo.runtime import as_text, filled, javascript, prompt_text


def call_browser(
    messages: list[dict[str, Any]],
    values: dict[str, Any],
    *,
    steps: list[Any],
    answer: str,
    headless: bool = True,
    connect: str = "",
    cookies: Any = None,
    timeout: float = 30000,
) -> Any:
    """Carry out steps in a browser, and return what they extract (`pip install playwright`)."""
    from playwright.sync_api import sync_playwright

    given, extracted = {**values, "prompt": prompt_text(messages)}, {}
    with sync_playwright() as play:
        browser = play.chromium.connect_over_cdp(connect) if connect else play.chromium.launch(headless=headless)
        page = (browser.contexts[0] if connect and browser.contexts else browser.new_context()).new_page()
        page.set_default_timeout(timeout)
        if isinstance(cookies, list):
            page.context.add_cookies(cookies)
        for step in steps:
            found = _browse(page, step["action"], filled(step.get("args") or {}, given))
            if step.get("name"):
                extracted[step["name"]] = found
        whole = page.content()
        page.close()
        if not connect:
            browser.close()
    last = next(reversed(extracted.values()), whole)
    code = f"(extracted, finalHtml) => {{ {answer} }}"
    return as_text(javascript(code, extracted, whole)) if answer else str(last)


def _browse(page: Any, action: str, args: dict[str, Any]) -> Any:
    """Carry out one step; return what it extracts."""
    if action == "navigate":
        page.goto(args["url"])
    elif action == "click":
        if not args.get("optional") or page.locator(args["selector"]).count():
            page.click(args["selector"])
    elif action == "type":
        text, enter = str(args["text"]), "<enter>"
        page.fill(args["selector"], text.replace(enter, ""))
        if enter in text:
            page.press(args["selector"], "Enter")
    elif action == "wait":
        page.wait_for_timeout(args["ms"])
    elif action == "screenshot":
        page.screenshot(path=args.get("path") or args.get("filePath"), full_page=bool(args.get("fullPage")))
    elif action == "waitForNewChildren":
        selector = f"{args.get('parentSelector') or args.get('selector')} > *"
        before = page.locator(selector).count()
        page.wait_for_timeout(args.get("delay") or 0)
        page.wait_for_function("([s, n]) => document.querySelectorAll(s).length > n", arg=[selector, before])
    elif action == "extract":
        script = args.get("script")
        return page.evaluate(script) if script else page.locator(args["selector"]).last.inner_text()
    else:
        raise RuntimeError(f"a browser step cannot be {action!r}")
    return None
