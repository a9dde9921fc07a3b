"""The store of runs: SQLite through SQLAlchemy Core. It holds everything needed to understand a run later."""

from fairtrial.store.saver import Saver
from fairtrial.store.store import Store

__all__ = ["Saver", "Store"]
