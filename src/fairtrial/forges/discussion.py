"""One comment per suite on a pull request: made once, updated in place, never doubled by two jobs."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, Protocol

from fairtrial.core.errors import FairtrialError

_PATIENCE = 60.0  # seconds
Posted = Literal["created", "updated", "left: a newer run has commented"]


class Comment(NamedTuple):
    """A comment of ours."""

    id: int
    body: str


class Discussion(Protocol):
    """The comments on one pull request."""

    def comments(self) -> list[Comment]:
        """Return the comments that this account wrote, the oldest first."""

    def create(self, body: str) -> Comment:
        """Add a comment."""

    def update(self, comment: int, body: str) -> None:
        """Change a comment."""

    def delete(self, comment: int) -> None:
        """Delete a comment; one that is gone already is not a problem."""


def post(where: Discussion, body: str, *, run_id: str, run_of: Callable[[str], str | None]) -> Posted:
    """Write the comment, or update it where it is.

    Two jobs that find none both create one; so each looks again and deletes all but the first. Ids of runs are sorted
    by time: what a newer run said is not overwritten by an older one.
    """
    own = _own(where, run_of)
    created: Posted = "updated"
    if not own:
        where.create(body)
        created = "created"
        own = _own(where, run_of)
    if not own:
        raise FairtrialError("the comment was written but cannot be found again: check the rights of the token")
    first, *later = own
    newest = max(own, key=lambda one: run_of(one.body) or "")
    for one in later:
        where.delete(one.id)
    if (run_of(newest.body) or "") > run_id:
        if newest.body != first.body:
            where.update(first.id, newest.body)
        return "left: a newer run has commented"
    if first.body != body:
        where.update(first.id, body)
    return created


def _own(where: Discussion, run_of: Callable[[str], str | None]) -> list[Comment]:
    return sorted(one for one in where.comments() if run_of(one.body) is not None)


class JsonApi:
    """A JSON API; errors are one sentence, without the token."""

    def __init__(self, base: str, headers: dict[str, str]) -> None:
        if not base.startswith(("https://", "http://")):
            raise FairtrialError(f"`{base}` is not the address of an API")
        self._base = base.rstrip("/")
        self._headers = {"Content-Type": "application/json", "User-Agent": "fairtrial", **headers}

    def call(self, method: str, path: str, body: Any = None, *, absent: bool = False) -> Any:
        """Return the decoded answer; None if there is nothing, also where something `absent` is not a problem."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self._base}{path}", data, self._headers, method=method)  # noqa: S310  # http(s)
        try:
            with urllib.request.urlopen(request, timeout=_PATIENCE) as reply:  # noqa: S310  # as above
                text = reply.read()
        except urllib.error.HTTPError as error:
            if error.code == 404 and absent:
                return None
            raise FairtrialError(f"{method} {self._base}{path} was refused: {error.code} {_reason(error)}") from None
        except (OSError, ValueError) as error:
            raise FairtrialError(f"{self._base} cannot be reached: {error}") from None
        return json.loads(text) if text else None

    def pages(self, path: str) -> list[Any]:
        """Return all items of a list, page by page."""
        items: list[Any] = []
        number = 1
        while page := self.call("GET", f"{path}{'&' if '?' in path else '?'}per_page=100&page={number}"):
            items += page
            if len(page) < 100:
                break
            number += 1
        return items


def _reason(error: urllib.error.HTTPError) -> str:
    hints = {401: "the token is not valid", 403: "the token may not write comments"}
    return hints.get(error.code, str(error.reason))
