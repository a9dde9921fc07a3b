"""One voice: what a person reads first is the verdict of the JSON document, on every surface, and in the same order.

Every world (metrics of either direction, few and many arms, ties, failures, a dead arm, runs that stopped early or ran
out of money, a single case) is shown by every surface. The headline is taken off the surface, read as a person would
read it, and held against `compare --json` and `show --json`; so is the order of the arms.
"""

from __future__ import annotations

import html
import json
import pickle
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient

import fairtrial as ft
from fairtrial.analyse import compare, pair_comparer, rank
from fairtrial.analyse.comparison import Comparison
from fairtrial.analyse.evidence import Evidence
from fairtrial.analyse.leaderboard import run_leaderboard
from fairtrial.analyse.pair_comparer import PairComparer
from fairtrial.analyse.score_table import ArmScores, ScoreTable
from fairtrial.cli.finish import Ending
from fairtrial.cli.main import cli
from fairtrial.core.errors import FairtrialError
from fairtrial.present.words.leaderboards import headline
from fairtrial.reports.badge import badge
from fairtrial.reports.card import card
from fairtrial.reports.export import export
from fairtrial.stats import bounded
from fairtrial.web.app import make_app
from fairtrial.web.site import Site
from tests.analyse.test_compare import NUMBER as MARKS
from tests.analyse.test_compare import as_marked, cases, marks  # noqa: F401
from tests.analyse.test_pair_board import voted
from tests.surfaces.reading import NUMBER, moves, read, shows, value
from tests.surfaces.truth import Truth
from tests.surfaces.worlds import ARMS, LOWER, METRICS, STATES, decide_by, world

ARM = r"arm-\d\d"
MANY = ("apart", "failures", "dead")  # kinds of runs that are shown with twelve arms: 66 pairs take their time
WORLDS = [(state, arms) for state in STATES for arms in ARMS if arms < 20 or state in MANY]
PAGES = [(state, arms) for state in STATES for arms in (2, 3, 6) if arms < 6 or state in ("spread", "dead")] + [
    ("apart", 20)
]
pytestmark = pytest.mark.slow


def metrics_for(state: str, arms: int) -> list[str]:
    """Return the metrics of a world: every one of them meets every kind of run and every number of arms, in turn."""
    names = list(METRICS)
    first = STATES.index(state) + 2 * ARMS.index(arms)
    return [names[(first + step) % len(names)] for step in range({2: 7, 3: 4, 6: 2, 20: 1}[arms])]


def flat(text: str) -> str:
    """Return a text on one line."""
    return re.sub(r"\s+", " ", text).strip()


def spoken(markup: str) -> str:
    """Return what is read of HTML."""
    return flat(html.unescape(re.sub(r"<[^>]*>", "", markup)))


class Terminal:
    """What commands print, in a wide terminal."""

    def __init__(self, store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.store = store
        monkeypatch.setenv("COLUMNS", "150")

    def __call__(self, *args: str) -> str:
        found = CliRunner().invoke(cli, [*args, "--store", self.store.address], standalone_mode=False)
        if found.exception:
            raise found.exception
        return found.stdout

    def document(self, *args: str) -> Any:
        """Return the JSON document of a command."""
        return json.loads(self(*args, "--json"))


@pytest.fixture
def terminal(store: Any, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    return Terminal(store, monkeypatch)


@pytest.fixture
def client(store: Any, tmp_path: Path) -> Any:
    site = Site(store, tmp_path)
    yield TestClient(make_app(site))
    site.close()


@pytest.fixture(autouse=True)
def numbers_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every surface asks for the same numbers: the mathematics, which has tests of its own, works them out once a test."""

    def once(function: Any) -> Any:
        known: dict[bytes, Any] = {}

        def ask(*args: Any, **options: Any) -> Any:
            key = pickle.dumps((args, sorted(options.items())))
            if key not in known:
                known[key] = function(*args, **options)
            return known[key]

        return ask

    for module, name in (
        (bounded, "quantile"),
        (pair_comparer, "smallest_detectable"),
        (pair_comparer, "bootstrap_ci"),
        (rank, "bradley_terry"),
    ):
        monkeypatch.setattr(module, name, once(getattr(module, name)))
    pairs: dict[Any, Evidence] = {}
    compared: dict[Any, Comparison] = {}

    def evidence_once(scores: ScoreTable, a: ArmScores, b: ArmScores, metric: str, **options: Any) -> Evidence:
        key = [metric, scores.weights.tobytes(), pickle.dumps(sorted(options.items()))]
        key += [content(arm, metric) for arm in (a, b)]
        return pairs.setdefault(tuple(key), Evidence(scores, a, b, metric, **options))

    def compare_once(comparer: PairComparer, *args: Any, **options: Any) -> Comparison:
        key = (id(comparer.evidence), comparer._margin, args, *sorted(options.items()))
        if key not in compared:
            compared[key] = comparison(comparer, *args, **options)
        return compared[key]

    comparison = PairComparer.comparison
    monkeypatch.setattr(compare, "Evidence", evidence_once)
    monkeypatch.setattr(PairComparer, "comparison", compare_once)


def content(arm: ArmScores, metric: str) -> Any:
    """Return what was read of an arm, from which its comparisons follow."""
    runs = tuple(run.id for run in arm.source.runs)
    return arm.label, runs, arm.scales.get(metric), arm.means(metric).tobytes(), arm.failed.tobytes()


def truth_of(terminal: Terminal, run: Any, metric: str) -> Truth | None:
    """Return what the documents say; None where they do not have the mean of a single arm."""
    shown = terminal.document("show", run.id)
    try:
        compared = terminal.document("compare", run.id, "--metric", metric or "score")
    except FairtrialError:  # there is nothing to compare with
        means = {
            arm["arm"]: arm["metrics"].get(metric, {}).get("mean") if metric else arm["mean"] for arm in shown["arms"]
        }
        standings = [{"label": name, "aggregate": {"mean": mean}} for name, mean in means.items() if mean is not None]
        compared = {"standings": standings, "pairs": []}
    return Truth(compared, shown, metric, metric in LOWER) if compared["standings"] else None


# What each surface says: the sentence, and the arms in the order in which they are listed.


def printed(text: str) -> tuple[str, list[str]]:
    """A page of the terminal: the headline stands above the first empty line, the table below it."""
    above, _, below = text.partition("\n\n")
    table = below.partition("\n\n")[0]
    return flat(above), [found[0] for line in table.splitlines() if (found := re.findall(ARM, line))]


def printed_matrix(text: str) -> tuple[str, list[str]]:
    """`compare`: the rows of the matrix begin with their arms."""
    above, _, below = text.partition("\n\n")
    return flat(above), re.findall(rf"^ (?:\s*\d+ )?({ARM}) ", re.split(r"pairs? decided", below)[0], re.MULTILINE)


def drawn(markup: str) -> tuple[str, list[str]]:
    """A page: its first heading, and the arms of the first forest."""
    titles = (r"<h1[^>]*>(.*?)</h1>", r'<p class="title">(.*?)</p>', r'<p style="[^"]*font-weight:600">(.*?)</p>')
    title = next(found for pattern in titles if (found := re.search(pattern, markup, re.DOTALL)))
    forest = re.search(r'<table class="forest">.*?</table>', markup, re.DOTALL)
    names = re.findall(rf'class="arm"[^>]*>(?:<a [^>]*>)?({ARM})', forest[0]) if forest else []
    return spoken(title[1]), names


def in_markdown(text: str) -> tuple[str, list[str]]:
    """A Markdown report: the bold line, and the rows of the first table."""
    title = re.search(r"^\*\*(.*)\*\*$", text, re.MULTILINE)
    assert title is not None
    table = text.partition("\n|")[2].partition("\n\n")[0]
    return flat(title[1].replace("\\", "")), [
        found[1] for found in re.finditer(rf"\| ({ARM}) \|", table.replace("\\", ""))
    ]


def light_surfaces(
    run: Any, terminal: Terminal, capsys: Any, tmp_path: Path, metric: str, texts: dict[str, str]
) -> dict[str, tuple[str, list[str]]]:
    """Every surface that takes milliseconds; `texts` is what commands printed."""
    capsys.readouterr()
    Ending().report(run)
    said = {
        "run": printed(capsys.readouterr().out),
        "show": printed(texts["show"]),
        "notebook": drawn(run._repr_html_()),
    }
    export(run, tmp_path / "run.md")
    said["Markdown"] = in_markdown((tmp_path / "run.md").read_text("utf-8"))
    board = run_leaderboard(run)
    picture = card(board, headline(board), suite="s", facts="f")
    title = re.search(r"<title>(.*?)</title>", picture)
    assert title is not None
    said["card"] = (spoken(title[1]), [])
    if "rank" in texts:
        said["rank"] = printed(texts["rank"])
        said["rank --metric"] = printed(terminal("rank", run.id, "--metric", metric or "score"))
        said["compare"] = printed_matrix(terminal("compare", run.id))
        said["compare in a notebook"] = (drawn(ft.compare(run)._repr_html_())[0], [])
    return said


def check_rows(text: str, truth: Truth, where: str) -> None:
    """The row of an arm, in whatever table, has the mean of that very arm."""
    for line in text.splitlines():
        names = re.findall(ARM, line)
        if len(names) == 1 and names[0] in truth.means:
            numbers = re.findall(rf"(?<![\w.]){NUMBER}(?![\w.])", line.replace(names[0], " "))
            assert any(shows(number, truth.means[names[0]]) for number in numbers), f"{where}: {line}"


def table_of(text: str) -> str:
    """Return what stands between the first two empty lines."""
    return text.partition("\n\n")[2].partition("\n\n")[0]


def check_badge(run: Any, truth: Truth) -> None:
    """The badge names the first arm, its mean, and whether it leads alone."""
    text = re.search(r"<title>fairtrial: (.*?)</title>", badge(run_leaderboard(run)))
    assert text is not None
    words = html.unescape(text[1])
    name, number = re.match(rf"({ARM}) (\S+)", words).groups()  # type: ignore[union-attr]
    assert name == truth.order[0] and shows(number, truth.means[name]), words
    leads = truth.leading == {name} and len(truth.means) > 1
    assert words.endswith("· leads") == leads, words
    tied = len(truth.leading) > 1 and name in truth.leading
    assert bool(re.search(r"· (tied|tie of \d+)$", words)) == tied, words


@pytest.mark.parametrize(("state", "arms"), WORLDS)
async def test_every_surface_says_the_verdict(run_suite, store, terminal, capsys, tmp_path, state, arms):
    """8 kinds of runs × 4 numbers of arms × metrics (all 7 with two arms, fewer with more) × 9 surfaces and the badge."""
    run = await world(run_suite, store, state, arms)
    for metric in metrics_for(state, arms):
        run = decide_by(run, metric)
        truth = truth_of(terminal, run, metric)
        if truth is None:
            continue
        commands = ("show", "rank") if len(truth.means) > 1 else ("show",)
        texts = {command: terminal(command, run.id) for command in commands}
        said = light_surfaces(run, terminal, capsys, tmp_path, metric, texts)
        for surface, (sentence, order) in said.items():
            where = f"{surface}, {metric or 'score'}: {sentence}"
            try:
                truth.holds(read(sentence))
            except AssertionError as error:
                raise AssertionError(f"{where}\n{error}") from None
            assert sentence == said["show"][0], where
            if order:
                known = [name for name in order if name in truth.means]
                wanted = truth.order[: len(known)]
                assert [truth.means[name] for name in known] == [truth.means[name] for name in wanted], where
        check_badge(run, truth)
        for command, text in texts.items():
            check_rows(table_of(text), truth, command)
        if not metric:  # its table has scores
            table = (tmp_path / "run.md").read_text("utf-8").partition("\n|")[2].partition("\n\n")[0]
            check_rows(table.replace("\\", ""), truth, "Markdown")


@pytest.mark.parametrize(("state", "arms"), PAGES)
async def test_pages_and_reports_say_it_too(run_suite, store, terminal, client, tmp_path, state, arms):
    """The surfaces that take longer, by one metric in turn."""
    metric = metrics_for(state, arms)[0]
    run = decide_by(await world(run_suite, store, state, arms), metric)
    truth, wanted = truth_of(terminal, run, metric), headline(run_leaderboard(run))
    assert truth is not None
    truth.holds(read(wanted))
    export(run, tmp_path / "run.html")
    said = {
        "report": drawn((tmp_path / "run.html").read_text("utf-8")),
        "page": drawn(client.get(f"/runs/{run.id}/result").text),
    }
    if state != "budget":  # the leaderboard leaves out runs that did not end
        said["leaderboard"] = drawn(client.get("/board/standings", params={"suite": "test"}).text)
    if len(truth.means) > 1:
        said["comparison"] = drawn(client.get("/compare", params={"runs": run.id, "metric": metric, "wait": 1}).text)
    for surface, (sentence, order) in said.items():
        silent = surface == "leaderboard"  # it has the newest scores of every arm, and no failures
        assert sentence == (wanted.partition("; ")[2] if silent and truth.silent else wanted), surface
        known = [name for name in order if name in truth.means]
        assert [truth.means[name] for name in known] == [truth.means[name] for name in truth.order[: len(known)]], (
            surface
        )


@pytest.mark.parametrize("metric", METRICS)
async def test_two_runs_are_compared_from_the_earlier_to_the_later(run_suite, store, terminal, metric):
    """Whichever is named first: the same sentence, about the change over time."""
    first = decide_by(await world(run_suite, store, "apart", 3), metric)
    second = decide_by(await world(run_suite, store, "level", 3), metric)
    there, back = (
        terminal("compare", *names, "--metric", metric or "score")
        for names in ((first.id, second.id), (second.id, first.id))
    )
    sentence = printed(there)[0]
    assert sentence == printed(back)[0] and f"from run {first.record.number} to run {second.record.number}" in sentence
    document = terminal.document("compare", first.id, second.id, "--metric", metric or "score")
    lower = metric in LOWER
    moved = {arm: (sign, claim) for arm, sign, claim in moves(sentence)}
    for pair in document["pairs"]:
        arm = pair["a"].partition("@")[0]
        if pair["verdict"] not in ("better", "worse"):
            assert arm not in moved
            continue
        sign, claim = moved[arm]
        assert sign == (1 if pair["verdict"] == "worse" else -1)  # the later run is the second of the pair
        assert shows(claim.amount, abs(pair["difference"]))
        gain = (-1 if lower else 1) * -pair["difference"]
        assert (gain > 0) == (sign > 0)
    assert moved or "Nothing moved" in sentence


SHOWS = re.compile(
    r"In 4 of 5 runs, (?P<cases>[\d,]+)(?: to [\d,]+)? cases? would show a gap "
    rf"(?:of (?P<one>{NUMBER})(?: points)? between (?P<first>{ARM}) and (?P<other>{ARM})"
    rf"|to (?P<to>{ARM}) of (?P<least>{NUMBER})(?: points)? \((?P<nearest>{ARM})\) to "
    rf"(?P<most>{NUMBER})(?: points)? \((?P<farthest>{ARM})\))\."
)


@pytest.mark.parametrize(("state", "arms"), [("level", 2), ("spread", 6), ("apart", 6)])
async def test_what_cases_can_show_names_the_pairs_it_is_about(run_suite, store, terminal, state, arms):
    """And no gap that is said to show is smaller than one that did not."""
    run = await world(run_suite, store, state, arms)
    for metric in ("", "marks", "normalised_gap"):
        run = decide_by(run, metric)
        pairs = {frozenset((p["a"], p["b"])): p for p in terminal.document("compare", run.id)["pairs"]}
        for command in ("show", "compare"):
            found = SHOWS.search(flat(terminal(command, run.id)))
            if found is None:
                continue
            first = found["first"] or found["to"]
            named = [(found["other"], found["one"])] if found["other"] else []
            named += [(found["nearest"], found["least"]), (found["farthest"], found["most"])] if found["to"] else []
            for other, gap in named:
                pair = pairs[frozenset((first, other))]
                assert pair["verdict"] == "cannot tell" and shows(gap, pair["detectable"])
                assert abs(pair["difference"]) < pair["detectable"]
            assert named == sorted(named, key=lambda one: value(one[1]))


@pytest.mark.parametrize(("arms", "votes", "sure"), [(2, 40, 0.9), (2, 12, 0.0), (4, 60, 0.6), (6, 60, 0.1)])
async def test_votes_are_said_alike_everywhere(run_suite, terminal, client, arms, votes, sure):
    """The terminal, the arena and its board: who is first by the ranks of the document, in the order of the ratings."""
    run = await voted(run_suite, arms=arms, count=votes, cases=40, sure=sure)
    document = terminal.document("rank", run.id, "--by", "votes")
    first = [place["label"] for place in document["places"] if place["rank"] == 1]
    ratings = [place["rating"] for place in document["places"]]
    assert ratings == sorted(ratings, reverse=True)
    page = client.get(f"/runs/{run.id}/board", params={"wait": 1}).text
    said = {"rank": printed(terminal("rank", run.id, "--by", "votes"))[0], "page": drawn_votes(page)[0]}
    for surface, sentence in said.items():
        names = re.findall(r"m\d", sentence)
        if len(first) == 1:
            assert names[0] == first[0] and re.search(r"is first|leads", sentence), surface
        elif len(first) == arms:
            assert "oo close to call" in sentence, surface
        else:
            assert names[: len(first)] == first[: len(names)] and "tied for first" in sentence, surface
    assert drawn_votes(page)[1] == [place["label"] for place in document["places"]]
    # Where two intervals of ratings do not overlap, one of the two is better: nothing in the picture says otherwise.
    for above, place in enumerate(document["places"]):
        for other in document["places"][above + 1 :]:
            apart = place["rating_ci95"] and other["rating_ci95"] and place["rating_ci95"][0] > other["rating_ci95"][1]
            assert not apart or other["rank"] > 1


def drawn_votes(markup: str) -> tuple[str, list[str]]:
    """The board of votes: its heading, and the arms of its forest."""
    title = re.search(r"<h1[^>]*>(.*?)</h1>", markup, re.DOTALL)
    forest = re.search(r'<table class="forest">.*?</table>', markup, re.DOTALL)
    assert title and forest
    return spoken(title[1]), re.findall(r'class="arm"[^>]*>(?:<a [^>]*>)?(m\d)', forest[0])


STEADY = [0.05, 0.15, 0.1, 0.08, 0.12, 0.11, 0.09, 0.1, 0.13, 0.07]  # by how much `b` is ahead


def everywhere(run: ft.RunResult, terminal: Terminal, client: TestClient, capsys: Any, folder: Path) -> dict[str, str]:
    """What every surface says of a run of two arms, `a` and `b`."""
    capsys.readouterr()
    Ending().report(run)
    said = {"run": capsys.readouterr().out, "show": terminal("show", run.id), "compare": terminal("compare", run.id)}
    said["compare, details"] = terminal("compare", run.id, "--details")
    for name in ("run.md", "run.html"):
        export(run, folder / name)
        said[name] = (folder / name).read_text("utf-8")
    compared = ft.compare(run)
    said |= {"notebook": run._repr_html_(), "pair": ft.compare(run, "b", "a")._repr_html_()}
    said["compare in a notebook"] = compared._repr_html_()
    said["page"] = client.get(f"/runs/{run.id}/result").text
    said["comparison"] = client.get("/compare", params={"runs": run.id, "wait": 1}).text
    return said


async def test_what_holds_although_nobody_can_tell_is_said_everywhere(
    run_suite,
    as_marked,  # noqa: F811
    terminal,
    client,
    capsys,
    tmp_path,
):
    """The breakpoint of the JSON document, in the same words on every surface; of three arms both of its pairs."""
    targets = [marks("a", [0.5] * 10), marks("b", [0.5 + gain for gain in STEADY])]
    run = await run_suite(targets=targets, cases=cases(10), scorer=MARKS)
    (pair,) = terminal.document("compare", run.id)["pairs"]
    assert pair["verdict"] == "cannot tell" and pair["breakpoint"]["worst_seen"] == 0
    assert pair["breakpoint"]["points"] == pytest.approx(28.3374, abs=1e-3)
    wanted = "unless some case can lose more than 28.3 points; the worst here lost 0."
    said = everywhere(run, terminal, client, capsys, tmp_path)
    for surface, text in said.items():
        shown = spoken(text).replace("\\", "")
        assert wanted in shown and re.search(r"b is better( than a)?, unless", shown), surface
    three = await run_suite(targets=[*targets, marks("c", [0.4] * 10)], cases=cases(10), scorer=MARKS)
    text = flat(terminal("show", three.id))
    assert "b is better than a, unless some case can lose more than" in text
    assert "b is better than c, unless some case can lose more than" in text


async def test_the_largest_difference_that_a_suite_states_decides_everywhere(
    run_suite,
    as_marked,  # noqa: F811
    terminal,
    client,
    capsys,
    tmp_path,
):
    """With `largest: 25` the ten gains above are a verdict, in every output; a case that contradicts it ends that."""
    arms = [marks("a", [0.5] * 10), marks("b", [0.5 + gain for gain in STEADY])]
    run = await run_suite(targets=arms, cases=cases(10), scorer=MARKS, largest=25)
    (pair,) = terminal.document("compare", run.id)["pairs"]
    assert (pair["verdict"], pair["breakpoint"]) == ("worse", None)
    assert pair["stated"] == {"largest": pytest.approx(25), "seen": pytest.approx(15)}
    (told,) = terminal.document("compare", run.id, "--largest", "25")["pairs"]
    assert told["ci95"] == pair["ci95"] and told["p_value"] == pair["p_value"]
    before, again, wider = [
        await run_suite(targets=arms, cases=cases(10), scorer=MARKS, largest=most) for most in (4, 4, None)
    ]
    assert ft.gate(again, against=before).result == "passed"
    assert ft.gate(wider, against=again).result == "cannot tell"  # both suites have to state it
    for surface, text in everywhere(run, terminal, client, capsys, tmp_path).items():
        shown = spoken(text).replace("\\", "")
        assert re.search(r"b is 10(\.0)? points better than a", shown), surface
        assert "This counts on no case differing by more than 25 points, as stated." in shown, surface
    contradicted = await run_suite(targets=arms, cases=cases(10), scorer=MARKS, largest=14)
    (pair,) = terminal.document("compare", contradicted.id)["pairs"]
    assert pair["verdict"] == "cannot tell" and pair["breakpoint"]["points"] == pytest.approx(28.3374, abs=1e-3)
    for surface, text in everywhere(contradicted, terminal, client, capsys, tmp_path).items():
        wanted = "A case differs by 15 points, more than the 14 that the suite states: nothing counts on that."
        assert wanted in spoken(text).replace("\\", ""), surface
    with pytest.raises(FairtrialError, match="more than the stated largest difference of 14 points"):
        terminal("compare", contradicted.id, "--largest", "14")


async def test_planned_looks_are_said_everywhere(run_suite, terminal, client, capsys, tmp_path):
    """A run that stopped at a look: every output has its interval, and says that it allows for the looks."""
    arms = [
        {"id": name, "target": "mock:x", "options": {"answers": {f"c{n:02}": "42" for n in range(0, 100, step)}}}
        for name, step in (("a", 3), ("b", 1))
    ]
    run = await run_suite(targets=arms, cases=cases(100), looks=5)
    assert run.record.reason == "decided at look 2 of 5, after 40 cases"
    (pair,) = terminal.document("compare", run.id)["pairs"]
    assert pair["look"] == {"number": 2, "planned": 5, "shape": "late", "again": 1} and pair["count"] == 40
    low, high = sorted(-end for end in pair["ci95"])
    for surface, text in everywhere(run, terminal, client, capsys, tmp_path).items():
        shown = spoken(text).replace("\\", "")
        assert f"{low:.0f} to {high:.0f})" in shown, surface
        assert "5 looks were planned: intervals and p hold for all of them together" in shown, surface
    for surface in ("show", "run.md", "page"):
        assert "Not needed: 120 of 200 trials (60 %" in spoken(
            everywhere(run, terminal, client, capsys, tmp_path)[surface]
        )


async def test_who_left_a_race_is_said_everywhere(run_suite, terminal, client, tmp_path):
    arms = [
        {
            "id": name,
            "target": "mock:x",
            "options": {"answers": {f"c{n:02}": "42" if n < count else "x" for n in range(100)}},
        }
        for name, count in (("first", 100), ("second", 97), ("third", 0))
    ]
    run = await run_suite(targets=arms, cases=cases(100), race=True)
    said = {"show": terminal("show", run.id), "notebook": run._repr_html_()}
    for name in ("run.md", "run.html"):
        export(run, tmp_path / name)
        said[name] = (tmp_path / name).read_text("utf-8")
    said["page"] = client.get(f"/runs/{run.id}/result").text
    for surface, text in said.items():
        assert "Left the race: third at look 1." in spoken(text).replace("\\", ""), surface
    assert [place["label"] for place in terminal.document("rank", run.id)["places"]] == ["first", "second", "third"]


async def test_weights_that_go_with_the_differences_are_said_everywhere(
    run_suite,
    as_marked,  # noqa: F811
    terminal,
    client,
):
    """Heavy cases gain and light ones do not: the note gives the difference with equal weights, also in JSON."""
    gains = [0.9 if n % 2 else 0.5 for n in range(30)]
    weighted = [{**case, "weight": 3 if n % 2 else 1} for n, case in enumerate(cases(30))]
    run = await run_suite(targets=[marks("a", [0.5] * 30), marks("b", gains)], cases=weighted, scorer=MARKS)
    said = {"terminal": terminal("compare", run.id), "notebook": ft.compare(run)._repr_html_()}
    said["JSON"] = " ".join(terminal.document("compare", run.id)["notes"])
    said["page"] = client.get("/compare", params={"runs": run.id, "wait": 1}).text
    for surface, text in said.items():
        assert "With equal weights, a against b is −20.0" in spoken(text), surface


async def test_an_arm_that_went_silent_is_news(run_suite, terminal):
    """In the later of two runs one arm never answered: that comes first, whichever run is named first."""
    good = {"id": "arm-00", "target": "mock:x", "options": {"answer": "42"}}
    healthy, down = (
        {"id": "arm-01", "target": "mock:x", "options": {"answer": "42", "faults": faults}}
        for faults in ({}, {"refused": 1.0})
    )
    cases = [{"id": f"c{n}", "input": f"case {n}", "expected": "42"} for n in range(8)]
    first = await run_suite(targets=[good, healthy], cases=cases)
    second = await run_suite(targets=[good, down], cases=cases, retry={"attempts": 1})
    for names in ((first.id, second.id), (second.id, first.id)):
        sentence = printed(terminal("compare", *names))[0]
        assert sentence.startswith(f"arm-01@{second.record.number} never answered (8 refused); nothing moved beyond")
