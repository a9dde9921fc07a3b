"""Runs a model's program under limits and writes down what it returns. A script of its own, started in a sandbox.

It imports nothing of fairtrial: a checkout is not there in a sandbox, and its memory would count as the program's.
The program runs in a child process: whatever it does to itself, the parent is there to say how it ended.
"""

import json
import math
import os
import resource
import signal
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

_MAX_FILE = 50 * 2**20
_MAX_MESSAGE = 500


def main() -> None:
    """Run `program_runner.py TASK`: a JSON file with program, result, seconds, memory_mb and names."""
    task = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    child = os.fork()
    if child == 0:
        _child(task)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        kind = "out_of_time" if number == signal.SIGXCPU else "crashed"
        _write(task, {"error": kind, "message": f"ended by {signal.Signals(number).name}"})


def _child(task: dict[str, Any]) -> NoReturn:
    _limit(task)
    try:
        result = _result(task)
    except MemoryError:
        result = {"error": "out_of_memory", "message": f"needs more than {task['memory_mb']:g} MB"}
    except BaseException as error:  # a program may raise anything, also SystemExit
        result = {"error": "crashed", "message": _told(error)}
    _write(task, result)
    sys.stdout.flush()
    os._exit(0)


def _limit(task: dict[str, Any]) -> None:
    seconds, size = math.ceil(task["seconds"]), int(task["memory_mb"] * 2**20)
    limits = {
        resource.RLIMIT_CPU: (seconds, seconds + 5),
        resource.RLIMIT_AS: (size, size),
        resource.RLIMIT_FSIZE: (_MAX_FILE, _MAX_FILE),
        resource.RLIMIT_CORE: (0, 0),
    }
    for kind, limit in limits.items():
        with suppress(ValueError, OSError):  # macOS has no limit of memory
            resource.setrlimit(kind, limit)


def _result(task: dict[str, Any]) -> dict[str, Any]:
    code = compile(Path(task["program"]).read_text("utf-8"), "answer.py", "exec")
    space: dict[str, Any] = {"__name__": "answer"}
    exec(code, space)  # noqa: S102  # this is what the sandbox is for
    if callable(space.get("solve")):
        returned = space["solve"]()
    else:
        returned = space.get("model")
        if returned is None:
            return {"error": "no_result", "message": "it has neither a function `solve` nor a Pyomo model `model`"}
    if returned is None:
        return {"x": None, "status": "infeasible"}
    return _from_model(returned, task["names"]) if hasattr(returned, "component_data_objects") else _plain(returned)


def _plain(returned: Any) -> dict[str, Any]:
    """Return what a function returned: a point, an object with one, or the optimal value alone."""
    returned = _values(returned)
    if isinstance(returned, (int, float)) and not isinstance(returned, bool):
        return {"objective_value": returned}
    if isinstance(returned, dict):
        return {key: returned[key] for key in ("x", "objective_value", "status") if key in returned}
    return {"x": returned}


def _values(value: Any) -> Any:
    """Return numbers of NumPy, and what contains them, as Python's own."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): _values(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_values(item) for item in value]
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def _from_model(model: Any, names: list[str]) -> dict[str, Any]:
    """Return the values of a Pyomo model's variables, by name if the names are the problem's; solve it if needed."""
    import pyomo.environ as pe

    variables = list(model.component_data_objects(pe.Var, active=True))
    if any(variable.value is None for variable in variables):
        bodies = [*model.component_data_objects(pe.Constraint, active=True)]
        parts = [one.body for one in bodies] + [
            one.expr for one in model.component_data_objects(pe.Objective, active=True)
        ]
        linear = all(part.polynomial_degree() in (0, 1) for part in parts if hasattr(part, "polynomial_degree"))
        solver = pe.SolverFactory("highs" if linear else "scip_direct")
        done = solver.solve(model, load_solutions=False)
        ended = str(done.solver.termination_condition)
        if "infeasible" in ended.lower():
            return {"x": None, "status": "infeasible"}
        model.solutions.load_from(done)
    by_name = {variable.name.replace(" ", ""): variable for variable in variables}
    wanted = [name.replace(" ", "") for name in names]
    chosen = [by_name[name] for name in wanted] if all(name in by_name for name in wanted) else variables
    goal = next(iter(model.component_data_objects(pe.Objective, active=True)), None)
    return {"x": [variable.value for variable in chosen], "objective_value": None if goal is None else pe.value(goal)}


def _told(error: BaseException) -> str:
    """Return an error and the line of the program in which it happened, which a syntax error says itself."""
    lines = [entry.lineno for entry in traceback.extract_tb(error.__traceback__) if entry.filename == "answer.py"]
    where = f" (line {lines[-1]})" if lines else ""
    message = " ".join(str(error).split())[:_MAX_MESSAGE]
    return f"{type(error).__name__}: {message}{where}" if message else f"{type(error).__name__}{where}"


def _write(task: dict[str, Any], result: dict[str, Any]) -> None:
    partial = Path(f"{task['result']}.part")
    partial.write_text(json.dumps(result), "utf-8")
    partial.replace(task["result"])


if __name__ == "__main__":
    main()
