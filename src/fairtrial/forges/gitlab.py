"""Comments on a merge request of GitLab, by its REST API."""

from __future__ import annotations

from collections.abc import Mapping

from fairtrial.core.errors import FairtrialError
from fairtrial.forges.discussion import Comment, JsonApi


class GitLab:
    """The comments (notes) on one merge request."""

    def __init__(self, api: JsonApi, project: str, number: str) -> None:
        self._api, self._notes = api, f"/projects/{project}/merge_requests/{number}/notes"
        self._account: int | None = None

    @classmethod
    def of_job(cls, environment: Mapping[str, str]) -> GitLab | None:
        """Return the merge request of a job of GitLab CI."""
        number = environment.get("CI_MERGE_REQUEST_IID")
        if not number:
            return None
        token = environment.get("FAIRTRIAL_GITLAB_TOKEN") or environment.get("GITLAB_TOKEN")
        if not token:
            raise FairtrialError("the comment needs a token: set GITLAB_TOKEN to a project access token with `api`")
        base = environment.get("CI_API_V4_URL") or "https://gitlab.com/api/v4"
        return cls(JsonApi(base, {"PRIVATE-TOKEN": token}), environment.get("CI_PROJECT_ID", ""), number)

    def comments(self) -> list[Comment]:
        """Return the comments that this account wrote: what others write is never taken for ours."""
        if self._account is None:
            self._account = int(self._api.call("GET", "/user")["id"])
        found = self._api.pages(f"{self._notes}?sort=asc")
        return [
            Comment(one["id"], one["body"]) for one in found if (one.get("author") or {}).get("id") == self._account
        ]

    def create(self, body: str) -> Comment:
        """Add a comment."""
        return Comment(self._api.call("POST", self._notes, {"body": body})["id"], body)

    def update(self, comment: int, body: str) -> None:
        """Change a comment."""
        self._api.call("PUT", f"{self._notes}/{comment}", {"body": body})

    def delete(self, comment: int) -> None:
        """Delete a comment."""
        self._api.call("DELETE", f"{self._notes}/{comment}", absent=True)
