"""FAIRTRIAL_STORE counts everywhere: one place decides where runs are, for commands and for Python."""

import inspect
import json
import types

import pytest
from click.testing import CliRunner

import fairtrial as ft
from fairtrial.cli.main import cli
from fairtrial.pytest_plugin import store_url
from tests.tracks.interchange.logs import DATA


def echo(input):
    return input


def other(input):
    return f"{input}?"


def judge(prompt):
    return json.dumps({"winner": "A", "reason": "-"})


def suite():
    return ft.Suite(name="here", targets=[echo, other], cases=[ft.Case(f"q {n}", expected=f"q {n}") for n in range(8)])


LOG = str(DATA / "opencode" / "export.json")
CALLS = {
    "run": lambda: ft.run(suite()),
    "open_run": ft.open_run,
    "resume": lambda: ft.resume("latest"),
    "retry": lambda: ft.retry("latest"),
    "rescore": lambda: ft.rescore("latest", "contains"),
    "compare": lambda: ft.compare("latest"),
    "rank": ft.rank,
    "power": ft.power,
    "variance": ft.variance,
    "gate": lambda: ft.gate(min_score=1),
    "tools": ft.tools,
    "styles": ft.styles,
    "cases": ft.cases,
    "label": lambda: ft.label(sample=2, to="labels.csv"),
    "pairwise": lambda: ft.pairwise(judge=judge),
    "calibrate": lambda: ft.calibrate(judge),
    "report": ft.report,
    "export": lambda: ft.export("latest", "run.json"),
    "import_results": lambda: ft.import_results(
        [{"id": "a", "model": "m", "correct": 1}], case="id", arm="model", score="correct"
    ),
    "import_log": lambda: ft.import_log(LOG),
}


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """A folder without a store, and a store in another that the environment names."""
    folder = tmp_path / "folder"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("FAIRTRIAL_STORE", str(tmp_path / "elsewhere.db"))
    return folder


def test_every_function_that_takes_a_store_is_tried():
    takes_store = {
        name
        for name in ft.__all__
        if name[0].islower()
        and callable(found := getattr(ft, name))
        and "store" in inspect.signature(found).parameters
        and not (name[0] == "a" and hasattr(ft, name[1:]))  # the async twins
    }
    assert takes_store == set(CALLS)


@pytest.mark.parametrize("verb", CALLS)
def test_the_store_of_the_environment_counts_in_python(elsewhere, verb):
    stored = ft.run(suite())
    try:
        CALLS[verb]()
    except ft.FairtrialError as error:  # some have nothing to say about this run; none looked for it elsewhere
        assert "store" not in str(error)
    assert not (elsewhere / ".fairtrial").exists() and (elsewhere.parent / "elsewhere.db").exists()
    assert stored.id in {one["run_id"] for one in _listed()}


def test_a_store_that_is_named_comes_first(elsewhere, tmp_path):
    run = ft.run(suite(), store=str(tmp_path / "named.db"))
    assert not (tmp_path / "elsewhere.db").exists()
    assert ft.open_run(store=str(tmp_path / "named.db")).id == run.id


def test_an_empty_variable_is_none(elsewhere, monkeypatch):
    monkeypatch.setenv("FAIRTRIAL_STORE", "")
    run = ft.run(suite())
    assert (elsewhere / ".fairtrial" / "fairtrial.db").exists() and _listed()[0]["run_id"] == run.id


def test_tests_with_pytest_use_the_same(elsewhere, tmp_path, monkeypatch):
    config = types.SimpleNamespace(getoption=lambda name: None, rootpath=tmp_path)
    assert store_url(config) == str(tmp_path / "elsewhere.db")
    monkeypatch.delenv("FAIRTRIAL_STORE")
    assert store_url(config) == f"sqlite:///{tmp_path}/.fairtrial/fairtrial.db"


def _listed():
    shown = CliRunner().invoke(cli, ["list", "--json"], standalone_mode=False)
    return json.loads(shown.output)["runs"]
