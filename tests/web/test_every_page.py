"""Every page: no serious finding of axe, in light and dark, and nothing that runs out of a phone's screen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import axe_playwright_python
import pytest

from fairtrial.store import Store

from .conftest import CAPITALS

pytestmark = pytest.mark.slow
AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text("utf-8")
RUN = "(only) => axe.run(document, {resultTypes: ['violations'], iframes: false, ...(only && {runOnly: [only]})})"


async def findings(page: Any, only: str | None = None) -> list[str]:
    await page.evaluate(AXE)
    found = await page.evaluate(RUN, only)
    return [
        f"{one['impact']}: {one['id']}: {one['help']}: {one['nodes'][0]['html'][:160]}"
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
    ]


@pytest.fixture
async def addresses(tmp_path: Path, store: Store) -> list[str]:
    """Every kind of page there is, with something on it."""
    from fairtrial import pipeline
    from fairtrial.config import judge_named
    from fairtrial.config.suite import RunOptions
    from fairtrial.core.variables import Variables
    from fairtrial.workflows.calibrate import acalibrate

    (tmp_path / "capitals.yaml").write_text(CAPITALS)
    (tmp_path / "broken.yaml").write_text("name: broken\ntargets: [mock:nobody]\ncases: [{inputt: x}]\n")
    suite = pipeline.load("capitals.yaml", RunOptions(repeats=2))
    runs = [await pipeline.arun(suite, store=store, series=pipeline.Series("s1", 2)) for _ in range(2)]
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
        "/", "/suites", "/suites/edit?file=capitals.yaml", "/suites/edit?file=broken.yaml", "/new?file=capitals.yaml",
        "/new?file=broken.yaml", "/runs", "/runs?text=nothing", f"/runs/{run}", f"/runs/{run}?show=failed", "/series/s1",
        f"/runs/{run}/cases/3", f"/runs/{run}/cases/3/2/1", f"/runs/{run}/share", f"/runs/{run}/label", f"/runs/{run}/vote",
        f"/runs/{run}/board", f"/runs/{run}/pages", "/compare", f"/compare?runs={run}",
        f"/compare?runs={run}&a=good&b=poor&margin=5", "/board", "/arena", "/judges", f"/judges/{calibration}",
        "/optimisation", "/optimisation/box_qp-10", f"/runs/{styles.id}/styles", "/enter", "/nowhere",
    ]  # fmt: skip


@pytest.mark.slow
async def test_no_page_has_a_serious_finding_or_runs_out_of_a_phone(
    site: str, visitor: Any, addresses: list[str]
) -> None:
    found: dict[str, Any] = {}
    for scheme, width in (("light", 1280), ("dark", 390)):
        await visitor.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        await visitor.set_viewport_size({"width": width, "height": 900})
        for address in addresses:
            reply = await visitor.goto(site + address)
            assert reply.status == (404 if address == "/nowhere" else 200), (address, reply.status)
            for late in await visitor.locator(".pending").all():  # parts of a page that come when they are worked out
                await late.wait_for(state="detached")
            # What is dark and narrow differs in its colours alone.
            problems = await findings(visitor, None if scheme == "light" else "color-contrast")
            over = await visitor.evaluate(
                "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
            )
            if over > 1:
                problems.append(f"{over} px wider than the screen")
            if problems:
                found[f"{scheme} {address}"] = problems
    visitor.broken[:] = [words for words in visitor.broken if "404" not in words]
    assert not found, "\n".join(f"{where}: {what}" for where, what in found.items())
