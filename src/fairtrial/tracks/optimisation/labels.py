"""Certifying the labels of imported benchmarks: their reference programs are models, which we solve ourselves."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from fairtrial.agents.workspace.program import Sandbox, missing_sandbox, run_program
from fairtrial.core.errors import FairtrialError, ProblemsError
from fairtrial.core.trust import may_run_code
from fairtrial.foreign.suites import Imported, Reference
from fairtrial.tracks.optimisation.cases import CACHE
from fairtrial.tracks.optimisation.catalogue import Watch, baselines
from fairtrial.tracks.optimisation.export import document_yaml
from fairtrial.tracks.optimisation.problem import Baseline, OptimisationProblem
from fairtrial.tracks.optimisation.problem_file import parse_problem
from fairtrial.tracks.optimisation.recording import FOLDER

_SECONDS, _MEMORY_MB = 20.0, 2048.0
_AT_ONCE = 2
_SLACK = 1e-4  # relative; published values are rounded


class Label(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a published value: certified by its own reference model, contradicted by it, or neither."""

    case: str
    kind: Literal["certified", "wrong", "not-certified"]
    published: str
    optimum: float | None = None
    reason: str = ""


def certify_labels(
    imported: Imported, *, sandbox: Sandbox = "bubblewrap", watch: Watch | None = None
) -> tuple[Imported, list[Label]]:
    """Return the suite with its labels marked; one that its own reference model contradicts counts for nothing."""
    cases = imported.suite["cases"]
    if imported.references and (reason := _not_run(sandbox)):
        models: dict[str, OptimisationProblem | str] = dict.fromkeys(imported.references, reason)
    else:
        models = asyncio.run(_record_all(imported.references, sandbox))
    solved = _solve({name: one for name, one in models.items() if isinstance(one, OptimisationProblem)}, watch)
    labels = [_label(case, models.get(case["id"]), solved.get(case["id"])) for case in cases]
    marked = [_marked(case, label) for case, label in zip(cases, labels, strict=True)]
    findings = [*imported.findings, *(_sentence(label) for label in labels if label.kind == "wrong")]
    return imported._replace(suite={**imported.suite, "cases": marked}, findings=findings), labels


def _not_run(sandbox: Sandbox) -> str:
    """Return why reference programs are not run; empty if they are."""
    if not may_run_code():
        return "its reference program was not run (--run-code runs it in a sandbox)"
    return missing_sandbox(sandbox)


async def _record_all(references: Mapping[str, Reference], sandbox: Sandbox) -> dict[str, OptimisationProblem | str]:
    places = asyncio.Semaphore(_AT_ONCE)

    async def one(name: str, reference: Reference) -> OptimisationProblem | str:
        async with places:
            return await _record(name, reference, sandbox)

    models = await asyncio.gather(*(one(*item) for item in references.items()))
    return dict(zip(references, models, strict=True))


async def _record(name: str, reference: Reference, sandbox: Sandbox) -> OptimisationProblem | str:
    """Return the model of a reference program, or why there is none."""
    task = {"call": reference.call, "arguments": reference.arguments}
    try:
        ran = await run_program(
            reference.program,
            FOLDER / "run.py",
            sandbox,
            read=(FOLDER,),
            seconds=_SECONDS,
            memory_mb=_MEMORY_MB,
            task=task,
            files=reference.files,
        )
    except TimeoutError:
        return "its reference program did not end"
    document = ran.result.get("document")
    if not isinstance(document, dict):
        return f"its reference program gives no model ({ran.result.get('error') or 'nothing was recorded'})"
    try:
        return parse_problem(document_yaml({"id": f"reference-{name}"[:60], **document}))
    except ProblemsError as error:
        return f"its reference model cannot be read ({error.problems[0].message})"
    except FairtrialError as error:
        return f"its reference model cannot be read ({error})"


def _solve(problems: dict[str, OptimisationProblem], watch: Watch | None) -> dict[str, Baseline | str]:
    """Return an optimum for each problem; a model without one stops no other."""
    try:
        found = baselines(list(problems.values()), CACHE, watch=watch)
        return dict(zip(problems, found, strict=True))
    except FairtrialError:
        pass
    solved: dict[str, Baseline | str] = {}
    for name, problem in problems.items():
        try:
            solved[name] = baselines([problem], CACHE)[0]
        except FairtrialError as error:
            solved[name] = str(error)
    return solved


def _label(case: dict[str, Any], model: OptimisationProblem | str | None, solved: Baseline | str | None) -> Label:
    published = case["expected"]
    common: dict[str, Any] = {"case": case["id"], "published": published}
    if model is None:
        return Label(kind="not-certified", reason="the data have no reference model", **common)
    if isinstance(model, str) or isinstance(solved, str):
        return Label(kind="not-certified", reason=str(model if isinstance(model, str) else solved), **common)
    assert solved is not None
    if solved.status == "infeasible":
        return Label(kind="wrong", reason="its reference model has no feasible point", **common)
    if not solved.certified or solved.objective is None:
        return Label(kind="not-certified", reason="its reference model was not solved in time", **common)
    agrees = abs(solved.objective - float(published)) <= _rounding(published, solved.objective)
    return Label(kind="certified" if agrees else "wrong", optimum=solved.objective, **common)


def _rounding(published: str, optimum: float) -> float:
    """Return by how much a published value may differ: half of its last digit, or a ten-thousandth."""
    digits = len(published.partition(".")[2]) if "e" not in published else 6
    return max(0.5 * 10.0**-digits if digits else 0.5 * (abs(optimum) >= 10), _SLACK * max(1.0, abs(optimum)))


def _marked(case: dict[str, Any], label: Label) -> dict[str, Any]:
    if label.kind == "wrong":
        return {**case, "tags": ["wrong-label"], "weight": 0}
    case = {**case, "tags": [label.kind]}
    if label.optimum is None:
        return case
    if baseline := (case.get("metadata") or {}).get("baseline"):
        known = {"objective": label.optimum, "status": "optimal", "certified": True, "solver": "reference model"}
        case["metadata"] = {**case["metadata"], "baseline": {**baseline, **known}}
    published = float(label.published)
    if abs(label.optimum - published) > _SLACK * (abs(published) or 1.0):  # rounded: the exact value is right as well
        case["expected"] = [label.published, f"{label.optimum:.12g}"]
    return case


def _sentence(label: Label) -> str:
    better = label.reason or f"its reference model has the optimum {label.optimum:.8g}"
    return f"the label of question {label.case}: {label.published} was published, and {better}; it counts for nothing"
