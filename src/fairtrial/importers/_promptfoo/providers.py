"""The providers of a configuration as targets, with servers of their own where fairtrial does not know one by name."""

from __future__ import annotations

import json
import re
import shlex
from typing import Any

from fairtrial.core.providers import Provider, known_providers
from fairtrial.importers import FileRef
from fairtrial.importers._promptfoo.addresses import Addresses
from fairtrial.importers._promptfoo.agents import CODEX, Agents, mcp_servers
from fairtrial.importers._promptfoo.code import CodeFile
from fairtrial.importers._promptfoo.files import PREFIX, Folder, MissingFileError
from fairtrial.importers._promptfoo.notes import Notes
from fairtrial.importers._promptfoo.nunjucks import converted, variable
from fairtrial.importers._promptfoo.prompts import JAVASCRIPT
from fairtrial.importers._promptfoo.services import Services
from fairtrial.importers._promptfoo.settings import CALLBACKS, Settings, chat_takes, has_extra, is_plain
from fairtrial.importers._promptfoo.vendors import LITELLM, NAMES, NOT_CHAT, SERVERS, Server, is_kind, vertex

_UNKNOWN = (
    "no such target here; use the same model through a provider that fairtrial knows (docs/targets.md), "
    "or call it from a `python:` target"
)
_AGENT = "an agent: use `claude-code`, `tool-agent` or a `command` target, with its settings in `options`"
_PROGRAM = re.compile(r"\.(?:py|[mc]?[jt]s)(?=$|:[\w.]+$)")
_IS_ADDRESS = re.compile(r"(?:https?|wss?|websocket)\b|webhook:|a2a:")
_DEFAULT_URL = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")
_KEYS = {"id", "config", "label", "transform", "delay", "prompts", "env", "inputs"}
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


def _by_name() -> dict[str, Provider]:
    return {name: provider for name, provider in known_providers().items() if name in _SAME}


class Providers:
    """Reads providers; `servers` has those that must be described in the suite, `tools` their MCP servers."""

    def __init__(self, folder: Folder, notes: Notes, environment: dict[str, Any], code: CodeFile) -> None:
        self._folder, self._notes, self._environment, self._code = folder, notes, environment, code
        self._addresses = Addresses(folder, notes, code)
        self._agents = Agents(folder, notes, code)
        self._settings = Settings(folder, notes)
        self._services = Services(folder, notes, code, self._settings)
        self.servers: dict[str, dict[str, Any]] = {}
        self.transforms: dict[str, Any] = {}  # by target
        self.prompts: dict[str, list[str]] = {}  # by target, if it does not get all
        self.tools: dict[str, dict[str, Any]] = {}  # MCP servers, by target
        self.offered: list[Any] = []  # tools that models may call
        self.only: dict[str, list[str]] = {}  # the tools of an MCP server that models may call, if not all
        self.called: dict[str, tuple[str, ...]] = {}  # how the configuration calls them, by target

    def targets(self, entries: Any) -> list[Any]:
        """Return the targets, each with its own id."""
        targets: list[Any] = []
        for entry in self._entries(entries):
            target = self.target(entry)
            if target is None:
                continue
            self.add(target, entry, targets)
        return targets

    def add(self, target: Any, entry: Any, targets: list[Any]) -> Any:
        """Add the target of a provider to others, with an id of its own, and return it."""
        name = target_id(target)
        if name in map(target_id, targets):
            details = target if isinstance(target, dict) else {"target": target}
            target = {**details, "id": f"{name}-{len(targets) + 1}"}
        targets.append(target)
        self._keep(target_id(target), entry, target)
        return target

    def _keep(self, name: str, entry: Any, target: Any) -> None:
        """Keep what a provider says about more than its model."""
        given = _details(entry)
        self.called[name] = tuple(str(given[key]) for key in ("id", "label") if given.get(key))
        if given.get("transform"):
            self.transforms[name] = given["transform"]
        if isinstance(given.get("prompts"), list):
            self.prompts[name] = [str(prompt) for prompt in given["prompts"]]
        config = given.get("config")
        agent = isinstance(target, dict) and str(target["target"]).startswith("tool-agent:")
        if isinstance(config, dict):
            self.offered += self._settings.tools(config)
        if isinstance(config, dict) and agent:
            self.tools[name] = mcp_servers(config)
            only = config["mcp"].get("tools")
            self.only |= {server: list(map(str, only)) for server in self.tools[name]} if only else {}

    def embedder(self, entry: Any) -> str | None:
        """Return the name of a model that makes embeddings; None if it cannot be carried over, which is noted."""
        details = _details(entry)
        target = self.target({**details, "id": re.sub(r":embeddings?:|:feature-extraction:", ":", str(details["id"]))})
        return None if target is None else str(target if isinstance(target, str) else target["target"])

    def settings(self, config: Any) -> dict[str, Any]:
        """Return settings that do not come with a provider as `params`."""
        return self._settings.params("a prompt", config if isinstance(config, dict) else {})

    def _entries(self, entries: Any) -> list[Any]:
        found: list[Any] = []
        for entry in entries if isinstance(entries, list) else [entries]:
            if isinstance(entry, str) and entry.startswith(PREFIX) and entry.endswith((".yaml", ".yml", ".json")):
                try:
                    found += self._entries(self._folder.data(entry))
                except MissingFileError as error:
                    self._notes.lost(f"provider {entry}", f"{error}; add the file and import again")
            elif entry:
                found.append(entry)
        return found

    def target(self, entry: Any) -> Any:
        """Return one target, or None if it cannot be carried over, which is noted."""
        given = _details(entry)
        name = converted(str(given.get("id", entry)), self._environment)
        if name.startswith("adaline:"):
            name = name.removeprefix("adaline:")
            self._notes.differs("models behind Adaline's gateway are called at their own providers")
        raw: dict[str, Any] = given["config"] if isinstance(given.get("config"), dict) else {}
        config = {k: converted(v, self._environment) if isinstance(v, str) else v for k, v in raw.items()}
        made = self._made(name, config, raw)
        if made is None:
            return None
        self._note_keys(given, name)
        if given.get("delay"):
            made["concurrency"] = 1
        label = given.get("label")
        if label:
            made["id"] = str(label)
        plain = set(made) == {"target"}
        return made["target"] if plain else {**({} if "id" in made else {"id": made["target"]}), **made}

    def _note_keys(self, given: dict[str, Any], name: str) -> None:
        if given.get("delay"):
            self._notes.differs("a provider with `delay` has `concurrency: 1`; rate limits are kept to by themselves")
        if isinstance(given.get("env"), dict):
            self._notes.differs(
                f"`env` of a provider: set {', '.join(map(str, given['env']))} in the environment or in a .env file"
            )
        for key in sorted(set(given) - _KEYS):
            self._notes.lost(f"`{key}` of provider {name}", "set it by hand, if fairtrial has it")

    def _made(self, name: str, config: dict[str, Any], raw: dict[str, Any]) -> dict[str, Any] | None:
        """Return the target of a name with its configuration."""
        if _IS_ADDRESS.match(name):
            return self._addresses.target(name, raw)
        program = _PROGRAM.search(name) if not name.startswith(("openai:", "anthropic:")) else None
        if program or name.startswith(("exec:", "package:", JAVASCRIPT)):
            return self._own_code(name, config, program[0] if program else "")
        try:
            target = self._agents.target(name, config) or self._services.target(name, config)
            target = target or self._model(name, config)
        except MissingFileError as error:
            self._notes.lost(f"provider {name}", f"{error}; add the file and import again")
            return None
        if target is None:
            self._notes.lost(f"provider {name}", _AGENT if "sdk" in name or "agent" in name else _UNKNOWN)
            return None
        ours = str(target["target"]).startswith("bedrock:")
        servers = mcp_servers(config) if ours or "options" not in target else {}
        if str(target["target"]).startswith("python:") and servers and name not in CODEX:
            self._notes.lost(f"`mcp` of provider {name}", "use a model that `tool-agent:PROVIDER:MODEL` can ask")
        complete = "params" in target or ("options" in target and not ours)  # in the words of its own API
        if complete or str(target["target"]).startswith(("mock:", "python:")):
            return target
        if servers:
            target, config = self._agents.with_tools(name, target, config)
        params = self._settings.params(name, config)
        return {**target, **({"params": params} if params else {})}

    def _own_code(self, name: str, config: dict[str, Any], suffix: str) -> dict[str, Any] | None:
        """Return the target of a provider that the user wrote: a program, a function, a package or a file."""
        if name.startswith("exec:"):
            return self._command(name)
        if name.startswith(JAVASCRIPT):
            made = self._code.code_provider(name.removeprefix(JAVASCRIPT), config)
            return {"target": f"python:{made}", "id": "function"}
        return self._package(name, config) if name.startswith("package:") else self._in_file(name, config, suffix)

    def _model(self, name: str, config: dict[str, Any]) -> dict[str, Any] | None:
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
            self._notes.differs("the responses API is called by a function in promptfoo_code.py, without retries")
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

    def _package(self, name: str, config: dict[str, Any]) -> dict[str, Any]:
        """Return the target of a provider that stands in a package of Node's."""
        package, _, function = name.removeprefix("package:").rpartition(":")
        settings = json.loads(json.dumps(config, default=str))
        made = self._code.package_provider(package, function, self._folder.path, settings)
        self._notes.differs("code in JavaScript is run with `node`, TypeScript with `npx tsx`: install Node.js")
        return {"target": f"python:{made}", "id": name}

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

    def _in_file(self, name: str, config: dict[str, Any], suffix: str) -> dict[str, Any] | None:
        """Return the target of a provider that stands in a file of the user's."""
        path = re.sub(r"^(python:|javascript:)?(file://)?", "", name)
        path, _, function = path.partition(suffix)
        try:
            file = self._folder.find(f"{path}{suffix}")[0]
        except MissingFileError as error:
            self._notes.lost(f"provider {name}", f"{error}; add the file and import again")
            return None
        settings = json.loads(json.dumps(config, default=str))
        if suffix == ".py":
            made = self._code.provider(file, function.lstrip(":") or "call_api", settings)
        else:
            made = self._code.node_provider(file, function.lstrip(":"), settings)
            self._notes.differs("code in JavaScript is run with `node`, TypeScript with `npx tsx`: install Node.js")
        return {"target": f"python:{made}", "id": name}

    def _command(self, name: str) -> dict[str, Any] | None:
        try:
            command = shlex.split(name.removeprefix("exec:"))
        except ValueError:
            command = []
        if not command:
            self._notes.lost(f"provider {name}", "its command cannot be read; write it as a `command` target")
            return None
        words: list[Any] = []
        for word in command:
            path = self._folder.path / word
            words.append(FileRef(path) if path.is_file() and not word.startswith("/") else word)
        self._notes.differs("a program gets the prompt as its last argument, without promptfoo's options and context")
        return {"target": "command", "id": name, "options": {"command": words, "prompt": "argument"}}


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


def _details(entry: Any) -> dict[str, Any]:
    """Return a provider as a mapping with `id`; some are written as {openai:gpt-4o: {config: …}}."""
    if not isinstance(entry, dict):
        return {"id": entry}
    if "id" in entry:
        return entry
    name, inner = next(iter(entry.items()), ("", {}))
    return {"id": name, **(inner if isinstance(inner, dict) else {})}


def _plain(params: dict[str, Any]) -> dict[str, Any]:
    """Return `params` as one mapping, as an API takes them."""
    return {**{key: value for key, value in params.items() if key != "extra"}, **params.get("extra", {})}


def target_id(target: Any) -> str:
    """Return the name of a target in all outputs."""
    return str(target) if isinstance(target, str) else str(target.get("id") or target["target"])
