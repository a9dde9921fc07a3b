"""Supervise a program: `python supervisor.py PROGRAM ARGS…` runs it, and kills it with all its children when we end.

Our parent may be killed in a way that leaves no time to clean up. On Linux the kernel then sends us SIGTERM, and we
kill the program and everything it has started that is still in our process group: a wrapper like npx or `sh -c` would
otherwise leave children behind. The program itself dies even if we are killed with SIGKILL.

Three environment variables are for us and are not passed on: FAIRTRIAL_KEEP lists the variables (separated by commas)
that the program may see, FAIRTRIAL_CWD is the folder in which it starts, and FAIRTRIAL_HIDE is a capability of MCP
clients to hide from a server (`roots`: the agent's folders, which the server would use as its own). This file runs
on its own, without the package and without site packages, so that starting it takes only 15 ms.
"""

import _thread
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Run the program and exit with its status."""
    parent = os.getppid()
    hidden = os.environ.pop("FAIRTRIAL_HIDE", None)
    environment = _environment()
    try:
        os.setsid()  # create our own process group, unless we already lead one
    except OSError:
        pass
    child = 0

    def stop(*_: object) -> None:
        _kill_group(child)
        os._exit(143)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, stop)
    _die_with_parent(signal.SIGTERM)
    if os.getppid() != parent:  # the parent ended while we were starting
        sys.exit(1)
    pipe = os.pipe() if hidden else None
    child = os.fork()
    if child == 0:
        if pipe:
            os.dup2(pipe[0], 0)
        _exec_program(environment)
    if hidden and pipe:
        os.close(pipe[0])
        _thread.start_new_thread(_forward_input, (pipe[1], hidden))
    _, status = os.waitpid(child, 0)
    _kill_group(0)
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)


def _forward_input(program: int, hidden: str) -> None:
    """Forward our input to the program line by line, removing the hidden capability from messages that announce it."""
    mark, rest = f'"{hidden}"'.encode(), bytearray()
    try:
        while block := os.read(0, 2**16):
            rest += block
            if b"\n" in block:
                *lines, last = bytes(rest).split(b"\n")
                rest = bytearray(last)
                for line in lines:
                    _write(program, (_without_capability(line, hidden) if mark in line else line) + b"\n")
        _write(program, bytes(rest))
    except OSError:  # the program has ended
        return
    os.close(program)


def _without_capability(line: bytes, hidden: str) -> bytes:
    """Return an MCP client's message without this capability; return anything else unchanged."""
    import json

    try:
        message = json.loads(line)
        params = message["params"]
        places = (params, "capabilities"), (params.get("_meta"), "io.modelcontextprotocol/clientCapabilities")
        announced = [place[name] for place, name in places if isinstance(place, dict) and hidden in place.get(name, ())]
        for capabilities in announced:
            del capabilities[hidden]
    except (ValueError, TypeError, KeyError, AttributeError):
        return line
    return json.dumps(message).encode() if announced else line


def _write(file: int, data: bytes) -> None:
    while data:
        data = data[os.write(file, data) :]


def _environment() -> "dict[str, str]":
    environment = dict(os.environ)
    kept = environment.pop("FAIRTRIAL_KEEP", None)
    folder = environment.pop("FAIRTRIAL_CWD", None)
    if folder:
        os.chdir(folder)
    if kept is None:
        return environment
    names = set(kept.split(","))
    return {name: value for name, value in environment.items() if name in names}


def _exec_program(environment: "dict[str, str]") -> None:
    """In the child: replace the process by the program, which dies with its parent."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    _die_with_parent(signal.SIGKILL)
    try:
        os.execvpe(sys.argv[1], sys.argv[1:], environment)  # noqa: S606  # running a program is its purpose
    except OSError as error:
        os.write(2, f"{sys.argv[1]} cannot be started: {error.strerror}\n".encode())
        os._exit(127)


def _die_with_parent(number: int) -> None:
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)


def _kill_group(child: int) -> None:
    """Kill everything in our process group except ourselves."""
    if child:
        _kill(child)
    group, own = os.getpgrp(), os.getpid()
    for name in os.listdir("/proc") if os.path.isdir("/proc/self") else ():
        if not name.isdigit() or int(name) == own:
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group:
            _kill(int(name))


def _kill(process: int) -> None:
    try:
        os.kill(process, signal.SIGKILL)
    except OSError:
        pass


if __name__ == "__main__":
    main()
