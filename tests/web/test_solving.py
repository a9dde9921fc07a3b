"""Problems are solved in the background: the page answers meanwhile, shows how far it is, and can cancel it."""

import re
import signal
import subprocess
import sys
from typing import Any

import pytest
from starlette.testclient import TestClient

from fairtrial.web.app import make_app
from fairtrial.web.site import Site
from tests.tracks.optimisation.test_solving import HOPELESS, WYNDOR, gone, until, workers

PAGES = ("/", "/optimisation", "/optimisation/new", "/runs", "/suites", "/new", "/judges", "/optimisation/box_qp-10")
FORM: dict[str, Any] = {"targets": "mock:echo", "style": ["polite"], "repeats": "1", "name": "mine"}


@pytest.fixture
def site(store, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    site = Site(store, tmp_path)
    yield site
    site.close()


@pytest.fixture
def client(site):
    return TestClient(make_app(site), headers={"origin": "http://testserver"}, raise_server_exceptions=False)


def write(folder, count: int = 1, text: str = HOPELESS) -> list[str]:
    """Problem files, each another problem."""
    names = [f"p{number}.yaml" for number in range(count)]
    for number, name in enumerate(names):
        (folder / name).write_text(text.replace("77", str(77 + number)))
    return names


def post(client, path: str, **data: Any) -> str:
    """Send a form, and return where it leads."""
    reply = client.post(path, data=data, follow_redirects=False)
    assert reply.status_code == 303, reply.text
    return str(reply.headers["location"])


@pytest.mark.slow
def test_the_page_answers_while_ten_hopeless_problems_are_solved(client, site, tmp_path):
    names = write(tmp_path, 10)
    waits = [
        post(client, "/optimisation/new", **{**FORM, "name": f"s{number}"}, problem=[name])
        for number, name in enumerate(names)
    ]
    assert all(address.startswith("/solving/") for address in waits)
    own = until(workers)
    for path in (*PAGES, *waits):
        assert client.get(path).status_code == 200, path
    assert "p3 (solving)" in client.get("/").text
    page = client.get(waits[3]).text
    assert "Solving p3" in page and "Cancel" in page and ">0</b> of" in page and len(site.tasks.open()) == 10
    state = client.get(f"/tasks/{waits[3].rpartition('/')[2]}/state").json()
    assert (state["done"], state["total"], state["ended"]) == (0, 1, False)
    assert "s3.yaml" not in {path.name for path in tmp_path.iterdir()}
    back = post(client, f"{waits[3]}/stop")
    until(lambda: len(site.tasks.open()) == 9)
    form = client.get(back).text
    assert 'value="s3"' in form and "cancelled" in form  # everything that was entered is there again
    site.close()
    assert not site.tasks.open() and gone(own) and not workers()


@pytest.mark.slow
def test_what_is_solved_goes_on_by_itself(client, site, tmp_path):
    names = write(tmp_path, 1, WYNDOR)
    waiting = post(client, "/optimisation/new", **FORM, problem=names)
    assert post(client, "/optimisation/new", **FORM, problem=names) == waiting  # a second click waits for the same
    until(lambda: not site.tasks.open())
    there = client.get(waiting, follow_redirects=False)
    assert there.status_code == 303 and there.headers["location"] == "/new?file=mine.yaml"
    assert "mock:echo" in client.get("/new?file=mine.yaml").text
    (tmp_path / "p0.yaml").write_text(WYNDOR.replace("18", "17"))  # another problem: its page solves it first
    checked = client.post("/suites/check", json={"text": (tmp_path / "mine.yaml").read_text(), "file": "mine.yaml"})
    (problem,) = checked.json()["problems"]
    assert problem["key"] == "warning" and "not solved yet: p0" in problem["message"]
    assert checked.json()["facts"] == "1 problem to solve"
    shown = client.post("/suites/preview", json={"text": (tmp_path / "mine.yaml").read_text(), "file": "mine.yaml"})
    assert "not solved yet: p0" in shown.json()["html"]
    assert not site.tasks.open()  # looking at it solves nothing
    page = client.get("/new?file=mine.yaml")
    assert page.status_code == 200 and "1 problem is not solved yet" in page.text and "<code>p0</code>" in page.text
    assert not site.tasks.open()  # nor does opening its page
    waiting = post(client, re.search(r'action="(/solving/\w+/start)"', page.text)[1])
    assert waiting.startswith("/solving/")
    until(lambda: not site.tasks.open())
    assert client.get(waiting, follow_redirects=False).headers["location"] == "/new?file=mine.yaml"
    assert client.post("/solving/none/start", data={}).status_code == 404


def test_a_problem_without_an_optimum_is_said_on_the_page(client, site, tmp_path):
    names = write(tmp_path, 1, "variables: [{name: x, integer: true}]\nobjective: x\n")
    waiting = post(client, "/optimisation/new", **FORM, problem=names)
    until(lambda: not site.tasks.open())
    page = client.get(waiting).text
    assert "p0 has no optimum" in page and "/optimisation/new?task=" in page
    again = client.get(f"/optimisation/new?task={waiting.rpartition('/')[2]}").text
    assert "p0 has no optimum" in again and 'value="mine"' in again and not (tmp_path / "mine.yaml").exists()
    assert client.get("/solving/none").status_code == 404


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_the_server_ends_with_all_its_solvers(number, tmp_path):
    import httpx

    write(tmp_path)
    command = [sys.executable, "-m", "fairtrial", "serve", "--port", "0", "--token", "t" * 20, "--no-open"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        address = process.stderr.readline().split()[4]
        with httpx.Client(base_url=address, headers={"authorization": f"Bearer {'t' * 20}"}, timeout=120) as client:
            reply = client.post(
                "/optimisation/new", data={**FORM, "problem": ["p0.yaml"]}, headers={"origin": address.rstrip("/")}
            )
            assert reply.status_code == 303, reply.text
        own = until(lambda: workers(process.pid))
        process.send_signal(number)
        code = process.wait(120)
        assert code == (0 if number != signal.SIGKILL else -number)
        until(lambda: gone(own))
    finally:
        process.kill()
        process.wait()
