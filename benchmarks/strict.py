"""What the real APIs refuse, with their status, their codes and their words.

Written from what people report (`refusals.jsonl`) and providers document, not from fairtrial's own knowledge of models:
the one tests the other. `refusal` says what a provider would answer instead of asking the model; None means that the
call is fine.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import unquote

from benchmarks import strict_claude, strict_openai, strict_vendors
from benchmarks.refusals import CHAT, GENERATE, MESSAGES, RESPONSES, Call, Refusal

__all__ = ["Refusal", "refusal"]

# By the model, where the path says nothing; in a path: /xai/v1/chat/completions.
_PROVIDERS = (
    ("mistral", r"$^"),  # its models are served by many
    ("xai", r"grok-"),
    ("deepseek", r"deepseek-(v|chat|reasoner)"),
    ("groq", r"openai/gpt-oss|qwen-qwq|llama-3\.[13]-.*(instant|versat)"),
    ("openrouter", r"[\w.-]+/"),
)
_WITH_OPENAIS_FORMAT: dict[str, Callable[[Call], Refusal | None]] = {
    "mistral": strict_vendors.mistral,
    "xai": strict_vendors.grok,
    "deepseek": strict_vendors.deepseek,
    "groq": strict_vendors.groq,
    "openrouter": strict_vendors.openrouter,
}
_NO_DEPLOYMENT = {
    "code": "DeploymentNotFound",
    "message": "The API deployment for this resource does not exist. If you created the deployment within the last 5 "
    "minutes, please wait a moment and try again.",
}


def refusal(
    path: str, headers: Mapping[str, str], body: dict[str, Any], *, alike: Mapping[str, str] | None = None
) -> Refusal | None:
    """What the API at this path would say to such a request, if it refuses it; names of headers in lower case.

    `alike` has names of models that nobody knows yet, and of deployments: each is treated like the model it stands for.
    """
    plain = unquote(path.partition("?")[0])
    named = re.search(r"/models?/(?:.*/)?([^/]+?)(?::\w+|/(?:converse|converse-stream|invoke))$", plain)
    name = str(named[1] if named else body.get("model", ""))
    if "/deployments/" in plain:
        name = plain.partition("/deployments/")[2].partition("/")[0]
        if "api-version=" not in path:  # documented
            return Refusal(404, {"error": {"code": "404", "message": "Resource not found"}})
    model = (alike or {}).get(name, name)
    endpoint, check = _api(plain, model)
    provider = _provider(plain, endpoint, model)
    if provider == "azure":
        if name == "no-such-deployment":  # documented
            return Refusal(404, {"error": _NO_DEPLOYMENT})
        name = model
    if check is None:
        check = _WITH_OPENAIS_FORMAT.get(provider) or (
            strict_openai.responses if endpoint == RESPONSES else strict_openai.chat
        )
    key = next(
        (headers[one] for one in ("authorization", "x-api-key", "api-key", "x-goog-api-key") if one in headers), ""
    )
    return check(Call(provider, endpoint, name, body, model, key, path, headers))


def _api(path: str, model: str) -> tuple[str, Callable[[Call], Refusal | None] | None]:
    """An endpoint, named as in the reports, and who says what it refuses; None: the provider decides."""
    if path.endswith("/messages"):
        return ("/anthropic/v1/messages" if "/anthropic/" in path else MESSAGES), strict_claude.messages
    if path.endswith("awPredict"):
        return ":rawPredict", strict_claude.on_vertex
    if path.endswith("enerateContent"):
        return GENERATE, strict_vendors.gemini
    if found := re.search(r"/model/.+/(converse|converse-stream|invoke)$", path):
        return f"/model/ID/{found[1]}", strict_claude.on_bedrock
    return (RESPONSES if path.endswith("/responses") else CHAT), None


def _provider(path: str, endpoint: str, model: str) -> str:
    if endpoint.startswith("/model/"):
        return "bedrock"
    if "/publishers/" in path:
        return "vertex"
    if endpoint == GENERATE:
        return "google"
    for name, _ in _PROVIDERS:
        if f"/{name}/" in path:
            return name
    if endpoint.endswith("/messages"):
        return "deepseek" if "/anthropic/" in path and model.startswith("deepseek") else "anthropic"
    if path.startswith("/openai/"):  # a gateway has it further down, if at all
        return "azure"
    return next((name for name, pattern in _PROVIDERS if re.match(pattern, model)), "openai")
