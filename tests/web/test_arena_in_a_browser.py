"""Voting, labelling and watching pages in a real browser: keys, no page flash, nothing wider than a phone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fairtrial.analyse.run import Run
from fairtrial.store import Store
from fairtrial.store.votes import votes

from .test_arena import PAGE, cases, targets

pytestmark = pytest.mark.slow


async def choices(store: Store, run: Run) -> list[str]:
    return [row["choice"] for row in votes(store, run.id)]


@pytest.mark.slow
async def test_votes_by_keyboard_without_a_page_flash(site: str, visitor: Any, run_suite: Any, store: Store) -> None:
    run = await run_suite(targets=targets("paris", "lyon"), cases=cases(6))
    page = visitor
    await page.goto(f"{site}/runs/{run.id}/vote?by=me")
    await page.evaluate("() => { window.same = true; }")
    for number, (key, said) in enumerate(
        (("ArrowLeft", " over "), ("ArrowRight", " over "), ("ArrowDown", "a tie"), ("x", "both bad")), start=2
    ):
        await page.keyboard.press(key)
        await page.get_by_text(f"pair {number} of 6").wait_for()
        assert said in await page.locator("[data-said]").inner_text()
    assert sorted(await choices(store, run))[0] == "neither" and len(await choices(store, run)) == 4
    question = await page.locator(".question").inner_text()
    await page.keyboard.press("s")
    await page.wait_for_function("(old) => document.querySelector('.question').innerText !== old", arg=question)
    assert len(await choices(store, run)) == 4
    await page.keyboard.press("u")
    await page.get_by_text("pair 4 of 6").wait_for()
    assert len(await choices(store, run)) == 3
    assert await page.evaluate("() => window.same") is True  # never reloaded
    await page.get_by_role("table", name="Board").wait_for()
    assert "last=" not in page.url  # what is undone is not revealed again after a reload


@pytest.mark.slow
async def test_an_answer_with_the_focus_scrolls_and_does_not_vote(
    site: str, visitor: Any, run_suite: Any, store: Store
) -> None:
    mocks = [{"id": n, "target": f"mock:{n}", "options": {"answer": "A line.\n\n" * 200 + n}} for n in ("a", "b")]
    run = await run_suite(targets=mocks, cases=cases(2))
    await visitor.goto(f"{site}/runs/{run.id}/vote?by=me")
    answer = visitor.get_by_role("region", name="Left answer")
    await answer.focus()
    await visitor.keyboard.press("ArrowDown")
    await visitor.wait_for_function("() => document.querySelector('.answer').scrollTop > 0")
    assert not await choices(store, run)


@pytest.mark.slow
async def test_voting_works_without_scripts(site: str, browser: Any, run_suite: Any, store: Store) -> None:
    from .conftest import TOKEN

    run = await run_suite(targets=targets("paris", "lyon"), cases=cases(2))
    page = await browser.new_page(java_script_enabled=False, extra_http_headers={"authorization": f"Bearer {TOKEN}"})
    await page.goto(f"{site}/runs/{run.id}/vote?by=me")
    await page.get_by_role("button", name="Left is better").click()
    await page.get_by_text("pair 2 of 2").wait_for()
    await page.get_by_role("button", name="Undo").click()
    await page.get_by_text("pair 1 of 2").wait_for()
    assert not await choices(store, run)
    await page.close()


@pytest.mark.slow
async def test_the_last_preview_is_the_finished_page(site: str, visitor: Any, tmp_path: Path, store: Store) -> None:
    """While the judge still thinks, the whole page is there, not what could be shown before its last words."""
    import yaml

    slow_judge = {"target": "mock:judge", "options": {"verdict": {"otherwise": 5}, "latency_ms": 600_000}}
    document = {
        "name": "pages",
        "targets": [
            {"id": n, "target": f"mock:{n}", "options": {"answer": PAGE, "latency_ms": 1500}} for n in ("one", "two")
        ],
        "judge": slow_judge,
        "scorer": "llm_judge",
        "timeout": 900,
        "cases": [{"id": "page", "input": "Build a page."}],
    }
    (tmp_path / "pages.yaml").write_text(yaml.safe_dump(document))
    await visitor.goto(f"{site}/new?file=pages.yaml")
    await visitor.get_by_role("button", name="Run", exact=True).click()
    await visitor.wait_for_url("**/runs/*")
    await visitor.goto(f"{visitor.url}/pages")
    section = visitor.get_by_role("region", name="two", exact=True)
    await section.get_by_text("being checked").wait_for()
    frame = section.frame_locator("iframe:not([hidden])")
    await frame.get_by_text("The end").wait_for()


@pytest.mark.slow
async def test_long_names_widen_no_page_on_a_phone(site: str, visitor: Any, run_suite: Any) -> None:
    long = [
        {"id": f"{n}-{'y' * 80}", "target": "mock:x", "options": {"answer": n * 300}} for n in ("first", "second")
    ]  # fmt: skip
    run = await run_suite(
        name="suite.yaml", targets=long, cases=[{"id": "c" * 140, "input": "w" * 300, "expected": "no" * 80}]
    )
    await visitor.set_viewport_size({"width": 390, "height": 844})
    ends = ("", "/cases/1", "/cases/1/1/1", "/vote?by=me", "/label", "/board", "/pages", "/share")
    wide = []
    for path in ["/arena", *(f"/runs/{run.id}{end}" for end in ends)]:
        await visitor.goto(site + path)
        for late in await visitor.locator(".pending").all():
            await late.wait_for(state="detached")
        over = await visitor.evaluate("() => document.documentElement.scrollWidth - 390")
        if over > 0:
            wide.append((path, over))
    assert not wide
