"""`python -m fairtrial.optim.mcp_server`: a solver as MCP tools, to measure what such a tool brings to an agent."""

from __future__ import annotations

from typing import Any


def evaluate(problem: str, x: list[float]) -> dict[str, Any]:
    """The objective at x, and by how much x misses each constraint, of a problem given by its id."""
    import numpy as np

    from fairtrial.optim.library import by_name

    chosen = by_name(problem)
    if len(x) != chosen.n:
        raise ValueError(f"{problem} has {chosen.n} variables, and x has {len(x)} numbers")
    point = np.asarray(x, dtype=np.float64)
    missed = chosen.violations(point)
    return {
        "objective_value": chosen.value(point),
        "feasible": missed.largest <= 1e-6,
        "violations": [{"constraint": i, "by": v} for i, v in enumerate(missed.constraints, 1) if v > 0],
        "bounds_violation": missed.bounds,
        "integrality_violation": missed.integrality,
    }


def solve(problem: str) -> dict[str, Any]:
    """The best known solution of a problem given by its id, with the status and how far it is certified."""
    from fairtrial.optim.library import baselines, by_name

    found = baselines([by_name(problem)])[0]
    status = "infeasible" if found.status == "infeasible" else "optimal" if found.certified else "timeout"
    return {"x": found.x, "objective_value": found.objective, "status": status, "gap": found.gap}


def describe(problem: str) -> str:
    """A problem in full, given by its id."""
    from fairtrial.optim.library import by_name
    from fairtrial.optim.text import statement

    return statement(by_name(problem))


def main() -> None:
    """Serve the tools on stdin and stdout."""
    from mcp.server.mcpserver import MCPServer

    server = MCPServer("fairtrial-optim")
    for tool in (evaluate, solve, describe):
        server.tool()(tool)
    server.run()


if __name__ == "__main__":
    main()
