"""One of anything is said in the singular, on every surface: `1 answer`, never `1 answers`."""

import re

import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient

import fairtrial as ft
from fairtrial.analyse.run import RunSeries
from fairtrial.cli.main import cli
from fairtrial.reports.export import export
from fairtrial.web.app import make_app
from fairtrial.web.site import Site

from .test_plus_minus import read

MANY = re.compile(
    r"(?<!of )(?<![\d.,–/-])1 (?!is |has |was |does |less |times |this |as )(?:[a-z]+ )?"
    r"(?:answers|calls|cases|trials|labels|verdicts|pairs|runs|problems|questions|points|wordings|metrics|arms|tests"
    r"|samples|tools|votes|clusters|judges|repeats|errors|marks|rows|attempts|turns|claims|checks|batches|requests)\b"
)


@pytest.mark.slow
async def test_one_case_and_one_answer(run_suite, store, tmp_path):
    judge = {"target": "mock:judge", "options": {"verdict": {"marks": {"good": 5, "poor": 2}, "otherwise": 1}}}
    run = await run_suite(
        targets=[{"id": name, "target": "mock:m", "options": {"answer": name}} for name in ("good", "poor")],
        conditions={"plain": {"system": "Answer."}, "kind": {"system": "Please answer."}},
        judge=judge,
        scorer="golden_judge",
        cases=[{"id": "only", "input": "Say it.", "expected": "it", "category": "one", "difficulty": "easy"}],
    )
    lone = await run_suite(
        targets=[{"id": "good", "target": "mock:m", "options": {"answer": "good"}}],
        judge=judge,
        scorer="golden_judge",
        cases=[{"id": "only", "input": "Say it.", "expected": "it"}],
    )
    surfaces = {}
    for one in (run, lone):
        name = str(one.record.number)
        commands = [
            ("show", one.id), ("show", one.id, "--details"), ("show", one.id, "--cases"), ("show", one.id, "--trials"),
            ("cases", one.id), ("variance", one.id), ("list",), ("gate", one.id, "--min-score", "20"),
        ]  # fmt: skip
        if one is run:
            commands += [("compare", one.id, "--details"), ("rank", one.id), ("power", one.id)]
            commands += [("compare", one.id, "--arms", "good/plain", "poor/plain", "--details")]
        for args in commands:
            found = CliRunner().invoke(cli, [*args, "--store", store.address])
            surfaces[f"{name}: {' '.join(args)}"] = found.output
        for form in ("html", "md"):
            export(one, tmp_path / f"{name}.{form}")
            surfaces[f"{name}.{form}"] = read((tmp_path / f"{name}.{form}").read_text("utf-8"))
        surfaces[f"{name}: notebook"] = read(one._repr_html_() + repr(one) + repr(RunSeries([one])))
        site = Site(store, tmp_path)
        client = TestClient(make_app(site), headers={"origin": "http://testserver"})
        for page in ("", "/result", "/details", "/variance", "/share", "/cases/1", "/cases/1/1/1", "/brief"):
            surfaces[f"{name}: {page}"] = read(client.get(f"/runs/{one.id}{page}?wait=1").text)
        surfaces["/compare"] = read(client.get(f"/compare?runs={run.id}&a=good/plain&b=poor/plain&wait=1").text)
        site.close()
    surfaces["calibrate"] = CliRunner().invoke(cli, ["calibrate", "mock:echo", "--store", store.address]).output
    surfaces["comparison"] = repr(ft.compare(run, "good/plain", "poor/plain")) + repr(ft.compare(run))
    wrong = [
        f"{where}: {' '.join(text[max(0, at.start() - 40) : at.end() + 20].split())}"
        for where, text in surfaces.items()
        for at in MANY.finditer(text)
    ]
    assert not wrong, "\n".join(wrong)
