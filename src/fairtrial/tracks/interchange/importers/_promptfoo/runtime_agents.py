"""Agents that fairtrial has no target for, in the form in which it calls functions."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from fairtrial.tracks.interchange.importers._promptfoo.runtime import (
    FOLDER,
    as_text,
    expanded,
    filled,
    javascript,
    prompt_text,
)


def call_codex(
    flags: list[str], schema: Any, images: list[str], env: dict[str, str], messages: list[dict[str, Any]]
) -> dict[str, Any]:
    """Let Codex work on a prompt: `codex exec`, one session of its own."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        words = ["codex", "exec", "--json", *expanded(flags)]
        if schema is not None:
            file = Path(folder) / "schema.json"
            file.write_text(json.dumps(schema), "utf-8")
            words += ["--output-schema", str(file)]
        words += [word for image in images for word in ("--image", str(FOLDER / image))]
        done = subprocess.run(
            [*words, "-"],
            input=prompt_text(messages),
            capture_output=True,
            text=True,
            cwd=FOLDER,
            check=False,
            env={**os.environ, **expanded(env)},
        )
    events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    items = [event["item"] for event in events if event.get("type") == "item.completed"]
    texts = [str(item.get("text", "")) for item in items if item.get("type") == "agent_message"]
    if not texts:
        raise RuntimeError(done.stderr.strip()[-500:] or "Codex said nothing")
    usage = [event["usage"] for event in events if event.get("type") == "turn.completed" and event.get("usage")]
    calls = [
        {
            "tool": item.get("tool") or item["type"],
            "arguments": item.get("arguments") or {"command": item.get("command")},
        }
        for item in items
        if item.get("type") in ("command_execution", "mcp_tool_call", "web_search", "file_change")
    ]
    spent = (
        {"prompt_tokens": usage[-1]["input_tokens"], "completion_tokens": usage[-1]["output_tokens"]} if usage else {}
    )
    return {"text": texts[-1], "tool_calls": calls, **({"usage": spent} if spent else {})}


def call_opencode(
    model: str, settings: dict[str, Any], folder: str, flags: list[str], messages: list[dict[str, Any]]
) -> dict[str, Any]:
    """Let OpenCode work on a prompt: `opencode run`, one session of its own (install its CLI)."""
    words = ["opencode", "run", "--format", "json", *(["--model", expanded(model)] if model else []), *flags]
    env = {**os.environ, "OPENCODE_CONFIG_CONTENT": json.dumps(expanded(settings))}
    done = subprocess.run(
        [*words, prompt_text(messages)],
        capture_output=True,
        text=True,
        cwd=FOLDER / expanded(folder) if folder else FOLDER,
        check=False,
        env=env,
        stdin=subprocess.DEVNULL,
    )
    events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    parts = [event.get("part") or {} for event in events]
    texts = [str(part.get("text", "")) for part in parts if part.get("type") == "text"]
    if not texts:
        raise RuntimeError(done.stderr.strip()[-500:] or "OpenCode said nothing")
    calls = [
        {"tool": part.get("tool"), "arguments": (part.get("state") or {}).get("input")}
        for part in parts
        if part.get("type") == "tool"
    ]
    cost = sum(part.get("cost") or 0 for part in parts if part.get("type") == "step-finish")
    return {"text": texts[-1], "tool_calls": calls, **({"cost_usd": cost} if cost else {})}


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
