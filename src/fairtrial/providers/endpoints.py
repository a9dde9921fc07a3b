"""Which of OpenAI's two APIs a model is asked through: chat completions, or Responses where chat does not have it."""

from __future__ import annotations

from fairtrial.core.experiment import TargetSpec
from fairtrial.core.providers import provider_at
from fairtrial.providers.sheet import sheet_of

_RESPONSES = {"openai_api": "openai_responses_api", "azure_api": "azure_responses_api"}
_HAVE_BOTH = ("openai", "azure")  # at any address; of other servers with OpenAI's models nobody knows


def api_for(spec: TargetSpec, *, tools: bool = False) -> str:
    """Return the kind of target for a model, with tools or without; a router speaks for the models it leads to."""
    model = spec.model_behind
    if spec.kind not in _RESPONSES or "/" in model:
        return spec.kind
    sheet = sheet_of(spec.provider, model)
    elsewhere = bool(sheet.endpoints) and "chat" not in sheet.endpoints
    has_both = spec.provider in _HAVE_BOTH or provider_at(spec.base_url) in _HAVE_BOTH
    # Chat accepts tools of some models only while they do not reason: a reasoning model would be tried without it.
    without_tools = sheet.tools == "refused" or (sheet.tools == "at_rest" and has_both)
    return _RESPONSES[spec.kind] if elsewhere or (tools and without_tools) else spec.kind
