"""A site of runs: static files that open from a disk and from any web space, with badges and pictures for links."""

import functools
import http.server
import itertools
import json
import re
import threading
import xml.etree.ElementTree as ET

import pytest
from click.testing import CliRunner

import fairtrial as ft
from fairtrial.analyse.leaderboard import run_leaderboard
from fairtrial.cli.main import cli
from fairtrial.core.errors import FairtrialError
from fairtrial.present.words.leaderboards import headline
from fairtrial.reports import html_answers
from fairtrial.reports.badge import badge, badge_words
from fairtrial.reports.card import card
from fairtrial.reports.site import write_site
from fairtrial.webpage import picture
from tests.analyse.test_compare import arm, cases
from tests.axe import serious
from tests.lazily import Library

from .test_html import EVIL

playwright = Library("playwright.async_api")

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def no_browser(monkeypatch):
    """A machine without Chromium: pictures are SVG, and a site is written in a moment."""
    monkeypatch.setattr("fairtrial.webpage.picture.take_picture", lambda *_, **__: False)


@pytest.fixture
async def runs(run_suite):
    """Two runs of one suite, with one arm in both, and answers that mean harm."""
    wild = {"answers": {"c01": EVIL}, "answer": "x"}
    shared = {"id": "m<b>", "target": "mock:x", "options": wild}
    first = await run_suite(targets=[shared, arm("good", 18, 24)], cases=cases(24))
    second = await run_suite(targets=[shared, arm("poor", 4, 24)], cases=cases(24))
    return first, second


def texts(folder):
    """Every file of a site that is text, by name."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".png")
    return {path.relative_to(folder).as_posix(): path.read_text("utf-8") for path in files}


@pytest.mark.slow
async def test_one_run_is_one_page(runs, visit, tmp_path, no_browser):
    site = write_site(runs[:1], tmp_path / "site")
    assert site.pages == 1 and "SVG" in " ".join(site.notes) and "--base-url" in " ".join(site.notes)
    assert sorted(texts(site.folder)) == [
        f"answers/{runs[0].id}-0.js", "badge.svg", "fairtrial-site.json", "index.html", "og.svg",
    ]  # fmt: skip
    page = await visit(site.folder / "index.html")
    assert await page.inner_text("h1") == headline(run_leaderboard(runs[0])) and page.trouble == []
    await page.fill("#search", "document.title")
    await playwright.expect(page.locator("#count")).to_have_text("1 of 24 cases")
    await page.click("#list .side1 >> nth=1")
    assert EVIL in await page.inner_text("#list .trial") and await page.title() != "owned" and page.trouble == []


@pytest.mark.slow
async def test_several_runs_have_an_index(runs, visit, tmp_path, no_browser):
    site = write_site(runs, tmp_path / "site")
    assert site.pages == 3
    page = await visit(site.folder / "index.html")
    for width, scheme in itertools.product((1200, 390), ("light", "dark")):
        await page.set_viewport_size({"width": width, "height": 900})
        await page.emulate_media(color_scheme=scheme)
        assert await page.evaluate("document.documentElement.scrollWidth") <= width
        # What is dark differs in its colours alone.
        assert await serious(page, "color-contrast" if scheme == "dark" else None) == [], (width, scheme)
    arms = await page.locator(".forest .arm").all_inner_texts()
    assert sorted(arms) == ["good", "m<b>", "poor"]  # every arm once, from its latest run
    assert await page.locator(".runlist li").count() == 2
    await page.focus(".runlist a >> nth=0")
    await page.keyboard.press("Enter")
    await page.wait_for_selector("html[data-ready] #list .q")
    assert await page.inner_text("h1") == headline(run_leaderboard(runs[1]))  # the newest is first
    await page.click(".brand")
    await page.wait_for_selector(".runlist")
    assert page.trouble == []


@pytest.mark.slow
async def test_it_works_from_a_web_space_and_asks_nobody_else(runs, browser, tmp_path, no_browser):
    site = write_site(runs, tmp_path / "site")
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=site.folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        origin = f"http://127.0.0.1:{server.server_port}"
        page, wrong = await browser.new_page(), []
        page.on(
            "request", lambda request: None if request.url.startswith((origin, "data:")) else wrong.append(request.url)
        )
        page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
        await page.goto(f"{origin}/{runs[0].id}.html")
        await playwright.expect(page.locator("#count")).to_have_text("24 cases")
        server.shutdown()
    assert wrong == []


@pytest.mark.slow
async def test_addresses_are_relative_and_secrets_stay_out(run_suite, tmp_path, monkeypatch, no_browser):
    monkeypatch.setenv("MY_SECRET", "sk-very-secret-value")
    runs = [
        await run_suite(
            targets=[{"id": name, "target": "mock:echo"}],
            system="key ${MY_SECRET}",
            cases=[{"input": "say ${MY_SECRET}", "expected": "x"}],
        )
        for name in "ab"
    ]
    site = write_site(runs, tmp_path / "site")
    for name, text in texts(site.folder).items():
        assert "very-secret" not in text and str(tmp_path) not in text, name
        for address in re.findall(r'(?:href|src)="([^"]*)"', text):
            assert not address.startswith(("/", "http", "file")), (name, address)


@pytest.mark.slow
async def test_writing_it_again_removes_what_is_gone_and_nothing_else(runs, tmp_path, no_browser):
    folder = tmp_path / "site"
    write_site(runs, folder)
    (folder / "CNAME").write_text("example.org")
    write_site(runs[:1], folder)
    names = set(texts(folder))
    assert "CNAME" in names and not any(runs[1].id in name for name in names)
    (folder / "fairtrial-site.json").write_text(json.dumps({"files": ["../kept.txt"]}))
    (tmp_path / "kept.txt").write_text("mine")
    write_site(runs[:1], folder)
    assert (tmp_path / "kept.txt").exists()
    other = tmp_path / "other"
    other.mkdir()
    (other / "index.html").write_text("mine")
    with pytest.raises(FairtrialError, match="did not write"):
        write_site(runs, other)
    with pytest.raises(FairtrialError, match="is a file"):
        write_site(runs, tmp_path / "kept.txt")
    assert (other / "index.html").read_text() == "mine"


@pytest.mark.slow
async def test_links_to_it_have_a_title_and_a_picture(runs, tmp_path, chromium):
    folder = ft.report(list(runs), site=tmp_path / "site", base_url="https://example.org/evals/")
    page = (folder / f"{runs[0].id}.html").read_text()
    assert f'og:image" content="https://example.org/evals/og/{runs[0].id}.png"' in page
    assert f'og:url" content="https://example.org/evals/{runs[0].id}.html"' in page
    assert 'og:title" content="' in page and "<script>document" not in page
    for name in ("og.png", f"og/{runs[0].id}.png"):
        head = (folder / name).read_bytes()[:24]
        assert head.startswith(b"\x89PNG") and (int.from_bytes(head[16:20]), int.from_bytes(head[20:24])) == (1200, 630)


@pytest.mark.slow
async def test_the_command_line(runs, tmp_path, store, no_browser):
    def call(*args):
        found = CliRunner().invoke(cli, ["report", *args, "--store", store.address], standalone_mode=False)
        return found.exception, found.stderr

    assert call("--site", str(tmp_path / "s"), "--suite", "test")[1].startswith(
        f"written: {tmp_path / 's'}/index.html (3 pages)"
    )
    assert call(runs[0].id, runs[1].id, "--site", str(tmp_path / "t"))[0] is None
    assert call("--site", str(tmp_path / "u"))[0] is None and (tmp_path / "u/badge.svg").exists()  # the latest
    for args, said in (
        ((runs[0].id, runs[1].id), "--site DIR writes several"),
        (("--base-url", "https://x.org"), "go with --site"),
        (("--site", "x", "--base-url", "x.org"), "begins with https://"),
        (("--site", "x", "--suite", "nothing"), "the suites are: test"),
    ):
        assert said in str(call(*args)[0]), args
    with pytest.raises(FairtrialError, match="`site` writes several"):
        ft.report(list(runs))


@pytest.mark.slow
async def test_badges(runs, run_suite):
    tiers = run_leaderboard(runs[0])
    assert re.fullmatch(r"good 75\.0 (± [\d.]+|\([\d.]+ to [\d.]+\)) · leads", badge_words(tiers))
    drawn = ET.fromstring(badge(run_leaderboard(runs[1])))
    assert drawn.find(f"{SVG}title").text.startswith("fairtrial: ") and "script" not in badge(tiers)
    one = await run_suite(targets=[arm("<m>", 1, 1)], cases=cases(1))
    assert badge_words(run_leaderboard(one)) == "<m> 100.0" and ET.fromstring(badge(run_leaderboard(one))) is not None
    none = await run_suite(targets=[arm("m", 1, 3, faults={"refused": 1.0})], cases=cases(3), retry={"attempts": 1})
    assert badge_words(run_leaderboard(none)) == "no score yet"
    tied = await run_suite(targets=[arm("a", 3, 6), arm("b", 3, 6)], cases=cases(6))
    assert badge_words(run_leaderboard(tied)).endswith(" · tied")
    for found in (one, none, tied):
        tiers = run_leaderboard(found)
        assert ET.fromstring(card(tiers, headline(tiers) * 3, suite="s<", facts="&")).get("width") == "1200"


def test_no_browser_means_no_picture(tmp_path, monkeypatch):
    monkeypatch.setenv("FAIRTRIAL_BROWSER", "/no/such/browser")
    assert not picture.take_picture("<p>x</p>", tmp_path / "x.png", width=10, height=10)


@pytest.mark.slow
async def test_many_answers_are_loaded_in_pieces(run_suite, visit, tmp_path, no_browser, monkeypatch):
    monkeypatch.setattr(html_answers, "_PIECE", 5000)
    long = {f"c{n:02}": f"answer {n} " * 100 for n in range(24)}
    run = await run_suite(targets=[{"id": "m", "target": "mock:x", "options": {"answers": long}}], cases=cases(24))
    site = write_site([run], tmp_path / "site")
    assert len(list((site.folder / "answers").iterdir())) >= 4
    page = await visit(site.folder / "index.html")
    loaded = await page.locator("script[src]").count()
    await page.fill("#search", "answer 23 answer")
    await playwright.expect(page.locator("#count")).to_have_text("1 of 24 cases")
    assert await page.locator("script[src]").count() > loaded and page.trouble == []


@pytest.mark.slow
async def test_a_piece_that_is_missing_is_said(runs, visit, tmp_path, no_browser):
    site = write_site(runs[:1], tmp_path / "site")
    for file in (site.folder / "answers").iterdir():
        file.unlink()
    page = await visit(site.folder / "index.html")
    assert "could not be loaded" in await page.inner_text("#count")
