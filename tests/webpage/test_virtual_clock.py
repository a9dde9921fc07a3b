"""A page gets the same verdict on a busy and on a quiet machine: virtual time, processor time, private memory."""

import asyncio
import os
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import numpy
import pytest
import pytest_asyncio

from benchmarks.pages import load, prepared, verdict
from fairtrial.cli import doctor
from fairtrial.core.experiment import Case
from fairtrial.core.score import ScoreContext, Unscored
from fairtrial.tracks.code_arena.browser import Browser
from fairtrial.webpage import acting
from fairtrial.webpage import page_limits as watch
from fairtrial.webpage.acting import BrokenCheckError
from fairtrial.webpage.browser import find_browser, gives_frames
from fairtrial.webpage.browser_process import BrowserProcess, BrowserUsage, private_memory
from fairtrial.webpage.checks import Check, CheckResult
from fairtrial.webpage.extract import extract
from fairtrial.webpage.looking import look
from fairtrial.webpage.render import Renderer
from fairtrial.webpage.rendering import Limits, Rendering
from fairtrial.webpage.visit import Visit

pytestmark = pytest.mark.asyncio(loop_scope="module")
GOOD = "<!doctype html><html lang=en><meta name=viewport content='width=device-width'><h1>Hello</h1></html>"
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="headless shells give frames on Linux only")


@pytest.fixture(scope="module")
def shell(chromium):
    if not gives_frames(chromium):
        if os.environ.get("REQUIRE_BROWSER"):
            pytest.fail("there is no chromium-headless-shell")
        pytest.skip("there is no chromium-headless-shell")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def renderer(shell):
    async with Renderer(1) as made:
        yield made


@pytest.fixture
def limited(renderer, monkeypatch):
    """The browser that the tests share, with other limits."""

    def limit(**limits: float) -> Renderer:
        monkeypatch.setattr(renderer._slots[0], "limits", Limits(**limits))
        return renderer

    return limit


# -- the same on any machine -----------------------------------------------------------------------

# Every kind of time that a page has. What it says depends on when each frame and each timer came.
TIMES = """<!doctype html><meta name=viewport content="width=device-width"><style>
@keyframes go { to { margin-left: 1000px } } #box { animation: go 4s linear; width: 9px; height: 9px; background: red }
</style><body><div id=box></div><p id=out></p><script>
const began = performance.now(), day = Date.now(); let frames = 0, ticks = 0, first = null, said = false;
setInterval(() => { ticks += 1 }, 10);
requestAnimationFrame(function frame(at) {
  frames += 1; first ??= Math.round(at - began);
  if (performance.now() - began > 600 && !said) {
    said = true;
    const left = Math.round(parseFloat(getComputedStyle(box).marginLeft));
    out.textContent = [frames, ticks, first, left, Date.now() - day, Math.round(performance.now() - began)].join(" ");
  }
  requestAnimationFrame(frame); });
</script>"""


async def said_of_time(renderer: Renderer) -> str:
    says = msgspec.convert({"name": "n", "steps": [{"expect": {"selector": "#out", "text": "?"}}]}, Check)
    visit = Visit(renderer._slots[0], TIMES, virtual=renderer.virtual)
    visit.result.desktop = {}  # without being measured first, which takes longest beside busy programs
    result = await visit._run_check(says)
    await visit._close()
    return result.reason


async def test_frames_timers_and_animations_agree_however_busy_the_machine_is(renderer):
    quiet = await said_of_time(renderer)
    async with load(seed=1, most=2):
        busy = await said_of_time(renderer)
    assert quiet == busy
    frames, ticks, first, left, day, took = map(int, quiet.split("“")[1].split("”")[0].split())
    assert abs(took - 16 * frames) <= 32 and abs(ticks - took / 10) <= 2  # sixty frames a second, and every timer
    assert 0 <= first <= 32 and abs(left - took / 4) <= 12 and abs(day - took) <= 1


@pytest.mark.parametrize("name", ["careful/canvas-animation"])  # `benchmarks.pages --steady` has all of them
async def test_prepared_pages_get_the_same_verdict_beside_busy_programs(renderer, name):
    page, checks = prepared()[name]
    quiet = await renderer.render(page.html, checks)
    async with load(seed=2, most=2):
        busy = await renderer.render(page.html, checks)
    assert verdict(page, quiet) == verdict(page, busy) and quiet.virtual
    assert quiet.pictures.keys() == busy.pictures.keys()


async def test_a_page_that_waits_in_a_loop_for_the_clock_is_measured_in_real_time(limited):
    page = GOOD.replace("<h1>", "<script>const end = Date.now() + 50; while (Date.now() < end) {}</script><h1>")
    seen = await limited(suspect=0.5).render(page)
    assert seen.trouble == "" and not seen.virtual and seen.pictures.keys() == {"desktop", "phone"}


async def test_real_time_is_said_in_the_notes_and_details():
    class Fake:
        async def tool(self, _):
            return self

        async def render(self, html, checks):
            return Rendering(checks=[CheckResult(name="n", passed=True)])

    context = ScoreContext(response=GOOD, case=Case(id="c", input="q"), workshop=Fake())
    found = await Browser().score(context)
    assert found.notes.endswith("measured in real time") and found.details["page"]["time"] == "measured in real time"


async def test_in_real_time_a_check_that_fails_has_another_chance():
    def visit(*, virtual: bool) -> Visit:
        made, results = Visit(BrowserProcess(None, "", Limits()), GOOD, virtual=virtual), iter([False, True])

        async def tried(check):
            return CheckResult(name="n", passed=next(results))

        made._try_check = tried
        return made

    assert (await visit(virtual=False)._run_check(None)).passed
    assert not (await visit(virtual=True)._run_check(None)).passed  # it would be the same again


DRAGS = """<!doctype html><meta name=viewport content="width=device-width"><body>
<div id=card draggable=true style="width: 60px; height: 30px; background: #ccc">card</div>
<div id=there style="width: 200px; height: 80px; background: #eee">there</div>
<div id=knob style="width: 30px; height: 30px; background: #888; position: absolute; left: 20px; top: 300px"></div>
<div id=end style="width: 30px; height: 30px; position: absolute; left: 420px; top: 300px"></div><p id=out>none</p><script>
there.ondragover = (event) => event.preventDefault();
card.ondragstart = (event) => event.dataTransfer.setData("text/plain", "carried");
there.ondrop = (event) => { event.preventDefault(); out.textContent = event.dataTransfer.getData("text/plain"); };
let held = false; knob.onmousedown = () => { held = true };
addEventListener("mousemove", (event) => { if (held) knob.style.left = `${event.clientX - 15}px` });
addEventListener("mouseup", () => { if (held) out.textContent = knob.style.left; held = false });
</script>"""


def drags() -> list[Check]:
    def check(what: str, onto: str, says: str) -> Check:
        steps = [{"drag": {"what": what, "onto": onto}}, {"expect": {"selector": "#out", "text": says}}]
        return msgspec.convert({"name": what, "steps": steps}, Check)

    return [check("#card", "#there", "carried"), check("#knob", "#end", "420px")]


async def test_things_are_dragged_by_the_browser_and_by_the_page(renderer):
    seen = await renderer.render(DRAGS, drags())
    assert renderer.virtual and seen.virtual
    assert [(result.passed, result.reason) for result in seen.checks] == [(True, "")] * 2


@pytest.mark.slow
async def test_things_are_dragged_in_a_browser_that_gives_no_frames(monkeypatch):
    if shutil.which("chromium") is None:
        pytest.skip("there is no chromium")
    monkeypatch.setenv("FAIRTRIAL_BROWSER", "chromium")
    async with Renderer(1) as renderer:
        seen = await renderer.render(DRAGS, drags())
        assert not renderer.virtual and not seen.virtual
    assert [(result.passed, result.reason) for result in seen.checks] == [(True, "")] * 2


# -- limits ----------------------------------------------------------------------------------------


class FakeSlot:
    limits = Limits(memory=1000)

    def __init__(self, *usages: BrowserUsage) -> None:
        self._usages = list(usages)

    async def usage(self) -> BrowserUsage:
        return self._usages.pop(0) if len(self._usages) > 1 else self._usages[0]


class SilentClock:
    def __init__(self, pace: int = 0) -> None:
        self._pace, self._frames = pace, 0

    @property
    def frames(self) -> int:
        self._frames += self._pace
        return self._frames

    @property
    def world(self):
        return self

    async def send(self, *_, **__):
        await asyncio.Event().wait()


async def test_a_page_that_does_not_answer_is_told_by_its_processor_time(monkeypatch):
    monkeypatch.setattr(watch, "_LOOK_AGAIN", 0)

    async def told(*usages: BrowserUsage, pace: int = 0) -> str | None:
        watching = watch.Watch(FakeSlot(*usages), busy=3.0)
        watching.clock = SilentClock(pace)
        task = asyncio.ensure_future(watching.violation())
        for _ in range(100):
            await asyncio.sleep(0)
        task.cancel()
        return task.result() if task.done() else None

    seconds = [BrowserUsage(float(second), 0) for second in range(9)]
    assert await told(*seconds) == watch.NO_ANSWER
    assert await told(*seconds, pace=2) is None  # it shows frames, for as long as it is waited for
    assert await told(BrowserUsage(7.0, 0)) is None  # the machine is busy with others
    assert await told(BrowserUsage(0.0, 1001)) == watch.TOO_MUCH_MEMORY


async def test_endless_loops_end_by_processor_time_alone(limited):
    renderer = limited(busy=1.0, suspect=0.5, wall=100_000.0)
    seen = await renderer.render("<p>x</p><script>while (true) {}</script>")
    assert seen.trouble == watch.NO_ANSWER and not seen.virtual  # it was given real time before it was blamed


@pytest.mark.parametrize("virtual", [True, False])
async def test_a_page_that_crashes_is_noticed_at_once(limited, virtual):
    visit = Visit(limited(wall=100_000.0)._slots[0], GOOD, virtual=virtual)

    async def crash() -> None:
        clock = await visit._load_page("desktop")
        crashing = asyncio.ensure_future(clock.world.send("Page.crash"))
        try:
            await clock.wait(3000)
            await clock.page.inner_text("h1", timeout=0)
        finally:
            crashing.cancel()
            await asyncio.gather(crashing, return_exceptions=True)

    assert not await visit._within_limits(crash) and visit.result.trouble == watch.CRASHED


class Workshop:
    """Has one tool."""

    def __init__(self, tool: Renderer) -> None:
        self._tool = tool

    async def tool(self, _):
        return self._tool


async def test_a_browser_that_does_not_get_on_says_nothing_of_the_page(limited):
    renderer = limited(wall=0.01)
    seen = await renderer.render(GOOD)
    assert seen.stalled and not seen.trouble
    context = ScoreContext(response=GOOD, case=Case(id="c", input="q"), workshop=Workshop(renderer))
    found = await Browser().score(context)
    assert isinstance(found, Unscored) and found.retryable and "made no progress" in found.message


async def test_an_ordinary_page_takes_little_memory_on_any_architecture(limited):
    """Less than any browser's libraries take, which all its processes share."""
    page, _ = prepared()["careful/kanban"]
    seen = await limited(memory=100 << 20).render(page.html)
    assert seen.trouble == ""


async def test_canvases_and_arrays_count_as_memory(limited):
    held = "const kept = []; for (let n = 0; n < 40; n++) kept.push(new Uint8Array(8 << 20).fill(n))"
    renderer = limited(memory=200 << 20)
    seen = await renderer.render(GOOD.replace("<h1>", f"<script>{held}; window.kept = kept</script><h1>"))
    assert seen.trouble == watch.TOO_MUCH_MEMORY


@LINUX
@pytest.mark.parametrize("shared", [True, False])
async def test_memory_that_is_shared_is_not_counted(shared):
    """A program that has read 64 MiB of a library into view, as browsers do, or has made as much of its own."""
    size = 64 << 20
    library = max(Path(numpy.__file__).parent.rglob("*.so"), key=lambda path: path.stat().st_size)
    kind = subprocess.run(["stat", "-f", "-c", "%T", str(library)], capture_output=True, text=True, check=True).stdout
    if shared and kind.strip() == "tmpfs":
        pytest.skip("the libraries of this Python are in memory, and count as such")
    times = size // library.stat().st_size + 1
    views = f"f = open({str(library)!r}, 'rb'); m = [mmap.mmap(f.fileno(), 0, access=1) for _ in range({times})]"
    made = f"m = [bytearray(b'\\1') * {size}]"
    before, after = _memory_around(f"{views if shared else made}; [sum(one[::4096]) for one in m]")
    assert abs(after - before - (0 if shared else size)) < size / 4  # a kernel counts in lumps of up to 64 pages


def _memory_around(action: str) -> tuple[int, int]:
    """The memory of a process before it does something and afterwards."""
    code = f"import mmap; print('ready', flush=True); input(); {action}; print('done', flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "ready\n"
        before = private_memory(process.pid)
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "done\n"
        after = private_memory(process.pid)
        process.kill()
    return before, after


async def test_a_pattern_that_takes_for_ever_decides_nothing(renderer, monkeypatch):
    monkeypatch.setattr(acting, "_PATTERN_SECONDS", 0.05)
    page = GOOD.replace("Hello", "a" * 60 + "!")
    slow = {"name": "slow", "steps": [{"expect": {"selector": "h1", "matches": "^(a|aa)+$"}}]}
    with pytest.raises(BrokenCheckError, match=r"check `slow`, step 1: the pattern .* write a simpler one"):
        await renderer.render(page, [msgspec.convert(slow, Check)])
    case = Case(id="c", input="q", metadata={"checks": [slow]})
    found = await look(ScoreContext(response=page, case=case, workshop=Workshop(renderer)), [])
    assert isinstance(found, Unscored) and found.kind == "check" and extract(page).html


# -- which browser ---------------------------------------------------------------------------------


@LINUX
async def test_a_headless_shell_is_preferred_and_any_browser_can_be_named(tmp_path, monkeypatch):
    for name in ("chromium", "chromium-headless-shell"):
        program = tmp_path / name
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_browser() == str(tmp_path / "chromium-headless-shell") and gives_frames(find_browser())
    monkeypatch.setenv("FAIRTRIAL_BROWSER", "chromium")
    assert find_browser() == str(tmp_path / "chromium") and not gives_frames(find_browser())


async def test_doctor_says_in_which_time_pages_live_and_that_root_has_no_sandbox(monkeypatch):
    assert "busy" in doctor._page_clock(virtual=True).found and doctor._page_clock(virtual=True).good
    assert doctor._page_clock(virtual=False).found.startswith("real")
    monkeypatch.setattr("os.geteuid", lambda: 0, raising=False)
    (found,) = doctor._sandbox()
    assert found.found == "off: not available to root" and "as another user" in found.advice
    monkeypatch.setattr("os.geteuid", lambda: 1000, raising=False)
    assert list(doctor._sandbox()) == []
