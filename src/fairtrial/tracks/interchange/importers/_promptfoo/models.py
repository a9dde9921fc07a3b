"""Models behind APIs: by the same name here, through a server that the suite describes, LiteLLM or code."""

from __future__ import annotations

import re
from typing import Any

from fairtrial.core.providers import known_providers
from fairtrial.tracks.interchange.importers._promptfoo import settings
from fairtrial.tracks.interchange.importers._promptfoo.conversion import Conversion
from fairtrial.tracks.interchange.importers._promptfoo.nunjucks import converted, variable, variables_in
from fairtrial.tracks.interchange.importers._promptfoo.settings import CALLBACKS
from fairtrial.tracks.interchange.importers._promptfoo.vendors import (
    NOT_CHAT,
    Server,
    compatible,
    is_kind,
    litellm_name,
    our_name,
    server_of,
    through_litellm,
    vertex,
    with_variables,
)

_OPENCLAW = {
    "backend_model": "x-openclaw-model", "model_override": "x-openclaw-model", "session_key": "x-openclaw-session-key",
    "message_channel": "x-openclaw-message-channel", "account_id": "x-openclaw-account-id",
}  # fmt: skip
_AWS = {"region": "aws_region_name", "profile": "aws_profile_name"}

# Providers of promptfoo become ours by name. Where a configuration says more about one than its model and the usual
# parameters (addresses, keys, settings in a vendor's own words), that stays in `providers:` or in code.
_OF_THEIR_OWN = ("google", "vertex", "bedrock", "azure")  # their settings have other names than OpenAI's
_AS_OPENAI = ("openai", "anthropic", "openrouter", "ollama")  # whose settings are sent under the names that they have
_PLACES = ("apiKeyEnvar", "apiBaseUrl", "apiHost", "headers", "organization", "projectId", "profile", "apiVersion")
_RESPONSES = "openai_responses_api"


class Models:
    """Makes targets of models; `servers` has those that must be described in the suite."""

    def __init__(self, at: Conversion) -> None:
        self._at, self._notes = at, at.notes
        self.servers: dict[str, dict[str, Any]] = {}

    def target(self, name: str, config: dict[str, Any]) -> dict[str, Any] | None:
        """Return the target of a model behind an API; None if there is none here."""
        if name == "echo":
            return {"target": "mock:echo"}
        first, _, rest = name.partition(":")
        provider = our_name(first)
        if provider == "openclaw":
            return self._openclaw(rest, config)
        kind, colon, model = rest.partition(":")
        if kind in NOT_CHAT or (not rest and not config.get("model")):
            return None
        if kind in ("responses", "responses-ws"):
            return self._responses(provider, name, model, config)
        if is_kind(provider, kind):
            rest = model or str(config.get("model") or config.get("endpoint") or "")
        elif provider in ("openai", "anthropic") and colon and kind != "ft":
            rest = ""
        if not rest or rest in ("chat", "messages", "completion"):
            return None
        return _same_name(provider, rest, config) or self._named(provider, rest, name, config)

    def _openclaw(self, rest: str, config: dict[str, Any]) -> dict[str, Any]:
        """Return an agent of an OpenClaw gateway, which is a model of its chat API."""
        kind, _, agent = rest.partition(":")
        if kind not in ("agent", "responses"):
            kind, agent = "", rest
        if config.get("thinking_level"):
            self._notes.differs("OpenClaw: `thinking_level` is set at the gateway, as its chat API does not take it")
        if kind:
            self._notes.differs("agents of OpenClaw are asked through the chat API of its gateway: switch it on there")
        if config.get("session_key"):
            self._notes.differs(
                "OpenClaw: with a `session_key`, trials share a session and depend on each other: better to write "
                "tests that go on from each other as one case with `turns`"
            )
        headers = {header: str(config[key]) for key, header in _OPENCLAW.items() if config.get(key)}
        config = {**config, "headers": {**headers, **(config.get("headers") or {})}}
        address = f"{str(config['gateway_url']).rstrip('/')}/v1" if config.get("gateway_url") else ""
        return {"target": f"{self._server('openclaw', address, config)}:openclaw/{agent or 'main'}"}

    def _responses(self, provider: str, name: str, model: str, config: dict[str, Any]) -> dict[str, Any] | None:
        server = server_of(provider)
        if not model or server is None:
            return self._named(provider, model, name, config) if model else None
        address = str(config.get("apiBaseUrl") or "")
        if any(config.get(key) for key in CALLBACKS):  # ours calls the tools of MCP servers, and no functions
            own = {} if provider == "openai" else server._asdict()
            own |= {"base_url": address} if address else {}
            given = _plain(settings.params(self._at, name, config))
            made = self._at.code.call("call_responses", model, given, **own, **self._called(name, config))
            self._notes.differs(f"the responses API is called by a function in {self._at.code.name}, without retries")
            return {"target": f"python:{made}", "id": name}
        if provider == "openai" and not address and not _says_more(config, {server.key}):
            return {"target": f"openai-responses:{model}"}
        at = Server(address or server.base_url, server.key)
        return {"target": f"{self._add(f'{provider}-responses', at, config, {'kind': _RESPONSES})}:{model}"}

    def _named(self, provider: str, model: str, name: str, config: dict[str, Any]) -> dict[str, Any] | None:
        if any(config.get(key) for key in CALLBACKS):
            return self._with_functions(provider, model, name, config)
        if provider == "azure":
            model = str(config.get("deploymentName") or model)
        address = str(config.get("apiBaseUrl") or config.get("apiHost") or "")
        if compatible(provider) or provider == "anthropic" or (address and provider != "vertex"):
            return {"target": f"{self._server(provider, address, config)}:{model}"}
        if provider == "bedrock" and model.startswith(("openai.", "mantle:")):
            region = config.get("region") or variable("AWS_REGION", "us-east-1")
            mantle = model.startswith("mantle:")
            host = f"bedrock-mantle.{region}.api.aws" if mantle else f"bedrock-runtime.{region}.amazonaws.com/openai"
            own = "bedrock-mantle" if mantle else "bedrock-openai"
            own = self._add(own, Server(f"https://{host}/v1", "AWS_BEARER_TOKEN_BEDROCK"), config)
            return {"target": f"{own}:{model.removeprefix('mantle:')}"}
        if provider == "vertex" and "llama" in model and "/" not in model:
            model = f"meta/{model}"  # who makes it is part of the name, unless that is Google
        claude = provider == "vertex" and "claude" in model
        special = claude or (provider in ("google", "vertex") and not settings.is_plain(config))
        server = vertex(config) if provider == "vertex" else server_of(provider)
        if server and not special:
            if provider == "vertex" and "/" not in model:
                model = f"google/{model}"
            return {"target": f"{self._add(f'{provider}-proxy', server, config)}:{model}"}
        return self._litellm(provider, model, name, config) if through_litellm(provider) else None

    def _litellm(self, provider: str, model: str, name: str, config: dict[str, Any]) -> dict[str, Any]:
        """Return a target for a model that only its vendor's own API serves."""
        full = f"{litellm_name(provider)}{model}"
        params = settings.params(self._at, name, config, native=True)
        if provider in ("bedrock", "sagemaker"):
            aws = {ours: config[key] for key, ours in _AWS.items() if config.get(key)}
            params |= {"extra": {**params.get("extra", {}), **aws}} if aws else {}
        self._notes.differs(f"models of {provider} are called through LiteLLM: `pip install 'fairtrial[litellm]'`")
        return {"target": f"litellm:{full}", "id": name, **({"params": params} if params else {})}

    def _with_functions(self, provider: str, model: str, name: str, config: dict[str, Any]) -> dict[str, Any]:
        """Return a target for a model whose tools are functions of the user's, which promptfoo calls."""
        address = str(config.get("apiBaseUrl") or config.get("apiHost") or "")
        where = {"base_url": address if "://" in address or not address else f"https://{address}"}
        server = server_of(provider) if compatible(provider) else None
        if server is None:  # LiteLLM knows what its API is
            where = {"key": ""}
            model = f"{litellm_name(provider)}{model}"
        elif provider != "openai":
            where = {"base_url": where["base_url"] or server.base_url, "key": server.key}
        native = provider not in _AS_OPENAI
        given = _plain(settings.params(self._at, name, config, native=native))
        given = {key: value for key, value in given.items() if key not in ("toolConfig", *CALLBACKS)}
        made = self._at.code.call("call_chat", model, given, **where, **self._called(name, config))
        self._notes.differs("functions behind tools are called in a file next to the suite: JavaScript with `node`")
        if not where.get("key", "x"):
            self._notes.differs(f"models of {provider} are called through LiteLLM: `pip install litellm`")
        return {"target": f"python:{made}", "id": name}

    def _called(self, name: str, config: dict[str, Any]) -> dict[str, Any]:
        """Return the functions behind a model's tools, and how often it gets what they returned."""
        callbacks = settings.callbacks(self._at, name, config)
        if not callbacks:
            return {}
        return {"callbacks": callbacks, "rounds": int(config.get("maxToolCallRounds") or 0)}

    def _server(self, provider: str, address: str, config: dict[str, Any]) -> str:
        """Return our name of a provider, or that of a server in the suite where the configuration says more."""
        known, server = known_providers().get(provider), server_of(provider)
        key = server.key if server else known.variable if known else ""
        if known is None:
            return self._add(provider, Server(_completed(provider, address, config), key), config)
        if not address and not _says_more(config, {key, known.variable}):
            return provider
        url = _completed(provider, address, config) if address else with_variables(known.base_url)
        kind = {"kind": known.kind} if known.kind in ("anthropic_api", "mistral_api") else {}
        return self._add(f"{provider}-server", Server(url, key), config, kind)

    def _add(self, name: str, server: Server, config: dict[str, Any], more: dict[str, Any] | None = None) -> str:
        """Add a server, and return its name: another one where there is a different server of that name."""
        key = self._key(config, server.key)
        headers = {str(k): converted(str(v), self._at.environment) for k, v in (config.get("headers") or {}).items()}
        if config.get("organization"):
            headers["OpenAI-Organization"] = str(config["organization"])
        entry = {
            "base_url": server.base_url,
            **({"api_key": key} if key else {}),
            **({"headers": headers} if headers else {}),
            **(more or {}),
        }
        number, base = 2, name
        while self.servers.get(name, entry) != entry:
            name, number = f"{base}-{number}", number + 1
        self.servers[name] = entry
        return name

    def _key(self, config: dict[str, Any], default: str) -> str:
        """Return a reference to the variable that has the key; a key itself is never copied."""
        if config.get("apiKeyEnvar"):
            return variable(str(config["apiKeyEnvar"]))
        key = config.get("apiKey")
        if isinstance(key, str) and "\ue000" in key:
            return key
        return variable(default) if default else ""


def _says_more(config: dict[str, Any], keys: set[str]) -> bool:
    """Return whether a configuration asks for more than a provider's name says: headers, or another key than usual."""
    named = config.get("apiKeyEnvar") or next(iter(variables_in(str(config.get("apiKey") or ""))), "")
    return bool(config.get("headers") or config.get("organization") or (named and named not in keys))


def _completed(provider: str, address: str, config: dict[str, Any]) -> str:
    """Return an address with what promptfoo adds to it."""
    url = address if "://" in address or "\ue000" in address else f"https://{address}"
    if provider == "azure" and "/openai" not in url:
        return f"{url.rstrip('/')}/openai/v1"
    if "apiHost" in config and not config.get("apiBaseUrl") and not re.search(r"/v\d", url):
        return f"{url.rstrip('/')}/v1"
    return url


def _same_name(provider: str, model: str, config: dict[str, Any]) -> dict[str, Any] | None:
    """Return a target of a provider with an API of its own; None if it needs more than its name."""
    if (
        provider not in _OF_THEIR_OWN
        or any(config.get(key) for key in (*CALLBACKS, *_PLACES))
        or settings.has_extra(config)
    ):
        return None
    if provider == "vertex" and "llama" in model:
        return None
    region = config.get("region")
    if provider == "azure":
        model = str(config.get("deploymentName") or model)
    if provider == "bedrock" and not model.startswith(("openai.", "mantle:")):
        return {"target": f"bedrock:{model}", **({"options": {"region": region}} if region else {})}
    return None if provider == "bedrock" or region else {"target": f"{provider}:{model}"}


def _plain(params: dict[str, Any]) -> dict[str, Any]:
    return {**{key: value for key, value in params.items() if key != "extra"}, **params.get("extra", {})}
