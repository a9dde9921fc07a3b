"""`transport`: ship from warehouses to customers at the least cost."""

from fairtrial.tracks.optimisation.domains.model import Model, Numbers, Things, Variable
from fairtrial.tracks.optimisation.draws import Draws


def draw(n: int, draws: Draws) -> Model:
    """Return an instance with about a fifth more in stock than is ordered."""
    warehouses = max(2, n // 2)
    orders = [10 * draws.whole(2, 12) for _ in range(n)]
    parts = draws.wholes(warehouses, 4, 9)
    stock = [10 * -(-sum(orders) * 12 * part // (100 * sum(parts))) for part in parts]
    cost = [[draws.whole(2, 25) for _ in range(n)] for _ in range(warehouses)]
    return Model(
        things={"warehouses": Things(warehouses), "customers": Things(n)},
        data={
            "cost": Numbers(cost, ("warehouses", "customers")),
            "stock": Numbers(stock, ("warehouses",)),
            "orders": Numbers(orders, ("customers",)),
        },
        variables={"ship": Variable(of=("warehouses", "customers"))},
        objective=f"sum(cost[w, c]*ship[w, c] for w in range({warehouses}) for c in range({n}))",
        constraints=[
            f"sum(ship[w]) <= stock[w] for w in range({warehouses})",
            f"sum(ship[w, c] for w in range({warehouses})) == orders[c] for c in range({n})",
        ],
    )
