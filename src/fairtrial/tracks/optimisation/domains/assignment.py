"""`assignment`: one task for everyone, in the least time altogether."""

from fairtrial.tracks.optimisation.domains.model import Model, Numbers, Things, Variable
from fairtrial.tracks.optimisation.draws import Draws


def draw(n: int, draws: Draws) -> Model:
    """Return an instance in which some people are quicker, and some tasks longer, than others."""
    pace, length = draws.wholes(n, 80, 125), draws.wholes(n, 15, 60)
    minutes = [[max(5, own * task // 100 + draws.whole(-8, 8)) for task in length] for own in pace]
    return Model(
        things={"people": Things(n), "tasks": Things(n)},
        data={"minutes": Numbers(minutes, ("people", "tasks"))},
        variables={"give": Variable(of=("people", "tasks"), upper=1, integer=True)},
        objective=f"sum(minutes[i, j]*give[i, j] for i in range({n}) for j in range({n}))",
        constraints=[
            f"sum(give[i]) == 1 for i in range({n})",
            f"sum(give[i, j] for i in range({n})) == 1 for j in range({n})",
        ],
    )
