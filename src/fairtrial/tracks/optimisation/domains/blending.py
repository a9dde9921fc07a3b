"""`blending`: mix ingredients so that the mix has enough of everything, at the least cost."""

from fairtrial.tracks.optimisation.domains.model import Model, Numbers, Things, Variable
from fairtrial.tracks.optimisation.draws import Draws

_CONTENTS = 3
_BATCH = 100  # kg


def draw(n: int, draws: Draws) -> Model:
    """Return an instance that all ingredients together, in proportion to their stock, can fulfil."""
    content = [draws.wholes(_CONTENTS, 10, 300) for _ in range(n)]  # grams per kg
    stock = [draws.whole(_BATCH * 2 // n, _BATCH * 4 // n) for _ in range(n)]
    whole = [sum(row[k] * own for row, own in zip(content, stock, strict=True)) for k in range(_CONTENTS)]
    need = [grams // sum(stock) for grams in whole]
    cost = [draws.decimal(0.4, 3, 2) for _ in range(n)]
    return Model(
        things={"ingredients": Things(n), "contents": Things(_CONTENTS)},
        data={
            "cost": Numbers(cost, ("ingredients",)),
            "content": Numbers(content, ("ingredients", "contents")),
            "need": Numbers([_BATCH * one for one in need], ("contents",)),
            "stock": Numbers(stock, ("ingredients",)),
            "batch": Numbers(_BATCH),
        },
        variables={"use": Variable(of=("ingredients",))},
        objective="cost @ use",
        constraints=["sum(use) == batch", "content.T @ use >= need", "use <= stock"],
    )
