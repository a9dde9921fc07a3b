"""`vertex_api`: Gemini and Claude on Google's Vertex AI."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import quote, urlsplit, urlunsplit

import msgspec

from fairtrial.core.answer import Request
from fairtrial.core.errors import NotInstalledError, TargetUnusableError
from fairtrial.core.experiment import TargetSpec
from fairtrial.providers.batch import BatchApi
from fairtrial.providers.conversation import Conversation
from fairtrial.providers.params import Api
from fairtrial.providers.streamed import Streamed
from fairtrial.targets.anthropic_api import AnthropicApi, AnthropicConversation, AnthropicStreamed
from fairtrial.targets.google_api import GoogleApi, method, sse

if TYPE_CHECKING:
    from yarl import URL

_HOST = "aiplatform.googleapis.com"
_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_CLAUDE_VERSION = "vertex-2023-10-16"
_NO_PROJECT = "/projects//"  # in an address: no variable names one


class VertexClaudeConversation(AnthropicConversation):
    """A conversation with Claude on Vertex, which has the model in the address and the version in the body."""

    def body(self) -> dict[str, Any]:
        body = super().body()
        del body["model"]
        return {"anthropic_version": _CLAUDE_VERSION, **body}


def _is_claude(spec: TargetSpec) -> bool:
    return spec.model.startswith("claude")


class VertexApi(GoogleApi):
    """A model on Vertex AI; the key is an access token, an API key, or found by Google's own library."""

    embeds: ClassVar[bool] = False
    batch_api: ClassVar[type[BatchApi] | None] = None

    def __init__(self, spec: TargetSpec, options: Any, folder: Path) -> None:
        super().__init__(spec, options, folder)
        self._credentials: Any = None
        self._refreshing = asyncio.Lock()
        if _is_claude(spec):
            self.conversation: type[Conversation] = VertexClaudeConversation  # type: ignore[misc]
            self.streamed: type[Streamed] = AnthropicStreamed  # type: ignore[misc]

    @classmethod
    def accepts(cls, spec: TargetSpec) -> Api:
        return AnthropicApi.api if _is_claude(spec) else cls.api

    @classmethod
    def check(cls, spec: TargetSpec, options: Any, folder: Path) -> Iterable[str]:
        express = spec.api_key and not spec.api_key.startswith("Bearer ")
        if _NO_PROJECT not in spec.base_url or (express and not _is_claude(spec)):
            return
        if spec.api_key or not _names_a_project(os.environ.get("GOOGLE_APPLICATION_CREDENTIALS", "")):
            yield f"{spec.id} needs GOOGLE_CLOUD_PROJECT: set it in the environment or in a .env file"

    @staticmethod
    def headers(spec: TargetSpec) -> dict[str, str]:
        if not spec.api_key:
            return {}
        bearer = spec.api_key.startswith("Bearer ")
        return {"Authorization" if bearer else "x-goog-api-key": spec.api_key}

    async def open(self, concurrency: int) -> None:
        if not self.spec.api_key:
            self._credentials, project = await asyncio.to_thread(_default_credentials, self.spec.id)
            if project:  # of the credentials, where none is set
                address = self.spec.base_url.replace(_NO_PROJECT, f"/projects/{quote(project, safe='')}/")
                self.spec = msgspec.structs.replace(self.spec, base_url=address)
        await super().open(concurrency)

    async def signed(self, url: str | URL, body: bytes) -> dict[str, str] | None:
        if self._credentials is None:
            return None
        async with self._refreshing:  # a token is good for an hour
            if not self._credentials.valid:
                await asyncio.to_thread(_refresh, self._credentials)
        return {"Authorization": f"Bearer {self._credentials.token}"}

    def origin(self) -> str:
        return self.url()

    def url(self, *, stream: bool = False) -> str:
        base = urlsplit(self.spec.base_url)
        path, location = base.path.rstrip("/"), base.path.rstrip("/").rpartition("/locations/")[2]
        regional = base.netloc == _HOST and location not in ("", "global") and "/locations/" in path
        host = f"{location}-{_HOST}" if regional else base.netloc
        if _NO_PROJECT in path:  # an API key has its project
            path, host = path.partition("/projects/")[0], base.netloc
        model = quote(self.spec.model, safe="@")
        if _is_claude(self.spec):
            call = ":streamRawPredict" if stream else ":rawPredict"
            path = path.replace("/v1beta1/", "/v1/")
            return urlunsplit(base._replace(netloc=host, path=f"{path}/publishers/anthropic/models/{model}{call}"))
        path = f"{path}/publishers/google/models/{model}{method(stream)}"
        return urlunsplit(base._replace(netloc=host, path=path, query=sse(stream)))

    def body(self, request: Request) -> dict[str, Any]:
        body = super().body(request)
        return {**body, "stream": True} if request.stream and _is_claude(self.spec) else body


def _names_a_project(file: str) -> bool:
    """Return whether a file of credentials belongs to a project, as those of service accounts do."""
    try:
        found = msgspec.json.decode(Path(file).read_bytes()) if file else None
    except (OSError, msgspec.DecodeError):
        return False  # signing in says what is wrong with it
    return isinstance(found, dict) and bool(found.get("project_id"))


def _default_credentials(name: str) -> tuple[Any, str | None]:
    """Find credentials as Google's tools do (from a login with gcloud, a service account, or the machine), and their
    project."""
    try:
        import google.auth
        import google.auth.exceptions
    except ImportError:
        raise NotInstalledError("signing in to Vertex AI", "vertex") from None
    try:
        credentials, project = google.auth.default(scopes=[_SCOPE])
        _refresh(credentials)
    except google.auth.exceptions.GoogleAuthError as error:
        advice = "run `gcloud auth application-default login`, or set VERTEX_ACCESS_TOKEN"
        raise TargetUnusableError(f"{name}: no sign-in to Google Cloud ({error}); {advice}") from None
    return credentials, project


def _refresh(credentials: Any) -> None:
    from google.auth.transport.requests import Request as AuthRequest

    credentials.refresh(AuthRequest())
