"""Which model answered: providers serve some names by another model, and only the reply says so."""

from __future__ import annotations

import re
from collections.abc import Iterable

from fairtrial.core.experiment import TargetSpec
from fairtrial.core.providers import api_kinds
from fairtrial.providers.sheet import maker_of, plain_model

# A snapshot's day, in the forms that vendors write: 2025-08-07, 20250929, 0613, 2603, 001; and names that move.
_DAY = re.compile(r"(?<![\d.])(?:\d{4}-\d\d-\d\d|\d{8}|\d{3,4})(?!\d)")
_MOVES = "latest"
_DEPLOYED = ("azure",)  # names of deployments, which their owners choose


def unlike_asked(spec: TargetSpec, answered: Iterable[str | None]) -> list[str]:
    """Return the models that answered in the place of a target's model; snapshots of it are that model.

    Names that are never those of models are left out: servers of one's own reply with anything.
    """
    unnamed = spec.provider in _DEPLOYED and spec.model_behind == spec.model
    if unnamed or not spec.model or (spec.api or spec.kind) not in api_kinds():
        return []
    return [name for name in dict.fromkeys(answered) if name and maker_of(name) and not _same(spec.model_behind, name)]


def _same(asked: str, answered: str) -> bool:
    words, day = _parts(asked)
    other_words, other_day = _parts(answered)
    return words == other_words and (not day or not other_day or day == other_day)


def _parts(name: str) -> tuple[list[str], str]:
    """Return the words of a model's name in any order, for routers write them in another, and its snapshot's day."""
    plain = plain_model(name).partition(":")[0]
    days = _DAY.findall(plain)
    words = re.split(r"[-._@\s]+", _DAY.sub("", plain))
    return sorted(word for word in words if word and word != _MOVES), "".join(days).replace("-", "")
