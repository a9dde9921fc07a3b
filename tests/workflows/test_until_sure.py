"""`gate --until-sure`: more answers until the gate can tell, within the budget, and never twice for the same."""

import asyncio

import msgspec
import pytest
from click.testing import CliRunner

from fairtrial.analyse.gate import Terms, gate
from fairtrial.analyse.score_table import sources_of
from fairtrial.cli.main import cli
from fairtrial.config import RunOptions
from fairtrial.stats.looks import level_of_another_look
from fairtrial.workflows.until_sure import abuy_until_sure

NOISY = """
import random
from collections import Counter

asked = Counter()

def answer(prompt):
    asked[prompt] += 1
    return "42" if random.Random(f"{prompt} {asked[prompt]}").random() < 0.85 else "x"
"""


def suite(repeats, **keys):
    cases = [{"id": f"c{n}", "input": f"case {n}", "expected": "42"} for n in range(60)]
    return {"targets": [{"id": "bot", "target": "python:noisy.py:answer"}], "cases": cases, "repeats": repeats, **keys}


@pytest.fixture
def noisy(tmp_path):
    (tmp_path / "noisy.py").write_text(NOISY)


def test_all_looks_together_are_five_percent():
    assert sum(level_of_another_look(look) for look in range(1, 60)) == pytest.approx(0.05)


@pytest.mark.slow
async def test_it_buys_what_is_enough_and_looks_again(run_suite, noisy, store):
    before = await run_suite(**suite(8))
    run = await run_suite(**suite(1))
    against, terms = sources_of(before)[0], Terms(margin=0.12)
    first = gate(sources_of(run)[0], against, terms)
    assert first.result == "cannot tell" and first.settle[0].repeats > 1 and "answers to each of these 60" in str(first)
    # A round that is cut short is finished first; what the gate decided to buy is recorded with it.
    bought = await abuy_until_sure(run, against, terms, budget_usd=0.0)
    assert bought.ended == "decided" and bought.gate.result == "passed" and bought.rounds >= 1
    rounds = store.series_of(bought.series)[1:]
    assert len(rounds) == bought.rounds and all(one.status == "completed" for one in rounds)
    goals = [msgspec.json.decode(one.context)["until_sure"] for one in rounds]
    assert goals[0]["look"] == 1 and goals[0]["runs"] >= 2
    trials = sum(1 for one in rounds for _ in store.trial_rows(one.id, one.scoring))
    assert trials == 60 * bought.rounds
    # Decided once, it asks nothing more, also from the command line.
    args = ["gate", run.id, "--against", before.id, "--margin", "12", "--until-sure", "--budget-usd", "0"]
    args += ["--store", store.address, "-q"]
    shown = await asyncio.to_thread(CliRunner().invoke, cli, args, standalone_mode=False)
    assert shown.exception is None and len(store.series_of(bought.series)) == bought.rounds + 1, shown.output
    assert "0 further rounds" not in shown.output and "decided" in shown.output


async def test_what_more_answers_cannot_decide_costs_nothing(run_suite, store):
    cases = [{"id": f"c{n}", "input": f"case {n}", "expected": "42"} for n in range(30)]

    def arm(wrong):
        answers = {f"c{n}": "x" for n in wrong}
        return {"id": "bot", "target": "mock:x", "options": {"answers": answers, "answer": "42"}}

    before = await run_suite(targets=[arm([1, 2])], cases=cases, repeats=2)
    run = await run_suite(targets=[arm([3, 4, 5])], cases=cases, repeats=2)
    bought = await abuy_until_sure(run, sources_of(before)[0], Terms(), budget_usd=5.0)
    assert bought.rounds == 0 and "would not decide it" in bought.ended and len(store.runs()) == 2


@pytest.mark.slow
async def test_the_budget_is_kept(run_suite, store, model_server):
    """A run costs money; with less than another round left, nothing is asked."""
    state = await model_server(answers=("42", "42", "x"))
    keys = {
        "targets": [{"id": "bot", "target": "openai:gpt-5-mini"}],
        "cases": [{"id": f"c{n}", "input": f"case {n}", "expected": "42"} for n in range(40)],
        "prices": {"bot": {"input": 1000.0, "output": 1000.0}},
    }
    before = await run_suite(**keys, repeats=6)
    run = await run_suite(**keys)
    calls, spent = sum(state.calls.values()), run.summary().spent.known
    assert spent > 0.1
    bought = await abuy_until_sure(run, sources_of(before)[0], Terms(margin=0.15), budget_usd=spent / 2)
    assert "of the budget is left" in bought.ended and bought.rounds == 0 and sum(state.calls.values()) == calls


def test_without_a_budget_it_does_not_begin(tmp_path):
    shown = CliRunner().invoke(cli, ["gate", "--until-sure"], standalone_mode=False)
    assert "needs --budget-usd" in str(shown.exception)


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--budget-usd", "2"], "limits what --until-sure asks"),
        (["--replay"], "--replay needs the file of a suite"),
        (["--repeats", "3"], "--repeats needs the file of a suite or --plan"),
        (["--until-sure", "--budget-usd", "2"], "--until-sure needs a baseline"),
    ],
)
async def test_options_that_would_do_nothing_are_refused(run_suite, store, args, says):
    if "--until-sure" in args:
        await run_suite(**suite(1, targets=[{"id": "bot", "target": "mock:x", "options": {"answer": "42"}}]))
    shown = CliRunner().invoke(cli, ["gate", "latest", *args, "--store", store.address], standalone_mode=False)
    assert says in str(shown.exception)


async def test_a_further_look_has_its_own_interval(run_suite, noisy):
    run = await run_suite(**suite(2))
    source = sources_of(run)[0]
    wide, plain = (
        gate(source, None, Terms(min_score=0.5, level=level)).checks[-1] for level in (level_of_another_look(1), 0.05)
    )
    assert wide.interval[0] < plain.interval[0] and wide.interval[1] > plain.interval[1]
    assert "96 % CI" in wide.message and "95 % CI" in plain.message


@pytest.mark.slow
async def test_rounds_do_not_replace_the_answers_they_add_to(run_suite, noisy, store):
    """An arm that nobody changed stays unchanged after a gate has asked it again."""
    before = await run_suite(**suite(1))
    run = await run_suite(**suite(1), options=RunOptions(cache=True))
    bought = await abuy_until_sure(run, sources_of(before)[0], Terms(min_score=0.75, margin=0.2), budget_usd=0.0)
    assert bought.rounds
    later = await run_suite(**suite(1), options=RunOptions(cache=True))
    found = gate(sources_of(later)[0], sources_of(before)[0], Terms())
    assert "unchanged" in found.checks[-1].message
