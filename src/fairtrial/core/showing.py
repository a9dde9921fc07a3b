"""How results show themselves: as `present` draws and words them.

Results are data and do not know who shows them; so the modules that do are found by their names, when they are needed.
"""

from __future__ import annotations

from importlib import import_module
from typing import ClassVar

import msgspec

_PRESENT = "fairtrial.present"


class Brief:
    """A result that Python shows in a few words."""

    __slots__ = ()

    def __repr__(self) -> str:
        words: str = import_module(f"{_PRESENT}.words.results").in_brief(self)
        return f"<{words}>"


class Shown(Brief):
    """A result that notebooks show as HTML."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        shown: str = import_module(f"{_PRESENT}.notebook").as_html(self)
        return shown


class ResultFact(msgspec.Struct, frozen=True, tag=True):
    """Something to say about a result, as numbers and names: `str` is what users read.

    A field that holds facts has the name of its words in documents, and a property of that name returns them.
    """

    subject: ClassVar[str]  # the file in `present/words` that words it

    def __str__(self) -> str:
        words: str = import_module(f"{_PRESENT}.words.{self.subject}").in_words(self)
        return words
