"""The built-in prompts of the code arena with their checks, and prepared answers to try it without a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from fairtrial.core.variables import escape, escape_all

_FOLDER = Path(__file__).parent
ENDING = "Answer with one HTML document that holds its own CSS and JavaScript and loads nothing from anywhere."
MAX_TOKENS = 8192  # a page is longer than the usual answer
_BORROWED = ("providers", "prices", "retry", "concurrency", "benchmark_mode")
_OF_TARGET = ("id", "target", "params", "options", "concurrency", "resources")
_OF_JUDGE = ("id", "target", "params", "options", "temperature", "vision")
DEMO_MODELS = ("careful", "hasty")
_DEMO_MARKS = {  # the demo judge's score for each text in its facts; the first text found counts
    "an endless loop?": 8.0,
    "nothing is to be seen": 15.0,
    "the code breaks off": 35.0,
    "script errors": 42.0,
    "controls do nothing": 40.0,
    "too little contrast": 55.0,
    "too wide for a phone": 62.0,
    "check FAILED": 66.0,
}


def cases() -> list[dict[str, Any]]:
    """Return the cases as in a suite file."""
    document = yaml.safe_load((_FOLDER / "cases.yaml").read_text("utf-8"))
    return [{**case, "input": f"{case['input'].strip()}\n\n{ENDING}"} for case in document]


def samples() -> list[dict[str, Any]]:
    """Return pages with known scores: id, question, answer, score and an optional tolerance."""
    prompts = {case["id"]: case["input"] for case in cases()}
    document = yaml.safe_load((_FOLDER / "samples.yaml").read_text("utf-8"))
    return [
        {
            "question": prompts[item["case"]],
            "answer": demo_answers(item["model"])[item["case"]],
            **{key: value for key, value in item.items() if key not in ("case", "model")},
        }
        for item in document
    ]


def demo_answers(model: str) -> dict[str, str]:
    """Return the answers of a prepared model, by case."""
    return {path.stem: path.read_text("utf-8") for path in sorted((_FOLDER / model).glob("*.md"))}


def arena_document(
    targets: Sequence[Any],
    *,
    prompt: str | None = None,
    judge: Any = None,
    cases: Sequence[str] = (),
    repeats: int = 1,
    of: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return a suite in which these targets write pages for one prompt, or for the built-in ones.

    `of` is another suite, as it is written, whose providers, prices, parameters and models (by name) are used.
    """
    of = of or {}
    targets, judge = models_of(of, targets), judge_in(of, judge) if isinstance(judge, str) else judge
    common = {"name": "code arena", "repeats": repeats, **{name: of[name] for name in _BORROWED if name in of}}
    if params := _page_params(of):
        common["params"] = params
    if prompt is None:
        task: dict[str, Any] = {"suite": _without_empty({"kind": "code_arena", "ids": list(cases)})}
    else:
        task = {
            "params": {"max_tokens": MAX_TOKENS, **params},
            "timeout": 300,
            "scorer": "code_judge" if judge else "browser",
            "cases": [{"id": "prompt", "input": escape(f"{prompt.strip()}\n\n{ENDING}")}],
        }
    return {**common, **task, **_without_empty({"targets": list(targets), "judge": judge})}


def models_of(suite: Mapping[str, Any], names: Sequence[Any] = ()) -> list[Any]:
    """Return targets by their names: those that a suite knows as it describes them; without names, all of these."""
    known = {_name_of(entry): _own(entry, _OF_TARGET) for entry in suite.get("targets") or () if _name_of(entry)}
    return [known.get(name, name) if isinstance(name, str) else name for name in names] or list(known.values())


def judge_in(suite: Mapping[str, Any], name: str) -> Any:
    """Return a judge by its name, as a suite describes it if it knows it."""
    entries = [suite.get("judge"), *(suite.get("judges") or ())]
    return next((_own(entry, _OF_JUDGE) for entry in entries if entry and _name_of(entry) == name), name)


def _name_of(entry: Any) -> str:
    return str(entry.get("id") or entry.get("target") or "") if isinstance(entry, dict) else str(entry)


def _own(entry: Any, keys: Sequence[str]) -> Any:
    """Return an entry without what it says about the other suite's cases, conditions and scorers."""
    return {key: entry[key] for key in keys if key in entry} if isinstance(entry, dict) else entry


def _page_params(suite: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a suite; a page is longer than its usual answers."""
    params = dict(suite.get("params") or {})
    tokens = params.get("max_tokens")
    if isinstance(tokens, int):
        params["max_tokens"] = max(tokens, MAX_TOKENS)
    return params


def demo_document(*, cases: Sequence[str] = (), repeats: int = 1, **_: Any) -> dict[str, Any]:
    """Return the demo suite: two prepared models and a mock judge, without key or network."""
    models = [
        {"id": name, "target": f"mock:{name}", "options": {"answers": escape_all(demo_answers(name))}}
        for name in DEMO_MODELS
    ]
    verdict = {"marks": _DEMO_MARKS, "otherwise": 88.0, "noise": 4.0}
    judge = {"target": "mock:judge", "vision": True, "options": {"verdict": verdict}}
    return arena_document(models, judge=judge, cases=cases, repeats=repeats)


def _without_empty(document: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if value}
