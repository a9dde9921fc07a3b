"""The HTML report, looked at in a real browser; Parquet; and what a hostile answer can do to either: nothing."""

import base64
import gzip
import itertools
import json
import time

import pytest

from fairtrial import pipeline
from fairtrial.analyse.leaderboard import run_leaderboard
from fairtrial.present.words.leaderboards import headline
from fairtrial.reports.export import export
from fairtrial.reports.html_answers import pack
from fairtrial.store import Store
from tests.analyse.test_compare import arm, cases
from tests.axe import serious
from tests.lazily import Library

playwright = Library("playwright.async_api")

EVIL = "</template></script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"


_NAMES = [{"id": f"c{n}", "input": f"question number {n}", "expected": f"number {n}"} for n in range(2000)]


@pytest.fixture(scope="module")
async def run(tmp_path_factory):
    """Two arms with repeats, failures, kinds of cases, a judge, and answers that mean harm; nothing changes it."""
    verdict = {"marks": {"good": 9, "poor": 3}, "otherwise": 1}
    bad = {"answers": {"c01": EVIL, "c02": "x" * 3000}, "answer": "poor answer", "faults": {"refused": 0.1}}
    suite = {
        "name": "test",
        "system": f"evil {EVIL}",
        "repeats": 2,
        "targets": [
            {"id": "good<b>", "target": "mock:x", "options": {"answer": "good answer"}},
            {"id": "poor", "target": "mock:x", "options": bad},
        ],
        "judge": {"target": "mock:judge", "options": {"verdict": verdict}},
        "scorer": "llm_judge",
        "cases": [{**case, "difficulty": "hard" if n % 2 else "easy"} for n, case in enumerate(cases(24))],
        "retry": {"attempts": 1},
    }
    place = tmp_path_factory.mktemp("run")
    (place / "suite.yaml").write_text(json.dumps(suite))
    return await pipeline.arun(pipeline.load(place / "suite.yaml"), store=Store(f"sqlite:///{place}/run.db"))


@pytest.fixture(scope="module")
def report(run, tmp_path_factory):
    """Its report."""
    return export(run, tmp_path_factory.mktemp("report") / "report.html")


@pytest.mark.slow
async def test_the_headline_comes_first_and_everything_is_there(run, visit, report):
    page = await visit(report)
    assert page.trouble == [] and (await page.title()).startswith("test: good<b> is ")
    assert await page.inner_text("h1") == headline(run_leaderboard(run))
    headings = await page.locator("h2").all_inner_texts()
    assert headings[0] == "Who leads" and headings.index("Who leads") < headings.index("Answers")
    assert "24 cases × 2 arms" in await page.inner_text(".facts")
    assert await page.locator(".forest tbody tr .arm").count() == 2 and await page.locator(".strip svg").count() == 2
    text = await page.text_content("main")
    for said in ("good<b> is better than poor", "counted as 0", "By difficulty", "the mock rejected this request"):
        assert said in text, said
    for figure in ("Distribution of scores", "Differences between repeats", "Where the uncertainty comes from"):
        assert figure in text, figure
    assert await page.locator("svg[role]:not([aria-label])").count() == 0  # every picture says what it shows
    for variable in ("dataset", "models", "judges", "chance"):
        assert await page.locator("#conditions th", has_text=variable).count() >= 1
    assert "mock:judge" in await page.text_content("#conditions")


@pytest.mark.slow
async def test_drill_down_to_one_answer_and_its_judge(run, visit, report):
    page = await visit(report)
    assert await page.inner_text("#count") == "24 cases"
    await page.fill("#search", "document.title")
    await playwright.expect(page.locator("#count")).to_contain_text("1 of 24")
    assert (await page.inner_text("#list h3")).startswith("c01")
    await page.click("#list .side1 >> nth=1")
    shown = await page.inner_text("#list .trial")
    assert EVIL in shown and "Judge mock:judge" in shown and "repeat 2" in shown and await page.title() != "owned"
    await page.fill("#search", "")
    await playwright.expect(page.locator("#count")).to_contain_text("24")
    await page.select_option("#kind", "none")
    missing = {trial.case_id for trial in run.trials() if trial.score is None}
    lost = {
        case
        for case in missing
        if not any(t.score is not None for t in run.trials() if (t.case_id, t.arm) == (case, "poor"))
    }
    await playwright.expect(page.locator("#count")).to_contain_text(f"{len(lost)} of")
    assert page.trouble == [] and await page.title() != "owned"


@pytest.mark.slow
async def test_marks_lead_to_answers_and_the_keyboard_suffices(visit, report):
    page = await visit(report)
    await page.focus(".forest .arm a >> nth=1")
    assert "poor" in await page.inner_text(".tip")
    await page.keyboard.press("Enter")
    await playwright.expect(page.locator("#count")).to_contain_text("poor answers worst first")
    await playwright.expect(page.locator("#list .side1 >> nth=0")).to_be_focused()
    await page.keyboard.press("Enter")
    assert "Question" in await page.inner_text("#list .trial >> nth=0")
    await page.focus("#count button")
    await page.keyboard.press("Enter")
    await playwright.expect(page.locator("#count")).to_have_text("24 cases")
    await page.focus("details.fold summary >> nth=0")
    await page.keyboard.press("Enter")
    assert await page.locator("details.fold[open]").count() == 1 and page.trouble == []


@pytest.mark.slow
async def test_phones_the_dark_and_axe(visit, report):
    page = await visit(report, viewport={"width": 390, "height": 900})
    await page.evaluate("document.querySelectorAll('details').forEach(fold => fold.open = true)")
    for width, scheme in itertools.product((390, 1200), ("light", "dark")):
        await page.set_viewport_size({"width": width, "height": 900})
        await page.emulate_media(color_scheme=scheme)
        assert await page.evaluate("document.documentElement.scrollWidth") <= width
        ink, paper = await page.evaluate(
            "[getComputedStyle(document.body).color, getComputedStyle(document.documentElement).backgroundColor]"
        )
        assert ink != paper and (paper == "rgb(248, 248, 246)") == (scheme == "light")
        # What is dark differs in its colours alone.
        assert await serious(page, "color-contrast" if scheme == "dark" else None) == [], (width, scheme)


@pytest.mark.slow
async def test_it_prints(visit, report):
    page = await visit(report, color_scheme="dark")
    await page.emulate_media(media="print")
    await page.evaluate("dispatchEvent(new Event('beforeprint'))")
    for hidden in ("#filters", "details.fold >> text=Settings, versions and machine", "#print"):
        assert not await page.is_visible(hidden), hidden
    for shown in (".forest svg >> nth=0", "#list .q >> nth=2", ".verdicts li >> nth=0", "#conditions table"):
        assert await page.is_visible(shown), shown
    assert not await page.is_visible("#list .q >> nth=3")  # the first three are enough on paper
    assert await page.evaluate("getComputedStyle(document.documentElement).backgroundColor") == "rgb(255, 255, 255)"
    await page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert await page.locator("details.fold[open]").count() == 0


@pytest.mark.slow
async def test_one_arm_and_nothing_scored(run_suite, visit, tmp_path):
    one = await run_suite(targets=[arm("m", 1, 1)], cases=cases(1))
    none = await run_suite(targets=[arm("m", 1, 3, faults={"refused": 1.0})], cases=cases(3), retry={"attempts": 1})
    for number, found in enumerate((one, none)):
        export(found, tmp_path / f"{number}.html")
    for number, said in enumerate(("m scores 100.0 on one case.", "m never answered (3 refused).")):
        page = await visit(tmp_path / f"{number}.html")
        assert await page.inner_text("h1") == said and page.trouble == []
        assert (await page.inner_text("#count")).startswith(("1 case", "3 cases")[number])


@pytest.mark.slow
async def test_names_that_mean_harm(run_suite, visit, tmp_path):
    name = "<img src=x onerror=alert(1)>"
    wild = [
        {"id": f"{EVIL}{n}", "input": f"{EVIL}?", "expected": "x", "category": EVIL if n else "b"} for n in range(3)
    ]
    run = await run_suite(targets=[{"id": name, "target": "mock:echo"}, "mock:echo"], cases=wild)
    page = await visit(export(run, tmp_path / "r.html"))
    await page.click("#list .side1 >> nth=0")
    assert page.trouble == [] and await page.locator("img, script:not(:last-of-type)").count() == 0
    assert name in await page.inner_text(".forest") and await page.title() != "owned"


def test_the_policy_allows_our_own_style_and_script_alone():
    from fairtrial.reports import html_render

    policy = html_render.policy("a{}", "b()")
    assert (
        "unsafe" not in policy
        and "'self'" not in policy
        and policy.startswith("default-src 'none'; style-src 'sha256-")
    )
    assert "script-src 'sha256-" in policy and "'self'" in html_render.policy("", "", files=True)


@pytest.mark.slow
async def test_secrets_stay_out(run_suite, monkeypatch, tmp_path):
    monkeypatch.setenv("MY_SECRET", "sk-very-secret-value")
    run = await run_suite(
        targets=[{"id": "m", "target": "mock:echo"}],
        system="key ${MY_SECRET}",
        cases=[{"input": "say ${MY_SECRET}", "expected": "x"}],
    )
    data = export(run, tmp_path / "r.html").read_text("utf-8")
    packed = pack(run, ["m"])
    texts = [gzip.decompress(base64.b64decode(piece)) for piece in (packed.cases, *packed.pieces)]
    assert "very-secret" not in data and b"say" in texts[1] and not any(b"very-secret" in text for text in texts)


@pytest.mark.slow
async def test_where_files_are_on_this_machine_stays_out(run_suite, tmp_path):
    (tmp_path / "answer.py").write_text("def answer(input): return input")
    run = await run_suite(targets=[{"id": "m", "target": f"python:{tmp_path}/answer.py:answer"}])
    assert str(tmp_path) not in export(run, tmp_path / "r.html").read_text("utf-8")


@pytest.mark.slow
async def test_thousands_of_trials_are_usable(visit, run_suite, tmp_path):
    """A page of that size, made of stored rows: it opens, filters and pages in a moment."""
    long = {f"number {n}": f"answer {n} {'lorem ipsum dolor ' * (n % 40)}{n * 7919 % 1000003}" for n in range(2000)}
    run = await run_suite(
        repeats=2,
        concurrency=100,
        targets=["mock:echo", {"id": "long", "target": "mock:x", "options": {"answers": long}}],
        cases=_NAMES,
    )
    started = time.process_time()
    path = export(run, tmp_path / "big.html")
    assert path.stat().st_size < 2_000_000 and time.process_time() - started < 40  # 3 s on a quick machine
    page = await visit(path)
    assert await page.inner_text("#count") == "2000 cases"
    await page.fill("#search", "question number 77")
    await playwright.expect(page.locator("#count")).to_have_text("11 of 2000 cases")
    await page.click("#after")
    await playwright.expect(page.locator("#page")).to_have_text("Page 2 of 2")
    assert page.trouble == []


@pytest.mark.slow
async def test_a_page_that_would_be_too_large_is_cut(run_suite, tmp_path, monkeypatch):
    from fairtrial.reports import html_answers

    monkeypatch.setattr(html_answers, "MAX_BYTES", 4000)
    import random

    noise = random.Random(1)
    answers = {f"c{n:02}": "".join(noise.choices("abcdefghij", k=2000)) for n in range(20)}
    run = await run_suite(targets=[{"id": "m", "target": "mock:x", "options": {"answers": answers}}], cases=cases(20))
    text = export(run, tmp_path / "r.html").read_text("utf-8")
    assert "Texts are truncated at 250 characters" in text


@pytest.mark.slow
async def test_parquet(run, tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    table = pq.read_table(export(run, tmp_path / "r.parquet"))
    trials = list(run.trials())
    assert table.num_rows == len(trials) == 96
    assert table["score"].to_pylist() == [None if t.score is None else pytest.approx(100 * t.score) for t in trials]
    assert table["answer"].to_pylist()[4:6] == [t.answer for t in trials[4:6]] and table["tags"].to_pylist()[0] == []
    assert str(table.schema.field("latency_ms").type) == "double"
