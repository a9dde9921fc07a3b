"""`azure_responses_api`: models on Azure that are only offered, or only take tools, through the Responses API."""

from __future__ import annotations

from typing import ClassVar

from fairtrial.core.experiment import TargetSpec
from fairtrial.core.target import Options
from fairtrial.providers.batch import BatchApi
from fairtrial.targets.azure_api import AzureApi, AzureOptions, azure_url
from fairtrial.targets.openai_responses_api import OpenaiResponsesApi


class AzureResponsesApi(OpenaiResponsesApi):
    """A deployment on Azure behind the Responses API; `azure:` targets are led here where they have to be."""

    options_type: ClassVar[type[Options]] = AzureOptions
    batch_api: ClassVar[type[BatchApi] | None] = None

    @staticmethod
    def headers(spec: TargetSpec) -> dict[str, str]:
        return AzureApi.headers(spec)

    def url(self, *, stream: bool = False) -> str:
        return azure_url(self.spec, self.conversation.path)
