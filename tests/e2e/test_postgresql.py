"""Every command and page on a store in PostgreSQL says what it says on SQLite."""

import asyncio
import json
from pathlib import Path

import pytest

from fairtrial.store import Store
from fairtrial.store.copying import copy_calibrations, copy_runs
from fairtrial.web.serving import serve_site
from tests import forks
from tests.conftest import numbered
from tests.e2e.conftest import no_browser
from tests.postgres import PASSWORD
from tests.web.conftest import CAPITALS, TOKEN

READING = [
    ("list", "--json"),
    ("show", "1", "--json"),
    ("show", "1", "--context"),
    ("show", "1", "--case", "it"),
    ("compare", "1", "--json"),
    ("compare", "1", "2", "--json"),
    ("rank", "1", "2", "--json"),
    ("cases", "1", "--json"),
    ("power", "1", "--json"),
    ("variance", "1", "--json"),
    ("gate", "1", "--min-score", "10", "--json"),
    ("gate", "2", "--against", "1", "--json"),
    ("label", "1", "--json"),
    ("pairwise", "1", "--json"),
    ("tag", "--json"),
]
PAGES = [
    "/", "/runs", "/runs?text=CAP", "/runs?status=running", "/runs/{run}", "/runs/{run}?sort=spread", "/runs/{run}?show=low",
    "/runs/{run}?text=fran", "/runs/{run}/share", "/compare?run={run}&run={other}", "/judges", "/arena",
]  # fmt: skip


@pytest.fixture
def both(cli, tmp_path, postgres_url):
    """Two runs on SQLite, with a label, a tag and judged pairs, and the same in PostgreSQL."""
    (tmp_path / "capitals.yaml").write_text(CAPITALS)
    for _ in range(2):
        assert cli("run", "capitals.yaml", "--repeats", "3", "--quiet")[0] == 0
    assert cli("tag", "1", "first")[0] == 0
    trial = json.loads(cli("show", "1", "--json")[1])
    assert trial["arms"]
    assert cli("pairwise", "1", "--quiet")[0] == 0
    source, target = Store(".fairtrial/fairtrial.db"), Store(postgres_url)
    results = list(copy_runs(source, target, source.runs()))
    copy_calibrations(source, target)
    assert [result.outcome for result in results] == ["copied", "copied"]
    yield source, target
    source.close()
    target.close()


@pytest.mark.slow
def test_what_is_read_is_the_same(cli, both, tmp_path, monkeypatch, postgres_url):
    said = {}
    for name, address in (("sqlite", ".fairtrial/fairtrial.db"), ("postgresql", postgres_url)):
        monkeypatch.setenv("FAIRTRIAL_STORE", address)
        said[name] = {command: cli(*command) for command in READING}
        for ending in ("json", "jsonl", "csv", "md", "junit.xml", "html"):
            code, _, err = cli("export", "1", "-o", f"{name}.{ending}")
            assert code == 0, err
    for command in READING:
        assert said["sqlite"][command] == said["postgresql"][command], command
    assert {code for code, _, _ in said["postgresql"].values()} <= {0, 101}
    for ending in ("json", "jsonl", "csv", "md", "junit.xml"):
        assert (tmp_path / f"sqlite.{ending}").read_bytes() == (tmp_path / f"postgresql.{ending}").read_bytes(), ending


@pytest.mark.slow
def test_what_is_written_is_there(cli, tmp_path, monkeypatch, postgres_url):
    """From the first run to its deletion, with nothing on this machine but the suite."""
    monkeypatch.setattr("fairtrial.cli.doctor._browser", no_browser)
    monkeypatch.setenv("FAIRTRIAL_STORE", postgres_url)
    flaky = {"id": "flaky", "target": "mock:x", "options": {"answer": "42", "faults": {"500": 0.5}, "seed": 3}}
    suite = {"name": "n", "targets": [flaky], "retry": {"attempts": 1}, "scorer": "boolean", "cases": numbered(20)}
    Path("suite.json").write_text(json.dumps(suite))
    assert cli("run", "suite.json", "--quiet")[0] == 2
    for command in ("resume", "retry", "retry", "retry"):
        code, _, err = cli(command, "latest", "--quiet")
        assert code in (0, 2), err
    assert cli("rescore", "latest", "--scorer", "regex", "--quiet")[0] in (0, 2)
    assert cli("rescore", "latest", "--scoring", "0", "--quiet")[0] in (0, 2)
    code, out, _ = cli("show", "latest", "--json")
    (arm,) = json.loads(out)["arms"]
    assert code == 0 and arm["scored"] + arm["failed"] == 20
    trial = cli("export", "latest", "-o", "x.jsonl") and json.loads(Path("x.jsonl").read_text().splitlines()[0])
    assert cli("label", "latest", "--trial", trial["trial_id"], "--score", "100", "--by", "me")[0] == 0
    assert cli("report", "latest", "-o", "report.html")[0] == 0 and "42" in Path("report.html").read_text()
    code, out, _ = cli("doctor", "--json")
    (finding,) = [finding for finding in json.loads(out)["findings"] if finding["what"] == "store"]
    assert finding["good"] is True and finding["found"].endswith(", 1 run") and PASSWORD not in out
    assert cli("store", "check")[0] == 0
    assert cli("delete", "latest", "--yes")[0] == 0
    assert cli("list")[1].startswith("No runs")
    assert not Path(".fairtrial/fairtrial.db").exists()


@pytest.mark.slow
def test_a_server_that_is_not_there_is_one_sentence(cli, monkeypatch):
    monkeypatch.setattr("fairtrial.cli.doctor._browser", no_browser)
    monkeypatch.setenv("FAIRTRIAL_STORE", "postgresql://somebody:a-long-password@127.0.0.1:1/x")
    code, out, err = cli("list")
    assert code == 1 and err.count("\n") == 1 and "cannot be reached" in err and "a-long-password" not in out + err
    code, out, _ = cli("doctor", "--json")
    assert code == 1 and "cannot be reached" in out and "a-long-password" not in out


@pytest.mark.slow
async def test_every_page_is_served_from_it(both, tmp_path, monkeypatch):
    import aiohttp

    _, store = both
    run, other = store.runs()
    async with serve_site(store, tmp_path, token=TOKEN) as address:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with aiohttp.ClientSession(address, headers=headers) as session:
            for page in PAGES:
                async with session.get(page.format(run=run.id, other=other.id)) as reply:
                    text = await reply.text()
                    assert reply.status == 200, (page, text[:500])
                    assert PASSWORD not in text, page
            for name in ("json", "csv", "html"):
                async with session.get(f"/runs/{run.id}/export/{name}") as reply:
                    assert reply.status == 200 and len(await reply.read()) > 100


@pytest.mark.slow
async def test_a_run_of_another_process_is_watched(tmp_path, write_suite, model_server, postgres_url):
    """The page and the run are two processes, which know each other through the database only."""
    import aiohttp

    state = await model_server(answer="42")
    state.hold(after=10)
    path = write_suite(targets=["openai:m"], scorer="boolean", cases=numbered(30), concurrency=5)
    driver = forks.start("run", path, "--quiet", "--store", postgres_url)
    store = Store(postgres_url)
    while not store.runs():
        await asyncio.sleep(0.05)
    (run,) = store.runs()
    states = []
    async with serve_site(store, tmp_path, token=TOKEN) as address:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with (
            aiohttp.ClientSession(address, headers=headers) as session,
            session.get(f"/runs/{run.id}/events?case=0&case=20") as events,
        ):
            async for line in events.content:
                if line.startswith(b"data: "):
                    states.append(json.loads(line.removeprefix(b"data: ")))
                    if states[-1]["done"] >= 10:
                        state.release()
    assert await asyncio.to_thread(driver.wait) == 0
    assert states[0]["status"] == "running" and states[-1]["status"] == "completed" and states[-1]["done"] == 30
    assert any(0 < shown["done"] < 30 for shown in states)
    store.close()
