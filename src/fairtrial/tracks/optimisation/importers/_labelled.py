"""What benchmarks of optimisation share: questions with a published optimum, and perhaps a reference program."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

from fairtrial.agents.workspace.program import Sandbox
from fairtrial.core.errors import FairtrialError
from fairtrial.core.variables import escape
from fairtrial.foreign.suites import Imported, Reference, expecting, read_text
from fairtrial.text.numbers import read_number
from fairtrial.tracks.optimisation.cases import show_progress
from fairtrial.tracks.optimisation.labels import Label, certify_labels

_PROMPT = (
    "{{ input }}\n\nWork out the optimal value of the objective. Then write it as a plain number in a last line of "
    "its own, after the word `Answer` and a colon."
)
_CODE = (
    "{{ input }}\n\nDo not solve this yourself: write a program that does. Answer with one block of Python code that "
    "defines a function `solve` without arguments. It returns the optimal value of the objective as a number, or a "
    "Pyomo ConcreteModel, which is then solved. Pyomo with the solvers `highs` (linear, convex quadratic, integer) and "
    "`scip_direct` (all others), NumPy and SciPy are installed. There is no network."
)
_TOLERANCE = 0.001
Asked = Literal["value", "code"]
_DIFFICULTIES = ("easy", "medium", "hard")


class LabelledQuestion:
    """One question of a benchmark, with its label as it was published."""

    def __init__(
        self, name: str, text: Any, label: Any, *, kind: Any = None, reference: Reference | None = None
    ) -> None:
        if not isinstance(text, str) or not text.strip():
            raise ValueError(f"question {name} has no text")
        self.id, self.text, self.label = str(name), text.strip(), label
        self.kind = kind if isinstance(kind, str) else ""
        self.reference = reference

    def value(self) -> float | None:
        """Return the label as a number; None if it is none."""
        return number(self.label)


def number(label: Any) -> float | None:
    """Return a published value as a number: a number, or a text that is one and nothing else."""
    if isinstance(label, list) and len(label) == 1:
        label = label[0]
    if isinstance(label, bool) or not isinstance(label, int | float | str):
        return None
    if isinstance(label, str):
        readings = read_number(label)
        if not readings:
            return None
        label = readings[0]
    return float(label) if math.isfinite(label) else None


def read_records(file: Path) -> list[dict[str, Any]]:
    """Return the objects of a file: a JSON list, or one object after the other, as published files mix both."""
    if file.is_dir():
        raise FairtrialError(f"{file} is a folder; give the data file in it")
    text = read_text(file).strip()
    decoder = json.JSONDecoder()
    records: list[Any] = []
    place = 0
    try:
        while place < len(text):
            value, place = decoder.raw_decode(text, place)
            records += value if isinstance(value, list) else [value]
            while place < len(text) and text[place] in " \t\r\n,":
                place += 1
    except (ValueError, RecursionError):
        raise FairtrialError(f"{file} is neither JSON nor JSON lines") from None
    if not records or not all(isinstance(record, dict) for record in records):
        raise FairtrialError(f"{file} has no list of questions")
    return records


def read_questions(file: Path, text: str, label: str, kind: str) -> list[LabelledQuestion]:
    """Return the questions of a file whose records have these keys, and perhaps an `id`."""
    return [
        LabelledQuestion(str(record.get("id", number)), record[text], record[label], kind=record.get(kind))
        for number, record in enumerate(read_records(file), 1)
    ]


class LabelledImporter:
    """What importers of benchmarks have in common: whether the value is asked for, or a program that finds it."""

    tool: ClassVar[str]
    answer: Asked = "value"

    def questions(self, file: Path) -> list[LabelledQuestion]:
        """Return the questions of a file or folder."""
        raise NotImplementedError

    def read(self, file: Path) -> Imported:
        """Convert the data into a suite."""
        with expecting(file, self.tool):
            return labelled_suite(self.tool, self.questions(file), self.answer)

    def certify(self, imported: Imported, sandbox: Sandbox) -> tuple[Imported, list[Label]]:
        """Certify the labels, with progress."""
        return certify_labels(
            imported, sandbox=sandbox, watch=lambda done, count: show_progress(done, count, "certifying labels")
        )


def labelled_suite(name: str, questions: Sequence[LabelledQuestion], answer: Asked = "value") -> Imported:
    """Return the suite: the value, after `Answer:` or of the program, is right or wrong, as in the papers."""
    findings: list[str] = []
    cases = list(_cases(questions, findings))
    if answer == "code":
        cases = [{**case, "metadata": {"baseline": _baseline(case)}} for case in cases]
    if not cases:
        raise FairtrialError(f"there is no question with a number as its answer in these data of {name}")
    findings.append("the models: replace `mock:echo` under targets")
    by_value = {
        "prompts": {"value": _PROMPT},
        "extract": {"after": "Answer:", "missing": "wrong"},
        "scorer": {"type": "numeric", "tolerance": _TOLERANCE, "pick": "closest", "threshold": 1},
    }
    by_code = {
        "prompts": {"code": _CODE},
        "scorer": {"type": "optimisation", "answer": "code", "threshold": 1 - _TOLERANCE, "resources": {"cpu": 1}},
    }
    asked = by_code if answer == "code" else by_value
    suite = {"name": name, "targets": ["mock:echo"], **asked, "cases": cases}
    references = {one.id: one.reference for one in questions if one.reference and one.value() is not None}
    difference = (
        f"an answer is right within {_TOLERANCE:g} of the published value, relative to it; papers differ in this, and "
        "some round"
    )
    return Imported(suite, findings, [difference], references=references)


def _baseline(case: dict[str, Any]) -> dict[str, Any]:
    """Return a published value in the form of a baseline of which nothing else is known."""
    known: dict[str, Any] = dict.fromkeys(("x", "bound", "gap", "random_objective"))
    told = {"problem": case["id"], "status": "feasible", "objective": float(case["expected"]), "certified": False}
    return {**known, **told, "solver": "published", "version": "", "seconds": 0.0, "digest": ""}


def _cases(questions: Sequence[LabelledQuestion], findings: list[str]) -> Iterator[dict[str, Any]]:
    seen: set[str] = set()
    for question in questions:
        if question.id in seen:
            raise ValueError(f"two questions are called {question.id}")
        seen.add(question.id)
        value = question.value()
        if value is None:
            findings.append(f"question {question.id}: its answer {str(question.label)[:60]!r} is not a number")
            continue
        case: dict[str, Any] = {"id": question.id, "input": escape(question.text), "expected": f"{value:.12g}"}
        level = question.kind.lower()
        if level in _DIFFICULTIES:
            case["difficulty"] = level
        elif question.kind:
            case["category"] = question.kind
        yield {**case, "tags": ["not-certified"]}
