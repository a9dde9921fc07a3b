"""What forms take from a suite: its providers, keys, prices and parameters, for judges and for the code arena."""

from __future__ import annotations

import asyncio
import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest
import yaml
from starlette.testclient import TestClient

from fairtrial import pipeline
from fairtrial.cli.main import _run
from fairtrial.config import parse_suite
from fairtrial.core.errors import FairtrialError
from fairtrial.store import Store, browsing
from fairtrial.tracks.code_arena.prompts import arena_document
from fairtrial.web.app import make_app
from fairtrial.web.site import Site

KEY = "a-key-of-the-lab-0001"
SAMPLES = [
    {"id": "good", "question": "What is 6 × 7?", "answer": "42", "score": 100, "expected": "42", "tolerance": 25},
    {"id": "bad", "question": "What is 6 × 7?", "answer": "41", "score": 0, "expected": "42"},
    {"id": "half", "question": "What is 6 × 7?", "answer": "about 40", "score": 50},
]


@pytest.fixture
async def lab(model_server: Any, write_suite: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A suite whose judge is of a provider of its own, which takes only its own key."""
    state = await model_server(answer='{"reasoning": "fine", "score": 8}', key=KEY)
    monkeypatch.setenv("LAB_KEY", KEY)
    write_suite(
        name="lab.yaml",
        providers={"lab": {"base_url": f"{state.address}/v1", "api_key": "${LAB_KEY}"}},
        targets=[{"id": "small", "target": "lab:small", "params": {"top_p": 0.5}}],
        params={"temperature": 0.25, "max_tokens": 300},
        prices={"lab:judge": {"input": 1000, "output": 1000}},
        judge={"target": "lab:judge", "temperature": 0.125, "instructions": "Be strict about {{ topic }}."},
        vars={"topic": "sums"},
        scorer={"type": "llm_judge", "scale": 10},
    )
    return state


@pytest.fixture
def page(tmp_path: Path, store: Store) -> Any:
    site = Site(store, tmp_path)
    yield TestClient(make_app(site), headers={"origin": "http://testserver"}, follow_redirects=True)
    site.close()


async def calibrate(page: Any, store: Store, **fields: str) -> Any:
    """Send the form, wait for the verdicts, and return the newest calibration, or the page with its problem."""

    def send() -> Any:
        reply = page.post("/judges/calibrate", data=fields)
        while "data-task=" in reply.text:
            reply = page.get(reply.url.path)
        return reply

    reply = await asyncio.to_thread(send)
    if found := re.search(r'<span class="field-problem bad" id="problem">(.*?)</span>', reply.text, re.DOTALL):
        return unescape(found[1])
    return json.loads(next(iter(_calibrations(store)))["body"])


def _calibrations(store: Store) -> list[Any]:
    return [{**row, "body": json.dumps(row["body"])} for row in browsing.calibrations_page(store, 0, 10)[0]]


async def test_a_judge_of_a_suites_own_provider_is_calibrated_as_the_suite_asks_it(
    lab: Any, page: Any, store: Store
) -> None:
    assert await calibrate(page, store, judge="lab:judge") == (
        "`lab` is a provider of lab.yaml: choose that suite, so that `lab:judge` is known"
    )
    assert not lab.calls
    body = await calibrate(page, store, judge="lab:judge", suite="lab.yaml")
    assert body["summary"]["judge"] == "lab:judge" and body["summary"]["total"] == 8
    assert body["summary"]["cost_usd"] > 0  # by the suite's prices
    asked = lab.bodies[-1]
    assert asked["temperature"] == 0.125 and "Be strict about sums." in json.dumps(asked["messages"])


async def test_calibrate_it_leads_to_the_form_as_the_run_asked(
    lab: Any, page: Any, store: Store, tmp_path: Path
) -> None:
    run = await pipeline.arun(pipeline.load(tmp_path / "lab.yaml"), store=store)
    (tmp_path / "lab.yaml").unlink()  # what the run was made of is enough
    (address,) = re.findall(r'href="(/judges\?[^"]*)#calibrate">Calibrate it<', page.get("/judges/in-runs").text)
    form = page.get(unescape(address)).text
    chosen = re.search(r'<option value="(run:[^"]+)" selected>([^<]+)<', form)
    assert chosen and chosen[1] == f"run:{run.id}" and chosen[2] == "test, as in run 1"
    assert 'value="lab:judge"' in form
    await calibrate(page, store, judge="lab:judge", suite=chosen[1])
    assert "Calibrate it" not in page.get("/judges/in-runs").text  # the same judge, asked the same
    assert "rated " in page.get("/judges/in-runs").text
    assert page.get(unescape(address).replace(run.id, "gone")).status_code == 200


async def test_a_key_that_is_not_set_is_named(
    lab: Any, page: Any, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LAB_KEY")
    assert "LAB_KEY" in await calibrate(page, store, judge="lab:judge", suite="lab.yaml") and not lab.calls


@pytest.mark.parametrize("form", ["yaml", "json", "jsonl"])
async def test_samples_of_ones_own_in_every_form_that_the_command_takes(
    form: str, lab: Any, page: Any, store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = "".join(json.dumps(sample) + "\n" for sample in SAMPLES)
    text = {"yaml": yaml.safe_dump(SAMPLES, allow_unicode=True), "json": json.dumps(SAMPLES), "jsonl": lines}[form]
    body = await calibrate(page, store, judge="lab:judge", suite="lab.yaml", samples=text)
    assert [sample["id"] for sample in body["samples"]] == ["good", "bad", "half"]
    assert [sample["within_tolerance"] for sample in body["samples"]] == [True, False, False]
    (tmp_path / f"own.{form}").write_text(text)
    command = ["calibrate", "--suite", "lab.yaml", "--samples", f"own.{form}", "--json", "--store", store.address]
    assert await asyncio.to_thread(_run, command) == 0
    assert [one["id"] for one in json.loads(capsys.readouterr().out)["samples"]] == ["good", "bad", "half"]


async def test_an_uploaded_file_counts_without_a_script(lab: Any, page: Any, store: Store) -> None:
    def send() -> Any:
        file = {"samples_file": ("own.yaml", yaml.safe_dump(SAMPLES).encode())}
        reply = page.post("/judges/calibrate", data={"judge": "lab:judge", "suite": "lab.yaml"}, files=file)
        while "data-task=" in reply.text:
            reply = page.get(reply.url.path)

    await asyncio.to_thread(send)
    assert len(json.loads(_calibrations(store)[0]["body"])["samples"]) == 3


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("just words", "your text must be a list of samples with id, question, answer and score"),
        ("- {id: a, question: q, answer: a}", "sample 1: `score` is missing"),
        ("- {id: a, question: q, answer: a, score: 101}", "sample 1.score: must be <= 100, not 101"),
        ("- {id: a, question: q, answer: a, score: 1, points: 2}", "sample 1.points: unknown key; known: id, question"),
        ("- {id: a, question: q, answer: a, score: 1}\n- {id: a, question: q, answer: b, score: 2}", "sample 2: sample 1 has the id `a` already"),
        ("- {id: [", "cannot read the samples in your text: did not find expected node content in line 2"),
        ('{"id": "a", "question": "q", "answer": "a", "score": 1}\n{oops', "cannot read the samples in your text: line 2 is not JSON"),
    ],
)  # fmt: skip
async def test_what_is_wrong_with_samples_stands_beside_them(
    text: str, problem: str, lab: Any, page: Any, store: Store
) -> None:
    said = await calibrate(page, store, judge="lab:judge", suite="lab.yaml", samples=text)
    assert isinstance(said, str) and said.startswith(problem) and len(said.splitlines()) == 1, said
    assert not lab.calls


async def test_many_problems_are_told_in_a_few_lines(lab: Any, page: Any, store: Store) -> None:
    said = await calibrate(page, store, judge="lab:judge", suite="lab.yaml", samples="- {id: a}\n" * 50)
    assert len(said.splitlines()) <= 6 and re.search(r"and \d+ more", said)


@pytest.mark.slow
async def test_a_file_is_put_into_the_field_where_it_can_be_edited(
    site: str, visitor: Any, lab: Any, tmp_path: Path
) -> None:
    (tmp_path / "own.yaml").write_text(yaml.safe_dump(SAMPLES[:2], sort_keys=False))
    await visitor.goto(f"{site}/judges")
    await visitor.get_by_text("Your own samples").click()
    await visitor.get_by_role("button", name="Start from the eight built-in samples").click()
    assert (await visitor.locator("#samples").input_value()).count("- id:") == 8
    await visitor.locator("#samples-file").set_input_files(str(tmp_path / "own.yaml"))
    await visitor.wait_for_function("document.getElementById('samples').value.includes('id: bad')")
    text = await visitor.locator("#samples").input_value()
    await visitor.locator("#samples").fill(text.replace("id: bad", "id: changed"))
    await visitor.locator("[name=judge]").fill("lab:judge")
    await visitor.locator("select[name=suite]").select_option("lab.yaml")
    await visitor.get_by_role("button", name="Calibrate", exact=True).click()
    await visitor.locator("#sample-2", has_text="changed").wait_for()


async def test_the_code_arena_knows_the_models_of_a_suite(lab: Any, page: Any, store: Store) -> None:
    form = {"prompt": "A clock", "targets": "lab:other\nsmall"}
    reply = await asyncio.to_thread(lambda: page.post("/arena/pages", data=form))
    assert "is a provider of lab.yaml: choose that suite" in unescape(re.sub("<[^>]+>", "", reply.text))
    assert not store.runs()
    await asyncio.to_thread(lambda: page.post("/arena/pages", data={**form, "suite": "lab.yaml"}))
    while not store.runs() or store.runs()[0].status == "running":
        await asyncio.sleep(0.05)
    models = {body["model"]: body for body in lab.bodies}
    assert set(models) == {"other", "small"} and models["other"]["temperature"] == 0.25
    assert models["small"]["top_p"] == 0.5 and models["small"]["max_tokens"] == 8192  # pages are long


def test_the_arenas_document_borrows_what_is_about_models() -> None:
    suite = {
        "targets": ["lab:a", {"id": "b", "target": "lab:b", "conditions": ["x"], "scorer": "match", "params": {"top_p": 1}}],
        "providers": {"lab": {"base_url": "http://127.0.0.1:1/v1"}},
        "judges": [{"id": "j", "target": "lab:j", "temperature": 0, "instructions": "About sums."}],
        "params": {"max_tokens": 9000, "temperature": 0},
        "conditions": {"x": {"system": "S"}},
        "prices": {"lab:a": {"input": 1, "output": 2}},
        "cases": [{"input": "q"}],
    }  # fmt: skip
    document = arena_document([], judge="j", prompt="A clock", of=suite)
    assert document["targets"] == ["lab:a", {"id": "b", "target": "lab:b", "params": {"top_p": 1}}]
    assert document["judge"] == {"id": "j", "target": "lab:j", "temperature": 0}
    assert document["params"] == {"max_tokens": 9000, "temperature": 0} and document["scorer"] == "code_judge"
    assert {"providers", "prices"} <= document.keys() and not {"conditions"} & document.keys()
    assert len(parse_suite(yaml.safe_dump(document)).arms) == 2
    assert arena_document(["b", "lab:c"], of=suite)["targets"][1] == "lab:c"
    with pytest.raises(FairtrialError, match="unknown provider `lab`"):
        parse_suite(yaml.safe_dump(arena_document(["lab:a"])))


def test_the_command_of_the_arena_takes_a_suite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert _run(["arena", "lab:a", "--prompt", "A clock"]) == 1
    assert "if a suite defines this provider, add --suite FILE" in capsys.readouterr().err
    assert _run(["arena", "lab:a", "--suite", "nowhere.yaml"]) == 1
    assert "cannot read nowhere.yaml" in capsys.readouterr().err
    (tmp_path / "s.yaml").write_text("- no suite")
    assert _run(["arena", "lab:a", "--suite", "s.yaml"]) == 1
    assert "s.yaml is not a suite" in capsys.readouterr().err
