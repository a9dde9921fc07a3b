"""`routing`: the shortest round trip through all places."""

from fairtrial.tracks.optimisation.domains.model import Model, Numbers, Things, Variable
from fairtrial.tracks.optimisation.draws import Draws


def draw(n: int, draws: Draws) -> Model:
    """Return an instance with places on a map; one-way streets make some ways longer than the way back.

    The position of every place on the trip keeps it in one piece (Miller, Tucker and Zemlin).
    """
    places = [(draws.whole(0, 60), draws.whole(0, 60)) for _ in range(n)]
    minutes = [
        [
            0 if i == j else 3 + round(((a - c) ** 2 + (b - d) ** 2) ** 0.5) + draws.whole(0, 4)
            for j, (c, d) in enumerate(places)
        ]
        for i, (a, b) in enumerate(places)
    ]
    return Model(
        things={"places": Things(n, "first stays")},
        data={"minutes": Numbers(minutes, ("places", "places"))},
        variables={
            "go": Variable(of=("places", "places"), upper=1, integer=True),
            "position": Variable(of=("places",), upper=n - 1, integer=True),
        },
        objective=f"sum(minutes[i, j]*go[i, j] for i in range({n}) for j in range({n}) if i != j)",
        constraints=[
            f"go[i, i] == 0 for i in range({n})",
            f"sum(go[i]) == 1 for i in range({n})",
            f"sum(go[i, j] for i in range({n})) == 1 for j in range({n})",
            "position[0] == 0",
            f"position[j] >= position[i] + 1 - {n}*(1 - go[i, j]) for i in range({n}) for j in range(1, {n}) if i != j",
        ],
        shown={"last": n - 1},
    )
