"""One contract for every door: parts of tracks come in as those of plug-ins do, and nothing knows a track but itself."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from pathlib import Path

import click
import pytest

import fairtrial
from fairtrial.core import registry
from fairtrial.foreign.source import Source
from fairtrial.reports.formats import FORMATS, SERVICES
from fairtrial.web.app import SECTIONS, make_app
from fairtrial.web.section import Section
from fairtrial.web.site import Site

PACKAGE = Path(fairtrial.__file__).parent
REPO = PACKAGE.parent.parent
TRACKS = {
    track.name: importlib.import_module(f"fairtrial.tracks.{track.name}")
    for track in pkgutil.iter_modules([str(PACKAGE / "tracks")])
}
# Doors between the core and its own tracks, with what comes in: they may change with any version.
INNER = {
    "suite_kinds": ("cases", "with_defaults"),
    "validators": ("recognises", "report"),
    "engines": ("check",),
    "run_directly": ("recognises", "read"),
}
PARTS = [(family, name) for family in (*registry.DOORS, *INNER) for name in registry.built_in(family)]
NAMES_TRACKS = {"__init__.py", "core/registry.py"}  # the table of public names, and the door itself


def of(family: str):
    return pytest.mark.parametrize("name", registry.built_in(family))


@pytest.mark.parametrize("track", TRACKS)
def test_a_track_is_nothing_but_parts_for_doors(track):
    assert TRACKS[track].PARTS and TRACKS[track].PARTS.keys() <= {*registry.DOORS, *INNER}
    assert TRACKS[track].__doc__


@pytest.mark.parametrize(("family", "name"), PARTS)
def test_every_part_loads_and_fits_through_its_door(family, name):
    part = registry.load(family, name)
    assert registry.load(family, name.replace("_", "-")) is part
    if family in registry.DOORS:
        assert registry.misfit(family, part) == ""
    else:
        assert all(hasattr(part, attribute) for attribute in INNER[family])


def test_every_door_refuses_what_does_not_fit():
    for family in registry.DOORS:
        assert registry.misfit(family, 7).startswith(f"is not {registry.DOORS[family].what}")


@of("commands")
def test_a_command_is_listed_without_being_imported(name):
    assert registry.built_in("commands")[name].summary.endswith(".")
    assert isinstance(registry.load("commands", name), click.Command)


def test_sections_are_made_with_a_site_and_have_routes(store, tmp_path):
    site = Site(store, tmp_path)
    for section in (*SECTIONS, *registry.parts("pages").values()):
        made = section(site)
        assert isinstance(made, Section) and list(made.routes)
    make_app(site)
    site.close()


@of("reports")
def test_a_format_can_be_chosen_and_is_written_by_its_module(name):
    form = registry.load("reports", name)
    assert form in (*FORMATS, *SERVICES) and form.title
    module = importlib.import_module(f"{form.home}.{form.module}")
    assert callable(module.write if form.endings else module.send)
    assert not form.folder or callable(module.write_folder)


@of("traces")
def test_a_format_of_traces_knows_what_is_not_its_own(name, tmp_path):
    assert not registry.load("traces", name).recognises(tmp_path / "x.json", b"just words")


@of("logs")
def test_a_format_of_logs_knows_what_is_not_its_own(name, tmp_path):
    (tmp_path / "x.txt").write_bytes(b"just words")
    form = registry.load("logs", name)
    assert not form.recognises(Source(tmp_path / "x.txt")) and list(form.companions(Source(tmp_path / "x.txt"))) == []


@of("results")
def test_a_reader_of_results_knows_what_is_not_its_own(name, tmp_path):
    (tmp_path / "x.txt").write_bytes(b"just words")
    assert not registry.load("results", name)().recognises(Source(tmp_path / "x.txt"))


@of("importers")
def test_an_importer_is_made_without_arguments(name):
    assert callable(registry.load("importers", name)().read)


def test_nothing_outside_the_tracks_has_the_name_of_one_as_a_text():
    """By which it could be imported all the same; imports are checked in tests/test_architecture.py."""
    files = [file for file in PACKAGE.rglob("*.py") if PACKAGE / "tracks" not in file.parents]
    naming = {
        str(file.relative_to(PACKAGE))
        for file in files
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Constant) and str(node.value).startswith("fairtrial.tracks")
    }
    assert naming == NAMES_TRACKS


def test_the_documentation_lists_every_door():
    page = (REPO / "docs" / "plugins.md").read_text("utf-8")
    listed = re.findall(r"^\| \[?`fairtrial\.(\w+)`", page, re.MULTILINE)
    assert listed == list(registry.DOORS)
    assert re.findall(r"^### `fairtrial\.(\w+)`", page, re.MULTILINE) == listed
