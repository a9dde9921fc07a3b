"""`portfolio`: the least risk for a demanded return, from assets that move with the market and on their own."""

from fairtrial.tracks.optimisation.domains.model import Model, Numbers, Things, Variable
from fairtrial.tracks.optimisation.draws import Draws

_CAP = 0.4  # the largest share of one asset


def draw(n: int, draws: Draws) -> Model:
    """Return an instance whose demanded return lies between that of equal shares and the largest possible one."""
    gain = [draws.decimal(2, 12, 1) for _ in range(n)]
    best = sorted(gain, reverse=True)
    largest = _CAP * (best[0] + best[1]) + (1 - 2 * _CAP) * best[2]
    goal = sum(gain) / n + draws.decimal(0.2, 0.7, 2) * (largest - sum(gain) / n)
    return Model(
        things={"assets": Things(n)},
        data={
            "gain": Numbers(gain, ("assets",)),
            "beta": Numbers([draws.decimal(0.2, 1.8, 2) for _ in range(n)], ("assets",)),
            "own": Numbers([draws.decimal(0.1, 2.5, 2) for _ in range(n)], ("assets",)),
            "goal": Numbers(int(10 * goal) / 10),
        },
        variables={"share": Variable(of=("assets",), upper=_CAP)},
        objective=f"sum(own[i]*share[i]**2 for i in range({n})) + (beta @ share)**2",
        constraints=["sum(share) == 1", "gain @ share >= goal"],
        shown={"cap": _CAP},
    )
