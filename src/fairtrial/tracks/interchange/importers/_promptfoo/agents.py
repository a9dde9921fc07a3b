"""Providers that are agents, with their settings."""

from __future__ import annotations

from functools import reduce
from typing import Any

from fairtrial.core.providers import api_providers
from fairtrial.foreign.suites import FileRef
from fairtrial.providers.conversation import merge
from fairtrial.tracks.interchange.importers._promptfoo.conversion import OWN_SESSION, Conversion, dict_of
from fairtrial.tracks.interchange.importers._promptfoo.files import PREFIX, resolve
from fairtrial.tracks.interchange.importers._promptfoo.nunjucks import converted
from fairtrial.tracks.interchange.importers._promptfoo.vendors import our_name

CLAUDE = ("anthropic:claude-agent-sdk", "anthropic:claude-code")
CODEX = ("openai:codex-sdk", "openai:codex-app-server", "openai:codex")
OPENCODE = ("opencode:sdk", "opencode")
_CLAUDE_OPTIONS = {"model": "model", "max_turns": "max_turns", "max_budget_usd": "max_budget_usd", "effort": "effort",
                   "setting_sources": "setting_sources", "env": "env"}  # fmt: skip
_CLAUDE_SDK = {  # settings of the SDK under the same name
    "permission_mode", "fallback_model", "disallowed_tools", "plugins", "agents", "betas", "max_thinking_tokens",
    "output_format", "include_partial_messages", "user", "sandbox", "thinking", "enable_file_checkpointing", "skills",
}  # fmt: skip
_CLAUDE_ENV = {  # settings that Claude Code reads from its environment
    "max_subagent_spawn_depth": "CLAUDE_CODE_MAX_SUBAGENT_SPAWN_DEPTH",
    "max_concurrent_subagents": "CLAUDE_CODE_MAX_CONCURRENT_SUBAGENTS",
}
_OPENCODE = ("permission", "tools", "agent", "mcp", "custom_agent", "format", "variant", "workspace")
_CLAUDE_LIKE = {"additional_directories": "add_dirs", "extra_args": "extra_args"}
_IGNORED = {  # how promptfoo itself starts and shows an agent
    "apiKey", "apiKeyRequired", "skip_git_repo_check", "enable_streaming", "deep_tracing", "cache_mcp",
    "debug", "debug_file", "allow_dangerously_skip_permissions", "allow_all_tools", "persist_session", "stderr",
    "strict_mcp_config", "thread_pool_size",
    "tracing", "cache", "append_system_prompt", "system_prompt", "custom_system_prompt", "custom_allowed_tools",
    "append_allowed_tools", "working_dir", "mcp", "path_to_claude_code_executable", "env",
    "dangerously_allow_browser", "inherit_process_env", "executable", "executable_args",
    "turn_timeout_ms", "approvals_reviewer", "server_request_policy", "include_raw_events", "persist_threads",
    "session", "thread_cleanup", "reuse_server", "startup_timeout_ms", "request_timeout_ms", "ephemeral",
    "experimental_api", "experimental_raw_events", "persist_extended_history", "server_pool_size",
    "codex_path_override",
    "base_url", "baseUrl", "hostname", "port", "timeout", "log_level", "persist_sessions", "provider_id", "enable_mcp",
}  # fmt: skip
_READING = ["Read", "Grep", "Glob", "LS"]  # what promptfoo allows where there is a folder to work in
_CODEX_SETTINGS = ("approval_policy", "model_reasoning_effort", "model_provider", "service_tier", "model_verbosity")
_MODEL = "gpt-5.5"  # for agents of which a configuration says no more than the name


def target(at: Conversion, name: str, config: dict[str, Any]) -> dict[str, Any] | None:
    """Return the target of an agent; None if the name is not one that is known."""
    base, model = name, ""
    for known in (*CLAUDE, *CODEX, *OPENCODE):
        if name == known or name.startswith(f"{known}:"):
            base, model = known, name.removeprefix(known).lstrip(":")
    if model:
        config = {"model": model, **config}
    if name.startswith("openai:agents:"):
        return _openai(at, name, config)
    if base in CLAUDE:
        return _claude(at, base, config)
    if base in OPENCODE:
        return _opencode(at, base, config)
    return _codex(at, base, config) if base in CODEX else None


def _claude(at: Conversion, name: str, config: dict[str, Any]) -> dict[str, Any]:
    options: dict[str, Any] = {ours: config[key] for key, ours in _CLAUDE_OPTIONS.items() if config.get(key)}
    if isinstance(config.get("working_dir"), str):
        options["cwd"] = _path(at, config["working_dir"])
        options["tools"] = list(_READING)
    tools = config.get("custom_allowed_tools") or config.get("append_allowed_tools")
    if isinstance(tools, list):
        own = [] if config.get("custom_allowed_tools") else options.get("tools", [])
        options["tools"] = [*own, *(str(tool) for tool in tools)]
    if config.get("allow_all_tools"):
        options.pop("tools", None)
    if sdk := _claude_sdk(at, name, config):
        options["sdk"] = sdk
    if env := {ours: str(config[key]) for key, ours in _CLAUDE_ENV.items() if config.get(key) is not None}:
        options["env"] = {**env, **(options.get("env") or {})}
    if config.get("ask_user_question"):
        at.notes.differs("`ask_user_question`: questions are not answered here; write in the prompt what it may assume")
    _note(at, name, config, {*_CLAUDE_OPTIONS, *_CLAUDE_SDK, *_CLAUDE_LIKE, *_CLAUDE_ENV, "ask_user_question"})
    return {"target": "claude-code", "options": options}


def _claude_sdk(at: Conversion, name: str, config: dict[str, Any]) -> dict[str, Any]:
    """Return the settings that go to the SDK of Claude Code as they are."""
    sdk: dict[str, Any] = {key: config[key] for key in sorted(_CLAUDE_SDK) if config.get(key) is not None}
    sdk |= {ours: config[key] for key, ours in _CLAUDE_LIKE.items() if config.get(key)}
    with at.notes.missing(f"a file in the config of {name}", advice="add it and import again"):
        sdk = resolve(sdk, at.folder)
    for plugin in sdk.get("plugins") or []:
        if isinstance(plugin, dict) and isinstance(plugin.get("path"), str):
            plugin["path"] = _path(at, plugin["path"])
    if config.get("allow_all_tools"):
        sdk["tools"] = {"type": "preset", "preset": "claude_code"}
    if text := config.get("append_system_prompt"):
        sdk["system_prompt"] = {"type": "preset", "preset": "claude_code", "append": text}
    if text := config.get("custom_system_prompt") or config.get("system_prompt"):
        sdk["system_prompt"] = text
    if servers := mcp_servers(config):
        sdk["mcp_servers"] = servers
    return sdk


def _codex(at: Conversion, name: str, config: dict[str, Any]) -> dict[str, Any]:
    others = {"output_schema", "additional_directories", "cli_config", "cli_env", "sandbox_mode"}
    searches = {"web_search_enabled", "web_search_mode", "network_access_enabled"}
    _note_sessions(at, name, config)
    _note(at, name, config, {"model", *_CODEX_SETTINGS, *others, *searches})
    settings: dict[str, Any] = {key: config[key] for key in _CODEX_SETTINGS if config.get(key) is not None}
    if mode := config.get("web_search_mode"):
        settings["web_search"] = mode
    folders = {"writable_roots": config.get("additional_directories")}
    folders["network_access"] = config.get("network_access_enabled")
    if written := {key: value for key, value in folders.items() if value}:
        settings["sandbox_workspace_write"] = written
    options: dict[str, Any] = {"tools": ["shell", "apply_patch", "view_image"]}
    if config.get("web_search_enabled") or mode in ("live", "cached"):
        options["tools"].append("web_search")
    if isinstance(config.get("working_dir"), str):  # a folder of the user's: ours, one for each trial, is enclosed
        options["cwd"] = _path(at, config["working_dir"])
        settings["sandbox_mode"] = config.get("sandbox_mode") or "read-only"
    for key, value in dict_of(config.get("cli_config")).items():
        nested = reduce(lambda inner, part: {part: inner}, reversed(str(key).split(".")), value)
        settings = merge(settings, nested)
    if settings:
        options["settings"] = settings
    with at.notes.missing(f"`output_schema` of {name}", advice="add it and import again"):
        if schema := resolve(config.get("output_schema"), at.folder):
            options["output_schema"] = schema
    given = config.get("cli_env")
    if isinstance(given, dict):
        options["env"] = {str(key): converted(str(value)) for key, value in given.items()}
    return {"target": f"codex:{_model(at, name, config)}", "options": options}


def _model(at: Conversion, name: str, config: dict[str, Any]) -> str:
    if not config.get("model"):
        at.notes.differs(f"{name} names no model: {_MODEL} is asked here; change `target` to have another")
    return str(config.get("model") or _MODEL)


def _note_sessions(at: Conversion, name: str, config: dict[str, Any]) -> None:
    """Say what is different where an agent goes on with a session, or its requests are answered."""
    if any(config.get(key) for key in ("persist_threads", "persist_sessions", "session", "thread_id")):
        at.notes.differs(OWN_SESSION.format(name))
    if config.get("server_request_policy"):
        at.notes.differs(f"{name}: requests for approval are declined, as there is no user to answer them")


def _opencode(at: Conversion, name: str, config: dict[str, Any]) -> dict[str, Any] | None:
    """Return OpenCode around a model, with the tools that are switched on and not denied."""
    _note(at, name, config, {*_OPENCODE, "model", "max_retries"})
    _note_sessions(at, name, config)
    vendor, _, model = "/".join(str(config[key]) for key in ("provider_id", "model") if config.get(key)).partition("/")
    if not model:
        vendor, model = "openai", _model(at, name, {"model": vendor})
    if our_name(vendor) not in api_providers():
        return None
    custom, permission = dict_of(config.get("custom_agent")), dict_of(config.get("permission"))
    agent = {key: value for key, value in custom.items() if key not in ("mode", "model", "tools")}
    if permission:
        agent["permission"] = {**permission, **(agent.get("permission") or {})}
    reading = dict.fromkeys(("read", "grep", "glob", "list"), bool(config.get("working_dir")))
    on = {**reading, **(config.get("tools") or {}), **(custom.get("tools") or {})}
    options: dict[str, Any] = {"tools": [tool for tool, wanted in on.items() if wanted]}
    if agent:
        options["settings"] = {"agent": {"trial": agent}}  # as our target calls it
    if isinstance(config.get("working_dir"), str):
        options["cwd"] = _path(at, config["working_dir"])
    if isinstance(config.get("format"), dict):
        at.notes.differs(f"{name}: `format` is not enforced; the prompt and a check say what the answer must be")
    if config.get("agent"):
        at.notes.differs(f"{name}: no agent of OpenCode's own is used; `tools` says what it may do")
    return {"target": f"opencode:{our_name(vendor)}:{model}", "options": options}


def _path(at: Conversion, name: str) -> str | FileRef:
    """Return a folder of the original; one that the environment names stays as it is."""
    return name if "\ue000" in name else FileRef(at.folder.path / name)


def _openai(at: Conversion, name: str, config: dict[str, Any]) -> dict[str, Any] | None:
    """Return an agent of OpenAI's SDK, which is a file of JavaScript."""
    agent = config.get("agent")
    if not isinstance(agent, str) or not agent.startswith(PREFIX):
        return None
    _note(at, name, config, {"agent", "maxTurns", "model", "modelSettings", "executeTools", "otlpEndpoint"})
    _note_sessions(at, name, config)
    with at.notes.missing(f"provider {name}"):
        file = at.folder.find(agent)[0]
        settings = {key: config[key] for key in ("maxTurns", "model") if config.get(key)}
        made = at.code.node_provider(file, "", settings, kind="agent")
        at.notes.differs("agents of OpenAI's SDK are run with `node` (TypeScript with `npx tsx`) and @openai/agents")
        return {"target": f"python:{made}", "id": name}
    return None


def with_tools(
    at: Conversion, name: str, target: dict[str, Any], config: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the agent that asks a model with MCP servers in a loop, and what is left to set for the model."""
    if region := (target.get("options") or {}).get("region"):
        at.notes.differs(f"{name} is asked in the region of the environment: set AWS_REGION={region}")
    if config["mcp"].get("exclude_tools"):
        advice = "list the tools that it may use under `mcp_tools` of the condition"
        at.notes.lost(f"`exclude_tools` of `mcp` of provider {name}", advice)
    made = {"target": f"tool-agent:{target['target']}", "id": target["target"]}
    rounds = config.get("max_tool_calls")
    if isinstance(rounds, int):
        made["options"] = {"max_steps": rounds + 1}  # the model is asked once more after the last round
    return made, {key: value for key, value in config.items() if key != "max_tool_calls"}


def _note(at: Conversion, name: str, config: dict[str, Any], known: set[str]) -> None:
    advice = "set it in the agent's `options`, if it is there (docs/targets.md)"
    at.notes.lost_keys(config, known | _IGNORED, f"`{{}}` of {name}", advice)


def mcp_servers(config: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the MCP servers of a provider, by name; none if they are switched off."""
    given = config.get("mcp")
    if not isinstance(given, dict) or given.get("enabled") is False:
        return {}
    listed = given.get("servers") or ([given["server"]] if given.get("server") else [])
    servers: dict[str, dict[str, Any]] = {}
    for number, server in enumerate(listed if isinstance(listed, list) else list(listed.values()), 1):
        if not isinstance(server, dict):
            continue
        name = str(server.get("name") or f"server-{number}")
        kept = {key: server[key] for key in ("command", "args", "env", "url", "headers") if server.get(key)}
        if server.get("path"):  # a script of promptfoo's own: Python or JavaScript
            program = "python" if str(server["path"]).endswith(".py") else "node"
            kept = {"command": program, "args": [str(server["path"])], **kept}
        servers[name] = kept
    return servers
