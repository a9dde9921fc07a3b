"""What every step of a conversion has at hand: the folder, the code next to the suite, and the notes for the user."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from fairtrial.tracks.interchange.importers._promptfoo.code import CodeFile
from fairtrial.tracks.interchange.importers._promptfoo.files import Folder, MissingFileError

NODE = "code in JavaScript is run with `node`, TypeScript with `npx tsx`: install Node.js"
OWN_SESSION = (
    "{}: each trial is a session of its own, so that none depends on another; write tests that go on "
    "from each other as one case with `turns`"
)
_MAX_PLACES = 6


def dict_of(value: Any) -> dict[str, Any]:
    """Return a mapping as it is, and anything else as an empty one."""
    return value if isinstance(value, dict) else {}


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

    def lost_keys(self, given: Iterable[Any], known: Collection[Any], what: str, advice: str, where: str = "") -> None:
        """Note the keys that are not known; `what` has `{}` where their name belongs."""
        for key in sorted(set(given).difference(known), key=str):
            self.lost(what.replace("{}", str(key), 1), advice, where)

    @contextmanager
    def missing(self, what: str, where: str = "", *, advice: str = "add the file and import again") -> Iterator[None]:
        """Note what is lost if a file cannot be read, and go on after the block."""
        try:
            yield
        except MissingFileError as error:
            self.lost(what, f"{error}; {advice}" if advice else str(error), where)

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


class Conversion(NamedTuple):
    """The conversion of one configuration."""

    folder: Folder
    notes: Notes
    code: CodeFile
    environment: dict[str, Any] = {}  # what the configuration itself sets
    run_code: bool = False  # whether programs of the user's may be run
