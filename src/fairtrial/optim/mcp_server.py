"""`python -m fairtrial.optim.mcp_server`: a solver as MCP tools, to measure how much such a tool helps an agent."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from threading import Lock
from typing import Any

from fairtrial.core.errors import FairtrialError


def evaluate(problem: str, x: list[float]) -> dict[str, Any]:
    """The objective at x, and by how much x misses each constraint, of a problem given by its id."""
    import numpy as np

    from fairtrial.optim.catalogue import by_name

    chosen = by_name(problem)
    if len(x) != chosen.n:
        raise FairtrialError(f"{problem} has {chosen.n} variables, and x has {len(x)} numbers")
    if not all(map(math.isfinite, x)):
        raise FairtrialError("x has numbers that are not finite")
    point = np.asarray(x, dtype=np.float64)
    violations = chosen.violations(point)
    return {
        "objective_value": chosen.value(point),
        "feasible": violations.largest <= 1e-6,
        "violations": [{"constraint": i, "by": v} for i, v in enumerate(violations.constraints, 1) if v > 0],
        "bounds_violation": violations.bounds,
        "integrality_violation": violations.integrality,
    }


def solve(problem: str) -> dict[str, Any]:
    """The best known solution of a problem given by its id, with the status and how far it is certified."""
    from fairtrial.optim.catalogue import baselines, by_name

    baseline = baselines([by_name(problem)], Path(".fairtrial/baselines"))[0]
    return {**baseline.as_answer(), "gap": baseline.gap}


def describe(problem: str) -> dict[str, Any]:
    """A problem in full, given by its id."""
    from fairtrial.optim.catalogue import by_name
    from fairtrial.optim.text import statement

    return {"statement": statement(by_name(problem))}


# Solvers capture the output of the whole process: calls at the same time would deadlock.
_SOLVER_LOCK = Lock()


def as_safe_tool(tool: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a tool so that calls run one at a time and errors are returned as a message for the agent."""

    @wraps(tool)
    def call(*args: Any, **kwargs: Any) -> Any:
        with _SOLVER_LOCK:
            try:
                return tool(*args, **kwargs)
            except FairtrialError as error:
                return {"error": str(error)}
            except (OverflowError, ValueError):
                return {"error": "these numbers are too large to compute with"}

    return call


def main() -> None:
    """Serve the tools on stdin and stdout."""
    from mcp.server.mcpserver import MCPServer

    server = MCPServer("fairtrial-optim")
    for tool in (evaluate, solve, describe):
        server.tool()(as_safe_tool(tool))
    server.run()


if __name__ == "__main__":
    main()
