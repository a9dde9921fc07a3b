"""Suites of other tools that were changed at random: each is converted into a suite that can be read, or refused."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from fairtrial.config import parse_suite
from fairtrial.core import registry
from fairtrial.core.errors import FairtrialError
from fairtrial.core.trust import looking_into, running_code
from fairtrial.foreign.suites import suite_text, write_suite
from tests.contracts.test_importers import EXAMPLES, example
from tests.torture.campaign import Campaign
from tests.torture.fuzz import Document, fuzz

PROMPTFOO = Path(__file__).parents[1] / "data" / "promptfoo"


@pytest.fixture(autouse=True)
def looking():
    """Whoever only looks at a suite runs nothing of it."""
    with running_code(False):
        yield


def converted(name: str, place: Path) -> str:
    """Convert a file; what comes out is a suite that can be read, or there are sentences about it."""
    importer: Any = registry.load("importers", name)()
    imported = importer.read(place)
    text = suite_text(imported, place.parent)
    write_suite(imported, place.parent / "written" / "suite.yaml", source="theirs", tool=name)
    with looking_into(place.parent):
        try:
            parse_suite(text, file="suite.yaml", folder=place.parent, environment={}).cases()
        except FairtrialError as error:
            str(error).encode("utf-8")
            assert "invalid YAML" not in str(error), error  # it is ours
            return "to do"
    return "converted"


def test_promptfoo(tmp_path: Path, campaign: Campaign):
    shutil.copytree(PROMPTFOO, tmp_path / "theirs")
    seeds = [Document("promptfoo", file.read_bytes()) for file in sorted(PROMPTFOO.glob("*.yaml"))]

    def read(document: Document) -> str:
        place = tmp_path / "theirs" / "promptfooconfig.yaml"
        place.write_bytes(document.body)
        return converted("promptfoo", place)

    fuzz(campaign, seeds, read, short=2)


@pytest.mark.parametrize("name", [name for name in EXAMPLES if name not in ("promptfoo", "complexor")])
def test_others(name: str, tmp_path: Path, campaign: Campaign):
    (tmp_path / "d.jsonl").write_text('{"q": "x", "a": "x"}\n')
    place = example(name, tmp_path)
    files = [file for file in sorted(place.rglob("*")) if file.is_file()] if place.is_dir() else [place]
    seeds = [Document(f"{name}-{number}", file.read_bytes()) for number, file in enumerate(files)]

    def read(document: Document) -> str:
        number = int(document.kind.rpartition("-")[2])
        for file, seed in zip(files, seeds, strict=True):
            file.write_bytes(seed.body)
        files[number].write_bytes(document.body)
        return converted(name, place)

    fuzz(campaign, seeds, read, short=1)
