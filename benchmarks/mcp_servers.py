"""`python -m benchmarks.mcp_servers`: seven public MCP servers, by every agent; writes the table of docs/agents.md.

Servers and agents are the real ones, from npm and PyPI, in versions that are pinned here; the model is scripted. Every
agent gets all servers in one session and calls one tool of each: a cell says how many of a server's tools the agent
offered to its model, and whether the call returned what it should.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from fairtrial import pipeline
from fairtrial.analyse.run import Run
from fairtrial.store import Store
from tests import programs
from tests.scripted import Say, Scripted, Turn, scripted_model

PAGE = Path(__file__).parent.parent / "docs" / "agents.md"
BEGIN, END = "<!-- servers -->\n", "<!-- /servers -->"
FOLDER = programs.FOLDER.parent / "servers"
NPM = "2026.8.31"
AGENTS = {
    "Claude Code": "claude-code:m",
    "Codex": "codex:m",
    "Gemini CLI": "gemini-cli:m",
    "opencode": "opencode:openai:m",
    "tool-agent": "tool-agent:openai:m",
}


class PublicServer(NamedTuple):
    """A server, where it comes from, one call of a tool, and a text that the call must return."""

    package: str
    tool: str
    arguments: dict[str, Any]
    returns: str
    options: tuple[str, ...] = ()

    @property
    def program(self) -> Path:
        if self.package.startswith("@"):
            package, _, _ = self.package.rpartition("@")
            return FOLDER / "npm/node_modules/.bin" / f"mcp-{package.rpartition('/')[2]}"
        name = self.package.partition("==")[0]
        return FOLDER / name / "bin" / name


def public_servers(folder: Path, url: str) -> dict[str, PublicServer]:
    npm = "@modelcontextprotocol/server-"
    zones = {"source_timezone": "Asia/Tokyo", "target_timezone": "Asia/Kolkata", "time": "16:30"}
    entity = {"name": "code", "entityType": "number", "observations": ["4711"]}
    query = {"query": "select code from codes"}
    return {
        "filesystem": PublicServer(
            f"{npm}filesystem@{NPM}", "read_text_file", {"path": f"{folder}/note.txt"}, "4711", (str(folder),)
        ),
        "everything": PublicServer(f"{npm}everything@{NPM}", "echo", {"message": "4711"}, "4711"),
        "memory": PublicServer(f"{npm}memory@{NPM}", "create_entities", {"entities": [entity]}, "4711"),
        "time": PublicServer("mcp-server-time==2026.10.19", "convert_time", zones, "13:00"),
        "git": PublicServer("mcp-server-git==2026.10.19", "git_status", {"repo_path": f"{folder}/repo"}, "new.txt"),
        "sqlite": PublicServer(
            "mcp-server-sqlite==2025.4.25", "read_query", query, "4711", ("--db-path", f"{folder}/codes.db")
        ),
        "fetch": PublicServer(
            "mcp-server-fetch==2026.10.24",
            "fetch",
            {"url": f"{url}/note.txt"},
            "4711",
            ("--ignore-robots-txt", "--allow-private-ips"),  # the page is on this machine
        ),
    }


def install(servers: dict[str, PublicServer]) -> None:
    """Install what is missing: the agents, and the servers."""
    programs.install()
    packages = [server.package for server in servers.values() if not server.program.exists()]
    npm = [package for package in packages if package.startswith("@")]
    if npm:
        quiet = ["--no-audit", "--no-fund", "--no-save", "--ignore-scripts", "--loglevel=error"]
        subprocess.run(["npm", "install", "--prefix", str(FOLDER / "npm"), *quiet, *npm], check=True)
    uv = str(Path(sys.executable).with_name("uv"))
    for package in packages:
        if package.startswith("@"):
            continue
        environment = str(FOLDER / package.partition("==")[0])
        old = ["mcp<2"] if "sqlite" in package else []  # it was written for the first version of the library
        subprocess.run([uv, "venv", "--quiet", environment], check=True)
        subprocess.run([uv, "pip", "install", "--quiet", "--python", environment, package, *old], check=True)


def prepare(folder: Path) -> None:
    """Make what the servers look at."""
    (folder / "note.txt").write_text("the code is 4711")
    with sqlite3.connect(folder / "codes.db") as connection:
        connection.execute("create table codes (code integer)")
        connection.execute("insert into codes values (4711)")
    subprocess.run(["git", "init", "-q", str(folder / "repo")], check=True)
    (folder / "repo" / "new.txt").write_text("hello")


def script(servers: dict[str, PublicServer], turn: Turn) -> Say:
    """Call one tool of each server, one after the other."""
    if len(turn.results) == len(servers):
        return Say("done")
    name, server = list(servers.items())[len(turn.results)]
    tool = next((tool for tool in turn.tools if name in tool and tool.endswith(server.tool)), f"{name}__{server.tool}")
    return Say("", ((tool, server.arguments),))


def write_suite(folder: Path, agent: str, servers: dict[str, PublicServer]) -> Path:
    target: dict[str, Any] = {"id": agent, "target": AGENTS[agent]}
    name = AGENTS[agent].partition(":")[0]
    if name in programs.PROGRAMS:
        target["options"] = {"program": programs.needed(name)}
    entries = {name: {"command": str(server.program), "args": list(server.options)} for name, server in servers.items()}
    entries["memory"]["env"] = {"MEMORY_FILE_PATH": str(folder / f"memory-{name}.json")}
    suite = {
        "name": "servers",
        "targets": [target],
        "mcp_servers": entries,
        "conditions": {"all": {"mcp": list(servers)}},
        "cases": [{"id": "all", "input": "Call them.", "expected": "done"}],
        "timeout": 3600,
    }
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(suite))
    return path


async def run_agent(folder: Path, agent: str, servers: dict[str, PublicServer]) -> tuple[Run, Scripted]:
    async with scripted_model(partial(script, servers), strict=False) as served:
        os.environ |= {
            "OPENAI_BASE_URL": f"{served.url}/v1",
            "ANTHROPIC_BASE_URL": served.url,
            "GOOGLE_GEMINI_BASE_URL": served.url,
            **dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"), "sk-test-key-0001"),
        }
        suite = pipeline.load(write_suite(folder, agent, servers))
        run = await pipeline.arun(suite, store=Store(f"sqlite:///{folder}/store.db"))
        return run, served


def cell(name: str, server: PublicServer, run: Run, served: Scripted) -> str:
    """What an agent made of a server."""
    (trial,) = run.trials()
    offered = sum(name in tool for tool in served.turns[0].tools) if served.turns else 0
    calls = [call for call in (trial.trace or {}).get("tool_calls", ()) if call["server"] == name]
    works = any(server.returns in call["result"] and not call["error"] for call in calls)
    return f"{'works' if works else 'fails'}, {offered} tool{'s' if offered != 1 else ''}"


async def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        prepare(folder)
        files = ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=temporary))
        threading.Thread(target=files.serve_forever, daemon=True).start()
        servers = public_servers(folder, f"http://127.0.0.1:{files.server_port}")
        install(servers)
        columns: dict[str, list[str]] = {}
        for agent in AGENTS:
            run, served = await run_agent(folder, agent, servers)
            (trial,) = run.trials()
            print(agent, trial.failure_message or trial.answer, flush=True)
            columns[f"{agent} {run.context['packages'].get(agent, '')}".strip()] = [
                cell(name, server, run, served) for name, server in servers.items()
            ]
        files.shutdown()
    write_table(servers, columns)


def write_table(servers: dict[str, PublicServer], columns: dict[str, list[str]]) -> None:
    lines = ["| server | " + " | ".join(columns) + " |", "| --- |" + " --- |" * len(columns)]
    for place, server in enumerate(servers.values()):
        package = server.package.replace("==", " ")
        lines.append(f"| `{package}` | " + " | ".join(cells[place] for cells in columns.values()) + " |")
    page = PAGE.read_text("utf-8")
    before, _, rest = page.partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}{chr(10).join(lines)}\n{rest[rest.index(END) :]}", "utf-8")


if __name__ == "__main__":
    asyncio.run(main())
