"""`bin_packing`: pack everything into boxes that are hired, as cheaply as possible."""

from fairtrial.tracks.optimisation.domains.model import Model, Numbers, Things, Variable
from fairtrial.tracks.optimisation.draws import Draws

_FULL = 100  # what a box holds


def draw(n: int, draws: Draws) -> Model:
    """Return an instance with one box more than a simple way of packing needs; boxes differ in their price."""
    size = draws.wholes(n, 20, 65)
    boxes = _needed(size) + 1
    return Model(
        things={"items": Things(n), "boxes": Things(boxes)},
        data={
            "size": Numbers(size, ("items",)),
            "price": Numbers(draws.wholes(boxes, 30, 80), ("boxes",)),
            "room": Numbers(_FULL),
        },
        variables={
            "hire": Variable(of=("boxes",), upper=1, integer=True),
            "put": Variable(of=("items", "boxes"), upper=1, integer=True),
        },
        objective="price @ hire",
        constraints=[
            f"sum(put[i]) == 1 for i in range({n})",
            f"sum(size[i]*put[i, b] for i in range({n})) <= room*hire[b] for b in range({boxes})",
        ],
    )


def _needed(size: list[int]) -> int:
    """Return how many boxes are needed if the largest things are packed first, each into the first box it fits in."""
    boxes: list[int] = []
    for one in sorted(size, reverse=True):
        place = next((number for number, used in enumerate(boxes) if used + one <= _FULL), None)
        if place is None:
            boxes.append(one)
        else:
            boxes[place] += one
    return len(boxes)
