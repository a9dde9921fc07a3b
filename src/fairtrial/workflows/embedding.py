"""Embeddings for scorers outside a run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from fairtrial.config import embedders_named, variables_of
from fairtrial.core.answer import Failure
from fairtrial.core.settings import Settings
from fairtrial.engine.bench import Bench
from fairtrial.engine.targets import open_targets

Embed = Callable[[str, str], Awaitable[Sequence[float] | Failure]]
_NO_SUITE = "name: score\ntargets: []\n"


@asynccontextmanager
async def embedding(names: Collection[str]) -> AsyncIterator[Embed | None]:
    """Yield a function that returns the embedding of a text by one of these models; None if there are none."""
    if not names:
        yield None
        return
    folder, variables = Path(), variables_of()
    settings = Settings(embedders=embedders_named(sorted(names), variables, folder, _NO_SUITE))
    specs = list(settings.embedders.values())
    async with open_targets(specs, folder, variables, concurrency=settings.concurrency) as targets:
        yield Bench([], targets, settings).embed
