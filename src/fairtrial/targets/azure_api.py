"""`azure_api`: OpenAI's models on Azure, by the name of their deployment."""

from __future__ import annotations

from typing import ClassVar
from urllib.parse import parse_qs, quote, urlsplit, urlunsplit

from fairtrial.core.experiment import TargetSpec
from fairtrial.core.target import Options
from fairtrial.providers.batch import BatchApi
from fairtrial.providers.embeddings import PATH as EMBEDDINGS
from fairtrial.providers.embeddings import EmbeddingCall, openai_vector
from fairtrial.targets.openai_api import OpenaiApi


class AzureOptions(Options, frozen=True, kw_only=True):
    """`model` is the model behind a deployment with another name: it decides which parameters are sent."""

    model: str | None = None


class AzureApi(OpenaiApi):
    """A deployment on Azure: through the v1 API, or another one if an API version is set."""

    options_type: ClassVar[type[Options]] = AzureOptions
    batch_api: ClassVar[type[BatchApi] | None] = None

    @staticmethod
    def headers(spec: TargetSpec) -> dict[str, str]:
        bearer = spec.api_key.startswith("Bearer ")
        return {"Authorization" if bearer else "api-key": spec.api_key}

    def url(self, *, stream: bool = False) -> str:
        return azure_url(self.spec, self.conversation.path)

    def embedding(self, text: str) -> EmbeddingCall:
        return EmbeddingCall(azure_url(self.spec, EMBEDDINGS), {"model": self.spec.model, "input": text}, openai_vector)


def azure_url(spec: TargetSpec, call: str) -> str:
    """Return the address of a call: with an API version, a deployment is part of it, but not in Responses."""
    base = urlsplit(spec.base_url)
    version = parse_qs(base.query).get("api-version")
    path = base.path.rstrip("/")
    if "/openai/" not in f"{path}/":
        deployment = "" if call == "/responses" else f"/deployments/{quote(spec.model, safe='')}"
        path += f"/openai{deployment}" if version else "/openai/v1"
    query = base.query if version else ""
    return urlunsplit(base._replace(path=f"{path}{call}", query=query))
