"""Runs that could stop as soon as they were sure: all their numbers agree with each other, in every output."""

import json
import random
import re

import pytest
from click.testing import CliRunner

import fairtrial as ft
from fairtrial.analyse.kind_means import by_kind
from fairtrial.analyse.leaderboard import run_leaderboard
from fairtrial.analyse.rank import rank
from fairtrial.analyse.score_table import read_scores, sources_of
from fairtrial.cli.main import cli
from fairtrial.config import RunOptions
from fairtrial.present.words.arm_notes import notes
from fairtrial.reports.json import comparison_document, ranking_document, run_document
from tests.analyse.test_compare import NUMBER, as_marked, marks  # noqa: F401
from tests.engine.test_decision import known_orders  # noqa: F401

STOP = RunOptions(stop_when="decided")


def kinds(count):
    groups = ("easy", "hard")
    return [
        {"id": f"c{n:02}", "input": f"case {n}", "expected": "42", "category": groups[n % 3 == 0]} for n in range(count)
    ]


def numbers(document, path=""):
    """Every interval of a JSON document with the estimate beside it."""
    if isinstance(document, dict):
        if document.get("ci95") is not None:
            name = next(name for name in ("mean", "difference") if name in document)
            yield f"{path}.{name}", document[name], document["ci95"]
        for key, value in document.items():
            yield from numbers(value, f"{path}.{key}")
    elif isinstance(document, list):
        for place, value in enumerate(document):
            yield from numbers(value, f"{path}[{place}]")


def scores(seed, count=120):
    """Two or three arms: right or wrong, or marks; alike, or one of them better."""
    luck = random.Random(seed)
    graded, gap = luck.random() < 0.5, luck.choice([0.0, 0.1, 0.3, 0.6])

    def one(level):
        if graded:
            return [min(1.0, max(0.0, luck.gauss(level, 0.2))) for _ in range(count)]
        return [float(luck.random() < level) for _ in range(count)]

    return [one(level) for level in (0.35 + gap, 0.35, 0.3)[: luck.choice([2, 3])]]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
async def test_every_estimate_is_the_middle_of_its_interval(run_suite, as_marked, seed):  # noqa: F811
    columns = scores(seed)
    targets = [marks(name, values) for name, values in zip("abc", columns, strict=False)]
    run = await run_suite(STOP, targets=targets, cases=kinds(len(columns[0])), scorer=NUMBER)
    documents = [run_document(run), ranking_document(rank(read_scores(sources_of(run))))]
    documents += [comparison_document(ft.compare([run]))]
    shown = [one for document in documents for one in numbers(document)]
    assert len(shown) > 6
    for path, estimate, (low, high) in shown:
        assert estimate == pytest.approx((low + high) / 2, abs=1e-6), path
    own = {one.arm: one.aggregate for one in run.arms}
    for pair in ft.compare([run]).pairs:
        if own[pair.a].count == own[pair.b].count == pair.count:  # calls in progress were finished
            assert (pair.mean_a, pair.mean_b) == pytest.approx((own[pair.a].mean, own[pair.b].mean))
        assert pair.effect_size is None or pair.effect_size == pytest.approx(pair.difference / pair.std_dev)
        assert pair.groups and all(group.ci95[0] <= group.difference <= group.ci95[1] for group in pair.groups)
    order = [place.label for place in run_leaderboard(run).places]
    for pair in ft.compare([run]).pairs:  # whatever the order of the means, nobody stands before who is better
        if pair.verdict in ("better", "worse"):
            better, worse = (pair.a, pair.b) if pair.verdict == "better" else (pair.b, pair.a)
            assert order.index(better) < order.index(worse)
    assert by_kind(run).means["category"]


@pytest.mark.slow
async def test_ratings_that_do_not_allow_for_it_are_left_out(run_suite, as_marked, store):  # noqa: F811
    columns = scores(3, 60)
    run = await run_suite(
        STOP,
        targets=[marks(name, values) for name, values in zip("abc", columns, strict=False)],
        cases=kinds(60),
        scorer=NUMBER,
    )
    found = rank(read_scores(sources_of(run)))
    assert all(place.rating is None and place.elo is None for place in found.places)
    assert any("ratings do not" in note for note in found.notes) and not any("no bound" in note for note in found.notes)
    shown = CliRunner().invoke(cli, ["rank", run.id, "--store", store.address], standalone_mode=False)
    assert shown.exception is None and "are left out" in " ".join(shown.output.split())


@pytest.mark.slow
async def test_it_is_said_what_the_numbers_are(run_suite, as_marked, store):  # noqa: F811
    """Also of a run that went on to its end: its intervals are wider, and its scores are midpoints."""
    same = [0.5 + 0.3 * (n % 3 - 1) for n in range(40)]
    run = await run_suite(STOP, targets=[marks("a", same), marks("b", same[::-1])], cases=kinds(40), scorer=NUMBER)
    assert run.status == "completed"
    (note,) = [note for note in notes(run.summary()) if "stopped" in note]
    assert note.startswith("This run could have stopped early.") and "need not be that of the two scores" in note
    assert any("need not be that of the two scores" in note for note in ft.compare([run]).notes)
    plain = await run_suite(targets=[marks("a", same), marks("b", same[::-1])], cases=kinds(40), scorer=NUMBER)
    assert not any("midpoint" in note for note in [*notes(plain.summary()), *ft.compare([plain]).notes])
    shown = CliRunner().invoke(cli, ["show", run.id, "--json", "--store", store.address], standalone_mode=False)
    assert json.loads(shown.output)["arms"][0]["mean"] == pytest.approx(100 * run.arms[0].aggregate.mean)


def test_the_price_is_said_where_it_is_chosen():
    shown = " ".join(CliRunner().invoke(cli, ["run", "--help"]).output.split())
    assert re.search(r"--stop-when .* wider intervals, even if nothing is stopped", shown)
