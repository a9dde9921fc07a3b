"""A solver as MCP tools, to measure how much such a tool helps an agent.

`fairtrial optim mcp PROBLEMS…` serves your own problems in addition to the built-in ones, which
`python -m fairtrial.tracks.optimisation.mcp_server` serves alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np

from fairtrial.core.errors import FairtrialError
from fairtrial.text.printable import counted
from fairtrial.tracks.optimisation.cases import CACHE
from fairtrial.tracks.optimisation.catalogue import baselines, by_name
from fairtrial.tracks.optimisation.problem import OptimisationProblem
from fairtrial.tracks.optimisation.text import statement


class Tools:
    """The tools; problems are known by their ids, those of one's own before the built-in ones."""

    def __init__(self, own: Sequence[OptimisationProblem] = ()) -> None:
        self._own = {problem.id: problem for problem in own}

    def _problem(self, name: str) -> OptimisationProblem:
        return self._own.get(name) or by_name(name)

    def evaluate(self, problem: str, x: list[float]) -> dict[str, Any]:
        """The objective at x, and by how much x misses each constraint, of a problem given by its id."""
        chosen = self._problem(problem)
        if len(x) != chosen.n:
            raise FairtrialError(
                f"{problem} has {counted(chosen.n, 'variable')}, and x has {counted(len(x), 'number')}"
            )
        if not all(map(math.isfinite, x)):
            raise FairtrialError("x has numbers that are not finite")
        point = np.asarray(x, dtype=np.float64)
        objective, violations = chosen.value(point), chosen.violations(point)
        if not math.isfinite(objective) or not math.isfinite(violations.largest):
            raise FairtrialError("these numbers are too large to compute with, or the objective is not defined there")
        return {
            "objective_value": objective,
            "feasible": violations.largest <= chosen.tolerance,
            "violations": [{"constraint": i, "by": v} for i, v in enumerate(violations.constraints, 1) if v > 0],
            "bounds_violation": violations.bounds,
            "integrality_violation": violations.integrality,
        }

    def solve(self, problem: str) -> dict[str, Any]:
        """The best known solution of a problem given by its id, with the status and how far it is certified."""
        baseline = baselines([self._problem(problem)], CACHE)[0]
        return {**baseline.as_answer(), "gap": baseline.gap}

    def describe(self, problem: str) -> dict[str, Any]:
        """A problem in full, given by its id."""
        return {"statement": statement(self._problem(problem))}


def as_safe_tool(tool: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a tool so that errors are returned as a message for the agent."""

    @wraps(tool)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return tool(*args, **kwargs)
        except FairtrialError as error:
            return {"error": str(error)}
        except (OverflowError, ValueError):
            return {"error": "these numbers are too large to compute with"}

    return call


def serve(own: Sequence[OptimisationProblem] = ()) -> None:
    """Serve the tools on stdin and stdout."""
    from mcp.server.mcpserver import MCPServer

    server, tools = MCPServer("fairtrial-optim"), Tools(own)
    for tool in (tools.evaluate, tools.solve, tools.describe):
        server.tool()(as_safe_tool(tool))
    server.run()


if __name__ == "__main__":
    serve()
