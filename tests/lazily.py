"""Libraries that few tests need: a worker that runs none of those does not import them."""

from importlib import import_module
from typing import Any


class Library:
    """Stands for a module, and imports it when something of it is used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "pytestmark":  # pytest looks whether it is a test
            raise AttributeError(name)
        return getattr(import_module(self._name), name)
