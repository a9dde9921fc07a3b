"""`staffing`: hire for shifts of several days in a row, so that enough people are there on every day."""

from fairtrial.tracks.optimisation.domains.model import Model, Numbers, Things, Variable
from fairtrial.tracks.optimisation.draws import Draws

_MOST = 20  # people who can begin on one day


def draw(n: int, draws: Draws) -> Model:
    """Return an instance on a circle of days; a shift lasts five days of seven, or as large a part of n."""
    length = max(2, 5 * n // 7)
    works = [[int((day - start) % n < length) for start in range(n)] for day in range(n)]
    return Model(
        things={"days": Things(n, "circle")},
        data={
            "wage": Numbers([10 * draws.whole(35, 60) for _ in range(n)], ("days",)),
            "need": Numbers(draws.wholes(n, 4, 19), ("days",)),
            "works": Numbers(works, ("days", "days")),
        },
        variables={"begin": Variable(of=("days",), upper=_MOST, integer=True)},
        objective="wage @ begin",
        constraints=["works @ begin >= need"],
        shown={"length": length, "most": _MOST},
    )
