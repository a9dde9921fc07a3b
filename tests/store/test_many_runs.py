"""Ten thousand runs in a store: one of them is found without reading all."""

import pytest

from benchmarks.size import suite
from benchmarks.size.fill import fill
from fairtrial.cli.main import _run
from fairtrial.core.errors import FairtrialError
from fairtrial.store import Store

RUNS = 60


@pytest.fixture(scope="module")
def crowded(tmp_path_factory):
    """A store with many runs of one plan, three of them a series."""
    folder = tmp_path_factory.mktemp("runs")
    store = Store(str(folder / "store.db"))
    file = suite.write_suite(folder, 1, 1, arms=2)
    first = fill(store, file)
    row = {**store.fetch_dicts(_all())[0]}
    for number in range(2, RUNS + 1):
        series = "ser1es-of-three" if number in (10, 11, 12) else None
        store.add_run(
            {name: row[name] for name in ("plan_id", "status", "settings", "context", "ended_at")}
            | {"id": f"r{number:04}-made", "series_id": series}
        )
    yield store, first
    store.close()


def _all():
    from sqlalchemy import select

    from fairtrial.store import schema

    return select(schema.runs)


@pytest.fixture
def read(monkeypatch):
    """The id of every run that is read."""
    seen = []
    live = Store.with_live_status

    def noting(self, run):
        seen.append(run.id)
        return live(self, run)

    monkeypatch.setattr(Store, "with_live_status", noting)
    return seen


@pytest.mark.parametrize("name", ["latest", "17", "r0017-made", "r0017"])
def test_a_run_is_found_without_reading_the_others(crowded, read, name):
    store, _ = crowded
    assert store.find_run(name).number == (RUNS if name == "latest" else 17)
    assert store.find_runs(name)[0].number == (RUNS if name == "latest" else 17)
    assert len(read) < 10


def test_a_series_and_its_runs(crowded, read):
    store, _ = crowded
    assert [run.number for run in store.find_runs("ser1es")] == [10, 11, 12]
    assert [run.number for run in store.series_of("r0011")] == [10, 11, 12]
    with pytest.raises(FairtrialError, match="is a series: choose one of its runs"):
        store.find_run("ser1es")
    with pytest.raises(FairtrialError, match="give more of the id"):
        store.find_run("r00")
    with pytest.raises(FairtrialError, match="there is no run `x`"):
        store.find_run("x")


def test_a_tag_names_its_run(crowded, read):
    store, first = crowded
    store.set_tag("17th", first)
    assert store.find_run("17th").id == first and len(read) < 5
    store.delete_tag("17th")


def test_a_list_reads_what_it_shows(crowded, read, monkeypatch, capsys):
    store, _ = crowded
    monkeypatch.setenv("FAIRTRIAL_STORE", f"sqlite:///{store.address}")
    assert _run(["list", "--limit", "5"]) == 0
    assert f"{RUNS} runs in all" in capsys.readouterr().out and len(read) < 10
