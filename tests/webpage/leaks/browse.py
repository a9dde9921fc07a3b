"""What a browser reaches when a person looks at hostile pages with it; run in a namespace of its own.

`python -m tests.webpage.leaks.browse chromium PROGRAM [ADDRESS]` goes through scenes, each a page of ours with others in frames:
some of the hostile pages as they are, until each was heard; all of them as `fairtrial serve` shows them, until each has
run and the browser had time to act; and the prepared pages of the Code Arena, with and without the guard. It prints
what was heard, and what the prepared pages say of themselves.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from fairtrial.tracks.code_arena import prompts as code_arena
from fairtrial.web.guard import Guard
from fairtrial.web.preview import Previews
from fairtrial.web.serving import HOST, bind_socket, host_names, serve_apps
from fairtrial.webpage.extract import extract
from fairtrial.webpage.seal import HEADERS, SANDBOX, sealed

from . import hostile, network

# Some of every kind: a listener that hears these of pages without a seal would hear the others too.
CONTROL = (
    "fetch", "image", "websocket", "worker", "font", "webrtc", "webrtc in a frame", "webrtc in inserted HTML", "webrtc in an entity",
    "location", "location, named", "assign", "refresh", "loose link", "svg link", "made frame", "page in a script address",
    "preconnect", "preconnect by number", "dns-prefetch", "made", "made as a root", "of a class", "inner", "fragment",
    "parsed as XML", "parsed with a prefix", "parsed with an entity", "written",
)  # fmt: skip
HANGS = ("hasty: canvas-animation",)
_FAMILIES = {  # with how many of them can share a page
    hostile.requests: 8, hostile.frames: 8, hostile.hints: 8, hostile.tampering: 1, hostile.leaving: 1,
}  # fmt: skip
_PORTS = 20_000
_SETTLE = 7.0  # seconds; at 3, under load, whole pages were missed
_FIRST_LOOK = (
    45.0  # seconds after which a scene is shown again, for a browser may drop a hint; then twice as long, and so on
)
_LOOKS = 4
# A page that is used, and then says what became of it.
_USED = """<script>{ const errors = []; addEventListener("error", (event) => errors.push(event.message));
const use = (part) => {
  if (part.matches("input:not([type=button], [type=submit], [type=checkbox], [type=radio]), textarea")) part.value = "7";
  for (const kind of ["input", "change"]) part.dispatchEvent(new Event(kind, {bubbles: true}));
  part.click();
};
const look = () => {
  const tags = {}, shown = document.body.innerText.replace(/\\d+/g, "#");
  for (const part of document.body.querySelectorAll("*")) tags[part.localName] = (tags[part.localName] ?? 0) + 1;
  return JSON.stringify([document.title, errors, tags, shown]);
};
// What a page does in answer to a click may take a moment, such as a snake that runs into a wall: it is told once twenty
// looks in a row were the same.
const settle = (last, same, looks) => setTimeout(() => {
  const now = look(), count = now === last ? same + 1 : 0;
  if (count >= 20 || looks >= 50) parent.postMessage({place: %d, told: now}, "*");
  else settle(now, count, looks + 1);
}, 200);
addEventListener("load", () => setTimeout(() => {
  [...document.querySelectorAll("button, summary, a, th, input, select, textarea")].slice(0, 40).forEach(use);
  settle("", 0, 0);
}, 200)); }</script>"""


class Frame(NamedTuple):
    """A page in a frame: what it tries, by the port that would hear it, or its name."""

    body: str
    tries: dict[int, str] = {}
    name: str = ""
    guard: bool = True


class Scene:
    """A page of ours with others in frames."""

    def __init__(self, frames: list[Frame]) -> None:
        self.frames = frames
        self.told: dict[int, str] = {}  # what they said, by their places
        self.looks = 0  # how often it was shown

    def silent(self) -> list[str]:
        """The pages that did not say anything."""
        unheard = [frame for place, frame in enumerate(self.frames) if place not in self.told]
        return [name for frame in unheard for name in (*frame.tries.values(), *filter(None, [frame.name]))]

    def heard(self, listener: network.Listener) -> dict[str, list[str]]:
        """Which ways out led somewhere, and how."""
        tried = {port: name for frame in self.frames for port, name in frame.tries.items()}
        ways = {name: [way for way in network.WAYS if listener.heard[way, port]] for port, name in tried.items()}
        return {name: found for name, found in ways.items() if found}


def hostile_frames(ports: Iterator[int], only: tuple[str, ...] | None = None) -> list[Frame]:
    """All hostile pages, or those that are named, each way out with a port of its own."""
    found = []
    for family, most in _FAMILIES.items():
        names = [name for name in family(_server(0)) if only is None or name in only]
        for start in range(0, len(names), most):
            tries = {next(ports): name for name in names[start : start + most]}
            body = "".join(family(_server(port))[name] for port, name in tries.items())
            found.append(
                Frame(hostile.page(f"<script>parent.postMessage({{place: {len(found)}}}, '*')</script>", body), tries)
            )
    return found


def prepared_frames() -> list[Frame]:
    """Every page of the Code Arena's prepared models, with and without the guard."""
    answers = {
        f"{model}: {case}": text
        for model in code_arena.DEMO_MODELS
        for case, text in code_arena.demo_answers(model).items()
    }
    pages = {name: html for name, text in answers.items() if name not in HANGS and (html := extract(text).html)}
    pairs = [(name, html, guard) for name, html in pages.items() for guard in (True, False)]
    return [Frame(_USED % place + html, name=name, guard=guard) for place, (name, html, guard) in enumerate(pairs)]


def _server(port: int) -> hostile.Server:
    return hostile.Server(network.ADDRESS, port, port, f"p{port}.{network.DOMAIN}")


async def main(browser: str, program: str, host: str = HOST) -> None:
    folder = Path(tempfile.mkdtemp(prefix="leaks-"))
    network.make(folder)
    ports = itertools.count(_PORTS)
    scenes = [Scene(hostile_frames(ports, CONTROL)), Scene(hostile_frames(ports)), Scene(prepared_frames())]
    listener = network.Listener()
    await listener.open(range(_PORTS, next(ports)))
    site = Site(scenes, listener, host)
    async with serve_apps(*site.apps):
        process = await _start(browser, program, site.address, folder)
        try:
            await asyncio.wait_for(site.over.wait(), 3 * _FIRST_LOOK * 2**_LOOKS + _SETTLE)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    control, shown, prepared = scenes
    said: dict[str, Any] = {
        "control": control.heard(listener),
        "heard": shown.heard(listener),
        "silent": shown.silent() + prepared.silent(),
        "tried": sum(len(frame.tries) for frame in shown.frames),
        "prepared": [
            (frame.name, frame.guard, prepared.told.get(place)) for place, frame in enumerate(prepared.frames)
        ],
        "dest": site.dest,
    }
    print(json.dumps(said))
    shutil.rmtree(folder, ignore_errors=True)


async def _start(browser: str, program: str, address: str, folder: Path) -> asyncio.subprocess.Process:
    """As a person starts it, but without a window and with a profile of its own."""
    profile = folder / "profile"
    profile.mkdir()
    how = {
        "chromium": (
            "--headless",
            "--no-sandbox",
            "--no-first-run",
            f"--user-data-dir={profile}",
        ),  # no sandbox as root
        "firefox": ("--headless", "--no-remote", "--profile", str(profile)),
    }
    quiet, environment = subprocess.DEVNULL, {**os.environ, "HOME": str(folder)}
    return await asyncio.create_subprocess_exec(
        program, *how[browser], address, stdout=quiet, stderr=quiet, env=environment, start_new_session=True
    )


class Site:
    """Our pages with frames, the origin of previews, and one that serves pages without the guard."""

    def __init__(self, scenes: list[Scene], listener: network.Listener, host: str) -> None:
        self._scenes, self._listener, self._previews = scenes, listener, Previews()
        self.over = asyncio.Event()
        self.dest: str | None = None  # what the browser says our own page is for
        main, previews, plain = bind_socket(0, host), bind_socket(0, host), bind_socket(0, host)
        self.address, self._preview_origin, self._plain_origin = (
            f"http://{host}:{one.getsockname()[1]}" for one in (main, previews, plain)
        )
        ours = (
            Route("/", self._show),
            Route("/{scene:int}", self._show),
            Route("/{scene:int}/told", self._told, methods=["POST"]),
            Route("/{scene:int}/over", self._over),
        )
        self.apps = (
            (Starlette(routes=ours), main),
            (Guard(self._previews.app, host_names(previews, host)), previews),
            (Starlette(routes=[Route("/{scene:int}/{place:int}", self._plain)]), plain),
        )

    async def _show(self, request: Request) -> Response:
        number = request.path_params.get("scene", 0)
        if number == len(self._scenes):
            self.over.set()
            return PlainTextResponse("That was all.")
        self.dest = request.headers.get("sec-fetch-dest")
        sandbox = SANDBOX if number else f"{SANDBOX} allow-same-origin allow-forms"
        shown = [
            f"<iframe sandbox='{sandbox}' referrerpolicy=no-referrer src='{self._address(number, place, frame)}'></iframe>"
            for place, frame in enumerate(self._scenes[number].frames)
        ]
        script = (
            f"<script>addEventListener('message', (e) => fetch('/{number}/told', {{method: 'POST', body: JSON.stringify(e.data)}}));"
            f"fetch('/{number}/over').then((answer) => answer.text()).then((next) => {{ location = next }})</script>"
        )
        allowed = f"{self._preview_origin} {self._plain_origin}" if number == 2 else self._preview_origin
        policy = f"default-src 'none'; script-src 'unsafe-inline'; connect-src 'self'; frame-src {allowed}"
        headers = {"Content-Security-Policy": policy} if number else {}
        return HTMLResponse(f"<title>ours</title>{script}{''.join(shown)}", headers=headers)

    def _address(self, scene: int, place: int, frame: Frame) -> str:
        if scene and frame.guard:
            return self._preview_origin + self._previews.add(frame.body)
        return f"{self._plain_origin}/{scene}/{place}"

    async def _plain(self, request: Request) -> Response:
        scene = request.path_params["scene"]
        body = self._scenes[scene].frames[request.path_params["place"]].body
        return Response(sealed(body), headers=HEADERS) if scene else HTMLResponse(body)

    async def _told(self, request: Request) -> Response:
        said = await request.json()
        self._scenes[request.path_params["scene"]].told[said["place"]] = said.get("told", "")
        return PlainTextResponse("")

    async def _over(self, request: Request) -> Response:
        """Answer where to go when the scene is over: all have spoken, those without a seal were heard, those with one
        had their time. If that takes long, it is shown again."""
        number = request.path_params["scene"]
        scene = self._scenes[number]
        until = time.monotonic() + _FIRST_LOOK * 2**scene.looks
        scene.looks += 1
        while scene.silent() or (number == 0 and len(scene.heard(self._listener)) < len(CONTROL)):
            if time.monotonic() > until:
                return PlainTextResponse(f"/{number + (scene.looks == _LOOKS)}")
            await asyncio.sleep(0.1)
        await asyncio.sleep(_SETTLE if number == 1 else 0)
        return PlainTextResponse(f"/{number + 1}")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
