"""Every command that is suggested can be followed, in the state in which it is suggested."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.hints.suggested import prepare, walk

CASES = [{"id": f"q {n}", "input": f"Question {n}?", "expected": "42", "category": f"kind {n % 2}"} for n in range(6)]
RIGHT = {"id": "right", "target": "mock:x", "options": {"answer": "42"}}
WRONG = {"id": "all wrong", "target": "mock:x", "options": {"answer": "no"}}
MIXED = {"id": "mixed", "target": "mock:x", "options": {"answers": {"1?": "42", "2?": "42"}, "answer": "no"}}
DOWN = {"id": "down", "target": "mock:x", "options": {"answer": "x", "faults": {"500": 1.0}}}
SHAKY = {"id": "shaky", "target": "mock:x", "options": {"answers": {"1?": "42"}, "answer": "x", "faults": {"500": 0.5}}}
JUDGE = {"target": "mock:j", "options": {"verdict": {"otherwise": 7}}}
ONCE = {"retry": {"attempts": 1}}
PRICED = {
    "targets": [{"id": "model", "target": "python:model.py:answer"}],
    "prices": {"model": {"input": 1, "output": 1}},
    "params": {"max_tokens": 20},
    "budget_usd": 0.0001,
    "concurrency": 1,
}
MODEL = "def answer(question):\n    return {'text': question, 'prompt_tokens': 10, 'completion_tokens': 10}\n"
VOTE = f"$ {shlex.quote(sys.executable)} vote.py"
VOTES = """
import sys

from fairtrial.analyse.run import Run
from fairtrial.store import Store
from fairtrial.workflows.vote import Poll

poll = Poll(Run.find("latest", Store(*sys.argv[1:])), "me")
poll.cast(poll.next(), "left")
"""
# By name: what the suite says, and the commands that lead to the state; what the last one says is followed.
STATES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "one arm": ({"targets": [MIXED]}, ["run suite.yaml"]),
    "one perfect arm": ({"targets": [RIGHT]}, ["run suite.yaml"]),
    "two arms": ({"targets": [RIGHT, MIXED]}, ["run suite.yaml"]),
    "three arms": ({"targets": [RIGHT, MIXED, WRONG]}, ["run suite.yaml"]),
    "an earlier run": ({"targets": [RIGHT, MIXED]}, ["run suite.yaml", "run suite.yaml", "show 1"]),
    "some failures": ({"targets": [SHAKY, MIXED], **ONCE}, ["run suite.yaml"]),
    "nothing but failures": ({"targets": [DOWN], **ONCE}, ["run suite.yaml"]),
    "a budget that was reached": (PRICED, ["run suite.yaml"]),
    "a series with failures": ({"targets": [SHAKY, MIXED], **ONCE}, ["run suite.yaml --runs 2"]),
    "stopped early": (
        {"targets": [RIGHT, WRONG], "cases": [{**CASES[0], "id": str(n), "input": f"{n}?"} for n in range(60)], "concurrency": 1},
        ["run suite.yaml --stop-when decided"],
    ),
    "judged": ({"targets": [RIGHT, MIXED], "scorer": "llm_judge", "judge": JUDGE}, ["run suite.yaml"]),
    "a judge of cases": (
        {
            "targets": [RIGHT],
            "scorer": "llm_judge",
            "judge": {**JUDGE, "instructions": "{{ age }}"},
            "vars": {"age": 9},
        },
        ["run suite.yaml"],
    ),
    "a store of one's own": ({"targets": [RIGHT, MIXED, SHAKY], **ONCE}, ["run suite.yaml --store 'my store.db'"]),
    "judged in a store of one's own": (
        {"targets": [RIGHT], "scorer": "llm_judge", "judge": JUDGE},
        ["run suite.yaml --store mine.db"],
    ),
    "in JSON": ({"targets": [SHAKY], **ONCE}, ["run suite.yaml --json"]),
    "two runs compared": ({"targets": [RIGHT, MIXED]}, ["run suite.yaml", "run suite.yaml", "compare 1 2"]),
    "a run of another store": (
        {"targets": [RIGHT, MIXED]},
        ["run suite.yaml --store a.db", "run suite.yaml", "compare 1@a.db"],
    ),
    "runs of two stores": (
        {"targets": [RIGHT, MIXED]},
        ["run suite.yaml --store a.db", "run suite.yaml", "compare 1 1@a.db"],
    ),
    "arms compared": ({"targets": [RIGHT, MIXED]}, ["run suite.yaml", "compare --arms right mixed"]),
    "a series compared": ({"targets": [RIGHT, MIXED]}, ["run suite.yaml --runs 2", "tag 1 mine", "compare"]),
    "ranked": ({"targets": [RIGHT, MIXED, WRONG]}, ["run suite.yaml", "rank"]),
    "ranked by votes that nobody gave": ({"targets": [RIGHT, MIXED]}, ["run suite.yaml", "rank --by votes"]),
    "ranked by verdicts that nobody gave": (
        {"targets": [RIGHT, MIXED], "judge": JUDGE},
        ["run suite.yaml", "rank --by verdicts"],
    ),
    "style without pairs": ({"targets": [RIGHT, MIXED], "judge": JUDGE}, ["run suite.yaml", "rank --control-style"]),
    "listed": ({"targets": [RIGHT]}, ["run suite.yaml", "run suite.yaml", "list --limit 1"]),
    "by kind": (
        {"targets": [RIGHT, MIXED], "cases": [{**CASES[0], "id": f"{n}", "input": f"{n}?", "category": f"a kind {n % 10}"} for n in range(40)]},
        ["run suite.yaml", "show"],
    ),
    "a trial": ({"targets": [RIGHT, MIXED]}, ["run suite.yaml", "show 1 'q 3' mixed"]),
    "the last difference": ({"targets": [RIGHT, MIXED]}, ["run suite.yaml", "show 1 'q 5' mixed"]),
    "an unknown run": ({"targets": [RIGHT]}, ["run suite.yaml", "show nothing"]),
    "an unknown case": ({"targets": [RIGHT]}, ["run suite.yaml", "show --case nothing"]),
    "an unknown trial": ({"targets": [RIGHT]}, ["run suite.yaml", "show --trial nothing"]),
    "no store": ({"targets": [RIGHT]}, ["show"]),
    "no store of that name": ({"targets": [RIGHT]}, ["show --store mine.db"]),
    "no suite": ({"targets": [RIGHT]}, ["$rm *.yaml", "run nothing.yaml"]),
    "no suite in a folder": ({"targets": [RIGHT]}, ["run 'my folder/nothing.yaml'"]),
    "an empty store": ({"targets": [RIGHT]}, ["calibrate --suite judged.yaml", "list"]),
    "an empty store is asked": ({"targets": [RIGHT]}, ["calibrate --suite judged.yaml", "show"]),
    "rescored": ({"targets": [RIGHT, MIXED]}, ["run suite.yaml", "rescore --scorer contains", "show --context"]),
    "a sample to label": (
        {"targets": [RIGHT, MIXED], "scorer": "llm_judge", "judge": JUDGE},
        ["run suite.yaml", "label --sample 2 -o 'my marks.csv'"],
    ),
    "a sample of another store": (
        {"targets": [RIGHT], "scorer": "llm_judge", "judge": JUDGE},
        ["run suite.yaml --store a.db", "label --sample 2 -o marks.csv --store a.db"],
    ),
    "no labels": ({"targets": [RIGHT], "scorer": "llm_judge", "judge": JUDGE}, ["run suite.yaml", "label"]),
    "no baseline file": ({"targets": [RIGHT]}, ["run suite.yaml", "gate latest --against file:base.json"]),
    "no notes": ({"targets": [RIGHT]}, ["$git init -q . && git -c user.name=me -c user.email=me@localhost commit -q --allow-empty -m first", "run suite.yaml", "gate latest --against notes:main"]),
    "drift of too few": ({"targets": [RIGHT]}, ["run suite.yaml", "drift"]),
    "a tag without a name": ({"targets": [RIGHT]}, ["run suite.yaml", "tag latest"]),
    "a file that cannot be written": ({"targets": [RIGHT]}, ["run suite.yaml", "report latest -o out.txt"]),
    "an unknown problem": ({"targets": [RIGHT]}, ["baseline nothing-3"]),
    "styles": ({}, ["optim run mock:echo --family convex_qp --family rosenbrock --n 2 --count 2 --repeats 1"]),
    "styles in a store of one's own": (
        {},
        ["optim run mock:echo --family convex_qp --family rosenbrock --n 2 --count 2 --repeats 1 --store mine.db"],
    ),
    "problems": ({}, ["optim generate 'my problems' --family packing --n 3 --count 1"]),
    "nobody voted": ({"targets": [RIGHT, MIXED]}, ["run suite.yaml", "rank --by both"]),
    "voted on": ({"targets": [RIGHT, MIXED]}, ["run suite.yaml", VOTE, "vote"]),
    "voted on in a store of one's own": (
        {"targets": [RIGHT, MIXED]},
        ["run suite.yaml --store a.db", f"{VOTE} a.db", "vote --store a.db"],
    ),
    "a damaged store": (
        {"targets": [RIGHT, MIXED]},
        ["run suite.yaml --store 'my store.db'", "$printf '%2000s' | dd of='my store.db' bs=4096 seek=1 conv=notrunc",
         "list --store 'my store.db'"],
    ),
    "an option that is not there": ({"targets": [RIGHT]}, ["run suite.yaml --nothing"]),
}  # fmt: skip


def write_state(folder: Path, keys: dict[str, Any]) -> None:
    """Write what every state begins with: a suite, one with a judge, and a model that costs money."""
    folder.mkdir()
    suite = {"name": "test", "cases": CASES, "targets": [RIGHT], **keys}
    (folder / "suite.yaml").write_text(yaml.safe_dump(suite, sort_keys=False), "utf-8")
    judged = {"name": "judged", "cases": CASES, "targets": [RIGHT], "scorer": "llm_judge", "judge": JUDGE}
    (folder / "judged.yaml").write_text(yaml.safe_dump(judged, sort_keys=False), "utf-8")
    (folder / "model.py").write_text(MODEL, "utf-8")
    (folder / "vote.py").write_text(VOTES, "utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("name", STATES)
def test_what_is_suggested_can_be_followed(name, tmp_path):
    keys, lines = STATES[name]
    folder = tmp_path / "state"
    write_state(folder, keys)
    for line in lines:
        ended = prepare(folder, line)
    followed = list(walk(folder, ended.said, deep=1 if "optim" in lines[0] else 2))
    assert followed, ended.said
