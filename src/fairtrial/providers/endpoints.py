"""Which of OpenAI's two APIs a model is asked through: chat completions, or Responses where chat does not have it."""

from __future__ import annotations

from fairtrial.providers.sheet import sheet_of

_RESPONSES = {"openai_api": "openai_responses_api", "azure_api": "azure_responses_api"}
_HAVE_BOTH = ("openai", "azure")  # at any address; of other servers with OpenAI's models nobody knows


def api_for(kind: str, provider: str, model: str, *, tools: bool = False) -> str:
    """Return the kind of target for a model, with tools or without; a router speaks for the models it leads to."""
    if kind not in _RESPONSES or "/" in model:
        return kind
    sheet = sheet_of(provider, model)
    elsewhere = bool(sheet.endpoints) and "chat" not in sheet.endpoints
    # Chat accepts tools of some models only while they do not reason: a reasoning model would be tried without it.
    without_tools = sheet.tools == "refused" or (sheet.tools == "at_rest" and provider in _HAVE_BOTH)
    return _RESPONSES[kind] if elsewhere or (tools and without_tools) else kind
