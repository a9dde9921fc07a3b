"""The documentation as a site: it builds without a warning, has every page, and asks no other host for anything."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from docs import site

REPO = Path(__file__).parent.parent
PAGES = site.places()


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    try:
        return site.build(tmp_path_factory.mktemp("site") / "docs")
    except subprocess.CalledProcessError as error:
        pytest.fail(f"{error.stdout}{error.stderr}")


@pytest.mark.slow
def test_every_page_is_built(built):
    for place in PAGES.values():
        assert (built / place).with_suffix(".html").is_file()


@pytest.mark.slow
def test_nothing_is_loaded_from_another_host(built):
    loading = re.compile(
        r"<(?:script|img|iframe|source|video|audio|link)\b[^>]*\b(?:src|href|srcset)=\"?(?:https?:)?//[^>]*>"
    )
    for page in built.rglob("*.html"):
        assert not loading.findall(page.read_text("utf-8")), page.name
    for style in built.rglob("*.css"):
        assert not re.findall(r"(?:@import|url\()\s*[\"']?(?:https?:)?//", style.read_text("utf-8")), style.name
    for picture in built.rglob("*.svg"):
        assert "<script" not in picture.read_text("utf-8")


@pytest.mark.slow
def test_guides_can_be_searched_and_history_is_left_out(built):
    found = {entry["location"].partition("#")[0] for entry in json.loads((built / "search.json").read_text())["items"]}
    assert {"judges.html", "reference/commands.html", "cookbook/index.html"} <= found
    assert not any(location.startswith(("design/", "benchmarks/")) for location in found)


def test_every_page_is_in_the_navigation():
    written = {*(REPO / "docs").rglob("*.md"), *(REPO / "benchmarks").glob("*.md"), *REPO.glob("*.md")}
    assert written - {REPO / "README.md"} <= PAGES.keys()
    examples = {path for path in (REPO / "examples").iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert examples <= PAGES.keys()


@pytest.mark.slow
@pytest.mark.parametrize("link", ["nowhere.md", "judges.md#no-such-heading"])
def test_a_dead_link_fails_the_build(link, tmp_path, monkeypatch):
    """Links out of the site are left out of its pages; dead ones within it are the generator's to find."""
    for name in ("theme", "pictures"):
        shutil.copytree(REPO / "docs" / name, tmp_path / "docs" / name)
    shutil.copy(REPO / "docs/zensical.toml", tmp_path / "docs")
    (tmp_path / "docs/judges.md").write_text("# Judges\n")
    (tmp_path / "docs/index.md").write_text(f"# Start\n\n[one]({link})\n")
    monkeypatch.setattr(site, "REPO", tmp_path)
    monkeypatch.setattr(site, "DOCS", tmp_path / "docs")
    monkeypatch.setattr(site, "NAVIGATION", {"Start": ["docs/index.md", "docs/judges.md"]})
    if link == "nowhere.md":
        with pytest.raises(FileNotFoundError, match=r"index.md links to nowhere.md"):
            site.build(tmp_path / "out")
    else:
        with pytest.raises(subprocess.CalledProcessError):
            site.build(tmp_path / "out")


@pytest.mark.slow
async def test_search_works_from_a_folder(built, browser):
    """As a reader does who downloaded the pages: no server, no network."""
    page = await browser.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    await page.goto((built / "judges.html").as_uri())
    field = page.get_by_placeholder("Search")
    while not await field.is_visible():
        await page.keyboard.press("/")
        await page.evaluate("() => new Promise(requestAnimationFrame)")
    await field.fill("calibrate")
    await page.get_by_text("Changing the judge afterwards").last.wait_for()
    assert all(address.startswith(("file:", "data:", "blob:")) for address in asked)
    await page.close()
