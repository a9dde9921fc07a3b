"""The providers of a configuration as targets, with servers of their own where fairtrial does not know one by name."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from fairtrial.foreign.suites import FileRef
from fairtrial.tracks.interchange.importers._promptfoo import addresses, agents, services, settings
from fairtrial.tracks.interchange.importers._promptfoo.conversion import NODE, Conversion, dict_of
from fairtrial.tracks.interchange.importers._promptfoo.files import PREFIX
from fairtrial.tracks.interchange.importers._promptfoo.models import Models
from fairtrial.tracks.interchange.importers._promptfoo.nunjucks import converted
from fairtrial.tracks.interchange.importers._promptfoo.prompts import JAVASCRIPT

_UNKNOWN = (
    "no such target here; use the same model through a provider that fairtrial knows (docs/targets.md), "
    "or call it from a `python:` target"
)
_AGENT = "an agent: use `claude-code`, `tool-agent` or a `command` target, with its settings in `options`"
_PROGRAM = re.compile(r"\.(?:py|[mc]?[jt]s)(?=$|:[\w.]+$)")
_IS_ADDRESS = re.compile(r"(?:https?|wss?|websocket)\b|webhook:|a2a:")
_WITH_SERVERS = ("tool-agent:", "codex:", "opencode:")  # agents that get MCP servers from their condition
_KEYS = {"id", "config", "label", "transform", "delay", "prompts", "env", "inputs"}


class Providers:
    """Reads providers; `servers` has those that must be described in the suite, `tools` their MCP servers."""

    def __init__(self, at: Conversion) -> None:
        self._at, self._notes = at, at.notes
        self._models = Models(at)
        self.servers = self._models.servers
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
            if (target := self.target(entry)) is not None:
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
        given = _details(entry)
        self.called[name] = tuple(str(given[key]) for key in ("id", "label") if given.get(key))
        if given.get("transform"):
            self.transforms[name] = given["transform"]
        if isinstance(given.get("prompts"), list):
            self.prompts[name] = [str(prompt) for prompt in given["prompts"]]
        config = dict_of(given.get("config"))
        self.offered += settings.tools(self._at, config)
        if isinstance(target, dict) and str(target["target"]).startswith(_WITH_SERVERS):
            self.tools[name] = agents.mcp_servers(config)
            only = config["mcp"].get("tools") if self.tools[name] else None
            self.only |= {server: list(map(str, only)) for server in self.tools[name]} if only else {}

    def embedder(self, entry: Any) -> str | None:
        """Return the name of a model that makes embeddings; None if it cannot be carried over, which is noted."""
        details = _details(entry)
        target = self.target({**details, "id": re.sub(r":embeddings?:|:feature-extraction:", ":", str(details["id"]))})
        return None if target is None else str(target if isinstance(target, str) else target["target"])

    def settings(self, config: Any) -> dict[str, Any]:
        """Return settings that do not come with a provider as `params`."""
        return settings.params(self._at, "a prompt", dict_of(config))

    def _entries(self, entries: Any) -> list[Any]:
        found: list[Any] = []
        for entry in entries if isinstance(entries, list) else [entries]:
            if isinstance(entry, str) and entry.startswith(PREFIX) and entry.endswith((".yaml", ".yml", ".json")):
                with self._notes.missing(f"provider {entry}"):
                    found += self._entries(self._at.folder.data(entry))
            elif entry:
                found.append(entry)
        return found

    def target(self, entry: Any) -> Any:
        """Return one target, or None if it cannot be carried over, which is noted."""
        given = _details(entry)
        name = converted(str(given.get("id", entry)), self._at.environment)
        if name.startswith("adaline:"):
            name = name.removeprefix("adaline:")
            self._notes.differs("models behind Adaline's gateway are called at their own providers")
        raw, made = dict_of(given.get("config")), None
        config = {k: converted(v, self._at.environment) if isinstance(v, str) else v for k, v in raw.items()}
        with self._notes.missing(f"provider {name}"):
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
        self._notes.lost_keys(given, _KEYS, f"`{{}}` of provider {name}", "set it by hand, if fairtrial has it")

    def _made(self, name: str, config: dict[str, Any], raw: dict[str, Any]) -> dict[str, Any] | None:
        """Return the target of a name with its configuration."""
        if _IS_ADDRESS.match(name):
            return addresses.target(self._at, name, raw)
        program = _PROGRAM.search(name) if not name.startswith(("openai:", "anthropic:")) else None
        if program or name.startswith(("exec:", "package:", JAVASCRIPT)):
            return _own_code(self._at, name, config, program[0] if program else "")
        target = agents.target(self._at, name, config) or services.target(self._at, name, config)
        target = target or self._models.target(name, config)
        if target is None:
            self._notes.lost(f"provider {name}", _AGENT if "sdk" in name or "agent" in name else _UNKNOWN)
            return None
        ours = str(target["target"]).startswith("bedrock:")
        servers = agents.mcp_servers(config) if ours or "options" not in target else {}
        if str(target["target"]).startswith("python:") and servers:
            self._notes.lost(f"`mcp` of provider {name}", "use a model that `tool-agent:PROVIDER:MODEL` can ask")
        complete = "params" in target or ("options" in target and not ours)  # in the words of its own API
        if complete or str(target["target"]).startswith(("mock:", "python:")):
            return target
        if servers:
            target, config = agents.with_tools(self._at, name, target, config)
        params = settings.params(self._at, name, config)
        return {**target, **({"params": params} if params else {})}


def _details(entry: Any) -> dict[str, Any]:
    """Return a provider as a mapping with `id`; some are written as {openai:gpt-4o: {config: …}}."""
    if not isinstance(entry, dict):
        return {"id": entry}
    if "id" in entry:
        return entry
    name, inner = next(iter(entry.items()), ("", {}))
    return {"id": name, **dict_of(inner)}


def target_id(target: Any) -> str:
    """Return the name of a target in all outputs."""
    return str(target) if isinstance(target, str) else str(target.get("id") or target["target"])


def _own_code(at: Conversion, name: str, config: dict[str, Any], suffix: str) -> dict[str, Any] | None:
    """Return the target of a provider that the user wrote: a program, a function, a package or a file."""
    if name.startswith("exec:"):
        return _command(at, name)
    if name.startswith(JAVASCRIPT):
        made = at.code.code_provider(name.removeprefix(JAVASCRIPT))
        return {"target": f"python:{made}", "id": "function"}
    return _package(at, name, config) if name.startswith("package:") else _in_file(at, name, config, suffix)


def _package(at: Conversion, name: str, config: dict[str, Any]) -> dict[str, Any]:
    package, _, function = name.removeprefix("package:").rpartition(":")
    settings = json.loads(json.dumps(config, default=str))
    made = at.code.package_provider(package, function, at.folder.path, settings)
    at.notes.differs(NODE)
    return {"target": f"python:{made}", "id": name}


def _in_file(at: Conversion, name: str, config: dict[str, Any], suffix: str) -> dict[str, Any]:
    path = re.sub(r"^(python:|javascript:)?(file://)?", "", name)
    path, _, function = path.partition(suffix)
    file = at.folder.find(f"{path}{suffix}")[0]
    settings = json.loads(json.dumps(config, default=str))
    if suffix == ".py":
        made = at.code.provider(file, function.lstrip(":") or "call_api", settings)
    else:
        made = at.code.node_provider(file, function.lstrip(":"), settings)
        at.notes.differs(NODE)
    return {"target": f"python:{made}", "id": name}


def _command(at: Conversion, name: str) -> dict[str, Any] | None:
    _, command = at.folder.command(name.removeprefix("exec:"))
    if not command:
        at.notes.lost(f"provider {name}", "its command cannot be read; write it as a `command` target")
        return None
    words = [FileRef(word) if isinstance(word, Path) else word for word in command]
    at.notes.differs("a program gets the prompt as its last argument, without promptfoo's options and context")
    return {"target": "command", "id": name, "options": {"command": words, "prompt": "argument"}}
