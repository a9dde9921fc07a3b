"""How results show themselves in notebooks: as `present` draws and words them.

Results are data and do not know who shows them; so the one module that does is found by its name, when it is needed.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_PRESENTER = "fairtrial.present.notebook"


class Shown:
    """A result that notebooks show as HTML."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        shown: str = import_module(_PRESENTER).as_html(self)
        return shown


def sentence_of(result: Any) -> str:
    """Return a result in one sentence."""
    said: str = import_module(_PRESENTER).as_sentence(result)
    return said
