"""Pages about cases that are for some arms only: nothing is said to be left to run."""

from __future__ import annotations

import asyncio
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from fairtrial import pipeline
from fairtrial.store import Store

from .conftest import TOKEN

SUITE = """\
name: asked
targets: [{id: one, target: mock:echo}]
prompts: {plain: "{{ input }}", about: "{{ input }} about {{ topic }}"}
scorer: contains
cases:
  - {id: all, input: a, expected: a, vars: {topic: t}}
  - {id: some, input: b, expected: b, conditions: [plain]}
"""


@pytest.mark.slow
@pytest.mark.parametrize("page", ["cases/2", "cases/2/2/1", "cases/2/2/1?panel=1", "cases/2/1/1?panel=1"])
async def test_a_case_that_an_arm_is_not_asked(page: str, site: str, store: Store, tmp_path: Path) -> None:
    path = tmp_path / "suite.yaml"
    path.write_text(SUITE)
    run = await pipeline.arun(pipeline.load(path), store=store)
    request = urllib.request.Request(f"{site}/runs/{run.id}/{page}", headers={"authorization": f"Bearer {TOKEN}"})

    def get() -> Any:
        with urllib.request.urlopen(request) as reply:
            return reply.read().decode()

    text = await asyncio.to_thread(get)
    assert "ot run yet" not in text and "Resume" not in text
    assert "not asked" in text
