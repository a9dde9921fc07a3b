"""The providers of a configuration as targets, with servers of their own where fairtrial does not know one by name."""

from __future__ import annotations

import json
import re
import shlex
from contextlib import suppress
from typing import Any, NamedTuple

from fairtrial.core.providers import known_providers
from fairtrial.importers import FileRef
from fairtrial.importers._promptfoo.code import CodeFile
from fairtrial.importers._promptfoo.files import PREFIX, Folder, MissingFileError, resolve
from fairtrial.importers._promptfoo.notes import Notes
from fairtrial.importers._promptfoo.nunjucks import converted, names_used, variable


class Server(NamedTuple):
    """An OpenAI-compatible server, and the variable that has its key."""

    base_url: str
    key: str


_NAMES = {"togetherai": "together", "azureopenai": "azure", "palm": "google", "fireworks-ai": "fireworks", "x": "xai"}
_SERVERS = {
    "google": Server("https://generativelanguage.googleapis.com/v1beta/openai", "GOOGLE_API_KEY"),
    "mistral": Server("https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
    "groq": Server("https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    "xai": Server("https://api.x.ai/v1", "XAI_API_KEY"),
    "deepseek": Server("https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
    "together": Server("https://api.together.xyz/v1", "TOGETHER_API_KEY"),
    "fireworks": Server("https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY"),
    "cerebras": Server("https://api.cerebras.ai/v1", "CEREBRAS_API_KEY"),
    "perplexity": Server("https://api.perplexity.ai", "PERPLEXITY_API_KEY"),
    "cohere": Server("https://api.cohere.ai/compatibility/v1", "COHERE_API_KEY"),
    "huggingface": Server("https://router.huggingface.co/v1", "HF_TOKEN"),
    "hyperbolic": Server("https://api.hyperbolic.xyz/v1", "HYPERBOLIC_API_KEY"),
    "sambanova": Server("https://api.sambanova.ai/v1", "SAMBANOVA_API_KEY"),
    "github": Server("https://models.github.ai/inference", "GITHUB_TOKEN"),
    "alibaba": Server("https://dashscope-intl.aliyuncs.com/compatible-mode/v1", "DASHSCOPE_API_KEY"),
    "nscale": Server("https://inference.api.nscale.com/v1", "NSCALE_SERVICE_TOKEN"),
    "moonshot": Server("https://api.moonshot.ai/v1", "MOONSHOT_API_KEY"),
    "localai": Server("http://127.0.0.1:8080/v1", ""),
}
_SERVERS["azure"] = Server(f"https://{variable('AZURE_API_HOST')}/openai/v1", "AZURE_API_KEY")
_SERVERS["vertex"] = Server("", "VERTEX_ACCESS_TOKEN")  # its address depends on the project
_KINDS = (
    "chat",
    "messages",
    "completion",
    "text-generation",
    "text",
    "converse",
)  # the part of a name that selects an API
_NOT_CHAT = (
    "embedding", "embeddings", "image", "assistant", "moderation", "realtime", "speech", "transcription", "video",
    "codex-sdk", "claude-agent-sdk", "agents", "chatkit", "tts", "live", "feature-extraction", "text-classification",
    "token-classification", "sentence-similarity", "openai-image", "nova-sonic", "agent", "kb",
)  # fmt: skip
_PARAMS = {
    "temperature": "temperature", "max_tokens": "max_tokens", "max_completion_tokens": "max_tokens",
    "max_output_tokens": "max_tokens", "maxOutputTokens": "max_tokens", "maxTokens": "max_tokens",
    "num_predict": "max_tokens", "max_new_tokens": "max_tokens", "top_p": "top_p", "topP": "top_p",
    "frequency_penalty": "frequency_penalty", "presence_penalty": "presence_penalty", "seed": "seed",
    "random_seed": "seed", "stop": "stop", "stop_sequences": "stop", "stopSequences": "stop",
}  # fmt: skip
_EXTRA = (
    "response_format", "tools", "tool_choice", "functions", "function_call", "reasoning_effort", "reasoning",
    "thinking",
    "top_k", "logit_bias", "logprobs", "top_logprobs", "verbosity", "parallel_tool_calls", "service_tier", "user",
    "metadata", "store", "search_parameters", "web_search_options", "modalities", "n", "effort", "prompt_cache_key",
    "safe_prompt", "num_ctx", "min_p", "repetition_penalty", "transforms", "route", "provider", "models",
    "safetySettings",
)  # fmt: skip
_IGNORED = {  # what only matters to promptfoo's own clients
    "apiKey", "apiKeyEnvar", "apiBaseUrl", "apiHost", "cost", "inputCost", "outputCost", "apiVersion",
    "showThinking", "generationConfig", "passthrough", "region", "projectId", "deployment_id",
    "maxRetries", "model", "omitDefaults", "stream",
}  # fmt: skip
_UNKNOWN = (
    "no such target here; use the same model through a provider that fairtrial knows (docs/targets.md), "
    "or call it from a `python:` target"
)
_AGENT = "an agent: use `claude-code`, `tool-agent` or a `command` target, with its settings in `options`"
_SOCKET = (
    "call the address from a function of a `python:` target (docs/targets.md), which gets the prompt and returns the "
    "answer"
)
_JAVASCRIPT = "JavaScript: start it with a `command` target, which gets the prompt on stdin"
_IS_JAVASCRIPT = re.compile(r"file://.*\.[mc]?[jt]s(?::\w+)?$|.*\.[mc]?js$")
_IS_SOCKET = re.compile(r"(?:wss?|websocket)\b")
_SIMPLE_ANSWER = re.compile(r"[\w$.\[\]'\"?() |&-]+")
_ADDRESS_KEYS = {"url", "method", "headers", "body", "transformResponse", "responseParser", "maxRetries"}


class Providers:
    """Reads providers; `servers` has those that must be described in the suite."""

    def __init__(self, folder: Folder, notes: Notes, environment: dict[str, Any], code: CodeFile) -> None:
        self._folder, self._notes, self._environment, self._code = folder, notes, environment, code
        self.servers: dict[str, dict[str, Any]] = {}
        self.transforms: list[tuple[str, Any]] = []

    def targets(self, entries: Any) -> list[Any]:
        """Return the targets, each with its own id."""
        targets: list[Any] = []
        for entry in self._entries(entries):
            target = self.target(entry)
            if target is None:
                continue
            name = _id(target)
            if name in map(_id, targets):
                details = target if isinstance(target, dict) else {"target": target}
                target = {**details, "id": f"{name}-{len(targets) + 1}"}
            targets.append(target)
        return targets

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
        if isinstance(entry, dict) and "id" not in entry:  # the form {openai:gpt-4o: {config: …}}
            name, inner = next(iter(entry.items()), ("", {}))
            entry = {"id": name, **(inner if isinstance(inner, dict) else {})}
        given = entry if isinstance(entry, dict) else {}
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
        label = given.get("label")
        if label:
            made["id"] = str(label)
        return (
            made["target"]
            if set(made) == {"target"}
            else {**({"id": made["target"]} if "id" not in made else {}), **made}
        )

    def _note_keys(self, given: dict[str, Any], name: str) -> None:
        if given.get("transform"):
            self.transforms.append((name, given["transform"]))
        if given.get("delay"):
            self._notes.lost(
                f"`delay` of provider {name}",
                "set `concurrency: 1` on the target; rate limits are kept to by themselves",
            )
        if given.get("prompts"):
            self._notes.lost(
                f"`prompts` of provider {name}",
                "every target gets every prompt: use --condition, or one suite per target",
            )
        for key in sorted(set(given) - {"id", "config", "label", "transform", "delay", "prompts", "env", "inputs"}):
            self._notes.lost(f"`{key}` of provider {name}", "set it by hand, if fairtrial has it")

    def _made(self, name: str, config: dict[str, Any], raw: dict[str, Any]) -> dict[str, Any] | None:
        """Return the target of a name with its configuration."""
        if name.startswith(("file://", "python:")) and ".py" in name:
            return self._python(name, config)
        if name.startswith("exec:"):
            return self._command(name)
        if re.match(r"https?\b", name):
            return self._address(name, raw)
        target = self._agent(name, config) or self._model(name, config)
        if target is None:
            self._notes.lost(f"provider {name}", _advice(name))
            return None
        plain = "options" in target or str(target["target"]).startswith("mock:")
        return target if plain else {**target, **self._params(name, config)}

    def _agent(self, name: str, config: dict[str, Any]) -> dict[str, Any] | None:
        if name not in ("anthropic:claude-agent-sdk", "anthropic:claude-code"):
            return None
        options: dict[str, Any] = {}
        if config.get("model"):
            options["model"] = str(config["model"])
        if config.get("max_turns"):
            options["max_turns"] = config["max_turns"]
        if config.get("max_budget_usd"):
            options["max_budget_usd"] = config["max_budget_usd"]
        tools = config.get("custom_allowed_tools") or config.get("append_allowed_tools")
        if isinstance(tools, list):
            options["tools"] = [str(tool) for tool in tools]
        if isinstance(config.get("working_dir"), str):
            options["cwd"] = FileRef(self._folder.path / config["working_dir"])
        known = {
            "model",
            "max_turns",
            "max_budget_usd",
            "custom_allowed_tools",
            "append_allowed_tools",
            "working_dir",
            "apiKey",
        }
        for key in sorted(set(config) - known):
            self._notes.lost(
                f"`{key}` of {name}", "set it in the `options` of claude-code, if it is there (docs/targets.md)"
            )
        return {"target": "claude-code", "options": options}

    def _model(self, name: str, config: dict[str, Any]) -> dict[str, Any] | None:
        """Return the target of a model behind an API; None if there is none here."""
        if name == "echo":
            return {"target": "mock:echo"}
        first, _, rest = name.partition(":")
        provider = _NAMES.get(first, first)
        kind, colon, model = rest.partition(":")
        if kind in _NOT_CHAT or not rest:
            return None
        if provider in ("openai", "azure") and kind == "responses":
            return self._responses(provider, name, model, config)
        if kind in _KINDS:
            rest = model or str(config.get("model") or "")
        elif provider in ("openai", "anthropic") and colon and kind != "ft":
            return None
        if not rest or rest in _KINDS:
            return None
        return self._named(provider, rest, config)

    def _responses(self, provider: str, name: str, model: str, config: dict[str, Any]) -> dict[str, Any] | None:
        if provider == "openai" and "openai-responses" in known_providers():
            return {"target": f"openai-responses:{model}"} if model else None
        self._notes.differs(f"{name} is called through the chat API, not the responses API")
        return self._named(provider, model, config) if model else None

    def _named(self, provider: str, model: str, config: dict[str, Any]) -> dict[str, Any] | None:
        address = self._address_in(config)
        if address:
            return {"target": f"{self._server(provider, str(address), config)}:{model}"}
        if provider == "bedrock" and provider not in known_providers():
            if "openai." not in model:
                return None
            region = config.get("region") or variable("AWS_REGION", "us-east-1")
            address = f"https://bedrock-runtime.{region}.amazonaws.com/openai/v1"
            self._add("bedrock", address, variable("AWS_BEARER_TOKEN_BEDROCK"))
        elif provider not in known_providers():
            if provider not in _SERVERS:
                return None
            server = _SERVERS[provider] if provider != "vertex" else _vertex(config)
            if provider == "vertex" and "/" not in model:
                model = f"google/{model}"
            self._add(provider, server.base_url, self._key(config, server.key))
        return {"target": f"{provider}:{model}"}

    @staticmethod
    def _address_in(config: dict[str, Any]) -> Any:
        return config.get("apiBaseUrl") or config.get("apiHost")

    def _server(self, provider: str, address: str, config: dict[str, Any]) -> str:
        """Add a server with an address of its own, and return its name."""
        url = address if "://" in address else f"https://{address}"
        if provider == "azure" and "/openai" not in url:
            url = f"{url.rstrip('/')}/openai/v1"
        elif "apiHost" in config and not config.get("apiBaseUrl") and not re.search(r"/v\d", url):
            url = f"{url.rstrip('/')}/v1"
        default = "OPENAI_API_KEY" if provider == "openai" else _SERVERS[provider].key if provider in _SERVERS else ""
        name = provider if provider not in known_providers() else f"{provider}-server"
        number = 2
        base = name
        while name in self.servers and self.servers[name]["base_url"] != url:
            name, number = f"{base}-{number}", number + 1
        kind = {"kind": "anthropic_api"} if provider == "anthropic" else {}
        self._add(name, url, self._key(config, default if provider != "anthropic" else "ANTHROPIC_API_KEY"))
        self.servers[name] |= kind
        if isinstance(config.get("headers"), dict):
            self.servers[name]["headers"] = {
                str(k): converted(str(v), self._environment) for k, v in config["headers"].items()
            }
        return name

    def _add(self, name: str, url: str, key: str) -> None:
        self.servers[name] = {"base_url": url, **({"api_key": key} if key else {})}

    def _key(self, config: dict[str, Any], default: str) -> str:
        """Return a reference to the variable that has the key; a key itself is never copied."""
        if config.get("apiKeyEnvar"):
            return variable(str(config["apiKeyEnvar"]))
        key = config.get("apiKey")
        if isinstance(key, str) and "\ue000" in key:
            return key
        return variable(default) if default else ""

    def _params(self, name: str, config: dict[str, Any]) -> dict[str, Any]:
        """Return the `params` key of a target."""
        if config.get("apiKey") and "\ue000" not in str(config["apiKey"]):
            self._notes.lost(
                "a key written into the configuration",
                "set the provider's key variable in the environment or in .env",
                name,
            )
        nested = config.get("generationConfig")
        settings = {**config, **(nested if isinstance(nested, dict) else {})}
        params: dict[str, Any] = {}
        extra: dict[str, Any] = {}
        for key, value in settings.items():
            if value is None or key in _IGNORED or (key == "headers" and self._address_in(config)):
                continue
            if key in _PARAMS:
                params[_PARAMS[key]] = [value] if _PARAMS[key] == "stop" and isinstance(value, str) else value
            elif key in _EXTRA:
                extra[key] = value
            else:
                self._notes.lost(
                    f"config `{key}` of provider {name}", "if the API takes it, put it under `params: {extra: …}`"
                )
        passthrough = config.get("passthrough")
        extra |= passthrough if isinstance(passthrough, dict) else {}
        try:
            extra = resolve(extra, self._folder)
        except MissingFileError as error:
            self._notes.lost(f"a file in the config of provider {name}", str(error))
            extra = {}
        if extra:
            params["extra"] = extra
        return {"params": params} if params else {}

    def _python(self, name: str, config: dict[str, Any]) -> dict[str, Any] | None:
        path, _, function = name.removeprefix("python:").removeprefix(PREFIX).partition(".py")
        try:
            file = self._folder.find(f"{path}.py")[0]
        except MissingFileError as error:
            self._notes.lost(f"provider {name}", f"{error}; add the file and import again")
            return None
        made = self._code.provider(
            file, function.lstrip(":") or "call_api", json.loads(json.dumps(config, default=str))
        )
        self._notes.differs(
            f"{name} gets the prompt and its config through {made.split(':')[0]}, and no `vars` in its context"
        )
        return {"target": f"python:{made}", "id": name}

    def _address(self, name: str, config: dict[str, Any]) -> dict[str, Any] | None:
        """Return a target for an address: a function that sends the prompt there."""
        url = name if "://" in name else str(config.get("url") or "")
        body, headers = config.get("body"), config.get("headers") or {}
        answer = str(config.get("transformResponse") or config.get("responseParser") or "").strip()
        if isinstance(body, str):
            with suppress(ValueError):
                body = json.loads(body)
        names = names_used(json.dumps([url, headers, body], default=str)) - {"prompt", "env"}
        if not url or names or config.get("request") or not (not answer or _SIMPLE_ANSWER.fullmatch(answer)):
            self._notes.lost(f"provider {name}", _SOCKET)
            return None
        for key in sorted(set(config) - _ADDRESS_KEYS):
            self._notes.lost(f"config `{key}` of provider {name}", "add it to the function in promptfoo_code.py")
        if isinstance(body, dict | list):
            headers = {"Content-Type": "application/json", **headers}
        method = str(config.get("method") or ("POST" if body is not None else "GET")).upper()
        made = self._code.address(url, method, headers, body, answer)
        self._notes.differs(f"{name} is called by a function in {made.split(':', maxsplit=1)[0]}, without retries")
        return {"target": f"python:{made}", "id": url if name in ("http", "https") else name}

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


def _vertex(config: dict[str, Any]) -> Server:
    """Return the server of Vertex AI for a region and a project."""
    region = config.get("region") or variable("VERTEX_REGION", "us-central1")
    project = config.get("projectId") or variable("VERTEX_PROJECT_ID")
    host = f"https://{region}-aiplatform.googleapis.com"
    return Server(f"{host}/v1/projects/{project}/locations/{region}/endpoints/openapi", "VERTEX_ACCESS_TOKEN")


def _advice(name: str) -> str:
    """Return what to do about a provider that cannot be carried over."""
    if _IS_JAVASCRIPT.match(name):
        return _JAVASCRIPT
    if _IS_SOCKET.match(name):
        return _SOCKET
    return _AGENT if "sdk" in name or "agent" in name else _UNKNOWN


def _id(target: Any) -> str:
    return str(target) if isinstance(target, str) else str(target.get("id") or target["target"])
