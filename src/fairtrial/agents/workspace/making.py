"""Making workspaces: a fresh folder for every attempt, from its files and setup commands, gone when the block ends."""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from fairtrial.agents.processes.process import Ended, exit_words, run
from fairtrial.agents.processes.supervised import private_temp_folder
from fairtrial.agents.workspace.archive import ArchiveError, remove, unpack
from fairtrial.agents.workspace.changes import FileChanges, Start, TooManyChangesError, apply_changes, read_changes
from fairtrial.agents.workspace.gateway import Address, address_of, gateway
from fairtrial.agents.workspace.sandbox import Confined, basic_environment, bubblewrap, container_name, docker
from fairtrial.agents.workspace.user import give_to_sandbox, take_back
from fairtrial.core.experiment import McpServer
from fairtrial.core.file import Attachment, File
from fairtrial.core.private import make_private
from fairtrial.core.secrets import is_private
from fairtrial.core.skill import FOLDER as SKILLS
from fairtrial.core.workspace import ARCHIVE, Enclosed, Network, WorkspaceSpec

CHANGES = "workspace"  # the name under which changes are stored with a trial
_MAX_SHOWN = 1000
_LONGEST_SOCKET = 100  # bytes of its path; systems take 107 or 103


class WorkspaceError(Exception):
    """A workspace cannot be made or kept; the message is one sentence."""


class LiveWorkspace:
    """A folder in which an agent, a setup command or a check works."""

    def __init__(self, spec: WorkspaceSpec, base: Path) -> None:
        self.spec, self.folder = spec, base / "work"
        self.shared: list[Path] = []  # folders of ours that every program here may write to
        self._base = base
        self.changed = FileChanges()  # what an agent did here before
        self._start: Start | None = None
        self._socket: Path | None = None
        self._addresses: tuple[Address, ...] = ()
        self._containers: list[str] = []

    def enclose(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        *,
        read: Sequence[Path] = (),
        write: Sequence[Path] = (),
        fixed: Sequence[Path] = (),
        network: Network | None = None,
    ) -> Enclosed:
        """Return how to start a program here, in the sandbox if there is one."""
        if self.spec.sandbox == "none":
            return Enclosed(list(command), dict(environment))
        whole = (self.spec.network if network is None else network) is True
        confined = Confined(
            folder=self.folder,
            command=command,
            environment=environment,
            read=(*read, *map(Path, self.spec.read)),
            write=(*write, *self.shared),
            fixed=tuple(fixed),
            network=whole,
            socket=None if whole else self._socket,
            addresses=self._addresses,
            processes=self.spec.processes,
            memory_mb=self.spec.memory_mb,
            disk_mb=self.spec.disk_mb,
            name=container_name() if self.spec.sandbox == "docker" else "",
        )
        if self.spec.sandbox == "bubblewrap":
            return bubblewrap(confined)
        self._containers.append(confined.name)
        return docker(confined, self.spec.image)

    def confinement(self) -> str:
        """Say what programs here may not do; empty without a sandbox."""
        if self.spec.sandbox == "none":
            return ""
        words = f"of the network only {', '.join(map(str, self._addresses))}"
        if isinstance(self.spec.network, bool):
            words = "the network" if self.spec.network else "no network"
        return f"in {self.spec.sandbox}, with {words}, it can read and write its workspace, but no home folder"

    async def run_script(
        self,
        script: str | Sequence[str],
        seconds: float,
        *,
        stdin: str = "",
        variables: Mapping[str, str] | None = None,
        read: Sequence[Path] = (),
        fixed: Sequence[Path] = (),
        network: Network | None = None,
    ) -> Ended:
        """Run a shell script or a program here; raise TimeoutError after this many seconds."""
        command = ["sh", "-c", script] if isinstance(script, str) else list(script)
        environment = {**self.environment(), **(variables or {})}
        enclosed = self.enclose(command, environment, read=read, fixed=fixed, network=network)
        return await run(enclosed.command, self.folder, enclosed.environment, seconds, stdin.encode())

    def environment(self) -> dict[str, str]:
        """Return the environment of setup commands and checks: in a sandbox little of ours, and never a credential."""
        if self.spec.sandbox != "none":
            return {**basic_environment(), "FAIRTRIAL_WORKSPACE": str(self.folder)}
        ours = {name: value for name, value in os.environ.items() if not is_private(name, value)}
        return {**ours, "FAIRTRIAL_WORKSPACE": str(self.folder)}

    def servers(self, servers: Sequence[McpServer]) -> tuple[McpServer, ...]:
        """Return MCP servers with the path of this folder in their settings, where they ask for it."""
        return tuple(server.placed(self.folder) for server in servers)

    async def open_gateway(self, stack: AsyncExitStack, addresses: Sequence[Address]) -> None:
        """Let programs in the sandbox connect to these addresses and to no others."""
        if self.spec.sandbox == "none" or not addresses:
            return
        folder = self._base / "out"
        if len(os.fsencode(folder / "socket")) > _LONGEST_SOCKET:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fairtrial-", dir="/tmp")))
        folder.mkdir(exist_ok=True)
        self._socket, self._addresses = folder / "socket", tuple(addresses)
        await stack.enter_async_context(gateway(self._socket, addresses))

    async def set_up(self, archives: Sequence[bytes], changes: bytes | None, skills: Sequence[bytes] = ()) -> None:
        """Fill the folder: files, setup commands, then what an agent changed before, in comparison with that start."""
        try:
            await asyncio.to_thread(self._fill, archives, skills)
            for script in self.spec.setup:
                await self._run_setup(script)
            self._start = await asyncio.to_thread(Start, self.folder, self._base / "start")
            if changes is not None:
                await asyncio.to_thread(apply_changes, changes, self.folder)
                self.changed = read_changes(changes)
        except (ArchiveError, OSError) as error:
            raise WorkspaceError(f"the workspace cannot be made: {error}") from None

    def _fill(self, archives: Sequence[bytes], skills: Sequence[bytes]) -> None:
        self.folder.mkdir()
        for body in archives:
            unpack(body, self.folder)
        for body in skills:
            (self.folder / SKILLS).mkdir(exist_ok=True)
            unpack(body, self.folder / SKILLS)
        if self.spec.sandbox != "none":  # now: later, giving files away would look like a change of them
            give_to_sandbox(self.folder)

    async def _run_setup(self, script: str) -> None:
        try:
            ended = await self.run_script(script, self.spec.timeout, network=True)
        except TimeoutError:
            limit = f"{self.spec.timeout:g} s"
            raise WorkspaceError(
                f"setup `{script}` took longer than {limit} (raise `timeout` of the workspace)"
            ) from None
        if ended.code:
            written = " ".join((ended.errors or ended.output).split())[-_MAX_SHOWN:]
            raise WorkspaceError(f"setup `{script}` {exit_words(ended.code)}" + (f": {written}" if written else ""))

    async def changes(self) -> tuple[File, dict[str, Any]]:
        """Return what has changed since the start, and the same for display; raise WorkspaceError if it is too much."""
        assert self._start is not None
        limit = self.spec.max_mb
        try:
            comparison = await asyncio.to_thread(self._start.compare, int(limit * 2**20))
        except TooManyChangesError as error:
            raise WorkspaceError(
                f"the workspace is too large: {error}, at most {limit:g} MB are kept (raise `max_mb` of the workspace)"
            ) from None
        except OSError as error:
            raise WorkspaceError(f"the workspace cannot be read: {error}") from None
        return File(name=CHANGES, media=ARCHIVE, body=comparison.archive), comparison.shown

    async def end_containers(self) -> None:
        """Remove the containers of programs that were stopped: ending docker's client does not end them."""
        for name in self._containers:
            process = await asyncio.create_subprocess_exec(
                "docker",
                "rm",
                "--force",
                name,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
            )
            await process.wait()


class Workspaces:
    """Makes the workspaces of one session, in a temporary folder of its own. An async context manager."""

    def __init__(
        self,
        load: Callable[[Attachment], Awaitable[File]],
        kept: Path | None = None,
        *,
        kind: type[LiveWorkspace] = LiveWorkspace,
    ) -> None:
        """`kind` is what it makes: others differ in how programs in them are started."""
        self._load, self._kept, self._kind = load, kept, kind
        self._root: Path | None = None

    async def __aenter__(self) -> Workspaces:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._root is not None:
            await asyncio.to_thread(shutil.rmtree, self._root, ignore_errors=True)

    @asynccontextmanager
    async def make(
        self, spec: WorkspaceSpec, changes: File | None = None, *, hosts: Sequence[str] = (), keep_as: str = ""
    ) -> AsyncIterator[LiveWorkspace]:
        """Make a workspace, in the state in which an agent left it if `changes` are given.

        `hosts` are where the agent's model is. Under the name `keep_as`, the folder stays on disk when the block ends.
        Raises WorkspaceError.
        """
        archives = [(await self._load(file)).body for file in spec.files]
        skills = [(await self._load(file)).body for file in spec.skills]
        if self._root is None:
            self._root = private_temp_folder("fairtrial-workspaces")
        base = Path(tempfile.mkdtemp(dir=self._root))
        workspace = self._kind(spec, base)
        async with AsyncExitStack() as stack:
            stack.push_async_callback(asyncio.to_thread, shutil.rmtree, base, ignore_errors=True)
            stack.push_async_callback(self._keep, workspace, keep_as)
            stack.push_async_callback(workspace.end_containers)
            await workspace.open_gateway(stack, _addresses(spec, hosts))
            await workspace.set_up(archives, changes.body if changes else None, skills)
            yield workspace

    async def _keep(self, workspace: LiveWorkspace, name: str) -> None:
        if name and self._kept is not None and workspace.spec.keep != "none" and workspace.folder.is_dir():
            await asyncio.to_thread(_move, workspace.folder, self._kept / name)

    async def forget(self, spec: WorkspaceSpec, name: str) -> None:
        """Remove a folder that was kept in case its trial would fail: it has succeeded."""
        if spec.keep == "failed" and self._kept is not None:
            await asyncio.to_thread(remove, self._kept / name)


def _move(folder: Path, place: Path) -> None:
    """Move a folder to where it is kept, for its user's eyes only: agents leave what they were given."""
    make_private(place.parent)
    remove(place)
    take_back(folder)
    shutil.move(folder, place, copy_function=_copy)
    place.chmod(0o700)


def _copy(source: str, target: str) -> None:
    """Copy what is a file, for a folder on another disk: pipes and sockets that an agent left cannot be copied."""
    if stat.S_ISREG(Path(source).lstat().st_mode):
        shutil.copy2(source, target)


def _addresses(spec: WorkspaceSpec, hosts: Sequence[str]) -> list[Address]:
    if isinstance(spec.network, bool):
        return []
    names = hosts if spec.network == "model" else spec.network
    return [address_of(name) for name in names]


def kept_name(case_id: str, trial_id: str) -> str:
    """Return the name of a trial's kept folder: readable, and like no other's."""
    readable = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in case_id)[:60]
    return f"{readable.strip('.')}-{trial_id.partition('/')[0]}"
