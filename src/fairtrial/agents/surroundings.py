"""What surrounds an agent's program: its environment and its MCP servers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import msgspec

from fairtrial.agents.notes import ServerNotes
from fairtrial.agents.processes.supervised import supervised_config
from fairtrial.agents.workspace.servers import is_sandboxed, moved_server
from fairtrial.core.experiment import McpServer
from fairtrial.core.secrets import is_private
from fairtrial.core.workspace import Workspace

# `env` of an agent: variables with their values, or the names of ours that it gets as they are.
Env = dict[str, str] | list[Annotated[str, msgspec.Meta(pattern="^[A-Za-z_][A-Za-z0-9_]*$")]]

# The only variables of ours that agents get, apart from those that lead to their model.
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy")
_CERTIFICATES = ("SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS")
_PASSED_ON = ("PATH", "HOME", "USER", "LANG", "TMPDIR", "TERM", "SHELL", "TZ", *_CERTIFICATES, *_PROXIES)


def clean_environment(prefixes: tuple[str, ...] = ()) -> dict[str, str]:
    """Return what of our environment an agent gets: what programs need to run, and variables with these prefixes."""
    wanted = ("LC_", *prefixes)
    return {name: value for name, value in os.environ.items() if name in _PASSED_ON or name.startswith(wanted)}


def ways_in(prefixes: tuple[str, ...]) -> list[str]:
    """Return the names of our variables with these prefixes: they lead an agent to its model."""
    return sorted(name for name in os.environ if name.startswith(prefixes))


def given_variables(env: Env) -> dict[str, str]:
    """Return the variables that a suite gives an agent: with their values, or by name those of ours that are set."""
    return dict(env) if isinstance(env, dict) else {name: os.environ[name] for name in env if name in os.environ}


def server_configs(
    servers: Iterable[McpServer], notes: ServerNotes | None, environment: Mapping[str, str], workspace: Workspace | None
) -> dict[str, dict[str, Any]]:
    """Return how an agent starts or reaches each server; of the agent's environment, servers never see credentials."""
    keep = [name for name, value in environment.items() if not is_private(name, value)]
    configs = {}
    for server in servers:
        notes_file = notes.file(server.name) if notes else None
        config = supervised_config(moved_server(server, workspace), notes_file, keep)
        if server.transport == "stdio" and not is_sandboxed(workspace) and "HOME" in os.environ:
            # Not the agent's: npx and uvx would download a server again for every trial.
            config["env"] = {"HOME": os.environ["HOME"], **config["env"]}
        configs[server.name] = config
    return configs
