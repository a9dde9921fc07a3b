"""`knapsack`: choose things whose total weight and volume are limited."""

from fairtrial.tracks.optimisation.domains.model import Model, Numbers, Things, Variable
from fairtrial.tracks.optimisation.draws import Draws


def draw(n: int, draws: Draws) -> Model:
    """Return an instance whose limits are about half of what all things need; worth goes with size, but loosely."""
    weight, volume = draws.wholes(n, 5, 60), draws.wholes(n, 5, 60)
    worth = [draws.whole(5, 40) + (w + v) // 3 for w, v in zip(weight, volume, strict=True)]
    return Model(
        sense="max",
        things={"items": Things(n)},
        data={
            "worth": Numbers(worth, ("items",)),
            "weight": Numbers(weight, ("items",)),
            "volume": Numbers(volume, ("items",)),
            "max_weight": Numbers(max(*weight, sum(weight) * draws.whole(40, 60) // 100)),
            "max_volume": Numbers(max(*volume, sum(volume) * draws.whole(40, 60) // 100)),
        },
        variables={"take": Variable(of=("items",), upper=1, integer=True)},
        objective="worth @ take",
        constraints=["weight @ take <= max_weight", "volume @ take <= max_volume"],
    )
