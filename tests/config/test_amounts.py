"""Amounts, prices, limits and thresholds are finite wherever they come in, and each refusal is one sentence."""

import math

import pytest

import fairtrial
from fairtrial import FairtrialError, RunOptions
from fairtrial.cli.main import _run
from fairtrial.core.amounts import check_amount, finite
from fairtrial.providers import sheet
from tests.conftest import numbered

NOT_NUMBERS = [math.nan, math.inf, -math.inf]


@pytest.mark.parametrize("value", [*NOT_NUMBERS, -1])
@pytest.mark.parametrize("name", ["budget_usd", "timeout", "margin", "concurrency", "repeats", "limit", "first"])
def test_options_of_a_run(name, value):
    with pytest.raises(FairtrialError, match=f"^`{name}` must be a finite number .*not {value:g}$"):
        RunOptions(**{name: value})


def test_what_may_be_0():
    RunOptions(budget_usd=0, timeout=0.1, margin=0.02)
    with pytest.raises(FairtrialError, match="above 0"):
        RunOptions(timeout=0)


def test_finite():
    assert finite({"a": [1, 2.5, "nan", None, True]}) and not finite({"a": [{"b": math.nan}]})
    check_amount("x", None)


@pytest.mark.parametrize("value", NOT_NUMBERS)
async def test_comparing_and_gating(run_suite, value):
    run = await run_suite(targets=["mock:echo", {"id": "b", "target": "mock:echo"}], cases=numbered(3))
    calls = [
        lambda: fairtrial.compare(run, margin=value),
        lambda: fairtrial.compare(run, largest=value),
        lambda: fairtrial.gate(run, min_score=50, min_coverage=value),
        lambda: fairtrial.gate(run, min_score=value),
        lambda: fairtrial.gate(run, min_score=value, metric="score"),
        lambda: fairtrial.power(run, power=value),
        lambda: fairtrial.power(run, delta=value),
        lambda: fairtrial.power(run, margin=value),
    ]
    for call in calls:
        with pytest.raises(FairtrialError):
            call()


SUITE = {
    "a price": {"prices": {"mock:echo": {"input": 1, "output": "X"}}},
    "a price of the cache": {"prices": {"mock:echo": {"input": 1, "output": 1, "cache_write": "X"}}},
    "a budget": {"budget_usd": "X"},
    "a time limit": {"timeout": "X"},
    "resources": {"targets": [{"target": "mock:echo", "resources": {"cpu": "X"}}]},
    "a parameter": {"params": {"top_p": "X"}},
    "an extra parameter": {"params": {"extra": {"deep": [{"er": "X"}]}}},
    "a weight": {"cases": [{"input": "a", "expected": "a", "weight": "X"}]},
    "a threshold": {"scorer": {"type": "contains", "threshold": "X"}},
    "a tolerance": {"scorer": {"type": "numeric", "tolerance": "X"}, "cases": [{"input": "1", "expected": 1}]},
    "a scorer's weight": {"scorer": {"type": "weighted", "scorers": [{"scorer": "contains", "weight": "X"}]}},
    "a gate": {"gate": {"min_score": "X"}},
}


@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("what", SUITE)
def test_suites(write_suite, capsys, what, value):
    def filled(node):
        if isinstance(node, dict):
            return {key: filled(item) for key, item in node.items()}
        return [filled(item) for item in node] if isinstance(node, list) else value if node == "X" else node

    path = write_suite(**{"targets": ["mock:echo"], **filled(SUITE[what])})
    assert _run(["validate", str(path)]) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert "internal error" not in said and str(value)[-3:] in said, said


@pytest.mark.parametrize("price", [".nan", ".inf", "-1"])
def test_the_users_own_models(tmp_path, monkeypatch, capsys, price):
    own = tmp_path / "models.yaml"
    own.write_text(f'"gpt-9": {{prices: {{input: {price}, output: 1}}}}\n')
    monkeypatch.setenv("FAIRTRIAL_MODELS", str(own))
    sheet.forget()
    try:
        assert _run(["models", "openai:gpt-9"]) == 1
    finally:
        monkeypatch.undo()
        sheet.forget()
    assert "a price is a finite number from 0 on" in " ".join(capsys.readouterr().err.split())


def test_repeats_that_would_never_end(tmp_path, write_suite, capsys):
    with pytest.raises(FairtrialError, match="repeats must be at most 1,000,000"):
        RunOptions(repeats=10**20)
    assert _run(["run", str(write_suite()), "--repeats", "9" * 20]) == 1
    assert "repeats must be at most 1,000,000" in capsys.readouterr().err
    assert _run(["validate", str(write_suite(repeats=2_000_000))]) == 1
    assert "repeats: must be <= 1000000" in capsys.readouterr().err
