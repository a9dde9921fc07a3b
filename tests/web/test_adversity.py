"""What went wrong once, or would: odd suites, odd numbers, two tabs, things from before."""

from __future__ import annotations

import json
import shlex
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from starlette.testclient import TestClient

from fairtrial.analyse.run import Run
from fairtrial.cli.main import _run
from fairtrial.present.word_diff import word_diff
from fairtrial.store import Store
from fairtrial.store.votes import votes
from fairtrial.web.app import make_app
from fairtrial.web.site import Site
from fairtrial.workflows.resume import arescore

from .conftest import CAPITALS
from .test_suites import changed, load


@pytest.fixture
def site(store: Store, tmp_path: Path) -> Any:
    made = Site(store, tmp_path)
    yield made
    made.close()


@pytest.fixture
def client(site: Site) -> TestClient:
    return TestClient(make_app(site), headers={"origin": "http://testserver"}, raise_server_exceptions=False)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("cases:\n  - input: AAA\n  - input: BBB\n", ["cases", 0, "input"]),
        ("conditions: {a: {system: X}, b: {system: Y}}\n", ["conditions", "a", "system"]),
        ("targets: [{target: mock:a}, {target: mock:b}]\n", ["targets", 0, "target"]),
        ("mcp_servers: {a: {command: x}, b: {command: y}}\n", ["mcp_servers", "a", "command"]),
    ],
)
def test_a_field_that_is_emptied_takes_nothing_along(text: str, path: list[Any]) -> None:
    emptied = changed(text, {"do": "set", "path": path, "value": None})
    assert len(load(emptied)[path[0]]) == 2
    again = changed(emptied, {"do": "set", "path": path, "value": "new"})
    found: Any = load(again)
    for part in path:
        found = found[part]
    assert found == "new"
    if isinstance(load(text)[path[0]], dict):  # at the same place
        assert list(load(again)[path[0]]) == list(load(text)[path[0]])
    else:
        assert load(again)[path[0]][1] == load(text)[path[0]][1]


@pytest.mark.slow
@pytest.mark.parametrize(
    "more",
    [
        "conditions: {plain: , other: {system: x}}\n",
        "conditions: {plain: {}}\nmcp_servers: {a: {command: python}}\n",
        "conditions: {plain: text}\nmcp_servers: {a: text}\n",
        "scorer: {type: numeric, tolerance: 0.01, pick: any}\n",
        "judge: mock:echo\n",
        "cases: [a, b]\n",
        "cases: {a: b}\n",
        "targets: mock:echo\n",
        "params: [1]\nmcp_servers: []\n",
        "1: 2\n",
    ],
)
def test_every_odd_suite_can_be_opened(client: TestClient, tmp_path: Path, more: str) -> None:
    (tmp_path / "odd.yaml").write_text(f"name: odd\n{more}")
    page = client.get("/suites/edit?file=odd.yaml")
    assert page.status_code == 200, page.text[-300:]
    assert client.get("/new?file=odd.yaml").status_code == 200


def test_arguments_are_those_of_a_shell() -> None:
    text = "mcp_servers: {a: {command: python, args: [-c, \"print('a  b')\"]}}\n"
    again = changed(
        text, {"do": "words", "path": ["mcp_servers", "a", "args"], "text": shlex.join(["-c", "print('a  b')", "x"])}
    )
    assert load(again)["mcp_servers"]["a"]["args"] == ["-c", "print('a  b')", "x"]


def test_a_value_behind_an_anchor_changes_here_alone() -> None:
    text = "scorer: &s {type: exact}\ncases:\n  - {input: a, scorer: *s}\n"
    found = load(
        changed(text, {"do": "scorer", "path": ["cases", 0, "scorer"], "type": "numeric", "options": "tolerance: 1"})
    )
    assert found["scorer"] == {"type": "exact"} and found["cases"][0]["scorer"] == {"type": "numeric", "tolerance": 1}


def test_lists_stay_as_far_left_as_they_were() -> None:
    text = "name: x\ntargets:\n- mock:echo\ncases:\n- input: a\n  expected: b\n"
    assert changed(text, {"do": "set", "path": ["name"], "value": "y"}) == text.replace("name: x", "name: y")


async def test_a_trial_shows_what_an_agent_changed(client: TestClient, run_suite: Any) -> None:
    script = "echo '<b>made</b>' > file.txt; echo done"
    run = await run_suite(
        targets=[{"id": "agent", "target": "command", "options": {"command": ["sh", "-c", script]}}],
        workspace={"keep": "all"},
        scorer={"type": "check", "command": "cat file.txt"},
    )
    page = client.get(f"/runs/{run.id}/cases/1/1/1").text
    assert "1 added" in page and "+&lt;b&gt;made&lt;/b&gt;" in page and "The folder is kept in" in page


async def test_runs_are_found_by_their_target(client: TestClient, run_suite: Any) -> None:
    run = await run_suite()
    assert run.id in client.get("/runs?target=mock:echo").text
    assert "No matching runs" in client.get("/runs?target=mock:other").text


def test_an_estimate_tells_no_secret(client: TestClient, write_suite: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "sk-very-secret-value-0042")
    write_suite(params={"extra": {"user": "${MY_KEY}"}})
    page = client.get("/new/estimate?file=suite.yaml")
    assert page.status_code == 200 and "${MY_KEY}" in page.text and "very-secret" not in page.text


@pytest.mark.parametrize(
    "field", [("concurrency", "0"), ("concurrency", "-3"), ("repeats", "-1"), ("repeats", "0"), ("repeats", "1.5"), ("budget_usd", "nan"), ("budget_usd", "-1"), ("timeout", "0"), ("timeout", "inf"), ("limit", "x"), ("param_seed", "9" * 5000)]
)  # fmt: skip
def test_numbers_are_those_that_the_command_line_takes(
    client: TestClient, write_suite: Any, store: Store, field: Any
) -> None:
    write_suite()
    form = {"file": "suite.yaml", "target": "mock:echo", "condition": "default", field[0]: field[1]}
    assert client.post("/new/run", data=form).status_code == 400
    assert not store.runs()


@pytest.mark.slow
@pytest.mark.parametrize("number", ["99999999999999999999", "9" * 5000, "-1", "x", "٣"])
async def test_a_number_that_no_place_has(client: TestClient, run_suite: Any, number: str) -> None:
    run = await run_suite()
    for path in (
        f"/runs?page={number}",
        f"/judges?page={number}",
        f"/runs/{run.id}?sort={number}",
        f"/runs/{run.id}?page={number}",
        f"/runs/{run.id}/cases/1/1/{number}",
        f"/runs/{run.id}/cases/{number}",
    ):
        assert client.get(path).status_code in (200, 400, 404), path


def test_a_run_of_the_page_has_the_text_of_the_file(client: TestClient, store: Store, tmp_path: Path) -> None:
    (tmp_path / "capitals.yaml").write_text(CAPITALS)
    form = {
        "file": "capitals.yaml",
        "target": ["good", "poor"],
        "condition": "default",
        "param_temperature": "",
        "judge": "",
        "runs": "1",
    }
    client.post("/new/run", data=form, follow_redirects=False)
    run = _ended(store)
    assert run.plan.suite_text == CAPITALS
    assert _run(["run", "capitals.yaml", "-q", "--store", store.address]) == 0
    assert Run.find("latest", store).plan.id == run.plan.id


@pytest.mark.slow
def test_the_command_that_is_shown_repeats_the_run(
    client: TestClient, store: Store, tmp_path: Path, monkeypatch: Any
) -> None:
    (tmp_path / "capitals.yaml").write_text(CAPITALS)
    form = {
        "file": "capitals.yaml",
        "target": ["good"],
        "condition": "default",
        "limit": "2",
        "repeats": "3",
        "budget_usd": "1234567.5",
        "runs": "1",
    }
    client.post("/new/run", data=form, follow_redirects=False)
    run = _ended(store)
    page = client.get(f"/runs/{run.id}/share").text
    command = page.split('id="command-1">')[1].split("<")[0].replace("&#39;", "'")
    (tmp_path / f"{run.id}.yaml").write_text(client.get(f"/runs/{run.id}/suite.yaml").text)
    assert "1234567.5" in command and _run([*shlex.split(command)[1:], "-q"]) == 0
    second = Run.find("latest", store)
    assert second.id != run.id
    assert (
        [(arm.arm, arm.trials) for arm in second.arms] == [(arm.arm, arm.trials) for arm in run.arms] == [("good", 6)]
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["html", "md", "json", "jsonl", "csv", "parquet", "junit", "eee_lines"])
async def test_everything_that_is_offered_can_be_taken_along(client: TestClient, run_suite: Any, name: str) -> None:
    targets = [{"id": n, "target": f"mock:{n}", "options": {"answer": "Paris"}} for n in ("a", "b")]
    run = await run_suite(targets=targets)
    reply = client.get(f"/runs/{run.id}/export/{name}")
    assert reply.status_code == 200 and reply.content and "attachment" in reply.headers["content-disposition"]


@pytest.mark.slow
async def test_a_site_and_its_badge_can_be_taken_along(client: TestClient, run_suite: Any) -> None:
    import zipfile
    from io import BytesIO

    run = await run_suite(targets=[{"id": "<b>", "target": "mock:b", "options": {"answer": "Paris"}}])
    page = client.get(f"/runs/{run.id}/share").text
    assert f"/runs/{run.id}/site.zip" in page and f'src="/runs/{run.id}/badge.svg"' in page
    reply = client.get(f"/runs/{run.id}/site.zip")
    assert "attachment" in reply.headers["content-disposition"]
    names = zipfile.ZipFile(BytesIO(reply.content)).namelist()
    assert {"index.html", "badge.svg"} <= set(names) and any(name.startswith("answers/") for name in names)
    badge = client.get(f"/runs/{run.id}/badge.svg")
    assert badge.headers["content-type"].startswith("image/svg+xml") and "&lt;b&gt; " in badge.text
    assert badge.headers["content-security-policy"] == "sandbox"


@pytest.mark.slow
async def test_two_tabs_of_one_voter_and_two_voters_without_a_name(
    client: TestClient, run_suite: Any, store: Store
) -> None:
    targets = [{"id": n, "target": f"mock:{n}", "options": {"answer": n}} for n in ("a", "b")]
    run = await run_suite(targets=targets, cases=[{"id": str(n), "input": f"q{n}", "expected": "a"} for n in range(3)])

    def ballot(page: str) -> str:
        return page.split('name="ballot" value="')[1].split('"')[0]

    first, second = (ballot(client.get(f"/runs/{run.id}/vote?by=me").text) for _ in range(2))
    for name in (first, second):
        client.post(f"/runs/{run.id}/vote", data={"ballot": name, "by": "me", "choice": "left"})
    assert len(list(votes(store, run.id))) == 1  # the same pair in two tabs: one vote
    unnamed = {str(client.get(f"/runs/{run.id}/vote").url) for _ in range(3)}
    assert len(unnamed) == 3 and all("by=visitor-" in address for address in unnamed)


@pytest.mark.slow
async def test_digests_of_another_time_are_worked_out_anew(
    site: Site, client: TestClient, run_suite: Any, store: Store
) -> None:
    run = await run_suite()
    assert client.get(f"/runs/{run.id}/result").status_code == 200
    with store.engine.begin() as connection:
        assert connection.exec_driver_sql("update digests set body = x'80'").rowcount
    fresh = Site(store, site.folder)
    other = TestClient(make_app(fresh), raise_server_exceptions=False)
    page = other.get(f"/runs/{run.id}/result")
    fresh.close()
    assert page.status_code == 200 and "mock:echo" in page.text


@pytest.mark.slow
async def test_what_is_added_to_a_run_changes_its_numbers(client: TestClient, run_suite: Any, store: Store) -> None:
    run = await run_suite(cases=[{"id": str(n), "input": f"Say {n}", "expected": f"{n}"} for n in range(4)])
    before = client.get(f"/runs/{run.id}/result").text
    await arescore(run.id, scorer={"type": "boolean"}, store=store)
    after = client.get(f"/runs/{run.id}/result").text
    assert "100.0" in after and before != after
    client.post(f"/runs/{run.id}/label", data={"place": "0.0.0", "by": "me", "mark": "40"})
    assert "1 human label:" in client.get(f"/runs/{run.id}/result").text
    client.post(f"/runs/{run.id}/label", data={"place": "0.0.0", "by": "me", "undo": "1"})
    assert "human label" not in client.get(f"/runs/{run.id}/result").text


async def test_a_run_on_fewer_cases_does_not_stand_on_the_board(client: TestClient, run_suite: Any) -> None:
    from fairtrial.config import RunOptions

    cases = [{"id": str(n), "input": f"Say {n}", "expected": "Say 0"} for n in range(6)]
    whole = await run_suite(cases=cases)
    part = await run_suite(RunOptions(limit=1), cases=cases)
    page = client.get("/board?wait=1").text
    standings, left_out = page.split('id="left-out"')
    assert f"/runs/{whole.id}" in standings and f"/runs/{part.id}" not in standings
    assert f"/runs/{part.id}" in left_out and "1 case, not 6" in left_out


async def test_the_board_is_shown_once(client: TestClient, run_suite: Any, monkeypatch: Any) -> None:
    """Half of it was shown while the other half was worked out, and then all of it once more below."""
    monkeypatch.setattr("fairtrial.web.cache.PATIENCE", 0.0)
    targets = [{"id": name, "target": "mock:x", "options": {"answer": name}} for name in ("Say 0", "b")]
    await run_suite(
        targets=targets, cases=[{"input": f"Say {n}", "expected": "Say 0", "difficulty": "easy"} for n in range(6)]
    )
    waits = True
    while waits:
        page = client.get("/board").text
        waits = "data-pending" in page
        assert waits is not ("Standings" in page) and "…</td>" not in page


@pytest.mark.slow
async def test_the_numbers_of_a_comparison_are_those_of_the_command(
    client: TestClient, run_suite: Any, store: Store, capsys: Any
) -> None:
    targets = [
        {
            "id": n,
            "target": f"mock:{n}",
            "options": {"answers": {f"q{k} ": "yes" if k % m else "no" for k in range(30)}},
        }
        for n, m in (("a", 2), ("b", 5))
    ]
    run = await run_suite(
        targets=targets,
        cases=[
            {"id": str(n), "input": f"q{n} ?", "expected": "yes", "difficulty": ["easy", "hard"][n % 2]}
            for n in range(30)
        ],
    )
    assert _run(["compare", run.id, "--json", "--store", store.address]) == 0
    pair = json.loads(capsys.readouterr().out)["pairs"][0]
    page = client.get(f"/compare?runs={run.id}&wait=1").text
    interval = f"{pair['ci95'][0]:.1f} to {pair['ci95'][1]:.1f}"
    for shown in (f"{pair['difference']:+.1f}", interval, pair["verdict"]):
        assert shown.replace("-", "−") in page, shown
    assert "Case by case" in page and "By difficulty" in page and ">easy<" in page


def test_a_long_difference_is_quick() -> None:
    one = " ".join(f"w{n}" for n in range(1499))
    other = " ".join(f"v{n}" for n in range(1499))
    started = time.process_time()
    assert word_diff(one, other) and word_diff("a " * 1400, "a " * 1400)
    assert time.process_time() - started < 10
    assert word_diff("It is Paris", "It is not Paris") == [("same", "It is "), ("added", "not "), ("same", "Paris")]


def test_a_suite_with_a_foreign_name_goes_out(client: TestClient, tmp_path: Path) -> None:
    (tmp_path / "日本.yaml").write_text(CAPITALS, "utf-8")
    reply = client.get("/suites/export", params={"file": "日本.yaml", "format": "csv"})
    assert reply.status_code == 200 and "UTF-8''%E6%97%A5" in reply.headers["content-disposition"]
    bad = client.post(
        "/suites/import",
        data={"text": CAPITALS, "file": "日本.yaml"},
        files={"table": ("x.csv", b"input,weight\nx,heavy\n")},
    )
    assert bad.status_code == 400 and "the weight must be a number" in bad.json()["error"]


def test_texts_that_look_like_formulas_come_back(client: TestClient, tmp_path: Path) -> None:
    cases = [
        {"id": "a", "input": "=1+1", "expected": "-x + 1"},
        {"id": "b", "input": "Is $${HOME} set?", "expected": "@me"},
    ]
    (tmp_path / "x.yaml").write_text(yaml.safe_dump({"name": "x", "targets": ["mock:echo"], "cases": cases}))
    body = client.get("/suites/export?file=x.yaml&format=csv").content
    text = "name: y\ntargets: [mock:echo]\n"
    reply = client.post("/suites/import", data={"text": text, "file": "y.yaml"}, files={"table": ("x.csv", body)})
    assert load(reply.json()["text"])["cases"] == cases
    assert reply.json()["text"].count("\n  - ") == 2  # one below the other


def test_a_token_is_small(site: Site) -> None:
    from fairtrial.web.access import Access

    client = TestClient(Access(make_app(site), "a-token-that-nobody-guesses"), follow_redirects=False)
    assert client.post("/enter", content=b"token=" + b"x" * 10_000).status_code == 413


def _ended(store: Store) -> Run:
    for _ in range(5000):
        if store.runs() and store.runs()[0].status == "completed":
            return Run.find("latest", store)
        time.sleep(0.05)
    raise AssertionError("the run did not end")


@pytest.mark.slow
async def test_an_answer_to_a_problem_shows_its_residuals(client: TestClient, run_suite: Any) -> None:
    import re

    point = {"x": [-1.0] * 10, "objective_value": 0}
    target = {"target": "mock:m", "options": {"answer": json.dumps(point)}}
    run = await run_suite(targets=[target], suite={"kind": "optimisation", "ids": ["original-10"]}, repeats=1)
    page = client.get(f"/runs/{run.id}/cases/1/1/1").text
    # Σx ≥ 0 is missed by 10, scaled by √10; the bounds hold.
    shown = re.findall(r"<code>(.*?)</code></th><td class=.num (bad|good).>(.*?)<", page)
    assert [(what[:3], kind, missed) for what, kind, missed in shown] == [("(1)", "bad", "3.16"), ("bou", "good", "0")]
    assert "original-10" in client.get("/optimisation").text
    assert "3.16" in client.get("/optimisation/original-10").text
    assert "100 %" in client.get(f"/runs/{run.id}/styles?wait=1").text


async def test_cases_are_filtered_and_sorted(run_suite: Any, store: Store) -> None:
    from fairtrial.store.browsing import CaseQuery, cells, ordered_cases

    words = {"a": ["yes", "yes", "no", "yes"], "b": ["no", "yes", "no", "no"]}
    targets = [
        {
            "id": name,
            "target": f"mock:{name}",
            "options": {"answers": {f"q{n}": said for n, said in enumerate(answers)}, "faults": {"refused": 0.0}},
        }
        for name, answers in words.items()
    ]
    kinds = ["x", "y", "x", "y"]
    cases = [
        {
            "id": f"c{n}",
            "input": f"q{n}",
            "expected": "yes",
            "scorer": "boolean",
            "category": kinds[n],
            "tags": [f"t{n % 3}"],
        }
        for n in range(4)
    ]
    run = await run_suite(targets=targets, cases=cases)
    record = run.record

    def found(**wanted: Any) -> list[int]:
        return list(ordered_cases(store, record, CaseQuery(**wanted)))

    assert found() == [0, 1, 2, 3] and found(descending=True) == [3, 2, 1, 0]
    assert found(show="differing") == [0, 3] and found(show="low") == [0, 2, 3] and found(show="failed") == []
    assert found(sort="spread", descending=True) == [0, 3, 1, 2]
    assert (
        found(sort="mean") == [2, 0, 3, 1]
        and found(sort="0") == [2, 0, 1, 3]
        and found(sort="1", descending=True) == [1, 0, 2, 3]
    )
    assert found(category="y") == [1, 3] and found(category="y", sort="mean") == [3, 1] and found(text="Q2") == [2]
    assert found(tag="t0") == [0, 3] and found(tag="t0", sort="mean", category="y") == [3] and found(tag="t") == []
    with store.engine.begin() as connection:
        connection.exec_driver_sql("delete from scores where case_position = 0")
    assert found(sort="mean") == [2, 3, 1, 0] and found(sort="mean", category="x", descending=True) == [2, 0]
    assert [(cell.case, cell.arm, cell.scored, cell.mean) for cell in cells(store, record, [0, 1])] == [
        (0, 0, 0, None), (0, 1, 0, None), (1, 0, 1, 1.0), (1, 1, 1, 1.0),
    ]  # fmt: skip


@pytest.mark.slow
async def test_means_by_kind_lead_to_their_cases(client: TestClient, run_suite: Any) -> None:
    cases = [
        {"input": f"q{n}", "expected": "q1", "category": "a & b" if n % 2 else "c", "tags": [f"t{n % 3}"]}
        for n in range(6)
    ]
    run = await run_suite(cases=cases)
    page = client.get(f"/runs/{run.id}/result").text
    assert f'href="/runs/{run.id}?category=a+%26+b#cases"' in page and "no interval is adjusted" in page
    assert f'href="/runs/{run.id}?tag=t2#cases"' in page
    assert "2 cases ·" in client.get(f"/runs/{run.id}?tag=t2").text
    assert "3 cases ·" in client.get(f"/runs/{run.id}?category=a+%26+b&sort=0").text


@pytest.mark.slow
async def test_a_name_is_one_that_the_command_line_takes(client: TestClient, run_suite: Any, store: Store) -> None:
    run = await run_suite()
    for name in ("latest", "two words", run.id[:4], ""):
        assert client.post(f"/runs/{run.id}/tag", data={"name": name}).status_code == 400, name
    assert client.post(f"/runs/{run.id}/tag", data={"name": "main"}).status_code == 200
    assert store.tags() == {"main": run.id}


async def test_a_damaged_store_is_said_on_pages(client: TestClient, run_suite: Any, store: Store) -> None:
    """A document that nothing has written, at which the page would fail."""
    run = await run_suite()
    with store.writing() as connection:
        connection.exec_driver_sql("UPDATE runs SET settings = x'7b'")
    page = client.get(f"/runs/{run.id}")
    assert page.status_code == 400 and "store check" in page.text
