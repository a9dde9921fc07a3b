"""Means by kind of case: one computation, the same numbers in every output."""

from __future__ import annotations

import json
import re

import pytest

from fairtrial.analyse.kind_means import MOST_KINDS, by_kind
from fairtrial.cli.main import _run
from fairtrial.config import RunOptions
from fairtrial.core.errors import FairtrialError
from fairtrial.present.words.kinds import NOTE, kind_tables, mean_text, report_text
from fairtrial.reports.export import export
from fairtrial.stats import aggregate

KINDS = ["hard", "easy", "medium", "hard", "easy", "hard", "easy", "hard", "easy", "hard"]


def cases(**more):
    return [
        {
            "id": f"q{n}",
            "input": f"question {n}",
            "expected": "42",
            "category": "sums" if n % 3 else "words",
            "difficulty": level,
            "tags": ["all", *(["odd"] if n % 2 else [])],
            **{name: values[n] for name, values in more.items()},
        }
        for n, level in enumerate(KINDS)
    ]


def arm(name, right):
    answers = {f"question {n}": "42" if n in right else "41" for n in range(10)}
    return {"id": name, "target": "mock:x", "options": {"answers": answers}}


TWO = [arm("good", {0, 1, 2, 3, 5, 6, 9}), arm("poor", {1, 4, 7})]


@pytest.fixture
def shown(capsys, monkeypatch, store):
    """What a command prints about the run of this test's store."""
    monkeypatch.setenv("FAIRTRIAL_STORE", f"sqlite:///{store.address}")

    async def show(*args):
        import anyio.to_thread

        assert await anyio.to_thread.run_sync(_run, ["show", *args]) == 0
        return capsys.readouterr().out

    return show


def expected(run, arm, **kind):
    """The aggregate of the trials of a kind, from the trials alone."""
    trials = [t for t in run.trials() if t.arm == arm and all(getattr(t, name) == kind[name] for name in kind)]
    return trials, aggregate([t.score for t in trials], [t.weight for t in trials])


async def test_each_mean_is_that_of_its_cases(run_suite):
    run = await run_suite(targets=TWO, cases=cases(weight=[1, 2, 1, 3, 1, 1, 2, 1, 1, 0]))
    kinds = by_kind(run)
    assert set(kinds.means) == {"category", "difficulty", "tag"}
    assert list(kinds.means["difficulty"]) == ["easy", "medium", "hard"]
    for category in ("sums", "words"):
        for name in ("good", "poor"):
            assert kinds.means["category"][category][name] == expected(run, name, category=category)[1]
    assert kinds.cases["tag"] == {"all": 10, "odd": 5} and kinds.case_count == 10


async def test_cases_of_a_cluster_are_one_draw(run_suite):
    clusters = ["a", "a", "b", "b", "c", "c", "d", "d", "e", "e"]
    run = await run_suite(targets=TWO, cases=cases(cluster=clusters))
    trials = [t for t in run.trials() if t.arm == "good" and t.category == "sums"]
    own = [clusters[int(t.case_id[1:])] for t in trials]
    numbers = by_kind(run).means["category"]["sums"]["good"]
    assert numbers == aggregate([t.score for t in trials], None, own) and "clusters" in numbers.method


async def test_one_case_has_no_interval(run_suite, shown):
    run = await run_suite(targets=TWO[:1], cases=cases())
    numbers = by_kind(run).means["difficulty"]["medium"]["good"]
    assert numbers.ci95 is None and mean_text(numbers) == "100.0 (n = 1)"
    assert re.search(r"^ medium +1 +100\.0 \(n = 1\) *$", await shown(), re.MULTILINE)


async def test_a_run_that_could_stop_has_intervals_that_hold_whenever_it_did(run_suite):
    more = [{**case, "id": f"{case['id']}-{n}", "difficulty": "hard"} for n in range(3) for case in cases()]
    more = [{**more[0], "difficulty": "medium"}, *more[1:]]
    run = await run_suite(RunOptions(stop_when="decided"), targets=[arm("a", {1, 2}), arm("b", {1, 3})], cases=more)
    methods = {mean.method for arms in by_kind(run).means["category"].values() for mean in arms.values()}
    assert methods == {run.summary().arms[0].aggregate.method} == {"anytime-valid bets"}
    assert by_kind(run).means["difficulty"]["medium"]["a"].ci95 is None


@pytest.mark.slow
async def test_every_output_has_the_same_numbers(run_suite, shown, tmp_path):
    run = await run_suite(targets=TWO, cases=cases())
    table = next(table for table in kind_tables(by_kind(run), ["good", "poor"]) if table.by == "category")
    terminal, markdown = await shown(), export(run, tmp_path / "r.md").read_text()
    page = export(run, tmp_path / "r.html").read_text()
    report = next(t for t in kind_tables(by_kind(run), ["good", "poor"], cell=report_text) if t.by == "category")
    for row, reported in zip(table.rows, report.rows, strict=True):
        for cell, in_report in zip(row.cells, reported.cells, strict=True):
            assert cell in terminal and in_report in page and in_report in markdown
            assert re.findall(r"[\d.]+", cell) == re.findall(r"[\d.]+", in_report)
    assert max(map(len, terminal.splitlines())) <= 80
    for text in (terminal, markdown, page):
        assert " ".join(text.split()).count(NOTE) == 1
    groups = json.loads(await shown("--json"))["groups"]
    assert groups == json.loads(export(run, tmp_path / "r.json").read_text())["groups"]
    group = next(g for g in groups if (g["by"], g["value"], g["arm"]) == ("category", "sums", "poor"))
    mean = by_kind(run).means["category"]["sums"]["poor"]
    assert group["mean"] == pytest.approx(100 * mean.mean) and group["count"] == mean.count == 6
    assert group["ci95"] == pytest.approx([100 * bound for bound in mean.ci95])


async def test_what_all_cases_share_is_not_repeated(run_suite, shown):
    same = [{"input": f"question {n}", "expected": "42", "category": "sums", "tags": ["x"]} for n in range(10)]
    await run_suite(targets=TWO, cases=same)
    assert "sums" not in await shown() and "sums" in await shown("--by", "category")


async def test_cases_without_kinds_have_no_section(run_suite, shown):
    await run_suite(targets=TWO[:1])
    out = await shown()
    assert NOTE.split()[0] not in out.split() and json.loads(await shown("--json"))["groups"] == []


async def test_many_tags_are_a_short_list(run_suite, shown):
    often = ["often"]
    many = [{**case, "tags": [f"t{n}", f"u{n}", f"v{n}", f"w{n}", *often[n // 3 :]]} for n, case in enumerate(cases())]
    run = await run_suite(targets=TWO, cases=many)
    kinds = by_kind(run)
    assert len(kinds.means["tag"]) == MOST_KINDS and kinds.left_out == {"tag": 11}
    assert "and 33 more groups: fairtrial show --by tag" in await shown()
    assert len(re.findall(r"^ [tuvw]\d ", await shown("--by", "tag"), re.MULTILINE)) == 40


@pytest.mark.slow
async def test_more_arms_than_fit_are_shown_when_asked_for(run_suite, shown):
    await run_suite(targets=[arm(f"arm-{n}", {n}) for n in range(7)], cases=cases())
    short, whole = await shown(), await shown("--by", "category")
    assert re.search(r"other arms: fairtrial show --by category", short)
    assert max(map(len, [*short.splitlines(), *whole.splitlines()])) <= 80
    assert len(re.findall(r"^ sums ", short, re.MULTILINE)) == 1
    assert len(re.findall(r"^ sums ", whole, re.MULTILINE)) > 1


async def test_any_column_of_the_dataset(run_suite, shown, tmp_path, capsys):
    lines = [{"q": f"question {n}", "a": "42", "language": "fr" if n % 2 else "de", "n": n} for n in range(10)]
    (tmp_path / "q.jsonl").write_text("\n".join(map(json.dumps, lines)))
    run = await run_suite(targets=TWO, dataset={"path": "q.jsonl", "input": "q", "expected": "a"}, cases=[])
    assert set(by_kind(run, "language").means["language"]) == {"fr", "de"}
    assert re.search(r"^ fr +5 ", await shown("--by", "language"), re.MULTILINE)
    with pytest.raises(FairtrialError, match="did you mean `language`"):
        by_kind(run, "langage")
