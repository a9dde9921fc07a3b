"""The process that forks: for everybody who connects it becomes `fairtrial` or `python` with the arguments it is sent.

What a command had to import, the process imports too, so that the next one has it. What it does not know, it leaves to
the real program.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import re
import runpy
import selectors
import signal
import site
import socket
import sys
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import NamedTuple, NoReturn

from click.testing import CliRunner

from fairtrial.cli.main import cli
from fairtrial.store import sqlite
from tests.statements import sharing_engines

_REPO = Path(__file__).parents[2]
_INSTALLED = (str(_REPO / "src"), *site.getsitepackages(), str(Path(os.__file__).parent))
# What most commands import, also those that are killed before they can say so.
_COMMON = (
    "fairtrial.cli.run",
    "fairtrial.pipeline",
    "fairtrial.engine.session",
    "fairtrial.targets.openai_api",
    "aiohttp",
)
_SLOW = re.compile(r"^(?:from|import) ((?:mcp|fairtrial)[\w.]*)", re.MULTILINE)


class _Fork(NamedTuple):
    """A fork: how to signal it, who waits for it, and where it says what it imported."""

    handle: int
    link: socket.socket
    imported: int


class _Server:
    """Forks for everybody who connects: says which process it is and how it ended, and ends it if nobody waits for it."""

    def __init__(self, address: str) -> None:
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(address)
        self._listening.listen(64)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listening, selectors.EVENT_READ, self._accept)
        self._selector.register(0, selectors.EVENT_READ, self._end)
        self._forks: dict[int, _Fork] = {}

    def serve(self) -> NoReturn:
        """Serve until the tests end."""
        while True:
            for key, _ in self._selector.select():
                key.data()

    def _accept(self) -> None:
        link, _ = self._listening.accept()
        _, streams, _, _ = socket.recv_fds(link, 1, 3)
        with link.makefile("rb") as sent:
            request = json.loads(sent.readline())
        _import(_first_imports(*request[:3]))
        if request[0] == "fairtrial" and request[1][:1] == ["serve"]:
            _warm_up_pages()
        imported = os.memfd_create("imported")
        process = os.fork()
        if process == 0:
            for number, stream in enumerate(streams):
                os.dup2(stream, number)
            _be(*request, imported)
        for stream in streams:
            os.close(stream)
        link.sendall(b"%d\n" % process)
        fork = self._forks[process] = _Fork(os.pidfd_open(process), link, imported)
        self._selector.register(fork.handle, selectors.EVENT_READ, lambda: self._ended(process))
        self._selector.register(link, selectors.EVENT_READ, lambda: self._told(process))

    def _ended(self, process: int) -> None:
        fork = self._forks.pop(process)
        _, status = os.waitpid(process, 0)
        for open_one in (fork.handle, fork.link):
            if open_one in self._selector.get_map():
                self._selector.unregister(open_one)
        with suppress(OSError):  # whoever waited was killed
            fork.link.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))
        fork.link.close()
        os.close(fork.handle)
        with open(fork.imported) as names:
            names.seek(0)
            _import(names.read().split())

    def _told(self, process: int) -> None:
        """Pass a signal on; one who is gone says nothing."""
        if process not in self._forks:
            return
        fork = self._forks[process]
        try:
            told = fork.link.recv(1)
        except OSError:
            told = b""
        if not told:
            self._selector.unregister(fork.link)
        signal.pidfd_send_signal(fork.handle, told[0] if told else signal.SIGKILL)

    def _end(self) -> None:
        for process, fork in self._forks.items():
            signal.pidfd_send_signal(fork.handle, signal.SIGKILL)
            os.waitpid(process, 0)
        os._exit(0)


def _import(names: Sequence[str]) -> None:
    for name in names:
        with suppress(Exception):  # it is only a head start
            import_module(name)
    gc.freeze()  # what is shared with the forks stays shared


def _first_imports(name: str, args: list[str], folder: str) -> list[str]:
    """Return what a program will import of what takes long; else it would, and then this process too."""
    if args[:2] == ["-m", "pytest"]:
        return ["pytest"]
    script = Path(folder, *args[:1])
    return _SLOW.findall(script.read_text("utf-8")) if name == "python" and script.suffix == ".py" else []


def _be(name: str, args: list[str], folder: str, variables: dict[str, str], imported: int) -> NoReturn:
    """Be the program of this name, until its end."""
    known = set(sys.modules)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    code = _exit_code(name, args)
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):  # nobody reads it any more
            stream.flush()
    if args[:1] != ["-m"]:  # pytest has other modules than those that are installed: it rewrites them
        os.write(imported, "\n".join(name for name in _installed() if name not in known).encode())
    os._exit(code)


def _installed() -> list[str]:
    """Names of modules that any command may import, in the order in which they were imported."""
    files = {name: getattr(module, "__file__", None) for name, module in list(sys.modules.items())}
    return [name for name, file in files.items() if file and file.startswith(_INSTALLED)]


def _exit_code(name: str, args: list[str]) -> int:
    try:
        _run(name, args)
    except SystemExit as ended:
        if not isinstance(ended.code, str):
            return ended.code or 0
        print(ended.code, file=sys.stderr)
        return 1
    except BaseException:
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
        return 1
    return 0


def _run(name: str, args: list[str]) -> None:
    """Do what the program of this name does with these arguments."""
    if name == "fairtrial":
        sys.argv, sys.path[0] = [name, *args], str(Path(sys.executable).parent)
        import_module("fairtrial.cli.program").main()
    elif args[:1] == ["-c"]:
        sys.argv, sys.path[0] = ["-c", *args[2:]], ""
        exec(compile(args[1], "<string>", "exec"), {"__name__": "__main__"})
    elif args[:1] == ["-m"]:
        sys.argv, sys.path[0] = args[1:], str(Path.cwd())
        runpy.run_module(args[1], run_name="__main__", alter_sys=True)
    elif args and not args[0].startswith("-"):
        sys.argv, sys.path[0] = args, str(Path(args[0]).resolve().parent)
        runpy.run_path(args[0], run_name="__main__")
    else:
        os.execv(sys.executable, [sys.executable, *args])


def _warm_up() -> None:
    """Carry out what most commands do: the forks find plug-ins looked up, classes inspected and statements put into SQL."""
    sqlite.create_engine = sharing_engines()
    with tempfile.TemporaryDirectory(prefix="forks-") as folder:
        suite, store = Path(folder, "suite.yaml"), ("--store", str(Path(folder, "warm.db")))
        suite.write_text(
            "name: warm\ntargets: [mock:echo, mock:other]\ncases: [{input: Paris, expected: Paris}]\n", "utf-8"
        )
        for args in (["run", str(suite)], ["list"], ["show"], ["rank"], ["compare"]):
            CliRunner().invoke(cli, [*args, *store])
    _settle()


@cache
def _warm_up_pages() -> None:
    """Load what `serve` loads for its first visitor: templates alone take it a second."""
    from fairtrial.store import Store
    from fairtrial.web.app import make_app
    from fairtrial.web.site import Site

    with tempfile.TemporaryDirectory(prefix="forks-") as folder:
        store = Store(f"sqlite:///{folder}/warm.db")
        site = Site(store, Path(folder))
        make_app(site)
        site.warm_up()
        site.close()
        store.close()
        del site, store
    _settle()
    gc.freeze()


def _settle() -> None:
    """Forget what somebody may fetch or write meanwhile, and leave nothing open that a fork would have, too."""
    for name, module in list(sys.modules.items()):
        if name.startswith(("fairtrial.providers.", "fairtrial.agents.")):
            for function in vars(module).values():
                getattr(function, "cache_clear", bool)()
    gc.collect()  # every store is closed
    assert threading.active_count() == 1


if __name__ == "__main__":
    _import(_COMMON)
    _warm_up()
    server = _Server(sys.argv[1])
    os.write(1, b"ready\n")
    server.serve()
