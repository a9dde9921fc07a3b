"""Where runs live: SQLite through SQLAlchemy Core. Everything needed to understand a run later is in it."""

from fairtrial.store.saver import Saver
from fairtrial.store.store import Store

__all__ = ["Saver", "Store"]
