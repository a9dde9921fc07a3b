"""Statements that are put into SQL once: every store has an engine of its own, which would do it anew."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import create_engine


def sharing_engines() -> Callable[..., Any]:
    """Return what opens engines that share their statements."""
    engines: list[Any] = []

    def open_engine(*args: Any, **options: Any) -> Any:
        engine = create_engine(*args, **options)
        if not engines:
            engines.append(engine)
        engine.dialect, engine._compiled_cache = engines[0].dialect, engines[0]._compiled_cache
        return engine

    return open_engine
