"""What a browser reaches while somebody uses hostile pages with a mouse and a keyboard; run in a namespace of its own.

`python -m tests.attacks.browsing chromium PROGRAM [all]` shows pages of `links` in frames on a screen of its own: first some
without a seal, then some (or all) as `fairtrial serve` shows them. Each is hovered over, clicked with the left and the
middle button and with Ctrl, and used with Enter, Ctrl+Enter and Tab. What is heard, or seen on the wire, is printed.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from fairtrial.web.guard import Guard
from fairtrial.web.preview import Previews
from fairtrial.web.serving import HOST, bind_socket, host_names, serve_apps
from fairtrial.webpage.seal import SANDBOX
from tests.webpage.leaks import network
from tests.webpage.leaks.hostile import Server

from . import links
from .screen import HEIGHT, WIDTH, Screen

# Without a seal these are heard: the mouse and the keyboard reach pages, and look-ups reach the listener.
CONTROL = (
    "a: plain", "area: plain", "svg: plain", "xlink: plain", "a: property", "a: an attribute", "a: host", "a: inner",
    "a: spelled", "a: without a scheme", "a: under the mouse", "a: after a while", "svg: base value", "a: in a closed shadow",
)  # fmt: skip
_COLUMNS, _ROWS = 8, 6
_SIZE = (WIDTH // _COLUMNS - 4, (HEIGHT - 120) // _ROWS - 4)
_PORTS = 30_000
_SHORT = 10  # of all pages, one in so many is shown in the short form
_LOAD, _SETTLE = 180.0, 7.0  # seconds
_ETH_P_ALL = 3


class Capture(asyncio.Protocol):
    """Every packet in this network: which ports of ours were written to, and which of our names are in one."""

    def __init__(self) -> None:
        self.ports: set[int] = set()
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(_ETH_P_ALL))
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**24)
        asyncio.get_running_loop().add_reader(self._socket, self._read)

    def _read(self) -> None:
        while True:
            try:
                packet = self._socket.recv(65_535)
            except BlockingIOError:
                return
            self._note(packet)

    def _note(self, packet: bytes) -> None:
        if len(packet) < 28 or packet[0] >> 4 != 4 or packet[16] == 127:
            return
        start = (packet[0] & 15) * 4
        port = struct.unpack("!H", packet[start + 2 : start + 4])[0]
        ours = packet[16:20] == socket.inet_aton(network.ADDRESS) and _PORTS <= port < _PORTS + 1000
        if ours and packet[9] in (socket.IPPROTO_TCP, socket.IPPROTO_UDP):
            self.ports.add(port)
        for label in packet[start:].lower().split(b"\x04leak\x07example")[:-1]:
            if (at := label.rfind(b"p3")) >= 0 and label[at + 1 : at + 6].isdigit():
                self.ports.add(int(label[at + 1 : at + 6]))


class Scene:
    """Pages in frames, as a person has them on the screen."""

    def __init__(self, names: dict[int, str], sealed: bool) -> None:
        self.names, self.sealed = names, sealed
        self.told: set[int] = set()
        self.shown = asyncio.Event()
        self.corner = (0, 0)


class Site:
    """Our page with frames, and the origins of what is in them."""

    def __init__(self, scenes: list[Scene]) -> None:
        self.scenes, self._previews, self._number = scenes, Previews(), 0
        self._pages = links.pages()
        main, previews, plain = bind_socket(0, HOST), bind_socket(0, HOST), bind_socket(0, HOST)
        self.address, self._preview_origin, self._plain_origin = (
            f"http://{HOST}:{one.getsockname()[1]}" for one in (main, previews, plain)
        )
        ours = [
            Route("/{scene:int}", self._show),
            Route("/{scene:int}/told", self._told, methods=["POST"]),
            Route("/{scene:int}/over", self._over),
        ]
        self._over_events = [asyncio.Event() for _ in scenes]
        self.apps = (
            (Starlette(routes=ours), main),
            (Guard(self._previews.app, host_names(previews, HOST)), previews),
            (Starlette(routes=[Route("/{scene:int}/{place:int}", self._plain)]), plain),
        )

    def _body(self, scene: Scene, place: int) -> str:
        port, name = list(scene.names.items())[place]
        server = Server(network.ADDRESS, port, port, f"p{port}.{network.DOMAIN}")
        return links.page(self._pages[name](server), place)

    async def _show(self, request: Request) -> Response:
        number = request.path_params["scene"]
        if number == len(self.scenes):
            return PlainTextResponse("That was all.")
        scene = self.scenes[number]
        frames = [
            f"<iframe sandbox='{SANDBOX if scene.sealed else SANDBOX + ' allow-popups'}' referrerpolicy=no-referrer "
            f"src='{self._address(number, place)}' style='position: fixed; border: 0; left: {x}px; top: {y}px; "
            f"width: {_SIZE[0]}px; height: {_SIZE[1]}px'></iframe>"
            for place, (x, y) in enumerate(_places(len(scene.names)))
        ]
        code = (
            f"const tell = (it) => fetch('/{number}/told', {{method: 'POST', body: JSON.stringify(it)}}).catch(() => setTimeout(tell, 300, it));"
            "addEventListener('message', (e) => tell(e.data));"
            "addEventListener('load', () => tell({corner: [window.mozInnerScreenX ?? screenX + (outerWidth - innerWidth) / 2, "
            "window.mozInnerScreenY ?? screenY + outerHeight - innerHeight]}));"
            f"fetch('/{number}/over').then(() => {{ location = '/{number + 1}' }})"
        )
        policy = f"default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; frame-src {self._preview_origin}"
        headers = {"Content-Security-Policy": policy} if scene.sealed else {}
        page = f"<!doctype html><title>ours</title><script>{code}</script>{''.join(frames)}"
        return HTMLResponse(page, headers=headers)

    def _address(self, number: int, place: int) -> str:
        scene = self.scenes[number]
        if scene.sealed:
            return self._preview_origin + self._previews.add(self._body(scene, place))
        return f"{self._plain_origin}/{number}/{place}"

    async def _plain(self, request: Request) -> Response:
        scene = self.scenes[request.path_params["scene"]]
        return HTMLResponse(self._body(scene, request.path_params["place"]))

    async def _told(self, request: Request) -> Response:
        scene, said = self.scenes[request.path_params["scene"]], await request.json()
        if "corner" in said:
            scene.corner = (int(said["corner"][0]), int(said["corner"][1]))
            scene.shown.set()
        else:
            scene.told.add(said["place"])
        return PlainTextResponse("")

    async def _over(self, request: Request) -> Response:
        await self._over_events[request.path_params["scene"]].wait()
        return PlainTextResponse("")

    def end(self, number: int) -> None:
        """Go on to the next scene."""
        self._over_events[number].set()


def _places(count: int) -> list[tuple[int, int]]:
    spots = [(column, row) for row in range(_ROWS) for column in range(_COLUMNS)]
    return [(column * (_SIZE[0] + 4), row * (_SIZE[1] + 4)) for column, row in spots[:count]]


async def _use(screen: Screen, scene: Scene) -> None:
    """Use every page as a person could."""
    await asyncio.to_thread(screen.focus)
    left, top = scene.corner
    for x, y in _places(len(scene.names)):
        await asyncio.to_thread(_use_page, screen, left + x + _SIZE[0] // 2, top + y + _SIZE[1] // 2)
    await asyncio.to_thread(screen.move, left + _SIZE[0] // 2, top + _SIZE[1] // 2)
    await asyncio.to_thread(screen.click)
    for _ in (
        scene.names
    ):  # from one to the next; Enter is not pressed, for the last one is followed by the browser's buttons
        await asyncio.to_thread(screen.press, "Tab")


def _use_page(screen: Screen, x: int, y: int) -> None:
    screen.move(x, y)
    screen.click(middle=True)
    screen.click(control=True)
    screen.click()
    for control in (True, False):  # what was clicked has the focus
        screen.press("Return", control=control)


def _scenes(whole: bool) -> tuple[list[Scene], int]:
    every = list(links.pages())
    chosen = [name for place, name in enumerate(every) if whole or place % _SHORT == 0 or name in CONTROL]
    port, scenes = _PORTS, []
    each = _COLUMNS * _ROWS
    for names, sealed in [(list(CONTROL), False)] + [
        (chosen[at : at + each], True) for at in range(0, len(chosen), each)
    ]:
        scenes.append(Scene(dict(zip(range(port, port + len(names)), names, strict=True)), sealed))
        port += len(names)
    return scenes, port


async def main(browser: str, program: str, *more: str) -> None:
    folder = Path(tempfile.mkdtemp(prefix="attacks-"))
    network.make(folder)
    scenes, end = _scenes("all" in more)
    listener, capture = network.Listener(), Capture()
    await listener.open(range(_PORTS, end))
    site = Site(scenes)
    with Screen() as screen:
        async with serve_apps(*site.apps):
            process = await _start(browser, program, f"{site.address}/0", folder, screen)
            try:
                for number, scene in enumerate(scenes):
                    try:
                        await asyncio.wait_for(scene.shown.wait(), _LOAD)
                    except TimeoutError:
                        sys.exit(f"scene {number} was never shown")
                    await asyncio.sleep(1)
                    await _use(screen, scene)
                    await asyncio.sleep(_SETTLE)
                    site.end(number)
            finally:
                os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
    ways = {
        port: [
            *(way for way in network.WAYS if listener.heard[way, port]),
            *(["packet"] if port in capture.ports else []),
        ]
        for port in range(_PORTS, end)
    }
    control, *shown = scenes
    said: dict[str, Any] = {
        "control": {name: ways[port] for port, name in control.names.items() if ways[port]},
        "heard": {name: ways[port] for scene in shown for port, name in scene.names.items() if ways[port]},
        "silent": [
            name for scene in shown for place, name in enumerate(scene.names.values()) if place not in scene.told
        ],
        "tried": sum(len(scene.names) for scene in shown),
    }
    print(json.dumps(said))
    shutil.rmtree(folder, ignore_errors=True)


async def _start(browser: str, program: str, address: str, folder: Path, screen: Screen) -> asyncio.subprocess.Process:
    """As a person starts it, with a profile of its own."""
    profile = folder / "profile"
    profile.mkdir()
    how = {
        "chromium": (
            "--no-sandbox", "--no-first-run", f"--user-data-dir={profile}", f"--window-size={WIDTH},{HEIGHT}", "--window-position=0,0",
        ),  # no sandbox as root
        "firefox": ("--no-remote", "--profile", str(profile), "--width", str(WIDTH), "--height", str(HEIGHT)),
    }  # fmt: skip
    quiet, environment = subprocess.DEVNULL, {**os.environ, "HOME": str(folder), "DISPLAY": screen.name}
    environment.pop("WAYLAND_DISPLAY", None)
    return await asyncio.create_subprocess_exec(
        program, *how[browser], address, stdout=quiet, stderr=quiet, env=environment, start_new_session=True
    )


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
