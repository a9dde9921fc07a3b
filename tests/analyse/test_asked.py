"""A run that stopped before it was complete says which cases it has, wherever its numbers are shown."""

import pytest
from click.testing import CliRunner

import fairtrial as ft
from fairtrial import pipeline
from fairtrial.analyse.rank import rank
from fairtrial.analyse.run import Run
from fairtrial.analyse.score_table import read_scores, sources_of
from fairtrial.cli.main import cli
from fairtrial.reports.export import export
from fairtrial.reports.site import write_site
from tests.analyse.test_compare import arm, cases
from tests.engine.test_order import COUNT, asked, forget_order, sorted_suite  # noqa: F401
from tests.engine.test_session import interrupted_after
from tests.web.test_result import client, words  # noqa: F401


async def surfaces(run: Run, client, tmp_path) -> dict[str, str]:  # noqa: F811
    """Return everything that shows the numbers of a run, as text."""
    found = {}
    for command in ("show", "compare", "rank", "list"):
        named = [] if command == "list" else [run.id]
        for way in ([], ["--json"]):
            told = CliRunner().invoke(cli, [command, *named, *way, "--store", run.store.address], standalone_mode=False)
            found[" ".join([command, *way])] = told.stdout
    for ending in ("html", "md", "json"):
        export(run, tmp_path / f"run.{ending}")
        found[ending] = (tmp_path / f"run.{ending}").read_text()
    write_site([run], tmp_path / "site")
    found["site"] = (tmp_path / "site" / "index.html").read_text()
    found["notebook"] = run._repr_html_()
    found["comparison in a notebook"] = ft.compare(run)._repr_html_()
    found["ranking in a notebook"] = rank(read_scores(sources_of(run)))._repr_html_()
    found["page"] = words(client.get(f"/runs/{run.id}/result").text)
    found["page of comparisons"] = words(client.get(f"/compare?runs={run.id}&wait=1").text)
    found["board"] = words(client.get("/board?wait=1").text)
    found["list of runs, page"] = words(client.get(f"/runs/{run.id}/brief").text)
    found["home, page"] = words(client.get("/home/suites").text)
    return {name: " ".join(text.split()) for name, text in found.items()}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("earlier", "how", "worth"),
    [
        (False, "drawn at random", ", so they stand for the rest."),
        (True, "the first of the suite", ": they may not be like the rest."),
    ],
)
async def test_every_surface_says_which_cases_a_stopped_run_has(
    sorted_suite,  # noqa: F811
    client,  # noqa: F811
    tmp_path,
    earlier,
    how,
    worth,
):
    run = await sorted_suite(2 * COUNT / 3)
    run = forget_order(run) if earlier else run
    had = f"{len(asked(run))} of 200 cases, {how}"
    for name, text in (await surfaces(run, client, tmp_path)).items():
        brief = name in ("list", "list of runs, page", "home, page")
        assert (had if brief else f"topped by the budget of $133.333: {had}{worth}") in text, name


async def test_an_interrupted_run_says_which_cases_it_has(write_suite, store):
    suite = pipeline.load(write_suite(targets=[arm("a", 30, 60)], cases=cases(60), concurrency=2))
    run = await pipeline.arun(suite, store=store, watch=interrupted_after(12))
    said = run._repr_html_()
    assert f"Interrupted: {len(asked(run))} of 60 cases, drawn at random, so they stand for the rest." in said


async def test_a_whole_run_says_nothing_of_it(run_suite, client, tmp_path):  # noqa: F811
    run = await run_suite(targets=[arm("a", 20), arm("b", 30)], cases=cases())
    for name, text in (await surfaces(run, client, tmp_path)).items():
        assert "drawn at random" not in text and "of 40 cases, the first" not in text, name
