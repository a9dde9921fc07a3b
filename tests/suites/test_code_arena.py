"""The Code Arena end to end: prepared answers get what a person would give them, offline, from one command."""

import asyncio
import json
import os
import sqlite3
from contextlib import asynccontextmanager
from functools import partial

import pytest
from filelock import FileLock

from fairtrial import pipeline
from fairtrial.analyse.rank import rank
from fairtrial.analyse.run import Run
from fairtrial.analyse.score_table import read_scores, sources_of
from fairtrial.cli.main import cli
from fairtrial.config import parse_suite
from fairtrial.config.advice import warnings
from fairtrial.core.errors import FairtrialError, ProblemsError
from fairtrial.present.words.runs import run_notes
from fairtrial.reports.export import export
from fairtrial.store import Store
from fairtrial.store.files import attachments, contents
from fairtrial.store.votes import votes
from fairtrial.tracks.code_arena import prompts as code_arena
from fairtrial.tracks.code_arena.code_judge import CRITERIA
from fairtrial.webpage.render import Renderer
from fairtrial.webpage.rendering import Limits
from fairtrial.workflows.calibrate import acalibrate
from fairtrial.workflows.pairwise import apair
from fairtrial.workflows.vote import Poll

pytestmark = pytest.mark.usefixtures("chromium")
PAGE = (
    "<!doctype html><html lang=en><meta name=viewport content='width=device-width'><title>T</title><h1>{}</h1></html>"
)

# What a person says of the hasty model's twelve answers: the checks that fail, and what is amiss.
HASTY = {
    "landing-page": (1.0, {"fits_phone", "responsive"}),
    "sign-up-form": (0.0, {"page"}),  # prose only
    "sortable-table": (0.2, {"no_script_errors"}),
    "navigation": (0.4, {"complete"}),  # breaks off
    "canvas-animation": (0.0, {"answers"}),  # an endless loop
    "kanban": (1 / 3, {"controls"}),
    "calculator": (0.6, {"contrast"}),
    "bar-chart": (0.0, {"no_script_errors", "self_contained", "not_blank"}),  # a library from elsewhere
    "dialog": (0.5, set()),
    "dark-mode": (0.0, {"page"}),  # empty
    "snake": (0.0, {"page"}),  # needs a build
    "svg-scene": (1 / 3, {"fits_phone", "responsive"}),
}


def model(name: str, answers: dict[str, str] | None = None) -> dict:
    texts = answers or code_arena.demo_answers(name)
    literal = {case: text.replace("${", "$${") for case, text in texts.items()}
    return {"id": name, "target": f"mock:{name}", "options": {"answers": literal}}


def judge(vision: bool | None = None, **marks: float) -> dict:
    verdict = {"marks": {"check FAILED": 40.0, "NOT OK": 60.0, **marks}, "otherwise": 90.0}
    return {"target": "mock:judge", "vision": vision, "options": {"verdict": verdict}}


@pytest.fixture(scope="module", autouse=True)
def short_limits():
    """Endless loops end sooner: every one of them keeps a core busy for as long as it may.

    What fails is waited for half a second of a page's own time, frame by frame: every second of it is one of a processor.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fairtrial.webpage.acting.PATIENCE_MS", 500)
        patch.setattr("fairtrial.webpage.pointer.PATIENCE_MS", 500)
        patch.setattr("fairtrial.webpage.render.Limits", partial(Limits, busy=2.0, suspect=1.0))
        yield


@pytest.fixture(scope="module")
async def shared_renderer(chromium, short_limits):
    """One browser for the tests that look at a page or two: starting it takes longer than looking."""
    async with Renderer() as made:
        yield made


@pytest.fixture
def one_browser(shared_renderer, monkeypatch):
    """Runs in this process use the browser that is there, until `FAIRTRIAL_BROWSER` names another."""

    @asynccontextmanager
    async def opened():
        if "FAIRTRIAL_BROWSER" in os.environ:
            async with Renderer() as made:
                yield made
        else:
            yield shared_renderer

    monkeypatch.setattr("fairtrial.webpage.looking.Renderer", opened)


@pytest.fixture(scope="module")
def arena(tmp_path_factory, chromium, worker_id, short_limits):
    """Both prepared models on all twelve prompts, looked at once for all tests of all workers; each has a copy."""
    place = tmp_path_factory.getbasetemp()
    shared = (place if worker_id == "master" else place.parent) / "arena"
    with FileLock(f"{shared}.lock"):
        if not (shared / "done").exists():
            _look_at_everything(shared)
            (shared / "done").touch()
    own = tmp_path_factory.mktemp("arena") / "arena.db"
    with sqlite3.connect(shared / "arena.db") as whole, sqlite3.connect(own) as copy:
        whole.backup(copy)
    return Run.find("latest", Store(f"sqlite:///{own}"))


def _look_at_everything(place):
    place.mkdir(exist_ok=True)
    suite = {
        "name": "arena",
        "targets": [model("careful"), model("hasty")],
        "suite": "code_arena",
        "judge": judge(True),
    }
    (place / "suite.yaml").write_text(json.dumps(suite))
    store = Store(f"sqlite:///{place}/arena.db")
    asyncio.run(pipeline.arun(pipeline.load(place / "suite.yaml"), store=store))


def by_case(run, arm: str) -> dict:
    return {trial.case_id: trial for trial in run.trials() if trial.arm == arm}


def test_every_good_page_passes_every_check_and_probe(arena):
    for case, trial in by_case(arena, "careful").items():
        assert trial.metrics["checks"] == 100.0, (case, trial.details["page"])
        assert trial.metrics["probes"] == 100.0, (case, trial.details["page"])


def test_every_flawed_page_gets_what_a_person_would_give_it(arena):
    found = by_case(arena, "hasty")
    assert found.keys() == HASTY.keys() == {case["id"] for case in code_arena.cases()}
    for case, (checks, amiss) in HASTY.items():
        page = found[case].details["page"]
        assert found[case].metrics["checks"] == pytest.approx(100 * checks), (case, page["checks"])
        assert {probe["name"] for probe in page["probes"] if probe["passed"] is False} == amiss, case


def test_the_judge_gives_four_criteria_and_we_weigh_them(arena):
    trial = by_case(arena, "careful")["kanban"]
    assert {name: trial.metrics[name] for name in CRITERIA} == dict.fromkeys(CRITERIA, 90.0) and trial.score == 0.9
    said = arena.judgements(trial.trial_id)[0]
    assert said["params"]["temperature"] == 0.3
    empty = by_case(arena, "hasty")["dark-mode"]
    assert empty.score == 0.0 and arena.judgements(empty.trial_id) == []  # nobody is asked about nothing


async def test_criteria_are_weighed_40_30_20_10():
    from fairtrial.tracks.code_arena.code_judge import _read

    marks = {"visual_accuracy": 100, "code_quality": 50, "functionality": 20, "responsiveness": 0}
    assert _read({"reasoning": "r", **marks}).value == pytest.approx(0.4 + 0.15 + 0.04)


def test_screenshots_are_stored_once_by_content(arena):
    found = attachments(arena.store, arena.id)
    assert all(names.keys() == {"desktop", "phone"} for names in found.values())
    assert len(found) == 24 - 4  # three answers without a page, one that hangs
    media, body = contents(arena.store, [found[0, 0, 0]["desktop"]]).popitem()[1]
    assert media == "image/png" and body.startswith(b"\x89PNG")


async def test_pairs_are_judged_with_eyes_and_make_a_board(arena):
    summary = await apair(arena.id, store=arena.store)
    assert (summary.pairs[0].orders.wins, summary.pairs[0].orders.losses) == (12, 0)
    found = rank(read_scores(sources_of(arena)), by="verdicts")
    assert [place.label for place in found.places] == ["careful", "hasty"]


async def test_the_report_shows_pages_side_by_side(arena, browser, tmp_path):
    page = await browser.new_page(viewport={"width": 1280, "height": 900})
    trouble = []
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on(
        "request", lambda request: None if request.url.startswith(("file:", "data:")) else trouble.append(request.url)
    )
    await page.goto(export(arena, tmp_path / "report.html").as_uri())
    await page.wait_for_selector("html[data-ready]")
    kanban = page.locator("#pages article", has_text="kanban").first
    assert await kanban.locator(".page").count() == 2 and await kanban.locator("img").count() == 4
    await kanban.scroll_into_view_if_needed()
    widths = "images => Promise.all(images.map(i => i.decode().then(() => i.naturalWidth)))"
    assert await kanban.locator("img").evaluate_all(widths) == [1280, 390] * 2
    assert await kanban.locator(".checks:not(.probes) .failed").count() == 3
    assert await page.locator("iframe").count() == 0  # in a file nothing seals a page
    assert trouble == []


async def test_people_vote_without_knowing_whose_page_is_whose(arena, browser, tmp_path, monkeypatch):
    from fairtrial.web.serving import serve_site

    monkeypatch.setattr("fairtrial.web.votes.Poll", partial(Poll, seed=1))
    assert Poll(arena, "ada").remaining == 12
    async with serve_site(arena.store, tmp_path, token="a-token-of-the-test") as address:
        page = await browser.new_page(extra_http_headers={"authorization": "Bearer a-token-of-the-test"})
        await page.goto(f"{address}runs/{arena.id}/vote?by=ada")
        text = await page.inner_text("main")
        assert "careful" not in text and "hasty" not in text  # names appear after a vote
        for number in range(12):
            await page.get_by_text(f"pair {number + 1} of 12").wait_for()
            await page.keyboard.press("ArrowLeft" if number < 8 else "t" if number < 10 else "x")
        await page.get_by_role("table", name="Board").wait_for()
        await page.wait_for_function("() => !document.body.innerText.includes('pair 12 of 12')")
        assert "careful" in await page.inner_text("main")
    cast = list(votes(arena.store, arena.id))
    assert len(cast) == 12 and {row["voter"] for row in cast} == {"ada"}
    assert {row["left"] for row in cast} == {0, 1}  # sides are drawn
    for row in cast[:8]:  # the left one was chosen, whichever it was
        assert row["worth"] == (1.0 if row["left"] == row["arm_one"] else 0.0)
    assert [row["choice"] for row in cast[8:]] == ["tie"] * 2 + ["neither"] * 2
    assert Poll(arena, "ada").remaining == 0 and Poll(arena, "grace").remaining == 12
    await apair(arena.id, store=arena.store)
    both = rank(read_scores(sources_of(arena)), by="both")
    assert both.matrix.battles == 24 and rank(read_scores(sources_of(arena)), by="votes").matrix.battles == 12


def test_one_page_in_the_terminal(arena, tmp_path, capsys):
    trial = by_case(arena, "hasty")["kanban"].trial_id
    args = ["show", arena.id, "--trial", trial, "--pictures", "pics", "--store", f"sqlite:///{arena.store.address}"]
    cli.main(args, standalone_mode=False)
    out = capsys.readouterr().out
    assert "✗ a card can be dragged (step 2: 1 × `#done .card` instead of 2)" in out and "✓ no script error" in out
    assert (tmp_path / "pics/phone.png").read_bytes().startswith(b"\x89PNG")
    assert "<!doctype html>" in (tmp_path / "pics/page.txt").read_text().lower()  # code to read: nothing seals a file


def test_what_a_page_must_say_may_be_a_number(write_suite):
    checks = [{"name": "n", "steps": [{"expect": {"selector": "#n", "text": 5}}, {"press": 1}]}]
    suite = pipeline.load(write_suite(cases=[{"id": "one", "input": "q", "checks": checks}], scorer="browser"))
    assert next(suite.cases()).metadata["checks"][0]["steps"][0]["expect"]["text"] == "5"


def test_deleting_a_run_deletes_its_pictures(arena, tmp_path):
    with sqlite3.connect(arena.store.address) as whole, sqlite3.connect(tmp_path / "copy.db") as copy:
        whole.backup(copy)
    store = Store(f"sqlite:///{tmp_path}/copy.db")
    hashes = list(next(iter(attachments(store, arena.id).values())).values())
    store.delete_run(arena.id)
    assert attachments(store, arena.id) == {} and contents(store, hashes) == {} and list(votes(store, arena.id)) == []


async def test_a_judge_that_cannot_see_is_told_so_and_so_are_we(run_suite, write_suite, one_browser):
    keys = {
        "targets": [model("m", {"one": PAGE.format("Hi")})],
        "judge": judge(),
        "scorer": "code_judge",
        "cases": [{"id": "one", "input": "a page"}],
    }
    assert any("without seeing" in text for text in warnings(pipeline.load(write_suite(**keys))))
    run = await run_suite(**keys)
    assert "saw no screenshot" in next(run.trials()).notes


async def test_the_quick_form_cuts_and_says_so(run_suite, model_server, one_browser):
    marks = {"visual_accuracy": 80, "code_quality": 60, "functionality": 40, "responsiveness": 20}
    state = await model_server(answer=json.dumps({"reasoning": "fine", **marks}))
    # Long to read, not to look at: a line of 6,000 characters is so wide that its picture may take too long.
    long = PAGE.format(f"Hi<!-- {'x' * 6000} -->")
    run = await run_suite(
        targets=[model("m", {"one": long})],
        judge={"target": "openai:gpt-5"},
        scorer={"type": "code_judge", "quick": True},
        cases=[{"id": "one", "input": "a page"}],
    )
    trial = next(run.trials())
    assert trial.score == pytest.approx(0.32 + 0.18 + 0.08 + 0.02) and "first 5000 of" in trial.notes
    sent = state.bodies[-1]["messages"][-1]["content"]
    assert [part["type"] for part in sent] == ["image_url", "image_url", "text"]
    assert sent[0]["image_url"]["url"].startswith("data:image/png;base64,")
    assert "more characters are not shown" in sent[-1]["text"] and len(sent[-1]["text"]) < 8000


async def test_without_a_browser_the_arena_still_runs(run_suite, write_suite, monkeypatch, store, one_browser):
    monkeypatch.setenv("FAIRTRIAL_BROWSER", "no-such-browser")
    keys = {
        "targets": [model("m", {"one": PAGE.format("Hi"), "two": "no page"})],
        "cases": [{"id": "one", "input": "p"}, {"id": "two", "input": "p"}],
    }
    assert any("will not be opened" in text for text in warnings(pipeline.load(write_suite(**keys, scorer="browser"))))
    run = await run_suite(**keys, scorer="browser")
    one, two = run.trials()
    assert (one.status, one.unscored_kind, two.score) == ("unscored", "browser", 0.0) and run.status == "incomplete"
    monkeypatch.delenv("FAIRTRIAL_BROWSER")
    from fairtrial.workflows.resume import aresume

    again = await aresume(run.id, store=store)  # with a browser, only the looking is left
    assert again.status == "completed" and next(again.trials()).score == 1.0
    monkeypatch.setenv("FAIRTRIAL_BROWSER", "no-such-browser")
    judged = await run_suite(**keys, scorer="code_judge", judge=judge(True))
    first = next(judged.trials())
    assert "the page was not rendered in a browser" in first.notes and "probes" not in first.metrics
    assert any("The pages of m were judged by their code alone" in note for note in run_notes(judged.summary()))


async def test_a_judge_of_code_is_calibrated_with_pages(tmp_path, one_browser):
    marks = {
        "an endless loop?": 8,
        "nothing is to be seen": 12,
        "controls do nothing": 42,
        "too little contrast": 50,
        "too wide": 60,
    }
    text = json.dumps(
        {
            "name": "x",
            "targets": ["mock:echo"],
            "judge": judge(True, **marks),
            "cases": [{"input": "x", "expected": "x"}],
        }
    )
    text = text.replace('"check FAILED": 40.0, "NOT OK": 60.0, ', "")
    suite = parse_suite(text)
    spec = suite.settings.judges[0]
    found = await acalibrate(
        spec, scorer={"type": "code_judge"}, store=Store(f"sqlite:///{tmp_path}/c.db"), folder=tmp_path
    )
    assert found.summary.total == 8 and found.rating == "excellent"


@pytest.mark.parametrize(
    ("suite", "says"),
    [
        ({"kind": "code_arena", "n": 10}, "`n` selects optimisation problems"),
        ({"kind": "code_arena", "ids": ["calculater"]}, "did you mean `calculator`"),
        ({"kind": "code_area"}, "must be one of"),
    ],
)
def test_wrong_choices_are_said(write_suite, suite, says):
    with pytest.raises((ProblemsError, FairtrialError), match=says):
        pipeline.load(write_suite(suite=suite))


def test_wrong_checks_are_said_with_their_place(write_suite):
    checks = [
        {"name": "a", "steps": [{"clik": "x"}]},
        {"name": "b", "steps": [{"expect": {"text": "x", "differs": True}}]},
    ]
    with pytest.raises(ProblemsError) as caught:
        pipeline.load(write_suite(cases=[{"id": "one", "input": "q", "checks": checks}], scorer="browser"))
    assert "did you mean `click`" in str(caught.value)


def test_the_built_in_suite_brings_what_pages_need(write_suite):
    plain = pipeline.load(write_suite(suite="code_arena"))
    assert plain.case_count == 12 and plain.arms[0].scorer == {"type": "browser"} and plain.arms[0].name == "mock:echo"
    assert plain.arms[0].params["max_tokens"] == 8192 and plain.settings.timeout == 300
    judged = pipeline.load(write_suite(suite="code_arena", judge="mock:echo", params={"max_tokens": 99}, timeout=7))
    assert judged.arms[0].scorer == {"type": "code_judge"} and judged.arms[0].params["max_tokens"] == 99
    assert judged.settings.timeout == 7
    easy = pipeline.load(write_suite(suite={"kind": "code_arena", "difficulty": "easy"}))
    assert {case.difficulty for case in easy.cases()} == {"easy"}


def test_one_command_runs_everything_offline(tmp_path, capsys):
    code = cli.main(
        ["arena", "--demo", "--case", "bar-chart", "--case", "dark-mode", "-o", "arena.html"], standalone_mode=False
    )
    out = capsys.readouterr()
    assert code == 0 and "careful" in out.out and "hasty" in out.out and "judged by mock:judge" in out.out
    page = (tmp_path / "arena.html").read_text()
    assert "shows the pages live" in page and "data:image/png;base64," in page and 'id="ranking"' in page
    assert cli.main(["rank", "latest", "--by", "verdicts", "--control-style"], standalone_mode=False) is None


def test_one_prompt_of_ones_own(tmp_path, capsys):
    (tmp_path / "page.py").write_text(
        f"def answer(prompt, system, servers):\n    return {PAGE.format('Mine')!r} if 'pricing' in prompt else ''\n"
    )
    args = ["arena", "python:page.py:answer", "--prompt", "A pricing page with ${PRICE}", "--json", "--quiet"]
    assert cli.main(args, standalone_mode=False) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["arms"][0]["mean"] == 100.0 and found["arms"][0]["metrics"]["probes"]["mean"] == 100.0


@pytest.mark.parametrize(("vision", "status"), [(False, "completed"), (True, "incomplete")])
async def test_pictures_are_paid_for_in_the_budget(run_suite, model_server, vision, status, one_browser):
    """Whatever a provider counts for a picture, the budget holds."""
    await model_server(answer=json.dumps({"reasoning": "fine", **dict.fromkeys(CRITERIA, 50)}))
    run = await run_suite(
        targets=[model("m", {"one": PAGE.format("Hi")})],
        judge={"target": "openai:judge", "vision": vision, "params": {"max_tokens": 10}},
        scorer="code_judge",
        cases=[{"id": "one", "input": "a page"}],
        prices={"openai:judge": {"input": 1000, "output": 0}},  # a tenth of a cent for a token
        budget_usd=8,
    )
    assert run.status == status


def test_pictures_go_to_anthropic_as_blocks(tmp_path):
    from fairtrial.core.answer import Request
    from fairtrial.core.experiment import TargetSpec
    from fairtrial.core.file import File
    from fairtrial.core.target import Options
    from fairtrial.targets.anthropic_api import AnthropicApi

    target = AnthropicApi(
        TargetSpec(id="a", kind="anthropic_api", provider="anthropic", model="m"), Options(), tmp_path
    )
    request = Request(trial_id="t", case_id="c", input="which?", files=(File(body=b"png"),))
    content = target.body(request)["messages"][0]["content"]
    assert content[0]["source"] == {"type": "base64", "media_type": "image/png", "data": "cG5n"}
    assert content[-1] == {"type": "text", "text": "which?"}
