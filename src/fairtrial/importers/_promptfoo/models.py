"""Models behind APIs: by the same name here, through a server that the suite describes, LiteLLM or code."""

from __future__ import annotations

import re
from typing import Any

from fairtrial.core.providers import Provider, known_providers
from fairtrial.importers._promptfoo.code import CodeFile
from fairtrial.importers._promptfoo.notes import Notes
from fairtrial.importers._promptfoo.nunjucks import converted, variable
from fairtrial.importers._promptfoo.settings import CALLBACKS, Settings, chat_takes, has_extra, is_plain
from fairtrial.importers._promptfoo.vendors import LITELLM, NAMES, NOT_CHAT, SERVERS, Server, is_kind, vertex

_DEFAULT_URL = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")
_OPENCLAW = {
    "backend_model": "x-openclaw-model", "model_override": "x-openclaw-model", "session_key": "x-openclaw-session-key",
    "message_channel": "x-openclaw-message-channel", "account_id": "x-openclaw-account-id",
}  # fmt: skip
_AWS = {"region": "aws_region_name", "profile": "aws_profile_name"}

# Providers of promptfoo that become ours by name. Where a configuration says more about one than its model and the
# usual parameters (addresses, keys, settings in a vendor's own words), that stays in `providers:` or in code.
_SAME = ("openai", "anthropic", "openrouter", "ollama")
_COMPATIBLE = (
    "groq", "xai", "deepseek", "together", "fireworks", "cerebras", "perplexity", "huggingface", "mistral",
)  # fmt: skip
_OF_THEIR_OWN = ("google", "vertex", "bedrock", "azure")  # their settings have other names than OpenAI's
_PLACES = ("apiKeyEnvar", "apiBaseUrl", "apiHost", "headers", "organization", "projectId", "profile", "apiVersion")


class Models:
    """Makes targets of models; `servers` has those that must be described in the suite."""

    def __init__(self, notes: Notes, environment: dict[str, Any], code: CodeFile, settings: Settings) -> None:
        self._notes, self._environment, self._code, self._settings = notes, environment, code, settings
        self.servers: dict[str, dict[str, Any]] = {}

    def target(self, name: str, config: dict[str, Any]) -> dict[str, Any] | None:
        """Return the target of a model behind an API; None if there is none here."""
        if name == "echo":
            return {"target": "mock:echo"}
        first, _, rest = name.partition(":")
        provider = NAMES.get(first, first)
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
        server = SERVERS["openclaw"]
        if config.get("gateway_url"):
            server = server._replace(base_url=f"{str(config['gateway_url']).rstrip('/')}/v1")
        own = self._add("openclaw", server, {**config, "headers": {**headers, **(config.get("headers") or {})}})
        return {"target": f"{own}:openclaw/{agent or 'main'}"}

    def _responses(self, provider: str, name: str, model: str, config: dict[str, Any]) -> dict[str, Any] | None:
        plain = not has_extra(config) and not any(config.get(key) for key in (*CALLBACKS, *_PLACES))
        if provider == "openai" and plain:
            return {"target": f"openai-responses:{model}"} if model else None
        if model and (provider == "openai" or provider in SERVERS) and not chat_takes(config):
            given = _plain(self._settings.params(name, config))
            own = {} if provider == "openai" else {"base_url": SERVERS[provider].base_url, "key": SERVERS[provider].key}
            if address := config.get("apiBaseUrl"):
                own["base_url"] = str(address)
            made = self._code.call("call_responses", model, given, **own, **self._called(name, config))
            self._notes.differs(f"the responses API is called by a function in {self._code.name}, without retries")
            return {"target": f"python:{made}", "id": name}
        self._notes.differs("OpenAI's responses API: models are called through the chat API")
        return self._named(provider, model, name, config) if model else None

    def _named(self, provider: str, model: str, name: str, config: dict[str, Any]) -> dict[str, Any] | None:
        if any(config.get(key) for key in CALLBACKS):
            return self._with_functions(provider, model, name, config)
        if provider == "azure":
            model = str(config.get("deploymentName") or model)
        address = config.get("apiBaseUrl") or config.get("apiHost")
        known = provider in _by_name() and provider != "litellm"
        if known and not address and (config.get("headers") or config.get("organization")):
            address = _DEFAULT_URL.sub(lambda m: variable(m[1], m[2]), _by_name()[provider].base_url)
        if address and provider != "vertex":  # whose address follows from the region and the project
            return {"target": f"{self._server(provider, str(address), config)}:{model}"}
        if known:
            return {"target": f"{provider}:{model}"}
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
        special = claude or (provider in ("google", "vertex") and not is_plain(config))
        if provider in SERVERS and not special:
            server = SERVERS[provider] if provider != "vertex" else vertex(config)
            if provider == "vertex" and "/" not in model:
                model = f"google/{model}"
            own = f"{provider}-proxy" if provider in known_providers() else provider
            return {"target": f"{self._add(own, server, config)}:{model}"}
        return self._litellm(provider, model, name, config) if provider in LITELLM else None

    def _litellm(self, provider: str, model: str, name: str, config: dict[str, Any]) -> dict[str, Any]:
        """Return a target for a model that only its vendor's own API serves."""
        full = f"{LITELLM[provider]}{model}"
        params = self._settings.params(name, config, native=True)
        if provider in ("bedrock", "sagemaker"):
            aws = {ours: config[key] for key, ours in _AWS.items() if config.get(key)}
            params |= {"extra": {**params.get("extra", {}), **aws}} if aws else {}
        self._notes.differs(f"models of {provider} are called through LiteLLM: `pip install 'fairtrial[litellm]'`")
        return {"target": f"litellm:{full}", "id": name, **({"params": params} if params else {})}

    def _with_functions(self, provider: str, model: str, name: str, config: dict[str, Any]) -> dict[str, Any]:
        """Return a target for a model whose tools are functions of the user's, which promptfoo calls."""
        known = _by_name().get(provider)
        address = str(config.get("apiBaseUrl") or config.get("apiHost") or "")
        where = {"base_url": address if "://" in address or not address else f"https://{address}"}
        if provider in SERVERS and provider not in LITELLM:
            where = {"base_url": where["base_url"] or SERVERS[provider].base_url, "key": SERVERS[provider].key}
        elif provider != "openai":  # LiteLLM knows what its API is
            where = {"key": ""}
            model = f"{LITELLM.get(provider, f'{provider}/')}{model}"
        native = provider != "openai" and known is None
        given = _plain(self._settings.params(name, config, native=native))
        given = {key: value for key, value in given.items() if key not in ("toolConfig", *CALLBACKS)}
        made = self._code.call("call_chat", model, given, **where, **self._called(name, config))
        self._notes.differs("functions behind tools are called beside the suite: JavaScript with `node`")
        if not where.get("key", "x"):
            self._notes.differs(f"models of {provider} are called through LiteLLM: `pip install litellm`")
        return {"target": f"python:{made}", "id": name}

    def _called(self, name: str, config: dict[str, Any]) -> dict[str, Any]:
        """Return the functions behind a model's tools, and how often it is told what they returned."""
        callbacks = self._settings.callbacks(name, config)
        if not callbacks:
            return {}
        return {"callbacks": callbacks, "rounds": int(config.get("maxToolCallRounds") or 0)}

    def _server(self, provider: str, address: str, config: dict[str, Any]) -> str:
        """Add a server with an address of its own, and return its name."""
        url = address if "://" in address or "\ue000" in address else f"https://{address}"
        if provider == "azure" and "/openai" not in url:
            url = f"{url.rstrip('/')}/openai/v1"
        elif "apiHost" in config and not config.get("apiBaseUrl") and not re.search(r"/v\d", url):
            url = f"{url.rstrip('/')}/v1"
        key = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY", "openrouter": "OPENROUTER_API_KEY"}.get(
            provider, SERVERS[provider].key if provider in SERVERS else ""
        )
        name = provider if provider not in known_providers() else f"{provider}-server"
        return self._add(name, Server(url, key), config, {"kind": "anthropic_api"} if provider == "anthropic" else {})

    def _add(self, name: str, server: Server, config: dict[str, Any], more: dict[str, Any] | None = None) -> str:
        """Add a server, and return its name: another one where there is a different server of that name."""
        key = self._key(config, server.key)
        headers = {str(k): converted(str(v), self._environment) for k, v in (config.get("headers") or {}).items()}
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


def _same_name(provider: str, model: str, config: dict[str, Any]) -> dict[str, Any] | None:
    """Return a target of a provider that has the same name and variables here; None if it needs more than its name."""
    if any(config.get(key) for key in (*CALLBACKS, *_PLACES)):
        return None
    if provider in _COMPATIBLE:
        return {"target": f"{provider}:{model}"}
    if provider not in _OF_THEIR_OWN or has_extra(config) or (provider == "vertex" and "llama" in model):
        return None
    region = config.get("region")
    if provider == "azure":
        model = str(config.get("deploymentName") or model)
    if provider == "bedrock" and not model.startswith(("openai.", "mantle:")):
        return {"target": f"bedrock:{model}", **({"options": {"region": region}} if region else {})}
    return None if provider == "bedrock" or region else {"target": f"{provider}:{model}"}


def _plain(params: dict[str, Any]) -> dict[str, Any]:
    """Return `params` as one mapping, as an API takes them."""
    return {**{key: value for key, value in params.items() if key != "extra"}, **params.get("extra", {})}


def _by_name() -> dict[str, Provider]:
    return {name: provider for name, provider in known_providers().items() if name in _SAME}
