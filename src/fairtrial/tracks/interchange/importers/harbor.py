"""Import tasks of Harbor, which Terminal-Bench 2 is made of: folders with `task.toml`, `instruction.md` and tests.

A task there is a container with absolute paths. Here an agent works in a folder of its own: paths below the container's
working directory become paths in that folder, in the instruction and in the tests, which are written next to the suite.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from fairtrial.core.errors import FairtrialError
from fairtrial.core.variables import escape
from fairtrial.foreign.suites import FileRef, Imported, expecting, read_text
from fairtrial.tracks.interchange.importers._tasks import AGENT, Findings, as_written, check_exists

PLACE = ".harbor"  # in a workspace, while it is checked: the tests, and what they write
_TOP = {"version", "schema_version", "task", "metadata", "verifier", "agent", "environment", "solution", "artifacts"}
_RESOURCES = {"cpus", "memory", "memory_mb", "storage", "storage_mb", "gpus", "build_timeout_sec", "os"}
_CHECK = f"""\
# Runs the tests and says their reward as fairtrial reads it: the last line is JSON with a score.
cd "${{FAIRTRIAL_WORKSPACE:-.}}" || exit 126
# Whatever else is there, the agent left: a reward, or files that change what the tests do.
chmod -R u+rwX {PLACE}
python3 -I - {PLACE} <<'END' || exit 126
import os, sys
brought = BROUGHT
for folder, folders, files in os.walk(sys.argv[1], topdown=False):
    for path in (os.path.join(folder, name) for name in files + folders):
        if os.path.isdir(path) and not os.path.islink(path):
            if not os.listdir(path):
                os.rmdir(path)
        elif os.path.islink(path) or os.path.relpath(path, sys.argv[1]) not in brought:
            os.remove(path)
END
mkdir -p {PLACE}/logs/verifier
bash {PLACE}/tests/test.sh >{PLACE}/logs/output.txt 2>&1
code=$?
tail -n 20 {PLACE}/logs/output.txt
python3 -I - {PLACE}/logs/verifier "$code" <<'END'
import json, pathlib, sys
folder, code = pathlib.Path(sys.argv[1]), sys.argv[2]
if (folder / "reward.json").is_file():
    rewards = json.loads((folder / "reward.json").read_text())
elif (folder / "reward.txt").is_file():
    rewards = {{"reward": float((folder / "reward.txt").read_text())}}
else:
    sys.exit(f"the tests wrote no reward (exit code {{code}})")
values = [value for value in rewards.values() if isinstance(value, (int, float))]
score = 100 * rewards.get("reward", sum(values) / max(1, len(values)))
print(json.dumps({{"score": score, "notes": json.dumps(rewards)}}))
END
"""


class Harbor:
    """Imports one task of Harbor, or a folder of them."""

    def read(self, file: Path) -> Imported:
        """Convert tasks into a suite; `file` is the folder of a task, its `task.toml`, or a folder of such folders."""
        check_exists(file)
        place = file.parent if file.name == "task.toml" else file
        folders = [place] if (place / "task.toml").is_file() else sorted(p.parent for p in place.glob("*/task.toml"))
        if not folders:
            old = " (task.yaml is Terminal-Bench 1: `harbor` converts it)" if list(place.glob("**/task.yaml")) else ""
            raise FairtrialError(f"{file} has no task.toml: name the folder of a task, or a folder of tasks{old}")
        findings, cases, limits = Findings(), [], []
        files: dict[str, list[str | FileRef]] = {}
        for folder in folders:
            with expecting(folder / "task.toml", "a task of Harbor"):
                task = _Task(folder, findings)
                cases.append(as_written(task.case()))
                files |= task.files
                limits.append(task.limit)
        suite = {
            "name": escape(place.resolve().name),
            "targets": [AGENT],
            "timeout": max(limits),
            "workspace": {"keep": "failed"},
            "cases": cases,
        }
        differences = [
            "the working directory of a container is the workspace here: paths below it are relative in instructions "
            "and tests",
            f"an agent may take {max(limits):g} s on every task, the longest limit of any",
        ]
        return Imported(suite, findings.listed(), differences, files)


class _Task:
    def __init__(self, folder: Path, findings: Findings) -> None:
        self._folder, self._findings, self._name = folder, findings, folder.resolve().name
        try:
            self._config: dict[str, Any] = tomllib.loads(read_text(folder / "task.toml"))
        except tomllib.TOMLDecodeError as error:
            raise FairtrialError(f"{folder / 'task.toml'} is not valid TOML: {error}") from None
        self.limit = float(self._section("agent").get("timeout_sec") or 600)
        self.files: dict[str, list[str | FileRef]] = {}

    def _section(self, name: str) -> dict[str, Any]:
        return self._config.get(name) or {}

    def case(self) -> dict[str, Any]:
        metadata, task = self._section("metadata"), self._section("task")
        workdir, files, setup = self._image()
        self._report()
        case: dict[str, Any] = {"id": self._name, "input": self._relative(self._instruction(), workdir)}
        if tags := [str(tag) for tag in (metadata.get("tags") or task.get("keywords") or ())]:
            case["tags"] = tags
        case |= {key: str(metadata[key]) for key in ("category", "difficulty") if metadata.get(key)}
        workspace: dict[str, Any] = {"files": files} if files else {}
        workspace |= {"setup": setup} if setup else {}
        tests = self._tests(workdir)
        check: dict[str, Any] = {"type": "check", "command": f"bash {PLACE}/check.sh", "files": tests}
        check["timeout"] = float(self._section("verifier").get("timeout_sec") or 600)
        return {**case, **({"workspace": workspace} if workspace else {}), "scorer": check}

    def _instruction(self) -> str:
        text = self._findings.text_inside(self._folder, "instruction.md", self._name)
        if text is None:
            raise FairtrialError(f"{self._folder / 'instruction.md'} is a link to a file outside of the task")
        return text.strip()

    def _report(self) -> None:
        add, environment = self._findings.add, self._section("environment")
        self._findings.unknown(self._config, _TOP, "section `{}` of tasks", self._name)
        if "docker_image" in environment:
            add(
                "the image of the container: install what the tasks need, or set `workspace: {sandbox: docker, image: "
                "…}` with an image that has the agent too",
                self._name,
            )
        if environment.get("allow_internet") is False or environment.get("network_mode") == "no-network":
            add("tasks without the internet: set `workspace: {sandbox: bubblewrap, network: model}`", self._name)
        if environment.get("mcp_servers"):
            add("MCP servers of the container: add them under `mcp_servers` and to a condition", self._name)
        for section in ("verifier", "environment"):
            if self._section(section).get("env"):
                add(f"variables under `{section}.env`: set them where you run the suite", self._name)
        if _RESOURCES & set(environment):
            add("limits of processor, memory and disk: `resources` on a target limits how many trials run at once")
        if (self._folder / "environment" / "docker-compose.yaml").is_file():
            add("further containers (docker-compose.yaml): start them before the run", self._name)
        if self._config.get("steps"):
            add("tasks of several steps: only the first instruction is asked", self._name)

    def _image(self) -> tuple[str, list[FileRef], list[str]]:
        """Return the working directory, files and setup: what is copied there comes along, what is run does not."""
        path = self._folder / "environment" / "Dockerfile"
        if not path.is_file():
            return "/app", [], []
        workdir = ""
        files: list[FileRef] = []
        setup: list[str] = []
        for line in re.sub(r"\\\n", " ", read_text(path)).splitlines():
            word, _, rest = line.strip().partition(" ")
            if word.upper() == "WORKDIR":
                workdir = workdir or rest.strip().strip('"').rstrip("/")
            elif word.upper() in ("COPY", "ADD"):
                self._copy(rest, workdir or "/", files, setup)
            elif word.upper() == "RUN":
                self._findings.add(
                    "commands that build the container (RUN): do by hand what the tasks need, or name `setup` commands",
                    self._name,
                )
            elif word.upper() in ("ENV", "ENTRYPOINT", "CMD", "USER", "EXPOSE"):
                self._findings.add(f"{word.upper()} of the container", self._name)
        return workdir or "/app", files, setup

    def _copy(self, arguments: str, workdir: str, files: list[FileRef], setup: list[str]) -> None:
        parts = [part for part in arguments.split() if not part.startswith("--")]
        *sources, target = parts
        place = target.rstrip("/") if target.startswith("/") else f"{workdir}/{target}".rstrip("/.")
        for source in sources:
            path = self._findings.inside(self._folder / "environment", source.lstrip("/"), self._name)
            if path is None:
                continue
            inside = place == workdir or place.startswith(f"{workdir}/")
            if not (inside and path.exists()) or (path.is_dir() and place != workdir):
                self._findings.add("files copied to other places of the container (COPY)", self._name)
                continue
            files.append(FileRef(path))
            if path.is_dir() and path.resolve() == (self._folder / "environment").resolve():
                setup.append("rm -f Dockerfile docker-compose.yaml .dockerignore")
            relative = place.removeprefix(workdir).strip("/")
            if relative and relative != path.name:
                goal = f"{relative}/{path.name}" if target.endswith("/") else relative
                setup.append(f"mkdir -p $(dirname '{goal}') && mv '{path.name}' '{goal}'")

    def _tests(self, workdir: str) -> str:
        """Write the tests with relative paths next to the suite; return the folder that the check takes them from."""
        source, target = self._folder / "tests", f"{self._name}.tests"
        if not (source / "test.sh").is_file():
            raise FairtrialError(f"{source} has no test.sh")
        brought = ["check.sh"]
        names = sorted(path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file())
        for name in names:
            path = self._findings.inside(self._folder, f"tests/{name}", self._name)
            if path is None:
                continue
            brought.append(f"tests/{name}")
            try:
                self.files[f"{target}/{PLACE}/tests/{name}"] = [self._relative(path.read_text("utf-8"), workdir)]
            except UnicodeDecodeError:
                self._findings.add("tests that are not text: copy them into the folder of the tests", self._name)
        self.files[f"{target}/{PLACE}/check.sh"] = [_CHECK.replace("BROUGHT", repr(brought))]
        return target

    def _relative(self, text: str, workdir: str) -> str:
        for place, here in ((workdir, "."), ("/tests", f"./{PLACE}/tests"), ("/logs", f"./{PLACE}/logs")):
            if place not in ("", "/"):
                text = re.sub(rf"(?<![\w.$}}/-]){re.escape(place)}(?![\w-])", here, text)
        return text
