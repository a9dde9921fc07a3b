"""Two arms in either order: the same facts, with the names and signs the other way round, and no line against another."""

import json
import re

import msgspec
import numpy as np
import pytest

from fairtrial.analyse.compare import compare
from fairtrial.analyse.comparison import opposite
from fairtrial.analyse.score_table import choose, read_scores, sources_of
from fairtrial.cli.compare_page import print_comparisons
from fairtrial.present.words.changes import comparison_headline
from fairtrial.present.words.comparisons import Scale, brief_lines, detail_lines, sentence
from fairtrial.present.words.verdicts import WORDS, lead_of
from fairtrial.reports.json import comparison_document

FAILED = re.compile(
    r"[Ii]f every failed trial counted against (\w+): ([+−][\d.]+), 95 % CI (−?[\d.]+) to (−?[\d.]+), "
    r"(\d+) cases: (too close to call|equivalent|(\w+) is (better|worse) than (\w+))"
)
SAID = re.compile(r"\b(\w+) is (better|worse) than (\w+)")
TARGET = """
import json, pathlib
TABLE = json.loads(pathlib.Path(__file__).with_name("table.json").read_text())
def said(arm, question):
    if TABLE[arm][question] is None:
        raise RuntimeError("out of order")
    return repr(TABLE[arm][question])
def steady(question): return said("steady", question)
def frail(question): return said("frail", question)
"""
SCORER = """
from fairtrial import Score
def score(response, expected):
    return Score(value=float(response), metrics={"error": 1 - float(response)})
"""
SITUATIONS = {  # means of both arms, and the share of trials of the second that fail
    "decided": (0.8, 0.3, 0.05),
    "turned by failures": (0.75, 0.45, 0.3),
    "the frail one is ahead": (0.4, 0.75, 0.3),
    "open": (0.55, 0.5, 0.1),
    "nothing failed": (0.8, 0.3, 0.0),
}


@pytest.fixture(params=SITUATIONS)
async def scores(request, run_suite, tmp_path):
    """A run with failures; `error` is a metric of which less is better."""
    rng = np.random.default_rng(5)
    steady, frail, failing = SITUATIONS[request.param]
    base = rng.normal(0, 0.15, 30)

    def drawn(mean):
        return np.clip(mean + base + rng.normal(0, 0.1, 30), 0, 1).round(3)

    table = {
        name: {f"case {n}": float(value) for n, value in enumerate(drawn(mean))}
        for name, mean in (("steady", steady), ("frail", frail))
    }
    for n in range(round(failing * 30)):
        table["frail"][f"case {n}"] = None
    (tmp_path / "table.json").write_text(json.dumps(table))
    (tmp_path / "arms.py").write_text(TARGET)
    (tmp_path / "marks.py").write_text(SCORER)
    run = await run_suite(
        targets=[{"id": name, "target": f"python:arms.py:{name}"} for name in ("steady", "frail")],
        scorer={"type": "python", "function": "marks.py:score"},
        cases=[
            {"id": f"c{n}", "input": f"case {n}", "expected": "x", "category": "ab"[n % 2], "difficulty": "easy"}
            for n in range(30)
        ],
        retry={"attempts": 1},
    )
    found = read_scores(sources_of(run))
    for arm in found.arms:
        arm.scales["error"] = (1.0, 0.0)
    return found


def compared(scores, names, metric, margin):
    return compare(scores, choose(scores, names), metric=metric, margin=margin)


@pytest.mark.slow
@pytest.mark.parametrize("metric", ["", "error"])
@pytest.mark.parametrize("margin", [None, 0.6])
def test_whoever_is_named_first(scores, capsys, metric, margin):
    pages = []
    for names in (("steady", "frail"), ("frail", "steady")):
        found = compared(scores, names, metric, margin)
        (pair,) = found.pairs
        _says_what_the_document_says(found)
        print_comparisons(found, details=True, plain=True)
        page = " ".join(capsys.readouterr().out.split())
        _page_has_one_subject(page, found)
        pages.append(page)
        for line in brief_lines(pair):
            assert line in (*detail_lines(pair), *brief_lines(pair.turned().turned()))
    assert pages[0] == pages[1]  # the better arm first, whoever was named first


def _says_what_the_document_says(found):
    """Every sentence about the pair has the subject, the sign and the verdict of the published document."""
    (pair,), document = found.pairs, comparison_document(found)["pairs"][0]
    for subject, verdict, other in SAID.findall(sentence(pair, found.margin)):
        assert {subject, other} == {document["a"], document["b"]}
        assert verdict == (document["verdict"] if subject == document["a"] else opposite(document["verdict"]))
    lines = [match for line in detail_lines(pair) for match in FAILED.findall(line)]
    assert len(lines) == (0 if document["failures"] is None else 2)
    for against, difference, low, high, count, verdict, subject, what, other in lines:
        bound = document["failures"]["against_a" if against == document["a"] else "against_b"]
        digits = len(difference.partition(".")[2])
        assert _number(difference) == pytest.approx(bound["difference"], abs=0.51 * 10**-digits)
        assert [_number(low), _number(high)] == pytest.approx(bound["ci95"], abs=0.51 * 10**-digits)
        assert int(count) == bound["count"]
        if subject:
            assert (subject, what, other) == (document["a"], bound["verdict"], document["b"])
        else:
            assert verdict == WORDS[bound["verdict"]]


def _page_has_one_subject(page, found):
    """All that a page says of the pair is about the arm that its headline names first."""
    (pair,) = found.pairs
    first = lead_of(pair).one
    assert " ".join(comparison_headline(found).split()) in page
    shown = pair if pair.a == first else pair.turned()
    assert {subject for subject, _, _ in SAID.findall(page)} <= {first}
    for against, difference, *_ in FAILED.findall(page):
        bound = shown.failures.against_a if against == shown.a else shown.failures.against_b
        assert difference == Scale(pair.metric).signed(bound.difference)
    assert len(FAILED.findall(page)) >= (2 if pair.failures else 0)


def _number(text):
    return float(text.replace("−", "-"))


@pytest.mark.slow
@pytest.mark.parametrize("metric", ["", "error"])
def test_a_pair_turned_is_the_pair_compared_the_other_way_round(scores, metric):
    one, other = (compared(scores, names, metric, 0.3) for names in (("steady", "frail"), ("frail", "steady")))
    for found, wanted in zip([*one.turned().pairs, *one.turned().metrics], [*other.pairs, *other.metrics], strict=True):
        _alike(msgspec.to_builtins(found), msgspec.to_builtins(wanted))
        # Resampling draws other cases: its limits are near, not equal.
        assert [line for line in detail_lines(found) if "bootstrap" not in line] == [
            line for line in detail_lines(wanted) if "bootstrap" not in line
        ]
        assert brief_lines(found) == brief_lines(wanted) and sentence(found, 0.3) == sentence(wanted, 0.3)
    assert one.turned().turned() == one


def _alike(found, wanted):
    if isinstance(wanted, dict):
        near = 0.02 if "bootstrap" in str(found.get("method")) else None
        for key, value in wanted.items():
            if near is not None and key == "ci95":
                assert found[key] == pytest.approx(value, abs=near)
            else:
                _alike(found[key], value)
    elif isinstance(wanted, list | tuple):
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            _alike(one, other)
    elif isinstance(wanted, float):
        assert found == pytest.approx(wanted, abs=1e-9)
    else:
        assert found == wanted
