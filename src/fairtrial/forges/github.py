"""Comments on a pull request of GitHub, by its REST API."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from fairtrial.core.errors import FairtrialError
from fairtrial.forges.discussion import Comment, JsonApi

_ACTIONS = "github-actions[bot]"  # who writes with the token of a job, which may not ask who it is


class GitHub:
    """The comments on one pull request."""

    def __init__(self, api: JsonApi, repository: str, number: int) -> None:
        self._api, self._issue, self._repository = api, f"/repos/{repository}/issues/{number}", repository
        self._login: str | None = None

    @classmethod
    def of_job(cls, environment: Mapping[str, str]) -> GitHub | None:
        """Return the pull request of a job of GitHub Actions."""
        number = _number(environment)
        if number is None:
            return None
        token = environment.get("GITHUB_TOKEN") or environment.get("GH_TOKEN")
        if not token:
            raise FairtrialError("the comment needs a token: set GITHUB_TOKEN, with `pull-requests: write`")
        base = environment.get("GITHUB_API_URL") or "https://api.github.com"
        api = JsonApi(base, {"Authorization": f"Bearer {token}", "Accept": "application/vnd.github+json"})
        return cls(api, environment.get("GITHUB_REPOSITORY", ""), number)

    def comments(self) -> list[Comment]:
        """Return the comments that this account wrote: what others write is never taken for ours."""
        found = self._api.pages(f"{self._issue}/comments")
        return [
            Comment(one["id"], one["body"] or "")
            for one in found
            if (one.get("user") or {}).get("login") == self._author
        ]

    @property
    def _author(self) -> str:
        if self._login is None:
            try:
                self._login = str(self._api.call("GET", "/user")["login"])
            except FairtrialError:
                self._login = _ACTIONS
        return self._login

    def create(self, body: str) -> Comment:
        """Add a comment."""
        made = self._api.call("POST", f"{self._issue}/comments", {"body": body})
        self._login = str((made.get("user") or {}).get("login") or self._author)
        return Comment(made["id"], body)

    def update(self, comment: int, body: str) -> None:
        """Change a comment."""
        self._api.call("PATCH", f"/repos/{self._repository}/issues/comments/{comment}", {"body": body})

    def delete(self, comment: int) -> None:
        """Delete a comment."""
        self._api.call("DELETE", f"/repos/{self._repository}/issues/comments/{comment}", absent=True)


def _number(environment: Mapping[str, str]) -> int | None:
    path = environment.get("GITHUB_EVENT_PATH")
    if not path or not Path(path).is_file():
        return None
    event = json.loads(Path(path).read_text("utf-8"))
    number = (event.get("pull_request") or {}).get("number")
    return int(number) if number else None
