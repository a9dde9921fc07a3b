"""Pages of results: they fit every terminal, say everything once, and need no colour and no Unicode."""

import io
import re

import anyio.to_thread
import msgspec
import pytest
from rich.cells import cell_len

from fairtrial.analyse.leaderboard import run_leaderboard
from fairtrial.cli.console import Console
from fairtrial.cli.forest import forest_lines
from fairtrial.cli.list import _name_columns
from fairtrial.cli.main import _run
from fairtrial.cli.tables import short_names
from tests.analyse.test_compare import arm, cases

LONG = "a-name-that-is-longer-than-any-column-for-names-could-be"


@pytest.fixture
def page(capsys, monkeypatch, store):
    """What a command prints in a terminal of some width: (stdout, stderr)."""
    monkeypatch.setenv("FAIRTRIAL_STORE", f"sqlite:///{store.address}")

    async def show(*args, width=80):
        monkeypatch.setenv("COLUMNS", str(width))
        assert await anyio.to_thread.run_sync(_run, list(map(str, args))) == 0
        return capsys.readouterr()

    return show


@pytest.fixture
async def run(run_suite):
    """Three arms: one leads, one has a long name, one has wide characters."""
    return await run_suite(targets=[arm("first", 40), arm(LONG, 20), arm("模型二", 12)], cases=cases(40))


@pytest.mark.slow
@pytest.mark.parametrize("width", [40, 50, 60, 72, 80, 100, 120, 140])
async def test_every_page_fits(run, page, width):
    for command in ("show", "compare", "rank", *(["list"] if width >= 60 else [])):
        out = (await page(command, width=width)).out
        assert max(map(cell_len, out.splitlines())) <= width, command
    out = (await page("compare", "--arms", "first", "模型二", width=width)).out
    assert max(map(cell_len, out.splitlines())) <= width


@pytest.mark.slow
async def test_what_goes_first_in_a_narrow_terminal(run, page):
    tiers, arms = run_leaderboard(run), {one.arm: one for one in run.arms}

    def shown(width, **more):
        return "\n".join(line.plain for line in forest_lines(tiers, arms, width, **more))

    assert "●" in shown(66) and "●" not in shown(59) and "95 % CI" in shown(59) and "95 % CI" not in shown(38)
    assert "●" not in shown(120, plain=True) and "95 % CI" in shown(80, plain=True)
    assert "p50" in shown(140) and "p50" not in shown(80)


async def test_a_long_name_is_whole_above_its_numbers(run, page):
    out = (await page("show")).out
    assert re.search(rf"^ 2\S* +{LONG}\n +[·━ ]+●[·━ ]+ 50\.0 ", out, re.MULTILINE)


async def test_the_order_is_verdict_picture_facts_and_what_to_do_next(run, page):
    out, err = await page("show")
    lines = out.splitlines()
    assert lines[0].startswith(" first leads; ")
    places = [out.index(words) for words in ("first leads", " rank ", "120 of 120 scored")]
    assert places == sorted(places) and out.count("╌╌╌") > 0
    assert re.search(r"^   fairtrial compare +every pair$", err, re.MULTILINE)


async def test_colours_are_for_terminals(run, page, monkeypatch):
    assert "\x1b" not in (await page("show")).out
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[34m" in (await page("show")).out  # blue: the leading tier
    monkeypatch.setenv("NO_COLOR", "1")
    assert not re.search(r"\x1b\[(3\d|9\d)", (await page("show")).out)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "cp437"])
def test_what_an_encoding_lacks_is_written_in_another_way(encoding):
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    console = Console(file=stream)
    console.print("1–2 ━●━ │ · ╌ █▒░ ▲ ▼ ≈ −3.5 … 模")
    stream.flush()
    text = stream.buffer.getvalue().decode(encoding)
    assert len(text.rstrip("\n")) == len("1–2 ━●━ │ · ╌ █▒░ ▲ ▼ ≈ −3.5 … 模")
    assert text.count("?") == 1 and (encoding != "ascii" or text.startswith("1-2 -o- | . - #=. ^ v ~ -3.5 ~ ?"))


async def test_a_run_has_a_short_number(run, run_suite, page, store):
    later = await run_suite(targets=[arm("a", 3, 5)], cases=cases(5))
    assert store.find_run("1").id == run.id and store.find_run("2").id == later.id
    assert [found.id for found in store.find_runs("2")] == [later.id]
    assert "run 1 (" in (await page("show", "1")).out
    assert store.find_run(later.id[:12]).id == later.id and store.find_run("latest").id == later.id


async def test_one_trial_by_its_case_and_arm(run, page):
    case = next(trial.case_id for trial in run.trials())
    out = (await page("show", "latest", case, "first")).out
    assert out.startswith(f" {case} · first · 100 of 100") and re.search(rf"others +{LONG} 100 ·\s+模型二 100", out)
    every = (await page("show", "latest", case)).out
    assert "3 trials" in every


async def test_the_next_case_on_which_arms_differ(run, page, capsys):
    out, err = await page("show", "latest", "--next")
    first = out.split(" · ")[0].strip()
    assert "· 模型二 · 0 of 100" in out.splitlines()[0]  # of the arm with the lowest score
    assert f"fairtrial show {run.record.number} {first} '模型二' --next" in err
    out, _ = await page("show", "latest", first, "first", "--next")
    second = out.split(" · ")[0].strip()
    assert second > first and f"{second} · first" in out
    last = [run.record.number, cases(40)[-1]["id"], "--next"]
    assert await anyio.to_thread.run_sync(_run, ["show", *map(str, last)]) == 1
    assert f"the arms of run {run.record.number} differ on no case after c39" in capsys.readouterr().err


async def test_what_differs_from_the_expected_answer_is_underlined(run_suite, page, monkeypatch):
    await run_suite(
        targets=[{"id": "m", "target": "mock:m", "options": {"answer": "It is not Paris but Lyon"}}],
        cases=[
            {"id": "near", "input": "q", "expected": "It is Paris"},
            {"id": "far", "input": "q", "expected": "Forty-two"},
        ],
    )
    plain = (await page("show", "latest", "near", "m")).out
    assert " expected   It is Paris\n answered   It is not Paris but Lyon\n" in plain
    wide = (await page("show", "latest", "near", "m", width=120)).out
    assert re.search(r"^ expected   It is Paris +answered   It is not Paris but Lyon$", wide, re.MULTILINE)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert (
        "It is \x1b[4;93mnot\x1b[0m Paris \x1b[4;93mbut Lyon\x1b[0m" in (await page("show", "latest", "near", "m")).out
    )
    assert "\x1b[4;" not in (await page("show", "latest", "far", "m")).out  # nothing in common to mark


async def test_the_name_of_a_suite_is_not_cut_below_14_characters(run):
    from fairtrial.cli.list import _Leaders

    summary = msgspec.structs.replace(run.summary(), suite="a-suite-with-a-name-of")
    suite, leads = _name_columns([summary], [_Leaders("?", LONG)], 10)
    assert suite.width == 14 and leads.width == 14 and suite.cells[0].plain == "a-suite…ame-of"


def test_names_that_begin_alike_are_told_apart():
    names = [f"{LONG}-{n}/plain" for n in range(3)]
    assert short_names(names, 12) == ["…0/plain", "…1/plain", "…2/plain"]
    assert short_names(["a", "b"], 12) == ["a", "b"]


@pytest.mark.slow
async def test_matrix_and_lists_of_many_arms(run_suite, page, monkeypatch):
    await run_suite(targets=[arm(f"m{n:02}", 60 - 5 * n, 60) for n in range(10)], cases=cases(60))
    out = (await page("compare")).out
    rows = re.findall(r"^ +\d+ m\d\d\b.*$", out, re.MULTILINE)
    assert len(rows) == 10 and "to the next" in out and re.search(r"\d+ of 45 pairs decided", out)
    assert sum(row.count("▲") for row in rows) > 20
    assert "test" in out  # what the other tests say, of as many pairs as that is shown for
    monkeypatch.setattr("fairtrial.cli.compare._MOST_DETAILED", 44)
    quick, err = await page("compare")
    assert quick.splitlines()[: len(rows) + 5] == out.splitlines()[: len(rows) + 5]
    assert "test" not in quick and "every test of 45 pairs; this takes a while" in err
    assert "sign-flip" in (await page("compare", "--details")).out
