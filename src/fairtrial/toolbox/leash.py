"""A program on a leash: `python leash.py PROGRAM ARGS…` runs it, and ends it with all its children when we go.

Whoever started us may be killed in a way that leaves no time to clean up. On Linux the kernel then tells us (SIGTERM),
and we end the program and everything it has started that is still in our process group — a wrapper like npx or `sh -c`
leaves children behind otherwise. The program itself dies even if we are killed without a word.

Two variables of the environment are for us and not handed on: FAIRTRIAL_KEEP names the variables (separated by commas)
that the program may see, FAIRTRIAL_CWD the folder in which it starts. This file is run by itself, without the package
and without site packages: starting it costs 15 ms.
"""

import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Run the program and end as it did."""
    starter = os.getppid()
    environment = _environment()
    try:
        os.setsid()  # a group of our own, unless we were given one
    except OSError:
        pass
    child = 0

    def stop(*_: object) -> None:
        _end_group(child)
        os._exit(143)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, stop)
    _die_with_parent(signal.SIGTERM)
    if os.getppid() != starter:  # it has gone while we were getting ready
        sys.exit(1)
    child = os.fork()
    if child == 0:
        _become(environment)
    _, status = os.waitpid(child, 0)
    _end_group(0)
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)


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


def _become(environment: "dict[str, str]") -> None:
    """In the child: the program, which dies with its parent."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    _die_with_parent(signal.SIGKILL)
    try:
        os.execvpe(sys.argv[1], sys.argv[1:], environment)  # noqa: S606  # that is what it is for
    except OSError as error:
        os.write(2, f"{sys.argv[1]} cannot be started: {error.strerror}\n".encode())
        os._exit(127)


def _die_with_parent(number: int) -> None:
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)


def _end_group(child: int) -> None:
    """End everything in our process group but ourselves."""
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
