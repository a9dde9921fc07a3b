"""Supervise a program: `python supervisor.py PROGRAM ARGS…` runs it, and kills it with all its children when we end.

Our parent may be killed in a way that leaves no time to clean up. On Linux the kernel then sends us a signal, and we
kill the program and everything it has started, also in groups and sessions of their own: a wrapper like npx or `sh -c`
would otherwise leave children behind, and agents start their tools in groups of their own. The program itself dies even
if we are killed with SIGKILL.

Some environment variables are for us and are not passed on:

    FAIRTRIAL_KEEP    the names of the variables that the program may see, separated by commas
    FAIRTRIAL_CWD     the folder in which it starts
    FAIRTRIAL_HIDE    a capability of MCP clients to hide from a server (`roots`: the agent's folders, which the server
                      would use as its own)
    FAIRTRIAL_NOTES   a file for what an MCP client asks of the server's tools, and for what they return
    FAIRTRIAL_WATCH   how many MB of memory and of disk the program and its children may take, and the folders that are
                      measured, each in a line; if they take more, they are killed

This file runs on its own, without the package and without site packages, so that starting it takes only 15 ms.
"""

import _thread
import os
import sys

TYPE_CHECKING = False  # `typing` would take longer to import than all the rest
if TYPE_CHECKING:
    import signal
    from collections.abc import Iterator
    from typing import Any
else:
    import _signal as signal  # `signal` makes enumerations of all its numbers, which takes longer than all the rest

_PARENT_ENDED = signal.SIGUSR1
_MAX_RESULT = 20_000  # characters
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_MB = 2**20
_GLANCE = 0.25  # seconds between two looks at the memory
_SHARE = 20  # looking at the disk takes at most one part in this many of the time


def main() -> None:
    """Run the program and exit with its status."""
    parent = os.getppid()
    hidden, notes = os.environ.pop("FAIRTRIAL_HIDE", ""), os.environ.pop("FAIRTRIAL_NOTES", "")
    watch = os.environ.pop("FAIRTRIAL_WATCH", "")
    environment = _environment()
    try:
        os.setsid()  # create our own process group, unless we already lead one
    except OSError:
        pass

    def stop(*_: object) -> None:
        _kill_all()
        os._exit(143)

    def check_parent(*_: object) -> None:
        if os.getppid() != parent:  # else only the thread has ended that started us, as those of Codex do
            stop()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, stop)
    signal.signal(_PARENT_ENDED, check_parent)
    _die_with_parent(_PARENT_ENDED)
    _control(_PR_SET_CHILD_SUBREAPER, 1)  # what the program leaves behind becomes our child, and can be found
    if os.getppid() != parent:  # the parent ended while we were starting
        sys.exit(1)
    child, said_all = _start(environment, hidden, notes)
    if watch:
        _thread.start_new_thread(_watch, (child, watch.split("\n")))
    _, status = os.waitpid(child, 0)
    _kill_all()
    said_all.acquire(timeout=10)  # what the program wrote last
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)


def _start(environment: "dict[str, str]", hidden: str, notes: str) -> "tuple[int, _thread.LockType]":
    """Start the program; return it, and a lock that is free once everything that it wrote is forwarded."""
    to_program, from_program = os.pipe() if hidden or notes else None, os.pipe() if notes else None
    child = os.fork()
    if child == 0:
        if to_program:
            os.dup2(to_program[0], 0)
        if from_program:
            os.dup2(from_program[1], 1)
        _exec_program(environment)
    notebook, said_all = _Notebook(notes), _thread.allocate_lock()
    if to_program:
        os.close(to_program[0])
        _thread.start_new_thread(_forward_input, (to_program[1], hidden, notebook))
    if from_program:
        os.close(from_program[1])
        said_all.acquire()
        _thread.start_new_thread(_forward_output, (from_program[0], notebook, said_all))
    return child, said_all


def _watch(child: int, watch: "list[str]") -> None:
    """Kill everything as soon as it takes more memory or disk than it may: limits of the kernel are for one process."""
    import time

    memory, disk, *folders = watch
    pause, next_look = _thread.allocate_lock(), time.monotonic()
    pause.acquire()
    while True:
        if _takes_more(child, float(memory) * _MB):
            _end(child, f"its programs took more than {memory} MB of memory (raise `memory_mb` of the workspace)")
            return
        now = time.monotonic()
        if now >= next_look:
            if sum(map(_size, folders)) / _MB > float(disk):
                _end(child, f"its programs wrote more than {disk} MB of files (raise `disk_mb` of the workspace)")
                return
            next_look = now + max(1.0, _SHARE * (time.monotonic() - now))
        pause.acquire(timeout=_GLANCE)


def _end(child: int, reason: str) -> None:
    os.write(2, f"\nthe sandbox was ended: {reason}\n".encode())
    _kill(child)  # a sandbox goes with the process that made it


def _takes_more(process: int, limit: float) -> bool:
    """Return whether a process and all that it started take more memory than this.

    What they have for themselves is quickly read, but counts twice what a process shares with those it forked.
    """
    if not limit:
        return False
    processes = _tree(process)
    return sum(map(_resident, processes)) > limit and sum(map(_proportional, processes)) > limit


def _tree(process: int) -> "list[int]":
    """Return a process and all that it has started."""
    found = [process]
    for name in found:  # it grows while we go through it
        try:
            for thread in os.listdir(f"/proc/{name}/task"):
                with open(f"/proc/{name}/task/{thread}/children", "rb") as file:
                    found += map(int, file.read().split())
        except (OSError, ValueError):  # it has ended
            continue
    return found


def _resident(process: int) -> int:
    """Return the bytes of memory that a process has, apart from those of files."""
    try:
        with open(f"/proc/{process}/statm", "rb") as file:
            _, resident, shared, *_ = map(int, file.read().split())
    except (OSError, ValueError):
        return 0
    return (resident - shared) * os.sysconf("SC_PAGE_SIZE")


def _proportional(process: int) -> int:
    """Return the same, with its part of what it shares; if we may not know, all of it."""
    try:
        with open(f"/proc/{process}/smaps_rollup", "rb") as file:
            lines = [line.split() for line in file if line.startswith((b"Pss_Anon:", b"Pss_Shmem:"))]
    except OSError:
        return _resident(process)
    return sum(int(line[1]) for line in lines) * 1024


def _size(folder: str) -> int:
    """Return the bytes that the files in a folder take on the disk."""
    size, waiting = 0, [folder]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as listing:
                for item in listing:
                    size += item.stat(follow_symlinks=False).st_blocks * 512
                    if item.is_dir(follow_symlinks=False):
                        waiting.append(item.path)
        except OSError:  # it is being removed
            continue
    return size


def _forward_input(program: int, hidden: str, notebook: "_Notebook") -> None:
    """Forward our input to the program line by line, hiding and noting what was asked for."""
    mark = f'"{hidden}"'.encode()
    try:
        for line in _lines(0):
            notebook.note_request(line)
            _write(program, _without_capability(line, hidden) if hidden and mark in line else line)
    except OSError:  # the program has ended
        return
    os.close(program)


def _forward_output(program: int, notebook: "_Notebook", said_all: "_thread.LockType") -> None:
    """Forward what the program writes, noting what its tools return."""
    try:
        for line in _lines(program):
            notebook.note_reply(line)
            _write(1, line)
    except OSError:  # nobody listens any more
        os.close(program)
    said_all.release()


def _lines(file: int) -> "Iterator[bytes]":
    """Yield the lines of a file with their ends; the last one may have none."""
    rest = bytearray()
    while block := os.read(file, 2**16):
        rest += block
        if b"\n" in block:
            *lines, last = bytes(rest).split(b"\n")
            rest = bytearray(last)
            for line in lines:
                yield line + b"\n"
    if rest:
        yield bytes(rest)


class _Notebook:
    """The notes about one MCP server: agents do not all tell which tools they call, nor which one they wait for."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._open: set[str] = set()  # calls that have not returned

    def note_request(self, line: bytes) -> None:
        if not self._path or b'"tools/' not in line:
            return
        message = _message(line)
        method, params = message.get("method"), message.get("params")
        if method not in ("tools/list", "tools/call"):
            return
        params = params if isinstance(params, dict) else {}
        note = {"id": message.get("id"), "method": method}
        if method == "tools/call":
            self._open.add(str(message.get("id")))
            note |= {"tool": params.get("name"), "arguments": params.get("arguments")}
        self._write(note)

    def note_reply(self, line: bytes) -> None:
        if not self._open or b'"id"' not in line:
            return
        message = _message(line)
        if "method" in message or str(message.get("id")) not in self._open:
            return
        self._open.discard(str(message["id"]))
        error, result = message.get("error"), message.get("result")
        if isinstance(error, dict):
            self._write({"id": message["id"], "error": True, "result": str(error.get("message"))})
        elif isinstance(result, dict):
            self._write({"id": message["id"], "error": bool(result.get("isError")), "result": _text(result)})

    def _write(self, note: "dict[str, object]") -> None:
        import json
        import time

        try:
            with open(self._path, "ab", buffering=0) as file:
                file.write(json.dumps({**note, "at": time.time()}).encode() + b"\n")
        except OSError:  # a full disk: the note is missing, and the server goes on
            pass


def _message(line: bytes) -> "dict[str, Any]":
    import json

    try:
        message = json.loads(line)
    except ValueError:
        return {}
    return message if isinstance(message, dict) else {}


def _text(result: "dict[str, Any]") -> str:
    """Return what a tool returned as text, at most some thousand words of it."""
    content = result.get("content")
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    text = "\n".join(str(block.get("text") or f"[{block.get('type')}]") for block in blocks)
    if len(text) <= _MAX_RESULT:
        return text
    # Cut between words: half a secret could not be recognised and hidden.
    return text[: max(text.rfind(" ", 0, _MAX_RESULT), text.rfind("\n", 0, _MAX_RESULT), 0) or _MAX_RESULT] + " …"


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
    end = b"\n" if line.endswith(b"\n") else b""
    return json.dumps(message).encode() + end if announced else line


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
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, _PARENT_ENDED):
        signal.signal(number, signal.SIG_DFL)
    _die_with_parent(signal.SIGKILL)
    try:
        os.execvpe(sys.argv[1], sys.argv[1:], environment)  # noqa: S606  # running a program is its purpose
    except OSError as error:
        os.write(2, f"{sys.argv[1]} cannot be started: {error.strerror}\n".encode())
        os._exit(127)


def _die_with_parent(number: int) -> None:
    _control(_PR_SET_PDEATHSIG, number)


def _control(option: int, value: int) -> None:
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(option, value)


def _kill_all() -> None:
    """Kill everything in our process group and everything that was started from it, except ourselves."""
    own, group = os.getpid(), os.getpgrp()
    for _ in range(100):  # a process may start another one while we look
        if _alone():
            return
        table = _processes()
        ours = {name for name, (_, its_group) in table.items() if its_group == group}
        ours |= _descendants(own, table)
        ours.discard(own)
        if not ours:
            return
        for process in ours:
            _kill(process)
        _reap()


def _alone() -> bool:
    """Return whether we have no children: then nothing is left, for what loses its parent becomes our child."""
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return sys.platform == "linux"
    return False


def _processes() -> "dict[int, tuple[int, int]]":
    """Return the parent and the group of every process that has not ended."""
    table = {}
    for name in os.listdir("/proc") if os.path.isdir("/proc/self") else ():
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        if fields[0] != b"Z":
            table[int(name)] = int(fields[1]), int(fields[2])
    return table


def _descendants(process: int, table: "dict[int, tuple[int, int]]") -> "set[int]":
    found: set[int] = set()
    new = {process}
    while new:
        new = {name for name, (parent, _) in table.items() if parent in new} - found
        found |= new
    return found


def _reap() -> None:
    """Collect children that have ended, so that theirs become ours."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except OSError:
        pass


def _kill(process: int) -> None:
    try:
        os.kill(process, signal.SIGKILL)
    except OSError:
        pass


if __name__ == "__main__":
    main()
