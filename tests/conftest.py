"""What tests share: a folder of their own, a model server with chosen faults, and suites made from Python."""

from __future__ import annotations

import ast
import gc
import os
import re
import shutil
import sqlite3
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import yaml
from filelock import FileLock
from hypothesis.internal.charmap import charmap

from benchmarks.mock_server import Behaviour, State, start
from fairtrial import pipeline
from fairtrial.analyse.run import Run
from fairtrial.config import RunOptions
from fairtrial.forges.ci import SERVICES
from fairtrial.providers import price_list, sheet
from fairtrial.store import Store
from fairtrial.webpage.browser import NoBrowserError, find_browser
from tests import postgres as postgres_server
from tests.scripted import Script, Scripted, look_up, scripted_model
from tests.statements import sharing_engines

pytest_plugins = ["tests.durations"]
# How fast a machine is proves nothing, and what is red today was red yesterday. `--hypothesis-profile=default` looks for
# more.
hypothesis.settings.register_profile(
    "any machine",
    deadline=None,
    derandomize=True,
    max_examples=30,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("any machine")
_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)  # the one in C is ten times as fast
_PATIENCE = 240_000  # milliseconds
_MEMORY = Path("/dev/shm")
_ROOM = 4 * 2**30  # bytes that the folders of all tests may take
_COLD = "TESTS_ARE_NOT_COMPILED"  # where the workers agree on who compiles them
_PROGRAM = re.compile("(?:there is no program `|No such file or directory: ')(docker|git|node|npm|npx)[`']")
_EXTRA = re.compile(r".*pip install 'fairtrial\[\w+\]'")  # what we say ourselves where one is missing
_PACKAGES = ("fairtrial", "tests", "benchmarks", "docs")
_OURS = ("FAIRTRIAL_", "OPENAI_", "ANTHROPIC_", "OPENROUTER_", "OLLAMA_", "GEMINI_", "GOOGLE_")


def pytest_configure(config: pytest.Config) -> None:
    """Tests write thousands of small stores, each commit of which waits for a disk: folders in memory where possible."""
    chosen = config.option.basetemp is not None or hasattr(config, "workerinput")
    if not chosen and os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > _ROOM:
        config.option.basetemp = tempfile.mkdtemp(prefix="fairtrial-tests-", dir=_MEMORY)
    if not hasattr(config, "workerinput"):
        postgres_server.choose_folder()
    compiled = any(Path(__file__).parent.glob("*/__pycache__/*-pytest-*.pyc"))
    if not (compiled or sys.dont_write_bytecode or hasattr(config, "workerinput")):
        os.environ[_COLD] = tempfile.mkdtemp(prefix="fairtrial-tests-")


def pytest_unconfigure(config: pytest.Config) -> None:
    """Memory is given back."""
    if hasattr(config, "workerinput"):
        return
    postgres_server.remove_folder()
    if str(config.option.basetemp or "").startswith(f"{_MEMORY}/fairtrial-tests-"):
        shutil.rmtree(config.option.basetemp, ignore_errors=True)
    if _COLD in os.environ:
        shutil.rmtree(os.environ.pop(_COLD), ignore_errors=True)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """In a new checkout one worker prepares what all need, and the others wait: each would take ten seconds for the same."""
    if hasattr(session.config, "workerinput") and _COLD in os.environ:
        place = Path(os.environ[_COLD])
        with FileLock(place / "lock"):
            if not (place / "prepared").exists():
                result = yield  # compiles the tests
                charmap()  # Hypothesis keeps its table of characters on disk
                (place / "prepared").touch()
                return result
    return (yield)


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Three workers a core (`-n auto`): a test often waits for a process or a server; quick ones (`logical`) wait less."""
    return (os.cpu_count() or 1) * (3 if config.option.numprocesses == "logical" else 6) // 2


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever asks for a browser is marked so; files that take long come first, so that no worker ends late with one."""
    for item in items:
        if "chromium" in getattr(item, "fixturenames", ()):
            item.add_marker("browser")
    slow = Counter(item.path for item in items for name in ("slow", "browser") if item.get_closest_marker(name))
    items.sort(key=lambda item: -slow[item.path])


def _parse(*args: Any, **options: Any) -> ast.AST:
    """Parse without collecting garbage, of which a traceback may tell: Python 3.11 cannot parse within a parse."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        return _parse_python(*args, **options)
    finally:
        if collecting:
            gc.enable()


_parse_python, ast.parse = ast.parse, _parse  # used by pytest for every module and every failure, and by tracebacks


def pytest_collection_finish() -> None:
    """What was imported and collected stays until the end: looking through it for garbage takes a fifth of a second.

    What tests leave behind is looked for less often than by default, which takes a twentieth of the time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(5000, 20, 20)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    with _with_what_is_here():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    with _with_what_is_here():
        return (yield)


@contextmanager
def _with_what_is_here() -> Iterator[None]:
    """A test that needs what this machine lacks is skipped, and says what; `make test` installs all libraries, and insists."""
    try:
        yield
    except Exception as error:
        if reason := _lacking(error):
            pytest.skip(reason)
        raise


def _lacking(error: Exception) -> str:
    """Return which program, browser or library a test failed for, if it did."""
    program = _PROGRAM.search(str(error))
    if program and shutil.which(program[1]) is None:
        return f"there is no program `{program[1]}` on this machine"
    if isinstance(error, NoBrowserError):
        return "" if os.environ.get("REQUIRE_BROWSER") else str(error)
    if os.environ.get("REQUIRE_LIBRARIES"):
        return ""
    if isinstance(error, ModuleNotFoundError):
        return "" if (error.name or "").split(".")[0] in _PACKAGES else str(error)
    said = _EXTRA.search(str(error))
    return said[0].strip() if said else ""


@pytest.fixture(autouse=True)
def clean_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test has an empty folder and an environment without keys, in which no CI service says anything."""
    said = {mark.partition("=")[0] for service in SERVICES for names in service[1:] for mark in names}
    for name in list(os.environ):
        if name.startswith((*_OURS, "GITHUB_")) or name in said:
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / ".state"))
    return tmp_path


@pytest.fixture(scope="session", autouse=True)
def shipped_models(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What is known about models is what is shipped, whatever whoever runs the tests has fetched or written."""
    nothing = tmp_path_factory.mktemp("nothing")
    with pytest.MonkeyPatch.context() as patch:
        for module in (sheet, price_list):
            patch.setattr(module, "cache_folder", _unless_told(module.cache_folder, nothing))
        patch.setattr(sheet, "settings_folder", _unless_told(sheet.settings_folder, nothing))
        yield


def _unless_told(place: Callable[[], Path], otherwise: Path) -> Callable[[], Path]:
    """A folder that a test has set a variable for, else an empty one."""
    before = {name: os.environ.get(name) for name in ("FAIRTRIAL_CACHE_DIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")}
    return lambda: place() if any(os.environ.get(name, old) != old for name, old in before.items()) else otherwise


@pytest.fixture(scope="session", autouse=True)
def own_garbage_collector() -> Iterator[None]:
    """Commands tune the collector for a process that soon ends; thousands of tests in one process would keep everything."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gc.freeze", lambda: None)
        patch.setattr("gc.set_threshold", lambda *_: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def prepared_statements() -> Iterator[None]:
    """Thousands of stores are opened: they share their statements."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fairtrial.store.sqlite.create_engine", sharing_engines())
        yield


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The file of a new store: making its tables takes longer than copying them."""
    path = tmp_path_factory.mktemp("store") / "empty.db"
    Store(f"sqlite:///{path}").close()
    with closing(sqlite3.connect(path)) as connection:
        return connection.serialize()


@pytest.fixture(scope="session")
def postgres() -> postgres_server.Server:
    """PostgreSQL on loopback; `.ci/run` installs it and insists on it."""
    return postgres_server.shared_server()


@pytest.fixture
def postgres_url(postgres: postgres_server.Server) -> Iterator[str]:
    """The address of an empty store in PostgreSQL."""
    url = postgres.new_database()
    yield url
    postgres.drop_database(url)


@pytest.fixture
def store(request: pytest.FixtureRequest, tmp_path: Path, empty_store: bytes) -> Iterator[Store]:
    """A store: SQLite, unless a test is run on both (`tests.postgres.on_both`) or TESTS_STORE says otherwise."""
    if getattr(request, "param", os.environ.get("TESTS_STORE")) == "postgresql":
        store = Store(request.getfixturevalue("postgres_url"))
        yield store
        store.close()
        return
    (tmp_path / "test.db").write_bytes(empty_store)
    yield Store(f"sqlite:///{tmp_path}/test.db")


@pytest.fixture
def write_suite(tmp_path: Path) -> Callable[..., Path]:
    """Write a suite file from keywords; what every suite needs is filled in."""

    def write(name: str = "suite.yaml", **keys: Any) -> Path:
        suite = {"name": "test", "targets": ["mock:echo"], **keys}
        if not {"cases", "dataset", "suite"} & suite.keys():
            suite["cases"] = [{"id": "one", "input": "Say Paris", "expected": "Paris"}]
        path = tmp_path / name
        path.write_text(yaml.dump(suite, Dumper=_DUMPER, sort_keys=False), "utf-8")
        return path

    return write


@pytest.fixture
def run_suite(write_suite: Callable[..., Path], store: Store) -> Callable[..., Any]:
    """Write, load and run a suite in one go."""

    async def run(options: RunOptions | None = None, **keys: Any) -> Run:
        return await pipeline.arun(pipeline.load(write_suite(**keys), options), store=store)

    return run


@pytest.fixture
async def model_server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Callable[..., Any]]:
    """Start model servers; `openai:` and `anthropic:` then mean the last one started."""
    servers = []

    async def launch(**behaviour: Any) -> State:
        server, state, address = await start(Behaviour(**behaviour))
        servers.append(server)
        monkeypatch.setenv("OPENAI_BASE_URL", f"{address}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test-key-0001")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", address)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-test-key-0001")
        state.address = address  # type: ignore[attr-defined]
        return state

    yield launch
    for server in servers:
        server.close()


@pytest.fixture
async def model(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Callable[..., Any]]:
    """Serve a script as `openai:` and `anthropic:`, and as the model of every agent."""
    async with AsyncExitStack() as stack:

        async def serve(script: Script = look_up, **more: Any) -> Scripted:
            served = await stack.enter_async_context(scripted_model(script, **more))
            for name, path in (("OPENAI", "/v1"), ("ANTHROPIC", "")):
                monkeypatch.setenv(f"{name}_BASE_URL", served.url + path)
                monkeypatch.setenv(f"{name}_API_KEY", "sk-test-key-0001")
            monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", served.url)
            monkeypatch.setenv("GEMINI_API_KEY", "sk-test-key-0001")
            return served

        yield serve


def numbered(count: int, expected: str = "42") -> list[dict[str, Any]]:
    """So many different cases."""
    return [{"id": f"q{n}", "input": f"Question {n}?", "expected": expected} for n in range(count)]


@pytest.fixture(scope="session")
def chromium() -> str:
    """Debian's or any installed Chromium; `.ci/run` installs one and insists on it."""
    try:
        return find_browser()
    except NoBrowserError as error:
        if os.environ.get("REQUIRE_BROWSER"):
            pytest.fail(str(error))
        pytest.skip(str(error))


@pytest.fixture(scope="session")
async def browser(chromium: str) -> AsyncIterator[Any]:
    """One browser for a whole worker, without a seal: every page that it opens is in a context of its own."""
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        opened = await playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        yield _patient(opened)
        await opened.close()


def _patient(browser: Any) -> Any:
    """No test is red because a machine is slow: what is waited for may take minutes."""
    opened, made = browser.new_page, browser.new_context

    async def new_page(**options: Any) -> Any:
        page = await opened(**options)
        page.set_default_timeout(_PATIENCE)
        return page

    async def new_context(**options: Any) -> Any:
        context = await made(**options)
        context.set_default_timeout(_PATIENCE)
        return context

    browser.new_page, browser.new_context = new_page, new_context
    return browser
