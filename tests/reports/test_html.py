"""The HTML report, looked at in a real browser; Parquet; and what a hostile answer can do to either: nothing."""

import time
from pathlib import Path

import pytest

from fairtrial.reports.export import export
from fairtrial.reports.html import pack
from tests.analyse.test_compare import arm, cases

EVIL = "</template></script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"


_NAMES = [{"id": f"c{n}", "input": f"question number {n}", "expected": f"number {n}"} for n in range(2000)]


@pytest.fixture
def visit(browser):
    """Open a file, and remember everything that went wrong or over the network."""

    async def open_page(path: Path, **options):
        page = await browser.new_page(**options)
        page.trouble = []
        page.on("console", lambda message: page.trouble.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: page.trouble.append(str(error)))
        page.on(
            "request", lambda request: None if request.url.startswith("file:") else page.trouble.append(request.url)
        )
        await page.goto(path.absolute().as_uri())
        await page.wait_for_selector("html[data-ready]")
        return page

    return open_page


@pytest.fixture
async def run(run_suite):
    """Two arms with repeats, failures, kinds of cases, a judge, and answers that mean harm."""
    verdict = {"marks": {"good": 9, "poor": 3}, "otherwise": 1}
    bad = {"answers": {"c01": EVIL, "c02": "x" * 3000}, "answer": "poor answer", "faults": {"refused": 0.1}}
    return await run_suite(
        system=f"evil {EVIL}",
        repeats=2,
        targets=[
            {"id": "good<b>", "target": "mock:x", "options": {"answer": "good answer"}},
            {"id": "poor", "target": "mock:x", "options": bad},
        ],
        judge={"target": "mock:judge", "options": {"verdict": verdict}},
        scorer="llm_judge",
        cases=[{**case, "difficulty": "hard" if n % 2 else "easy"} for n, case in enumerate(cases(24))],
        retry={"attempts": 1},
    )


@pytest.mark.slow
async def test_it_shows_everything(run, visit, tmp_path):
    page = await visit(export(run, tmp_path / "report.html"))
    assert page.trouble == [] and (await page.title()).startswith("test")
    text = await page.text_content("main")
    for said in (
        "good<b> is better than poor",
        "counted as 0",
        "difficulty hard",
        "Failures",
        "the mock rejected this request",
    ):
        assert said in text, said
    captions = await page.locator("figcaption").all_inner_texts()
    assert len(captions) >= 5 and "Mean scores with 95 % intervals" in captions
    alts = await page.eval_on_selector_all("figure [role=img]", "all => all.map(one => one.getAttribute('aria-label'))")
    assert all(len(alt) > 20 for alt in alts) and "good<b> 90.0" in alts[0]
    for variable in ("dataset", "models", "judges", "chance"):
        assert await page.locator("#conditions th", has_text=variable).count() >= 1
    assert "mock:judge" in await page.inner_text("#conditions")


@pytest.mark.slow
async def test_drill_down_to_one_answer_and_its_judge(run, visit, tmp_path):
    page = await visit(export(run, tmp_path / "report.html"))
    assert (await page.inner_text("#count")).startswith("96 of 96 trials")
    await page.fill("#search", "document.title")
    assert (await page.inner_text("#count")).startswith("2 of 96 trials")
    await page.click("#table tbody tr button")
    shown = await page.inner_text("#table tr.open")
    assert EVIL in shown and "judge mock:judge" in shown and await page.title() != "owned"
    await page.fill("#search", "")
    await page.select_option("#kind", "none")
    assert int((await page.inner_text("#count")).split()[0]) == sum(1 for trial in run.trials() if trial.score is None)
    await page.select_option("#kind", "")
    await page.select_option("#order", "worst")
    await page.locator("#heat canvas").click(position={"x": 3, "y": 3})
    assert "of case c00" in await page.inner_text("#count")
    assert page.trouble == [] and await page.title() != "owned"


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1200])
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_phones_and_the_dark(run, visit, tmp_path, width, scheme):
    page = await visit(
        export(run, tmp_path / "report.html"), viewport={"width": width, "height": 900}, color_scheme=scheme
    )
    assert await page.evaluate("document.documentElement.scrollWidth") <= width
    ink, paper = await page.evaluate(
        "[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]"
    )
    assert ink != paper and (paper == "rgb(255, 255, 255)") == (scheme == "light")


@pytest.mark.slow
async def test_it_prints(run, visit, tmp_path):
    page = await visit(export(run, tmp_path / "report.html"))
    await page.emulate_media(media="print")
    assert not await page.is_visible("#trials") and await page.is_visible("#figures svg >> nth=0")


@pytest.mark.slow
async def test_one_arm_and_nothing_scored(run_suite, visit, tmp_path):
    one = await run_suite(targets=[arm("m", 1, 1)], cases=cases(1))
    none = await run_suite(targets=[arm("m", 1, 3, faults={"refused": 1.0})], cases=cases(3), retry={"attempts": 1})
    for number, found in enumerate((one, none)):
        export(found, tmp_path / f"{number}.html")
    for number, said in enumerate(("m: 100.0", "m: no score")):
        page = await visit(tmp_path / f"{number}.html")
        assert said in await page.inner_text("#result") and page.trouble == []


@pytest.mark.slow
async def test_secrets_stay_out(run_suite, monkeypatch, tmp_path):
    monkeypatch.setenv("MY_SECRET", "sk-very-secret-value")
    run = await run_suite(
        targets=[{"id": "m", "target": "mock:echo"}],
        system="key ${MY_SECRET}",
        cases=[{"input": "say ${MY_SECRET}", "expected": "x"}],
    )
    data = export(run, tmp_path / "r.html").read_text("utf-8")
    import base64
    import gzip

    assert "very-secret" not in data and b"very-secret" not in gzip.decompress(base64.b64decode(pack(run)[0]))


@pytest.mark.slow
async def test_twenty_thousand_trials_are_usable(visit, run_suite, tmp_path):
    """A page of that size, made of stored rows: it opens, filters and pages in a moment."""
    long = {f"number {n}": f"answer {n} {'lorem ipsum dolor ' * (n % 40)}{n * 7919 % 1000003}" for n in range(2000)}
    run = await run_suite(
        repeats=5,
        concurrency=100,
        targets=["mock:echo", {"id": "long", "target": "mock:x", "options": {"answers": long}}],
        cases=_NAMES,
    )
    started = time.process_time()
    path = export(run, tmp_path / "big.html")
    assert path.stat().st_size < 5_000_000 and time.process_time() - started < 100  # 7 s on a quick machine
    page = await visit(path)
    assert (await page.inner_text("#count")).startswith("20000 of 20000 trials")
    await page.fill("#search", "question number 77")
    assert (await page.inner_text("#count")).startswith("110 of 20000")
    await page.click("#after")
    assert "page 2 of 3" in await page.inner_text("#page")
    assert page.trouble == []


@pytest.mark.slow
async def test_a_page_that_would_be_too_large_is_cut(run_suite, tmp_path, monkeypatch):
    from fairtrial.reports import html

    monkeypatch.setattr(html, "_MAX_BYTES", 4000)
    import random

    noise = random.Random(1)
    answers = {f"c{n:02}": "".join(noise.choices("abcdefghij", k=2000)) for n in range(20)}
    run = await run_suite(targets=[{"id": "m", "target": "mock:x", "options": {"answers": answers}}], cases=cases(20))
    text = export(run, tmp_path / "r.html").read_text("utf-8")
    assert "Texts are cut at 250 characters" in text


@pytest.mark.slow
async def test_parquet(run, tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    table = pq.read_table(export(run, tmp_path / "r.parquet"))
    trials = list(run.trials())
    assert table.num_rows == len(trials) == 96
    assert table["score"].to_pylist() == [None if t.score is None else pytest.approx(100 * t.score) for t in trials]
    assert table["answer"].to_pylist()[4:6] == [t.answer for t in trials[4:6]] and table["tags"].to_pylist()[0] == []
    assert str(table.schema.field("latency_ms").type) == "double"
