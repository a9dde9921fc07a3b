"""What an import must say: what could not be carried over, grouped by what to do about it."""

from __future__ import annotations

_MAX_PLACES = 6


class Notes:
    """Collects what is lost and what works differently; each is reported once."""

    def __init__(self) -> None:
        self._lost: dict[str, dict[str, list[str]]] = {}
        self._differences: dict[str, None] = {}

    def lost(self, what: str, advice: str, where: str = "") -> None:
        """Note something that is not carried over, its place, and what to do about it."""
        places = self._lost.setdefault(advice, {}).setdefault(what, [])
        if where and where not in places:
            places.append(where)

    def differs(self, text: str) -> None:
        """Note something that is carried over, but works differently."""
        self._differences[text] = None

    @property
    def count(self) -> int:
        """How much was noted as lost so far."""
        return sum(len(places) + 1 for items in self._lost.values() for places in items.values())

    def findings(self) -> list[str]:
        """Return one sentence for each piece of advice, with everything that it is about."""
        return [
            f"{'; '.join(_placed(what, places) for what, places in items.items())}: {advice}"
            for advice, items in self._lost.items()
        ]

    def differences(self) -> list[str]:
        """Return the differences."""
        return list(self._differences)


def _placed(what: str, places: list[str]) -> str:
    if not places:
        return what
    more = f" and {len(places) - _MAX_PLACES} more" if len(places) > _MAX_PLACES else ""
    return f"{what} ({', '.join(places[:_MAX_PLACES])}{more})"
