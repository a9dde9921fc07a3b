"""SCIP through Pyomo, without holding the interpreter while it works, and with the points that it finds on the way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def scip(model: Any, found: Callable[[list[float]], None] | None) -> Any:
    """Return Pyomo's solver of that name for a model; `found` is called with each point that is better than the last.

    Pyomo reads what SCIP prints from a pipe, in a thread: if SCIP kept that thread from running, it would wait forever
    once it has printed enough to fill the pipe, whatever its time limit.
    """
    from pyomo.contrib.solver.solvers.scip.scip_direct import ScipDirect

    class Scip(ScipDirect):  # type: ignore[misc]
        def _create_solver_model(self, *arguments: Any) -> Any:
            made, *others = super()._create_solver_model(*arguments)
            if found is not None:
                variables = self._pyomo_var_to_solver_var_map
                _listen(made, [variables.get(variable) for variable in model.x.values()], found)
            return (_Released(made), *others)

    return Scip()


class _Released:
    """A model of SCIP that is solved while other threads run."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def optimize(self) -> None:
        self._model.optimizeNogil()


def _listen(model: Any, variables: list[Any], found: Callable[[list[float]], None]) -> None:
    from pyscipopt import Eventhdlr
    from pyscipopt.scip import PY_SCIP_EVENTTYPE

    class Best(Eventhdlr):
        def eventinit(self) -> None:
            self.model.catchEvent(PY_SCIP_EVENTTYPE.BESTSOLFOUND, self)

        def eventexit(self) -> None:
            self.model.dropEvent(PY_SCIP_EVENTTYPE.BESTSOLFOUND, self)

        def eventexec(self, _: Any) -> None:
            best = self.model.getBestSol()
            found([0.0 if one is None else self.model.getSolVal(best, one) for one in variables])

    model.includeEventhdlr(Best(), "best", "tells the best point so far")
