"""What opencode keeps about the sessions of its subagents; it prints only their result."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

_PLACE = ".local/share/opencode/opencode.db"
_PARTS = """
    select part.data from part join message on message.id = part.message_id
    where part.session_id = ? and json_extract(message.data, '$.role') = 'assistant' order by part.id
"""


def parts_of_session(home: Path, session: str) -> list[dict[str, Any]] | None:
    """Return what an agent said and did in a session, in its order; None if that cannot be read."""
    try:
        with closing(sqlite3.connect(f"{(home / _PLACE).as_uri()}?mode=ro", uri=True)) as connection:
            rows = connection.execute(_PARTS, (session,)).fetchall()
        parts = [msgspec.json.decode(data) for (data,) in rows]
    except (sqlite3.Error, msgspec.DecodeError):  # another version may keep them elsewhere
        return None
    return [part for part in parts if isinstance(part, dict)] or None
