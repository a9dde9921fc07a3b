"""`scheduling`: distribute jobs among machines so that the last one is done as early as possible."""

from fairtrial.tracks.optimisation.domains.model import Model, Numbers, Things, Variable
from fairtrial.tracks.optimisation.draws import Draws

_MANY = 6  # jobs that are worth a third machine


def draw(n: int, draws: Draws) -> Model:
    """Return an instance in which every job takes its own time on each machine, and the shift is long enough."""
    machines = 2 if n < _MANY else 3
    base = draws.wholes(n, 10, 60)
    minutes = [[max(5, own * draws.whole(70, 150) // 100) for _ in range(machines)] for own in base]
    shift = _simple(minutes) * 3 // 2
    return Model(
        things={"jobs": Things(n), "machines": Things(machines)},
        data={"minutes": Numbers(minutes, ("jobs", "machines"))},
        variables={
            "run": Variable(of=("jobs", "machines"), upper=1, integer=True),
            "finish": Variable(upper=shift),
        },
        objective="finish",
        constraints=[
            f"sum(run[i]) == 1 for i in range({n})",
            f"sum(minutes[i, m]*run[i, m] for i in range({n})) <= finish for m in range({machines})",
        ],
        shown={"shift": shift},
    )


def _simple(minutes: list[list[int]]) -> int:
    """Return when the last job ends if each goes to the machine on which it would end first."""
    busy = [0] * len(minutes[0])
    for row in minutes:
        best = min(range(len(row)), key=lambda machine: busy[machine] + row[machine])
        busy[best] += row[best]
    return max(busy)
