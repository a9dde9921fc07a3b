"""Runs a reference program of a published benchmark up to the point where it would solve, and writes down its model.

A script that is started in a sandbox. In place of gurobipy, pyscipopt and PuLP, which need a licence or another solver,
it has modules that only record. What is recorded is the document of a problem file, whose expressions are texts that
are never executed.
"""

import json
import math
import resource
import sys
import types
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

_STAND_INS = {"gurobipy": "gurobi", "pyscipopt": "scip", "pulp": "pulp"}


def _limit(seconds: float, memory_mb: float) -> None:
    size = int(memory_mb * 2**20)
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(seconds), math.ceil(seconds) + 5))
    with suppress(ValueError, OSError):  # macOS has no limit of memory
        resource.setrlimit(resource.RLIMIT_AS, (size, size))


def _stand_in() -> Any:
    """Put the recording modules in the place of the real ones; return the module that has what is recorded."""
    folder = str(Path(__file__).parent.parent)
    sys.path.insert(0, folder)
    for name, own in _STAND_INS.items():
        module = types.ModuleType(name)
        module.__dict__.update(import_module(f"recording.{own}").NAMES)
        sys.modules[name] = module
    sys.path.remove(folder)
    return import_module("recording.terms")


def _document(book: Any) -> dict[str, Any]:
    try:
        return {"document": book.document()}
    except (TypeError, ValueError) as error:
        return _failure(error)


def _failure(error: BaseException) -> dict[str, Any]:
    return {"error": f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"}


def main() -> None:
    """Run `run.py TASK`: a JSON file with program, result, limits, and perhaps a function to call with arguments."""
    task = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    _limit(task["seconds"], task["memory_mb"])
    terms = _stand_in()
    try:
        space: dict[str, Any] = {"__name__": "__main__"}
        exec(compile(Path(task["program"]).read_text("utf-8"), "reference.py", "exec"), space)  # noqa: S102
        if task.get("call"):
            space[task["call"]](**task["arguments"])
        result: dict[str, Any] = {"error": "the program never solves a model"}
    except terms.Recorded:
        result = _document(terms.BOOK)
    except BaseException as error:  # a program may raise anything
        result = _failure(error)
    Path(task["result"]).write_text(json.dumps(result), "utf-8")


if __name__ == "__main__":
    main()
