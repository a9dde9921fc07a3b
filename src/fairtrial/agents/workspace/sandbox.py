"""Sandboxes: command lines that start a program with nothing but its workspace to write to, and no network.

A program has no capabilities, cannot gain any, and has a user of its own: started by root, one that owns nothing but
the workspace; otherwise one in a namespace. It sees what it needs to run, file by file, and no other process.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from uuid import uuid4

import msgspec

from fairtrial.agents.processes.supervised import SUPERVISOR, WATCH
from fairtrial.agents.workspace.gateway import Address
from fairtrial.agents.workspace.installation import Needed, needed_by
from fairtrial.agents.workspace.syscalls import syscall_filter
from fairtrial.agents.workspace.user import can_change_user, give, others_may_read, own_user, take_back
from fairtrial.core.trust import may_run_code
from fairtrial.core.workspace import Enclosed, WorkspaceSpec

HOME = "/home/agent"  # empty, writable, and gone when the program ends
_TEMPORARY = ("/tmp", HOME, "/dev/shm")  # noqa: S108  # inside the sandbox
_PROXY_PORT = 3128
_RELAY = Path(__file__).with_name("relay.py")
_SYSTEM = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
# What programs need of /etc; the rest may hold secrets.
_ETC = (
    *("hosts", "nsswitch.conf", "protocols", "resolv.conf", "services"),
    *("ca-certificates", "crypto-policies", "ssl/cert.pem", "ssl/certs", "ssl/openssl.cnf"),
    *("pki/ca-trust", "pki/tls/cert.pem", "pki/tls/certs", "pki/tls/openssl.cnf"),
    *("alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "os-release", "shells"),
    *("fonts", "localtime", "magic", "mime.types", "terminfo", "timezone"),
)
_PASSED_ON = ("PATH", "LANG", "TERM", "TZ", "PYTHONUNBUFFERED")
_INSIDE = 1000  # a user in a namespace of its own
_ACCOUNTS = {
    "passwd": "root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\nagent:x:{user}:{user}::/home/agent:/bin/sh\n",
    "group": "root:x:0:\nnogroup:x:65534:\nagent:x:{user}:\n",
}
_FILTER = 9  # the file descriptor from which bubblewrap reads what may not be asked of the kernel
_WITH_FILTER = f'exec "$@" {_FILTER}< "$0"'
# Shells differ in the letter for processes. If memory runs out all the same, the kernel is to end these programs first.
_WITH_LIMITS = """{
ulimit -c 0; ulimit -f "$1"; ulimit -u "$2" || ulimit -p "$2"; echo 1000 > /proc/self/oom_score_adj
} 2> /dev/null; shift 2; exec "$@"
"""
_BLOCK = 512  # bytes, in which shells count the sizes of files
_MB = 2**20
_COUNTS_BY_NAMESPACE = (5, 14)  # before this Linux, a limit of processes counts all that the user has


class Confined(msgspec.Struct, frozen=True, kw_only=True):
    """A program that is to run in a sandbox, and what it may use."""

    folder: Path
    command: Sequence[str]
    environment: Mapping[str, str]
    read: tuple[Path, ...] = ()
    write: tuple[Path, ...] = ()
    fixed: tuple[Path, ...] = ()  # files in these folders that may only be read
    network: bool = False  # all of it
    socket: Path | None = None  # of the gateway
    addresses: tuple[Address, ...] = ()  # that the gateway leads to
    name: str = ""  # of the container
    processes: int = WorkspaceSpec().processes
    memory_mb: float = WorkspaceSpec().memory_mb
    disk_mb: float = WorkspaceSpec().disk_mb

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
            self, command=command, environment=environment, read=(*self.read, _RELAY, self.socket)
        )

    def watched(self, *, memory: bool) -> dict[str, str]:
        """Return the word for the supervisor to end the program if it takes too much memory or disk."""
        limits = [f"{self.memory_mb if memory else 0:g}", f"{self.disk_mb:g}"]
        return {WATCH: "\n".join([*limits, *map(str, (self.folder, *self.write))])}


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
    if sys.platform != "linux":
        return "bubblewrap is for Linux: use `sandbox: docker`"
    if shutil.which("bwrap") is None:
        return "there is no program `bwrap`: install it (apt-get install bubblewrap), or use `sandbox: docker`"
    return _trial() if may_run_code() else ""  # who only looks starts no program, not even this one


@lru_cache
def _trial() -> str:
    """Return why bubblewrap does not work; empty if it does."""
    trial = ["bwrap", *_isolation(None), "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "true"]
    done = subprocess.run(trial, capture_output=True, timeout=60, check=False)
    reason = " ".join(done.stderr.decode("utf-8", "replace").split())
    return f"bubblewrap cannot be used on this machine: {reason}" if done.returncode else ""


@lru_cache
def _options_of_bubblewrap() -> str:
    return subprocess.run(["bwrap", "--help"], capture_output=True, check=False, timeout=60).stdout.decode()  # noqa: S607


def bubblewrap(confined: Confined) -> Enclosed:
    """Return the command line of a program in bubblewrap."""
    needed = needed_by(confined.command[0], confined.environment.get("PATH"))
    confined = confined.with_relay()
    readable = list(_readable(confined, needed))
    user = _user_of(confined, [*needed.paths, *confined.read])
    base = confined.folder.parent  # a private folder of ours
    command = ["bwrap", *_isolation(user), *(["--share-net"] if confined.network and user is None else [])]
    if user is not None and not confined.network:
        command.append("--unshare-net")
    command += ["--hostname", "sandbox", "--die-with-parent", "--new-session", *_system_binds()]
    command += [*_accounts(base, _INSIDE if user is None else user), "--proc", "/proc", "--dev", "/dev"]
    command += [part for name in _TEMPORARY for part in _temporary(name, int(confined.memory_mb * _MB / 4))]
    command += [*_closed_proc(), "--remount-ro", "/dev"]
    writable = list(map(str, (confined.folder, *confined.write)))
    command += _parents([*readable, *map(str, needed.links), *writable])
    command += [part for path in readable for part in ("--ro-bind", path, path)]
    command += [part for link, target in _links(needed, readable) for part in ("--symlink", target, link)]
    command += [part for path in writable for part in ("--bind", path, path)]
    command += [part for path in confined.fixed for part in ("--ro-bind", str(path), str(path))]
    command += ["--chdir", str(confined.folder), "--remount-ro", "/"]
    if calls := syscall_filter():
        command = ["sh", "-c", _WITH_FILTER, _written(base / "filter", calls), *command, "--seccomp", str(_FILTER)]
    command += ["--", *_limited(confined, user), *confined.command]
    variables = {**confined.environment, "HOME": HOME, "TMPDIR": "/tmp"}  # noqa: S108
    return Enclosed(command, {**variables, **confined.watched(memory=True)})


def _isolation(user: int | None) -> Iterator[str]:
    """Yield the options that separate: into namespaces, without capabilities.

    Root stays root until it becomes the `user`, for which it needs two capabilities that go with it.
    """
    if user is None:
        yield from ("--unshare-all", "--unshare-user", "--uid", str(_INSIDE), "--gid", str(_INSIDE))
        if not syscall_filter() and "--disable-userns" in _options_of_bubblewrap():
            yield "--disable-userns"
        yield from ("--cap-drop", "ALL")
    else:
        yield from ("--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try")
        yield from ("--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID")


def _user_of(confined: Confined, readable: Iterable[Path]) -> int | None:
    """Return the user that a program of root becomes; None if it cannot, or could not read what it needs then."""
    user = _given(confined) if can_change_user() and all(map(others_may_read, readable)) else None
    if user is None:
        for folder in (confined.folder, *confined.write):
            take_back(folder)
    return user


def _given(confined: Confined) -> int | None:
    """Give what a program may write to its user; return None where that is not possible, as on some shared disks."""
    user = own_user(confined.folder)
    try:
        for folder in (confined.folder, *confined.write):
            give(folder, user)
    except OSError:
        return None
    return user


def _limited(confined: Confined, user: int | None) -> list[str]:
    """Return the beginning of a command line that sets limits, and leaves root."""
    release = tuple(int(part) for part in os.uname().release.split("-")[0].split(".")[:2])
    counted = user is not None or release >= _COUNTS_BY_NAMESPACE
    blocks = int(confined.disk_mb * _MB / _BLOCK)
    command = ["sh", "-c", _WITH_LIMITS, "sh", str(blocks), str(confined.processes) if counted else "unlimited"]
    if user is not None:
        ids = ["--reuid", str(user), "--regid", str(user), "--clear-groups", "--inh-caps=-all"]
        command += ["setpriv", *ids]
    return command


def _accounts(base: Path, user: int) -> Iterator[str]:
    """Yield the options for a list of users with the program's own; that of this machine would tell who works here."""
    for name, text in _ACCOUNTS.items():
        file = _written(base / f"{name}-{user}", text.format(user=user).encode())
        yield from ("--ro-bind", file, f"/etc/{name}")


def _written(path: Path, body: bytes) -> str:
    """Return the path of a file of ours next to a workspace, which is written once."""
    if not path.exists():
        path.write_bytes(body)
    return str(path)


def _temporary(place: str, size: int) -> Iterator[str]:
    yield from ("--perms", "1777")
    if "--size" in _options_of_bubblewrap():
        yield from ("--size", str(size))
    yield from ("--tmpfs", place)


@lru_cache
def _closed_proc() -> list[str]:
    """Return the options that forbid writing to the shared part of /proc: root may without any capability."""
    shared = [path for path in sorted(Path("/proc").iterdir()) if not (path.name.isdigit() or path.is_symlink())]
    closed = [str(path) for path in shared if path.is_dir() or path.stat().st_mode & 0o222]
    return [part for path in closed for part in ("--ro-bind", path, path)]


def _parents(paths: Iterable[str]) -> Iterator[str]:
    """Yield the options that make the folders around these paths, which bubblewrap would make for root alone."""
    system = tuple(f"{place}/" for place in ("/usr", *_SYSTEM))
    folders = {folder for path in set(map(os.path.dirname, paths)) for folder in (path, *map(str, Path(path).parents))}
    for folder in sorted(folders - {"/", *_TEMPORARY}):
        if not folder.startswith(system):
            yield from ("--perms", "0755", "--dir", folder)


def docker(confined: Confined, image: str) -> Enclosed:
    """Return the command line of a program in a container that is removed when it ends."""
    confined = confined.with_relay()
    user = _given(confined) if os.getuid() == 0 else None
    ids = f"{os.getuid()}:{os.getgid()}" if user is None else f"{user}:{user}"
    memory, size = f"{confined.memory_mb:.0f}m", f"{confined.memory_mb / 4:.0f}m"
    command = ["docker", "run", "--rm", "--interactive", "--init", "--name", confined.name, "--read-only"]
    command += ["--network", "bridge" if confined.network else "none", "--user", ids, "--hostname", "sandbox"]
    command += ["--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--pids-limit", str(confined.processes)]
    command += ["--memory", memory, "--memory-swap", memory, "--shm-size", size, "--ipc", "private"]
    command += ["--ulimit", "core=0", "--ulimit", f"fsize={int(confined.disk_mb * _MB)}", "--log-driver", "none"]
    command += [part for place in _TEMPORARY[:2] for part in ("--tmpfs", f"{place}:exec,mode=1777,size={size}")]
    paths = dict.fromkeys(str(path) for path in confined.read if path.exists())
    command += [part for path in paths for part in ("--volume", f"{path}:{path}:ro")]
    command += [part for path in (confined.folder, *confined.write) for part in ("--volume", f"{path}:{path}")]
    command += [part for path in confined.fixed for part in ("--volume", f"{path}:{path}:ro")]
    environment = {name: value for name, value in confined.environment.items() if name != "PATH"}
    # Only names: the values come from docker's own environment, for command lines can be read by everybody.
    command += [part for name in environment for part in ("--env", name)]
    command += ["--env", f"HOME={HOME}", "--workdir", str(confined.folder), image, *confined.command]
    return Enclosed(command, {**os.environ, **environment, **confined.watched(memory=False)})


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
    present = [f"/etc/{name}" for name in _ETC if os.path.lexists(f"/etc/{name}")]
    yield from _parents(present)
    yield from (part for name in _ETC for part in ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}"))


def _readable(confined: Confined, needed: Needed) -> Iterator[str]:
    """Yield the paths that a program needs to run, apart from the system's, parents first."""
    too_much = {Path("/"), Path.home(), *Path.home().parents}
    wanted = {path for path in (SUPERVISOR, *needed.paths, *confined.read) if path.exists()}
    bound = [Path("/usr"), *map(Path, _SYSTEM)]
    for path in sorted(wanted - too_much):  # parents first: what they contain need not be bound again
        if not any(path.is_relative_to(parent) for parent in bound):
            bound.append(path)
            yield str(path)


def _links(needed: Needed, bound: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the links that lead to what is bound, unless they are within it."""
    places = [Path("/usr"), Path("/etc/alternatives"), *map(Path, (*_SYSTEM, *bound))]
    for link, target in needed.links.items():
        if not any(link.is_relative_to(place) for place in places):
            yield str(link), str(target)
