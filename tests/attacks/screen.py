"""A screen of one's own with a mouse and a keyboard: an X server without a monitor, and events as devices would send them."""

from __future__ import annotations

import ctypes
import os
import subprocess
import time
from ctypes import byref, c_char_p, c_int, c_ulong, c_void_p

WIDTH, HEIGHT = 1280, 960
_LEFT, _MIDDLE = 1, 2
_POINTER_ROOT, _CURRENT_TIME = 1, 0
_X11, _XTEST = "libX11.so.6", "libXtst.so.6"


class Screen:
    """An X server, started for this alone. A context manager."""

    def __enter__(self) -> Screen:
        read, write = os.pipe()
        size = f"{WIDTH}x{HEIGHT}x24"
        self._server = subprocess.Popen(
            ["Xvfb", "-displayfd", str(write), "-screen", "0", size, "-nolisten", "tcp"],
            pass_fds=[write],
            stderr=subprocess.DEVNULL,
        )
        os.close(write)
        with os.fdopen(read) as pipe:
            self.name = f":{pipe.readline().strip()}"
        self._x, self._test = ctypes.CDLL(_X11), ctypes.CDLL(_XTEST)
        self._x.XOpenDisplay.restype = c_void_p
        self._x.XDefaultRootWindow.restype = self._x.XStringToKeysym.restype = c_ulong
        self._display = c_void_p(self._x.XOpenDisplay(c_char_p(self.name.encode())))
        assert self._display.value, "the X server does not answer"
        return self

    def __exit__(self, *_: object) -> None:
        self._x.XCloseDisplay(self._display)
        self._server.terminate()
        self._server.wait()

    def focus(self) -> None:
        """Give the keyboard to the largest window: there is no window manager that would."""
        root, parent, count = c_ulong(), c_ulong(), c_int()
        children = ctypes.POINTER(c_ulong)()
        window = c_ulong(self._x.XDefaultRootWindow(self._display))
        self._x.XQueryTree(self._display, window, byref(root), byref(parent), byref(children), byref(count))
        largest, most = None, 0
        for place in range(count.value):
            x, y, width, height, border, depth = c_int(), c_int(), c_int(), c_int(), c_int(), c_int()
            self._x.XGetGeometry(
                self._display, c_ulong(children[place]), byref(root), byref(x), byref(y), byref(width), byref(height),
                byref(border), byref(depth),
            )  # fmt: skip
            if width.value * height.value > most and x.value >= 0:
                largest, most = children[place], width.value * height.value
        if largest is not None:
            self._x.XSetInputFocus(self._display, c_ulong(largest), _POINTER_ROOT, c_ulong(_CURRENT_TIME))
        self._send(0.0)

    def move(self, x: int, y: int) -> None:
        """Move the mouse, in two steps."""
        for shift in (4, 0):
            self._test.XTestFakeMotionEvent(self._display, -1, x + shift, y + shift, c_ulong(0))
            self._send()

    def click(self, *, middle: bool = False, control: bool = False) -> None:
        """Press a button of the mouse, and let it go."""
        button = _MIDDLE if middle else _LEFT
        if control:
            self._key("Control_L", True)
        for down in (True, False):
            self._test.XTestFakeButtonEvent(self._display, button, down, c_ulong(0))
            self._send()
        if control:
            self._key("Control_L", False)

    def press(self, key: str, *, control: bool = False) -> None:
        """Press a key, such as `Tab`."""
        keys = ["Control_L", key] if control else [key]
        for name in keys:
            self._key(name, True)
        for name in reversed(keys):
            self._key(name, False)

    def _key(self, name: str, down: bool) -> None:
        code = self._x.XKeysymToKeycode(self._display, c_ulong(self._x.XStringToKeysym(name.encode())))
        self._test.XTestFakeKeyEvent(self._display, code, down, c_ulong(0))
        self._send()

    def _send(self, wait: float = 0.03) -> None:
        self._x.XSync(self._display, 0)
        time.sleep(wait)  # a hand takes longer
