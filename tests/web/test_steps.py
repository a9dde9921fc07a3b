"""What a trial did, on its page: all events in their order, slices of long lists, hostile texts, sessions under way."""

from __future__ import annotations

import json
import re
from html import unescape
from typing import Any

import pytest
from starlette.testclient import TestClient

from fairtrial.core.place import Place
from fairtrial.web.app import make_app
from fairtrial.web.site import Site

from .trajectories import BIDI, HTML, LONG, agents, hostile, reporting, searching


@pytest.fixture
def client(store: Any, tmp_path: Any) -> Any:
    site = Site(store, tmp_path)
    yield TestClient(make_app(site))
    site.close()


def words(html: str) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", " ", html)))


def numbers(html: str) -> list[int]:
    """The numbers of the steps that are shown, in their order."""
    return [int(found) for found in re.findall(r'<li id="e(\d+)"', html)]


def listed(client: TestClient, address: str) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = client.get(f"{address}/events.json").json()["events"]
    return events


class TestAConversationWithTools:
    async def test_every_event_of_all_turns_is_there_in_its_order(
        self, run_suite: Any, model: Any, client: Any
    ) -> None:
        await model(searching)
        run = await run_suite(**agents())
        address = f"/runs/{run.id}/cases/2/2/1"
        page, events = client.get(address).text, listed(client, address)
        case = run.store.cases(run.plan.id, 1, 1)[0]
        trial = run.trial_at(Place(1, 1, 0))
        assert len(events) == len(run.trajectory(Place(1, 1, 0), case, trial)) > 10
        results = {event["call"]: event["number"] for event in events if event["type"] == "result"}
        assert len(results) == 7 and {event.get("turn", 1) for event in events} == {1, 2}
        assert numbers(page) == [event["number"] for event in events if event["type"] != "result"]
        for number in results.values():
            assert f'id="e{number}"' in page  # the result of a call can be linked to as well
        shown = words(page)
        assert shown.index("Turn 1") < shown.index("Turn 2") < shown.index('facts.lookup {"topic": "code"}')
        assert "7 tool calls, 2 of them went wrong" in shown and "Error executing tool lookup" in shown

    async def test_the_first_failure_and_what_is_shown_can_be_chosen(
        self, run_suite: Any, model: Any, client: Any
    ) -> None:
        await model(searching)
        run = await run_suite(**agents())
        address = f"/runs/{run.id}/cases/1/2/1"
        events = listed(client, address)
        wrong = next(event["call"] for event in events if event["type"] == "result" and event.get("error"))
        first = next(event["number"] for event in events if event.get("id") == wrong)
        page = client.get(address).text
        assert f'href="{address}?first={first}#e{first}"' in page and 'data-key="f"' in page
        assert numbers(client.get(f"{address}/steps?only=errors").text) == [first]
        calls = [event["number"] for event in events if event["type"] == "call"]
        assert numbers(client.get(f"{address}/steps?only=calls").text) == calls
        good = client.get(f"/runs/{run.id}/cases/1/1/1").text
        assert "First failure" not in good and "2 tool calls," in words(good)

    async def test_what_was_not_recorded_is_said(self, run_suite: Any, client: Any, tmp_path: Any) -> None:
        (tmp_path / "quiet.py").write_text(
            "def answer(input):\n"
            "    if 'more' in input:\n        return 'nothing is known of this one'\n"
            "    return {'text': 'one', 'tool_calls': [{'tool': 'read', 'result': 'x'}]}\n"
        )
        cases = [{"id": "c", "turns": ["Begin.", "And more."], "expected": "x"}]
        run = await run_suite(targets=["python:quiet.py:answer"], cases=cases)
        shown = words(client.get(f"/runs/{run.id}/cases/1/1/1").text)
        assert "turn 2: calls not recorded" in shown and "turn 1: calls not recorded" not in shown
        plain = await run_suite(cases=[{"id": "p", "input": "x", "expected": "x"}])
        assert "What it did" not in client.get(f"/runs/{plain.id}/cases/1/1/1").text


class TestLongLists:
    async def test_a_page_has_a_slice_and_the_rest_on_demand(self, run_suite: Any, client: Any, tmp_path: Any) -> None:
        run = await run_suite(**reporting(tmp_path, LONG))
        address = f"/runs/{run.id}/cases/1/1/1"
        page = client.get(address).text
        assert len(page) < 300_000 and len(numbers(page)) <= 100
        assert "10,002 events, 5,000 tool calls, 1 of them went wrong" in words(page)
        events = listed(client, address)
        wanted = [event["number"] for event in events if event["type"] != "result"]
        found, part = numbers(page), page
        for _ in range(3):
            after = re.search(r'href="([^"]*)#steps" data-slice="after"', part)
            assert after
            part = client.get(unescape(after[1]).replace(address, f"{address}/steps")).text
            found += numbers(part)
        assert found == wanted[: len(found)] and len(found) == 400
        failure = next(event["call"] for event in events if event.get("error"))
        first = next(event["number"] for event in events if event.get("id") == failure)
        there = client.get(f"{address}/steps?first={first}").text
        assert numbers(there)[0] == first and 'data-slice="before"' in there
        last = client.get(f"{address}/steps?first=999999999").text
        assert numbers(last) == wanted[-1:] and 'data-slice="after"' not in last

    async def test_a_huge_result_is_cut_and_can_be_fetched(self, run_suite: Any, client: Any, tmp_path: Any) -> None:
        size = 50_000_000
        events = (
            "[{'type': 'call', 'id': 'a', 'tool': 'cat', 'arguments': {'f': 'y' * 1000000}},"
            f" {{'type': 'result', 'call': 'a', 'text': 'x' * {size}}}]"
        )
        run = await run_suite(**reporting(tmp_path, events))
        address = f"/runs/{run.id}/cases/1/1/1"
        page = client.get(address).text
        assert len(page) < 100_000 and f"all {size:,} characters" in words(page)
        assert 'href="' + address + '/events.json?number=3"' in page
        one = client.get(f"{address}/events.json?number=3")
        assert one.json()["text"] == "x" * size and one.headers["content-type"] == "application/json"
        for wrong in ("0", "5", "-1", "x", "99999999999"):
            assert client.get(f"{address}/events.json?number={wrong}").status_code == 404, wrong


class TestHostileTexts:
    async def test_nothing_of_a_list_becomes_html_of_ours(self, run_suite: Any, client: Any, tmp_path: Any) -> None:
        run = await run_suite(**reporting(tmp_path, repr(hostile())))
        address = f"/runs/{run.id}/cases/1/1/1"
        for path in (address, f"{address}?panel=1", f"{address}/steps", f"{address}/steps?only=errors"):
            page = client.get(path).text
            assert HTML not in page and "<img" not in page.split("</header>")[-1] and "\x1b" not in page, path
            assert BIDI not in page and "\u202e" not in page and "\u2066" not in page, path
            assert "&lt;img src=x onerror=alert(1)&gt;" in page and "rejected" in page, path
        reply = client.get(f"{address}/events.json")
        assert (
            reply.headers["x-content-type-options"] == "nosniff"
            and "attachment" in reply.headers["content-disposition"]
        )
        said = [event for event in reply.json()["events"] if event["type"] == "note"]
        assert said[0]["text"].startswith(HTML)  # data stays as it is
        json.loads(client.get(f"{address}/events.json?number=4").text)

    async def test_events_of_a_program_that_make_no_sense_are_not_a_broken_page(
        self, run_suite: Any, client: Any, tmp_path: Any
    ) -> None:
        odd = [
            {"type": "result", "call": "nobody", "text": "of no call"},
            {"type": "call", "id": "a", "tool": "t", "within": "b"},
            {"type": "call", "id": "b", "tool": "t", "within": "a", "at": -5.0},
            {"type": "result", "call": "b", "ms": -3.0},
            {"type": "result", "call": "b", "text": "twice"},
        ]
        run = await run_suite(**reporting(tmp_path, repr(odd)))
        page = client.get(f"/runs/{run.id}/cases/1/1/1")
        assert page.status_code == 200 and "of no call" in page.text and "did not finish" in page.text
        for events in ("'none'", "[1, 2]", "[{'type': 'dance'}]", "{}"):
            run = await run_suite(**reporting(tmp_path, events))
            assert client.get(f"/runs/{run.id}/cases/1/1/1").status_code == 200, events
