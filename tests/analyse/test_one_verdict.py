"""One verdict, one interval: whoever asks, and however, is told the same, number for number.

Random data of every awkward kind (ties, constants, skew, clusters, weights, failures, missing repeats) go through a
real run; then Python, terminal, JSON, Markdown, HTML, page, rank, gate and show are held against each other.
"""

import json
import re
from html import unescape

import numpy as np
import pytest
from click.testing import CliRunner

import fairtrial as ft
from fairtrial.analyse.comparison import read_verdict
from fairtrial.analyse.gate import Terms, gate
from fairtrial.analyse.leaderboard import comparison_leaderboard, run_leaderboard
from fairtrial.analyse.rank import rank
from fairtrial.analyse.score_table import read_scores, sources_of
from fairtrial.cli.main import cli
from fairtrial.core.formatting import Scale, interval_words, signs
from fairtrial.present.words.comparisons import pair_cells, sentence
from fairtrial.present.words.leaderboards import distance_words, headline, rank_words, settle_words
from fairtrial.present.words.verdicts import GLYPHS
from fairtrial.reports.export import export

TARGET = """
import json, pathlib
TABLE = json.loads(pathlib.Path(__file__).with_name("table.json").read_text())
COUNTS = {}
def _said(arm, user_query):
    given = TABLE[arm][user_query]
    COUNTS[arm, user_query] = COUNTS.get((arm, user_query), -1) + 1
    value = given[COUNTS[arm, user_query] % len(given)]
    if value is None:
        raise RuntimeError("out of order")
    return repr(value)
async def a(user_query, system_prompt, mcp_servers): return _said("a", user_query)
async def b(user_query, system_prompt, mcp_servers): return _said("b", user_query)
async def c(user_query, system_prompt, mcp_servers): return _said("c", user_query)
"""
SCORER = """
from fairtrial import Score
async def score(response, expected):
    value = float(response)
    return Score(value=value, metrics={"marks": 1 + 4 * value})
"""
KINDS = ("ties", "constants", "skew", "binary", "marks", "clusters", "weights", "failures", "few")


def drawn(kind, rng, n):
    """Scores of three arms, by case."""
    base = rng.uniform(0.2, 0.8, n)
    shift = rng.choice([0.0, 0.1, 0.3], 3)
    if kind == "constants":
        return np.clip(np.tile(shift[:, None] + 0.4, (1, n)), 0, 1)
    if kind == "ties":
        return np.clip(base[None, :] + (rng.random((3, n)) < 0.1) * shift[:, None], 0, 1)
    if kind == "skew":
        return np.where(rng.random((3, n)) < 0.05, 0.0, 0.9 + 0.02 * shift[:, None])
    if kind in ("binary", "failures"):
        return (rng.random((3, n)) < 0.4 + shift[:, None]).astype(float)
    return np.clip(base[None, :] + shift[:, None] + rng.normal(0, 0.2, (3, n)), 0, 1)


@pytest.fixture
def experiment(run_suite, tmp_path):
    """A run of three arms over random data of one kind."""

    async def made(kind, seed):
        rng = np.random.default_rng(seed)
        n = 3 if kind == "few" else int(rng.integers(12, 30))
        values, repeats = drawn(kind, rng, n), int(rng.integers(1, 4))
        table = {
            arm: {f"case {i}": [round(float(values[k, i]), 4)] * repeats for i in range(n)}
            for k, arm in enumerate("abc")
        }
        if kind == "failures":
            for i in range(n):
                for arm in "ab":
                    if rng.random() < 0.15:
                        table[arm][f"case {i}"][0] = None
        (tmp_path / "table.json").write_text(json.dumps(table))
        (tmp_path / f"t{seed}.py").write_text(TARGET)
        (tmp_path / "marks.py").write_text(SCORER)
        cases = [
            {
                "id": f"c{i}",
                "input": f"case {i}",
                "expected": "x",
                **({"cluster": f"k{int(rng.integers(0, 6))}"} if kind == "clusters" else {}),
                **({"weight": round(float(rng.lognormal(0, 1)), 3)} if kind == "weights" else {}),
            }
            for i in range(n)
        ]
        return await run_suite(
            targets=[{"id": arm, "target": f"python:t{seed}.py:{arm}"} for arm in "abc"],
            scorer={"type": "python", "function": "marks.py:score"},
            cases=cases,
            repeats=repeats,
            retry={"attempts": 1},
        )

    return made


@pytest.fixture
def told(store):
    """What a command prints."""

    def tell(*args):
        found = CliRunner().invoke(cli, [*args, "--store", store.address], standalone_mode=False)
        if found.exception:
            raise found.exception
        return found.output

    return tell


def flat(text, *, html=False):
    """On one line, and of a page only what is read."""
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", " ", text)) if html else text)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("margin", [None, 15])
async def test_everybody_says_the_same(experiment, tmp_path, told, kind, margin):
    run = await experiment(kind, KINDS.index(kind) + (100 if margin else 0))
    share = None if margin is None else margin / 100
    found = ft.compare(run, margin=share)
    for pair in [*found.pairs, *found.metrics]:
        _agrees_with_itself(pair, share if pair.primary else None)
    # JSON is Python, in points.
    extra = [] if margin is None else ["--margin", str(margin)]
    document = json.loads(told("compare", run.id, *extra, "--json"))
    for pair, shape in zip(found.pairs, document["pairs"], strict=True):
        assert shape["verdict"] == pair.verdict and shape["p_adjusted"] == pytest.approx(pair.p_adjusted)
        assert shape["difference"] == pytest.approx(100 * pair.difference, abs=1e-8)
        assert shape["ci95"] == pytest.approx([100 * bound for bound in pair.ci95], abs=1e-8)
    # The terminal shows what the document has: in the matrix each difference with its interval, by --details the rest.
    details = flat(told("compare", run.id, *extra, "--details"))
    for pair in found.pairs:
        for cell in pair_cells(pair)[2:]:
            assert cell in details
        assert flat(sentence(pair, share)) in details
    _matrix_agrees(comparison_leaderboard(found), flat(told("compare", run.id, *extra)))
    _page_agrees(run_leaderboard(run), flat(told("show", run.id)))
    # Rank: who is better than whom, and nothing else.
    ranking = rank(read_scores(sources_of(run)))
    plain = ft.compare(run).pairs
    for place in ranking.places:
        above = sum(
            place.label == (p.b if p.verdict == "better" else p.a) for p in plain if p.verdict in ("better", "worse")
        )
        below = sum(
            place.label == (p.a if p.verdict == "better" else p.b) for p in plain if p.verdict in ("better", "worse")
        )
        assert (place.rank, place.worst_rank) == (1 + above, len(ranking.places) - below)
    for place, shape in zip(ranking.places, json.loads(told("rank", run.id, "--json"))["places"], strict=True):
        assert (shape["rank"], shape["worst_rank"]) == (place.rank, place.worst_rank)
    # Single arms: show, JSON and rank (where all arms have all cases).
    shown = {arm["arm"]: arm for arm in json.loads(told("show", run.id, "--json"))["arms"]}
    for arm in run.arms:
        assert shown[arm.arm]["ci95"] == pytest.approx([100 * bound for bound in arm.aggregate.ci95], abs=1e-8)
        if kind != "failures":
            (place,) = [place for place in ranking.places if place.label == arm.arm]
            assert place.aggregate.ci95 == pytest.approx(arm.aggregate.ci95)
    if margin is None:
        _reports_agree(run, plain, tmp_path)


def _matrix_agrees(tiers, terminal):
    """The headline, and each pair's verdict, difference and interval."""
    assert flat(headline(tiers)) in terminal
    for distances in tiers.distances.values():
        for distance in distances.values():
            cell = f"{GLYPHS[distance.verdict]} {Scale('').signed(distance.difference)} {interval_words(distance.ci95)}"
            assert cell in terminal


def _page_agrees(tiers, terminal):
    """The headline, and each arm's rank, mean, interval and distance to the first."""
    assert flat(headline(tiers)) in terminal and settle_words(tiers) in terminal
    for place in tiers.places:
        numbers = f"{Scale('').plain(place.aggregate.mean)} {interval_words(place.aggregate.ci95)}"
        distance = place.to_first
        shown = distance_words(distance).removesuffix(", equivalent")
        behind = f" {GLYPHS[distance.verdict]} {shown}" if distance is not None else ""
        assert re.search(rf"{rank_words(place)} {place.label} [·━● ]+{re.escape(numbers + behind)}", terminal)


def _agrees_with_itself(pair, margin):
    """The verdict is read off the interval; p and interval are on the same side; what is printed is, too."""
    decided = read_verdict(pair.ci95, 1, margin)
    failures = pair.failures
    if failures is not None and decided != "cannot tell":
        stands = failures.against_a.verdict == failures.against_b.verdict == decided
        assert pair.verdict == (decided if stands else "depends on failures")
    else:
        assert pair.verdict == decided
    if pair.ci95 is None:
        return
    low, high = pair.ci95
    apart = low > 0 or high < 0
    assert apart == (pair.p_adjusted < 0.05) or margin is not None  # a margin may ask for a wider interval
    assert not apart or pair.p_adjusted < 0.05
    assert low - 1e-9 <= pair.difference <= high + 1e-9
    written = [float(part) for part in re.findall(r"[-+][\d.]+", Scale(pair.metric).interval(pair.ci95, margin))]
    assert (written[0] > 0 or written[1] < 0) == apart
    if margin is not None:
        points = 100 * margin
        assert (-points < written[0] and written[1] < points) == (-margin < low and high < margin)


def _reports_agree(run, pairs, tmp_path):
    for name in ("run.md", "run.html"):
        export(run, tmp_path / name)
    markdown = flat((tmp_path / "run.md").read_text().replace("\\", ""))
    page = flat((tmp_path / "run.html").read_text(), html=True)
    tiers = run_leaderboard(run)
    for text in (markdown, page):
        assert flat(headline(tiers)) in text
    for pair in pairs:
        assert flat(sentence(pair)) in page
        difference, bounds, p = pair_cells(pair)[2:5]
        assert p in markdown and p in page
        for cell in (signs(difference), interval_words(pair.ci95)) if pair.ci95 else ():
            assert cell in markdown, cell
        # The matrix has every pair once, the better placed arm first.
        if len(tiers.places) > 2 and pair.ci95:
            ahead = pair.b in tiers.distances.get(pair.a, {})
            low, high = pair.ci95 if ahead else (-pair.ci95[1], -pair.ci95[0])
            assert interval_words((low, high)) in page, bounds


@pytest.mark.slow
async def test_the_gate_never_says_more_than_compare(experiment):
    """Each of its limits is a claim of its own, at 2.5 %: the interval is that of compare, or wider."""
    first = await experiment("binary", 5)
    second = await experiment("binary", 5)
    found = gate(sources_of(second)[0], sources_of(first)[0], Terms(margin=0.1))
    pairs = {pair.a.split("@")[0]: pair for pair in ft.compare([second, first], margin=0.1).pairs}
    for check in found.checks:
        if check.name != "regression":
            continue
        pair = pairs[check.arm]
        (low, high), (least, most) = check.interval, pair.ci95
        assert low <= least + 1e-9 and high >= most - 1e-9
        assert (low, high) == pytest.approx((least, most)) or pair.method == "bounded"
        wanted = "passed" if low > -0.1 else "failed" if high < 0 else "cannot tell"
        assert check.result == wanted and "95 % CI" in check.message and "90%" not in check.message
