"""Suites, commands, JSON documents, public names and stores are as in the version that was recorded.

`recorded/` was written by `python -m tests.compat.record`, run with that version. What is added since is no difference; what
is missing or has another value is. A change that is meant is recorded anew, by the name of its suite, and stands in CHANGELOG.
"""

from __future__ import annotations

import importlib.util
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.compat.driving import RECORDED, commands, documents_of, suites
from tests.compat.matching import differences, without_repetitions
from tests.compat.old_store import documents_of_store
from tests.compat.record import EVERYWHERE
from tests.compat.surface import surface


def recorded(name: str) -> list[dict[str, Any]]:
    return json.loads((RECORDED / f"{name}.json").read_text("utf-8"))


present_surface = cache(surface)


def compare(name: str, present: list[dict[str, Any]]) -> None:
    """Fail with every command and key that is not as recorded."""
    found = []
    for was, now in zip(without_repetitions(recorded(name)), present, strict=True):
        assert was["command"] == now["command"], f"{name} was recorded with other commands: record it anew"
        found += [f"{name} · {was['command']} · {where}" for where in differences(was, now)]
    assert not found, "\n".join(["not as in the version before:", *found[:20], f"{len(found)} differences"])


@pytest.mark.parametrize("name", [*suites(), EVERYWHERE])
def test_a_suite_gives_what_it_gave(name: str, tmp_path: Path) -> None:
    needed = commands().get(name, {}).get("needs")
    if needed and importlib.util.find_spec(needed) is None:
        pytest.skip(f"{needed} is not installed")
    compare(name, documents_of(name, tmp_path))


@pytest.mark.parametrize("part", [next(iter(entry)) for entry in recorded("surface")])
def test_the_outside_has_what_it_had(part: str) -> None:
    (was,) = (entry[part] for entry in recorded("surface") if part in entry)
    found = list(differences(was, present_surface()[part], part))
    assert not found, "\n".join(["not as in the version before:", *found])


def test_a_store_of_the_version_before_is_worked_with(tmp_path: Path) -> None:
    compare("store", documents_of_store(tmp_path))


def test_every_recording_is_of_a_suite() -> None:
    assert {path.stem for path in RECORDED.glob("*.json")} == {*suites(), EVERYWHERE, "surface", "store"}
