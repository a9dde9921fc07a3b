"""Sandboxes: command lines that start a program with nothing but its workspace to write to, and no network."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from uuid import uuid4

import msgspec

from fairtrial.core.trust import may_run_code
from fairtrial.core.workspace import Enclosed, WorkspaceSpec
from fairtrial.toolbox.supervised import SUPERVISOR
from fairtrial.workspace.gateway import Address

HOME = "/home/agent"  # empty, writable, and gone when the program ends
_PROXY_PORT = 3128
_RELAY = Path(__file__).with_name("relay.py")
_SYSTEM = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
# What programs need of /etc; the rest may hold secrets.
_ETC = (
    "alternatives",
    "ca-certificates",
    "crypto-policies",
    "fonts",
    "group",
    "hosts",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "magic",
    "mime.types",
    "nsswitch.conf",
    "os-release",
    "passwd",
    "pki",
    "protocols",
    "resolv.conf",
    "services",
    "shells",
    "ssl",
    "terminfo",
    "timezone",
)
_PASSED_ON = ("PATH", "LANG", "TERM", "TZ", "PYTHONUNBUFFERED")


class Confined(msgspec.Struct, frozen=True, kw_only=True):
    """A program that is to run in a sandbox, and what it may use."""

    folder: Path
    command: Sequence[str]
    environment: Mapping[str, str]
    read: tuple[Path, ...] = ()
    write: tuple[Path, ...] = ()
    network: bool = False  # all of it
    socket: Path | None = None  # of the gateway
    addresses: tuple[Address, ...] = ()  # that the gateway leads to
    name: str = ""  # of the container

    def with_relay(self) -> Confined:
        """Return the program with the inner end of the way out, if there is one."""
        if self.socket is None:
            return self
        local = [address for address in self.addresses if address.is_loopback]
        port = next(port for port in range(_PROXY_PORT, 65536) if port not in {address.port for address in local})
        proxy = f"http://127.0.0.1:{port}"
        names = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")
        environment = {**self.environment, **dict.fromkeys(names, proxy), "NO_PROXY": "127.0.0.1,localhost"}
        ports = [str(port), *(f"{address.port}={address}" for address in local)]
        python = sys.executable if not self.name else "python3"
        command = [python, "-I", "-S", str(_RELAY), str(self.socket), *ports, "--", *self.command]
        return msgspec.structs.replace(
            self, command=command, environment=environment, read=(*self.read, _RELAY, self.socket.parent)
        )


def basic_environment() -> dict[str, str]:
    """Return what of our environment programs in a sandbox get; everything else must be set in the suite."""
    return {name: value for name, value in os.environ.items() if name in _PASSED_ON or name.startswith("LC_")}


def sandbox_problem(spec: WorkspaceSpec) -> str:
    """Return why a sandbox cannot be used on this machine; empty if it can."""
    if spec.sandbox == "bubblewrap":
        return _bubblewrap_problem()
    if spec.sandbox == "docker":
        if not spec.image:
            return "a docker sandbox needs an `image` with the programs that the agent uses"
        if shutil.which("docker") is None:
            return "there is no program `docker`: install Docker, or use `sandbox: bubblewrap`"
    return ""


def _bubblewrap_problem() -> str:
    if shutil.which("bwrap") is None:
        return "there is no program `bwrap`: install it (apt-get install bubblewrap), or use `sandbox: docker`"
    if not may_run_code():  # who only looks starts no program, not even this one
        return ""
    trial = ["bwrap", "--unshare-all", "--cap-drop", "ALL", "--ro-bind", "/", "/", "true"]
    done = subprocess.run(trial, capture_output=True, timeout=60, check=False)
    reason = " ".join(done.stderr.decode("utf-8", "replace").split())
    return f"bubblewrap cannot be used on this machine: {reason}" if done.returncode else ""


def bubblewrap(confined: Confined) -> Enclosed:
    """Return the command line of a program in bubblewrap."""
    confined = confined.with_relay()
    folder = str(confined.folder)
    command = ["bwrap", "--unshare-all", *(["--share-net"] if confined.network else ["--hostname", "sandbox"])]
    command += ["--cap-drop", "ALL"]  # root, the usual user in containers, could mount what is bound read-only anew
    command += ["--die-with-parent", "--new-session", *_system_binds(), "--proc", "/proc", "--dev", "/dev"]
    command += ["--tmpfs", "/tmp", "--tmpfs", HOME]  # noqa: S108  # inside the sandbox
    command += [part for path in _readable(confined) for part in ("--ro-bind", path, path)]
    command += [part for path in map(str, (confined.folder, *confined.write)) for part in ("--bind", path, path)]
    command += ["--chdir", folder, "--", *confined.command]
    return Enclosed(command, {**confined.environment, "HOME": HOME, "TMPDIR": "/tmp"})  # noqa: S108


def docker(confined: Confined, image: str) -> Enclosed:
    """Return the command line of a program in a container that is removed when it ends."""
    confined = confined.with_relay()
    command = ["docker", "run", "--rm", "--interactive", "--init", "--name", confined.name, "--read-only"]
    command += ["--network", "bridge" if confined.network else "none", "--user", f"{os.getuid()}:{os.getgid()}"]
    command += ["--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--pids-limit", "1024"]
    command += ["--tmpfs", "/tmp:exec,mode=1777", "--tmpfs", f"{HOME}:exec,mode=1777"]  # noqa: S108
    paths = dict.fromkeys(str(path) for path in confined.read if path.exists())
    command += [part for path in paths for part in ("--volume", f"{path}:{path}:ro")]
    command += [part for path in (confined.folder, *confined.write) for part in ("--volume", f"{path}:{path}")]
    environment = {name: value for name, value in confined.environment.items() if name != "PATH"}
    # Only names: the values come from docker's own environment, for command lines can be read by everybody.
    command += [part for name in environment for part in ("--env", name)]
    command += ["--env", f"HOME={HOME}", "--workdir", str(confined.folder), image, *confined.command]
    return Enclosed(command, {**os.environ, **environment})


def container_name() -> str:
    """Return a name for a container that no other has."""
    return f"fairtrial-{uuid4().hex}"


def _system_binds() -> Iterator[str]:
    yield from ("--ro-bind", "/usr", "/usr")
    for path in map(Path, _SYSTEM):
        if path.is_symlink():
            yield from ("--symlink", str(path.readlink()), str(path))
        elif path.is_dir():
            yield from ("--ro-bind", str(path), str(path))
    yield from (part for name in _ETC for part in ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}"))


def _readable(confined: Confined) -> Iterable[str]:
    """Return the paths that a program needs to run, apart from the system's, parents first."""
    program = shutil.which(confined.command[0], path=confined.environment.get("PATH"))
    wanted = [Path(sys.prefix), Path(sys.base_prefix), SUPERVISOR, *_installation(program), *confined.read]
    too_much = {Path("/"), Path("/usr"), Path.home()}
    known = {path for path in wanted if path.exists() and path not in too_much}
    bound = [Path("/usr")]
    for path in sorted(known):  # parents first: what they contain need not be bound again
        if not any(path.is_relative_to(parent) for parent in bound):
            bound.append(path)
    return map(str, bound[1:])


def _installation(program: str | None) -> list[Path]:
    """Return where a program is installed, with what lies beside it: `…/bin/name` needs all of `…`."""
    if program is None:
        return []
    paths = [Path(program), Path(program).resolve()]
    return [path.parent.parent if path.parent.name == "bin" else path for path in paths]
