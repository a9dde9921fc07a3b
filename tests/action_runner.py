"""What GitHub's runner does with a composite action: inputs filled in, steps in order, `always()` after a failure.

Steps that use other actions are done by hand: the cache keeps a file between jobs, artefacts are copied.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import yaml

HERE = Path(__file__).parents[1]
_EXPRESSION = re.compile(r"\$\{\{\s*([\w.-]+)\s*\}\}")


class Job(NamedTuple):
    """How a job ended: the first exit code that is not 0, what it printed, its outputs and artefacts."""

    code: int
    printed: str
    result: str
    artefacts: list[str]
    summary: str


async def run_action(
    folder: Path, cache: Path, *, inputs: dict[str, str], environment: dict[str, str], event: dict[str, Any], path: str
) -> Job:
    """Run the action of this repository in a checked-out folder; its programs are found on `path`."""
    action = yaml.safe_load((HERE / "action.yml").read_text("utf-8"))
    values = {f"inputs.{name}": str(one.get("default", "")) for name, one in action["inputs"].items()}
    values |= {f"inputs.{name}": value for name, value in inputs.items()}
    values |= {"github.token": "job-token", "github.run_id": "7", "github.run_attempt": "1", "github.job": "gate"}
    values |= {"github.action_path": str(HERE), "strategy.job-index": "0", "steps.gate.outputs.name": "suite.yaml"}
    runner = folder.parent / f"runner-{folder.name}"
    runner.mkdir(exist_ok=True)
    (runner / "event.json").write_text(json.dumps(event))
    base = {
        **environment,
        "PATH": f"{path}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(runner),
        "GITHUB_ACTIONS": "true",
        "GITHUB_ACTION_PATH": str(HERE),
        "GITHUB_EVENT_PATH": str(runner / "event.json"),
        "GITHUB_OUTPUT": str(runner / "output"),
        "GITHUB_STEP_SUMMARY": str(runner / "summary"),
        "GITHUB_SERVER_URL": "https://github.example",
        "GITHUB_RUN_ID": "7",
    }

    def filled(text: str) -> str:
        return _EXPRESSION.sub(lambda match: values[match[1]], text)

    code, printed = 0, ""
    for step in action["runs"]["steps"]:
        condition = step.get("if", "success()")
        if "inputs.install" in condition and values["inputs.install"] != "true":
            continue
        if code and condition != "always()":
            continue
        if "uses" in step:
            assert re.search(r"@[0-9a-f]{40}$", step["uses"]), f"{step['uses']} is not pinned"
            _use(step["uses"], {name: filled(str(value)) for name, value in step["with"].items()}, folder, cache)
            continue
        own = {name: filled(str(value)) for name, value in step.get("env", {}).items()}
        assert "${{" not in step["run"], "what people write must not become code"
        process = await asyncio.create_subprocess_exec(
            "bash", "-e", "-o", "pipefail", "-c", step["run"], cwd=folder, env={**base, **own},
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        out, _ = await process.communicate()
        printed += out.decode()
        code = code or process.returncode or 0
    output = (runner / "output").read_text() if (runner / "output").exists() else ""
    summary = (runner / "summary").read_text() if (runner / "summary").exists() else ""
    artefacts = sorted(path.name for path in (folder / "fairtrial-gate").glob("*"))
    return Job(code, printed, output.strip().splitlines()[-1:] and output.strip().splitlines()[-1], artefacts, summary)


def _use(action: str, options: dict[str, str], folder: Path, cache: Path) -> None:
    """Do what another action would do, as far as it matters here."""
    kept = cache / "store"
    if action.startswith("actions/cache/restore") and kept.exists():
        (folder / options["path"]).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(kept, folder / options["path"])
    elif action.startswith("actions/cache/save"):
        cache.mkdir(exist_ok=True)
        shutil.copy(folder / options["path"], kept)
