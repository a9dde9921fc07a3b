"""Runs a check that is written in Python, and says what it came to in a way that what it checks cannot imitate.

`python referee.py WORKSPACE OWN CHANGED [-m MODULE | -c CODE | SCRIPT] ARGS…`: OWN is a folder with the check's own
files, CHANGED a file that lists what the agent has added or changed. The first line of the input is a word that nothing
else knows. The verdict is the line of output that starts with it: how the check itself ended, and the score that the
check itself printed. A check that is ended by what it imports has no verdict.

Programs that a check starts cannot know the word: it is read before, and they can neither trace this process nor look
into it. Code that a check imports runs in this process: it is kept from deciding by the usual tricks, but not by one
that is made for this very file.
"""

import io
import os
import sys
import traceback
import types
from json import dumps, loads  # whatever becomes of the module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from fairtrial.agents.workspace.checking import guard
else:
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import guard

_PR_SET_DUMPABLE = 4
_ENDINGS = ("_exit", "execv", "execve")
_CODE = "<check>"  # the name of a program that is given as `-c`


def main() -> None:
    """Read the word, run the check, tell the verdict, and end as the check did."""
    word, channel, process = _first_line(), os.dup(1), os.getpid()
    workspace, own, listed, *command = sys.argv[1:]
    _close_to_others()
    changed = guard.Changed(workspace, listed)
    said = _Said(changed)

    def tell(code: "int | None", left: str = "") -> None:
        if os.getpid() == process:  # children that were forked have nothing to say
            verdict = {"code": code, "report": said.report(), "left": left, "replaced": said.replaced()}
            os.write(channel, f"\n{word}{dumps(verdict)}\n".encode())

    for name in _ENDINGS:
        setattr(os, name, _ending(name, getattr(os, name), changed, tell))
    code, left = _run(command, own, changed)
    tell(code, left)
    sys.exit(code)


def _first_line() -> str:
    """Read the first line of the input, and nothing after it."""
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte:
            break
        line += byte
    return line.decode().strip()


def _close_to_others() -> None:
    """Let no other process of the same user trace this one, or open its memory and its files."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    except (ImportError, OSError, AttributeError):  # only Linux has it
        pass


def _caller(frame: "types.FrameType | None", changed: "guard.Changed") -> "tuple[bool, str]":
    """Return whether code of the check has called, and the name of the agent's file if that is nearer."""
    while frame is not None:
        file = frame.f_code.co_filename
        if file == _CODE:
            return True, ""
        name = changed.name(file)
        if name is not None:
            return (False, name) if changed.has(file) else (True, "")
        frame = frame.f_back
    return False, ""


class _Said:
    """What the check itself prints; what the agent's code prints is not the check's word."""

    def __init__(self, changed: "guard.Changed") -> None:
        self._changed, self._stream, self._text = changed, sys.stdout, ""
        self._write = sys.stdout.write
        self._stream.write = self._note  # type: ignore[method-assign]
        self._put = self._stream.write

    def _note(self, text: str) -> int:
        if _caller(sys._getframe(1), self._changed)[0]:
            self._text = (self._text + text)[-100_000:]
        return self._write(text)

    def report(self) -> "Any":
        """Return the last line, if it has a score."""
        self._stream.flush()
        try:
            report = loads(self._text.rstrip().rpartition("\n")[2])
        except ValueError:
            return None
        return report if isinstance(report, dict) and "score" in report else None

    def replaced(self) -> str:
        """Return what the agent's code has put in the place of something that checks use; empty if nothing."""
        if sys.stdout is not self._stream or self._stream.write is not self._put:
            return "sys.stdout"
        return next((name for name, file in self._functions() if self._changed.has(file)), "")

    def _functions(self) -> "Iterator[tuple[str, str]]":
        """Yield the functions in all modules but those of the workspace, each with the file that it is from."""
        for name, module in list(sys.modules.items()):
            place = getattr(module, "__file__", None) or ""
            if name == "__main__" or not isinstance(module, types.ModuleType) or self._changed.name(place) is not None:
                continue
            for key, value in list(vars(module).items()):
                if isinstance(value, types.FunctionType) and value.__code__.co_filename != place:
                    yield f"{name}.{key}", value.__code__.co_filename


def _ending(
    name: str, function: "Callable[..., Any]", changed: "guard.Changed", tell: "Callable[[int | None], None]"
) -> "Callable[..., Any]":
    """Return a function that tells the verdict before the check itself ends at once, or becomes another program."""

    def end(*arguments: "Any") -> "Any":
        if _caller(sys._getframe(1), changed)[0]:
            tell(arguments[0] if name == "_exit" else None)
        return function(*arguments)

    return end


def _run(command: "list[str]", own: str, changed: "guard.Changed") -> "tuple[int, str]":
    """Run the check to its end; return its exit code, and which of the agent's files has ended it, if one has."""
    try:
        _start(command, own, changed)
    except SystemExit as error:
        return _exit_code(error.code), _origin(error, changed)
    except BaseException as error:
        _show(error)
        return 1, ""
    return 0, ""


def _start(command: "list[str]", own: str, changed: "guard.Changed") -> None:
    first, *rest = command
    if first in ("-m", "-c"):
        sys.argv = [first, *rest[1:]]
        _look_in(changed, changed.workspace)
    if first == "-m":
        import runpy

        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif first == "-c":
        _execute(rest[0].encode(), _CODE)
    else:
        path = os.path.realpath(first)
        sys.argv = command
        _look_in(changed, os.path.dirname(path))
        copy = os.path.join(own, changed.name(path) or "")
        with io.open_code(copy if os.path.isfile(copy) else path) as file:
            source = file.read()
        _execute(source, path)


def _look_in(changed: "guard.Changed", folder: str) -> None:
    """Let modules be found next to the check, the agent's last of all."""
    guard.trust_installed(changed, folder)
    sys.path += dict.fromkeys((folder, changed.workspace))


def _execute(source: bytes, name: str) -> None:
    module = types.ModuleType("__main__")
    module.__dict__["__builtins__"] = __builtins__
    if name != _CODE:
        module.__file__ = name
    sys.modules["__main__"] = module
    exec(compile(source, name, "exec"), module.__dict__)


def _exit_code(code: "Any") -> int:
    if code is None or isinstance(code, int):
        return int(code or 0)
    sys.stderr.write(f"{code}\n")
    return 1


def _origin(error: BaseException, changed: "guard.Changed") -> str:
    """Return the agent's file that raised the exception; nothing if it was the check."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return _caller(trace.tb_frame, changed)[1] if trace is not None else ""


def _show(error: BaseException) -> None:
    """Print an error as Python does, without the frames of this file."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    sys.stdout.flush()
    sys.stderr.write("".join(traceback.format_exception(type(error), error, trace)))


if __name__ == "__main__":
    main()
