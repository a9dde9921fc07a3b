"""Every page: no serious finding of axe, in light and dark, nothing that runs out of a phone's screen, and nothing that
would keep a browser from painting it at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fairtrial.store import Store
from tests.axe import serious

from .conftest import CAPITALS

pytestmark = pytest.mark.slow
# Before it paints a page, a browser waits for the page itself and for what blocks it. How long that takes depends on the
# machine (benchmarks/web.py measures it); how much there is to wait for does not.
LOADED = """() => ({ page: performance.getEntriesByType("navigation")[0].encodedBodySize,
  files: performance.getEntriesByType("resource").map((one) =>
    [one.initiatorType, one.renderBlockingStatus, one.encodedBodySize, new URL(one.name).pathname]) })"""
NARROW, WIDE = ("dark", 390), ("light", 1280)


async def hindrances(page: Any) -> list[str]:
    """What makes a first paint late: scripts that block it, many files, many bytes."""
    loaded = await page.evaluate(LOADED)
    blocking = [file for file in loaded["files"] if file[1] == "blocking"]
    found = [f"{path} blocks the first paint" for kind, _, _, path in blocking if not path.endswith(".css")]
    if len(blocking) > 2:
        found.append(f"{len(blocking)} files before the first paint")
    if (size := loaded["page"] + sum(file[2] for file in blocking)) > 300_000:
        found.append(f"{size} bytes before the first paint")
    if len(loaded["files"]) > 12:
        found.append(f"{len(loaded['files'])} files")
    return found


async def overflow(page: Any) -> list[str]:
    over = await page.evaluate("() => document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return [f"{over} px wider than the screen"] if over > 1 else []


async def show(page: Any, scheme: str, width: int) -> None:
    await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    await page.set_viewport_size({"width": width, "height": 900})


@pytest.fixture
async def addresses(tmp_path: Path, store: Store) -> list[str]:
    """Every kind of page there is, with something on it."""
    from fairtrial import pipeline
    from fairtrial.config import RunOptions, judge_named
    from fairtrial.core.variables import Variables
    from fairtrial.workflows.calibrate import acalibrate

    (tmp_path / "capitals.yaml").write_text(CAPITALS)
    (tmp_path / "broken.yaml").write_text("name: broken\ntargets: [mock:nobody]\ncases: [{inputt: x}]\n")
    suite = pipeline.load("capitals.yaml", RunOptions(repeats=2))
    runs = [await pipeline.arun(suite, store=store, series=pipeline.SeriesPlan("s1", 2)) for _ in range(2)]
    problems = {
        "name": "styles",
        "targets": [
            {"id": "m", "target": "mock:m", "options": {"answer": '{"x": [0,0,0,0,0,0,0,0,0,0], "objective_value": 0}'}}
        ],
        "suite": {"kind": "optimisation", "ids": ["original-10", "box_qp-10"]},
        "repeats": 1,
    }
    import yaml

    (tmp_path / "styles.yaml").write_text(yaml.safe_dump(problems))
    styles = await pipeline.arun(pipeline.load("styles.yaml"), store=store)
    text = "name: judge\ntargets: [mock:x]\n"
    judge = judge_named("mock:echo", Variables({}), tmp_path, text)
    await acalibrate(judge, store=store)
    calibration = store.engine.connect().exec_driver_sql("select id from calibrations").scalar()
    run = runs[-1].id
    return [
        "/", "/plan", f"/plan?run={run}", "/new", "/suites", "/suites/edit?file=capitals.yaml", "/suites/edit?file=broken.yaml", "/new?file=capitals.yaml",
        "/new?file=broken.yaml", "/runs", "/runs?text=nothing", f"/runs/{run}", f"/runs/{run}?show=failed", "/series/s1",
        f"/runs/{run}/cases/3", f"/runs/{run}/cases/3/2/1", f"/runs/{run}/cases/3/2/1/side-by-side?arm=1", f"/runs/{run}/share", f"/runs/{run}/label", f"/runs/{run}/vote",
        f"/runs/{run}/board", f"/runs/{run}/pages", "/compare", f"/compare?runs={run}",
        f"/compare?runs={run}&a=good&b=poor&margin=5", "/board", "/arena", "/judges", f"/judges/{calibration}",
        "/optimisation", "/optimisation/box_qp-10", f"/runs/{styles.id}/styles", "/enter", "/nowhere",
    ]  # fmt: skip


@pytest.mark.slow
async def test_no_page_has_a_serious_finding_or_runs_out_of_a_phone(
    site: str, visitor: Any, addresses: list[str]
) -> None:
    found: dict[str, Any] = {}
    for address in addresses:
        await show(visitor, *NARROW)
        reply = await visitor.goto(site + address)
        assert reply.status == (404 if address == "/nowhere" else 200), (address, reply.status)
        for late in await visitor.locator(".pending").all():  # parts of a page that come when they are worked out
            await late.wait_for(state="detached")
        # What is dark and narrow differs in its colours alone.
        problems = [*await serious(visitor, "color-contrast"), *await overflow(visitor), *await hindrances(visitor)]
        await show(visitor, *WIDE)  # no script asks for the width or for the colours: the styles do it all
        problems += [*await serious(visitor), *await overflow(visitor)]
        if problems:
            found[address] = problems
    visitor.broken[:] = [words for words in visitor.broken if "404" not in words]
    assert not found, "\n".join(f"{where}: {what}" for where, what in found.items())
