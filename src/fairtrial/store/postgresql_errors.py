"""What went wrong in PostgreSQL, in words, and whether waiting helps."""

from __future__ import annotations

from sqlalchemy.engine import URL
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, InterfaceError, OperationalError, ProgrammingError

from fairtrial.core.errors import StoreError, StoreLockedError, StoreUnreachableError
from fairtrial.core.secrets import SHORTEST
from fairtrial.store.dialect import Dialect, bad_row

_LOCKED = ("55P03", "40P01", "40001")  # lock not available, deadlock, serialisation failure
_UNREACHABLE = ("08", "57P01", "57P02", "57P03", "53300")  # connection, shutdown, starting up, too many connections
_SAFE = "what was stored is safe (`fairtrial resume latest`)"
_BY_STATE = {
    "53100": "the disk of the database {place} is full: free some space; " + _SAFE,
    "42501": "the user of {place} may not do this ({reason}): grant it the right to create and write tables there",
    "25006": "the database {place} is read-only: give the address of the primary server",
    "42P01": "the tables of {place} are gone ({reason}): has the store been deleted?",
    "28": "{place} does not accept this user or password: check the address, PGPASSWORD or ~/.pgpass",
}
_BY_WORDS = {  # a connection that is refused has no code
    "password authentication failed": _BY_STATE["28"],
    "no password supplied": "{place} needs a password: give it in the address, in PGPASSWORD or in ~/.pgpass",
    'FATAL:  database "': "there is no database `{database}` at {place}: create it with `createdb {database}`",
    'FATAL:  role "': "there is no user `{user}` at {place}: create it with `createuser`, or check the address",
}


def explain(dialect: Dialect, error: DBAPIError, url: URL) -> StoreError:
    """Return the error for users; those that pass by themselves are `StoreBusyError`."""
    state = getattr(error.orig, "sqlstate", None) or ""
    words = str(error.orig)
    reason = _short(words, url)
    names = {"place": dialect.place, "reason": reason, "database": url.database, "user": url.username}
    for sign, message in (_BY_STATE if state else _BY_WORDS).items():
        if state.startswith(sign) if state else sign in words:
            return StoreError(message.format(**names))
    if state in _LOCKED:
        return StoreLockedError(f"the store {dialect.place} is locked by another program ({reason}): try again")
    if _is_unreachable(error, state):
        return StoreUnreachableError(
            f"the database {dialect.place} cannot be reached ({reason}): check that the server is running and accepts "
            "connections"
        )
    if isinstance(error, DataError | IntegrityError | ProgrammingError):
        return bad_row(dialect, error.orig or error)
    return StoreError(f"the store {dialect.place} cannot be used: {reason}")


def _is_unreachable(error: DBAPIError, state: str) -> bool:
    if error.connection_invalidated or state.startswith(_UNREACHABLE):
        return True
    words = str(error.orig)
    broken = isinstance(error, OperationalError | InterfaceError) and not state
    return broken and any(sign in words for sign in ("connect", "closed", "server", "timeout", "SSL"))


def _short(words: str, url: URL) -> str:
    """Return the reason on one line, without libpq's advice and without the password."""
    line = " ".join(words.split()).rpartition(" failed: ")[2].partition(" Is the server running")[0]
    password = str(url.password or "")
    return line.replace(password, "***") if len(password) >= SHORTEST else line
