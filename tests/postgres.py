"""A PostgreSQL server of one's own on loopback, shared by all workers of a test session; a database for every test."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from filelock import FileLock

from fairtrial.store import Store
from tests.lazily import Library
from tests.ports import free_port

psycopg = Library("psycopg")

USER, PASSWORD = "tester", "pass-word-of-the-tests"
_FOLDER = "TESTS_POSTGRES_FOLDER"  # where the workers agree on one server
_TEMPLATE = "fairtrial_template"  # an empty store: copying it is quicker than making its tables
_MEMORY = Path("/dev/shm")
# A test of the fixture `store` that is run on every kind of database.
on_both = pytest.mark.parametrize("store", ["sqlite", "postgresql"], indirect=True)
# Nothing here has to survive a power cut. `max_connections`: every worker has pools of its own.
_SETTINGS = {"fsync": "off", "full_page_writes": "off", "max_connections": "300", "shared_buffers": "64MB"}
# Ends the server when the test session has ended, however that happened.
_WATCH = """\
import os, shutil, signal, sys, time
session, folder = sys.argv[1:]
while os.path.exists(f"/proc/{session}"):
    time.sleep(1)
if os.path.exists(f"{folder}/data/postmaster.pid"):
    with open(f"{folder}/data/postmaster.pid") as file:
        os.kill(int(file.readline()), signal.SIGQUIT)
shutil.rmtree(folder, ignore_errors=True)
"""


def programs() -> Path | None:
    """The folder of PostgreSQL's programs; Debian does not put it on the path."""
    found = shutil.which("pg_ctl")
    if found:
        return Path(found).resolve().parent
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"), key=lambda path: int(path.parts[-3]))
    return versions[-1].parent if versions else None


class Server:
    """A server with a data folder and a port of its own."""

    def __init__(self, folder: Path, settings: dict[str, str] | None = None) -> None:
        self._data, self._log, self._port_file = folder / "data", folder / "log", folder / "port"
        self._settings = {**_SETTINGS, **(settings or {})}
        self._programs = programs()

    @property
    def port(self) -> int:
        return int(self._port_file.read_text())

    def url(self, database: str = "postgres", password: str = PASSWORD) -> str:
        return f"postgresql://{USER}:{password}@127.0.0.1:{self.port}/{database}"

    def _run(self, program: str, *args: object) -> None:
        """Run a program of PostgreSQL, which refuses to be started by root."""
        assert self._programs is not None
        command = [str(self._programs / program), *map(str, args)]
        done = subprocess.run(
            command, **_as_somebody(), cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, check=False, timeout=600,
        )  # fmt: skip
        assert done.returncode == 0, (
            command,
            done.stderr.decode(),
            self._log.read_text() if self._log.exists() else "",
        )

    def create(self) -> None:
        """Make the data folder and start."""
        folder = self._data.parent
        folder.chmod(0o711)
        if os.getuid() == 0:
            shutil.chown(folder, _somebody())
        secret = folder / "secret"
        secret.write_text(PASSWORD)
        secret.chmod(0o644)
        self._run(
            "initdb", "--pgdata", self._data, "--username", USER, "--pwfile", secret, "--auth", "password",
            "--encoding", "UTF8", "--locale", "C.UTF-8", "--no-sync", "--no-instructions",
        )  # fmt: skip
        self._port_file.write_text(str(free_port()))
        self.start()

    def create_copy_of(self, primary: Server, near: str) -> None:
        """Make the data folder as a copy of another server, and follow that at an address."""
        folder = self._data.parent
        folder.chmod(0o711)
        own_by_server(folder)
        self._run(
            "pg_basebackup", "--pgdata", self._data, "--dbname", primary.url(), "--checkpoint", "fast", "--no-sync"
        )
        with (self._data / "postgresql.auto.conf").open("a") as file:
            file.write(f"primary_conninfo = '{near}'\n")
        (self._data / "standby.signal").touch()
        own_by_server(self._data / "standby.signal")
        self._port_file.write_text(str(free_port()))
        self.start()

    def promote(self) -> None:
        """Have a copy take the place of the server that it follows."""
        self._run("pg_ctl", "promote", "-w", "-t", 300, "-D", self._data)

    def start(self) -> None:
        options = {
            **self._settings,
            "port": str(self.port),
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
        }
        given = " ".join(f"-c {name}='{value}'" for name, value in options.items())
        self._run("pg_ctl", "start", "-w", "-t", 300, "-D", self._data, "-l", self._log, "-o", given)

    def stop(self, mode: str = "fast") -> None:
        self._run("pg_ctl", "stop", "-w", "-t", 300, "-D", self._data, "-m", mode)

    def stop_with(self, process: int) -> None:
        """Have the server stopped when a process has ended."""
        subprocess.Popen(
            [sys.executable, "-S", "-c", _WATCH, str(process), str(self._data.parent)], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip

    def runs(self) -> bool:
        return (self._data / "postmaster.pid").exists()

    def kill(self) -> None:
        """What a power cut or the kernel does to it: no process has time for anything."""
        main = int((self._data / "postmaster.pid").read_text().split()[0])
        os.kill(main, signal.SIGQUIT)  # the server's own way to end everything at once
        while Path(f"/proc/{main}").exists():
            time.sleep(0.02)

    def execute(self, statement: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            cursor = connection.execute(statement)  # type: ignore[arg-type]
            return cursor.fetchall() if cursor.description else []

    def new_database(self, template: str = _TEMPLATE, tablespace: str = "pg_default") -> str:
        """The address of a database that is a copy of another."""
        name = f"test_{uuid4().hex[:12]}"
        for _ in range(100):
            try:
                self.execute(f'CREATE DATABASE {name} TEMPLATE {template} TABLESPACE "{tablespace}"')
            except psycopg.errors.ObjectInUse:  # another worker is copying
                time.sleep(0.05)
            else:
                break
        return self.url(name)

    def drop_database(self, url: str) -> None:
        self.execute(f"DROP DATABASE {url.rpartition('/')[2].partition('?')[0]} WITH (FORCE)")


def own_by_server(*folders: Path) -> None:
    """Give folders to the user that servers run as."""
    for folder in folders if os.getuid() == 0 else ():
        shutil.chown(folder, _somebody(), pwd.getpwnam(_somebody()).pw_gid)


def _somebody() -> str:
    """A user without privileges."""
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


def _as_somebody() -> dict[str, Any]:
    if os.getuid() != 0:
        return {}
    return {"user": _somebody(), "group": pwd.getpwnam(_somebody()).pw_gid, "extra_groups": []}


def choose_folder() -> None:
    """In the process that starts the workers: agree on a folder for the server, should anybody need it."""
    base = _MEMORY if os.access(_MEMORY, os.W_OK) else Path(tempfile.gettempdir())
    os.environ[_FOLDER] = tempfile.mkdtemp(prefix="fairtrial-postgres-", dir=base)


def remove_folder() -> None:
    """At the end of the test session: stop the server, if there is one."""
    folder = Path(os.environ.pop(_FOLDER))
    if (folder / "ready").exists():
        Server(folder).stop("immediate")
    shutil.rmtree(folder, ignore_errors=True)


def shared_server() -> Server:
    """The server of this test session, started by whoever needs it first."""
    if programs() is None:
        reason = "PostgreSQL is not installed (apt install postgresql)"
        if os.environ.get("REQUIRE_POSTGRES"):
            pytest.fail(reason)
        pytest.skip(reason)
    folder = Path(os.environ[_FOLDER])
    server = Server(folder)
    with FileLock(folder / "lock"):
        if not (folder / "ready").exists():
            server.create()
            session = os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid()
            server.stop_with(session)
            server.execute(f"CREATE DATABASE {_TEMPLATE}")
            Store(server.url(_TEMPLATE)).close()
            (folder / "ready").touch()
    return server
