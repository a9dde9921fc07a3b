"""A mouse used as by a person: it acts on elements that are visible, enabled, at rest and not covered."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple

from fairtrial.webpage.clock import FRAME_MS, Clock

if TYPE_CHECKING:
    from playwright.async_api import Locator

PATIENCE_MS = 2000  # to wait for an element, and for an expectation to be met
CALL_MS = 60_000  # for a call that only needs an answer: it must never decide the outcome of a check
_DRAG_MOVES = 6  # frames between the start and the end of a drag
# Where to press: the middle of the element's first box on the screen, and whether the press would hit it there.
_PLACE = """(element, scroll) => {
  if (scroll) element.scrollIntoViewIfNeeded();
  const inside = (box) => ({left: Math.max(box.left, 0), top: Math.max(box.top, 0),
    right: Math.min(box.right, innerWidth), bottom: Math.min(box.bottom, innerHeight)});
  const box = [...element.getClientRects()].map(inside).find((b) => b.right - b.left >= 1 && b.bottom - b.top >= 1);
  if (!box) return null;
  const x = (box.left + box.right) / 2, y = (box.top + box.bottom) / 2;
  let hit = document.elementFromPoint(x, y);
  while (hit && hit.shadowRoot) {
    const inner = hit.shadowRoot.elementFromPoint(x, y);
    if (!inner || inner === hit) break;
    hit = inner;
  }
  const target = element.closest("button, [role=button], a, [role=link]") || element;
  let place = hit;
  while (place && place !== target) place = place.parentNode || place.host;
  const label = hit && hit.closest("label");
  return [x, y, Boolean(place) || Boolean(label && label.control === element)];
}"""


class UnreachableError(Exception):
    """The mouse cannot reach an element; the message says why."""


class MousePosition(NamedTuple):
    """A position of the mouse."""

    x: float
    y: float


async def click(clock: Clock, element: Locator, times: int = 1) -> None:
    """Click an element, once or several times."""
    point = await _reachable_point(clock, element, enabled=True)
    kinds = ("mousePressed", "mouseReleased")
    pressed = [_event(kind, point, count) for count in range(1, times + 1) for kind in kinds]
    await clock.input(_event("mouseMoved", point), *pressed)


async def hover(clock: Clock, element: Locator) -> None:
    """Move the mouse onto an element."""
    await clock.input(_event("mouseMoved", await _reachable_point(clock, element)))


async def drag(clock: Clock, what: Locator, onto: Locator) -> None:
    """Drag one element onto another. The browser itself carries elements that are `draggable`."""
    start = await _reachable_point(clock, what, enabled=True)
    carried: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()

    def carry(event: dict[str, Any]) -> None:
        if not carried.done():
            carried.set_result(event["data"])

    clock.world.session.on("Input.dragIntercepted", carry)
    await clock.world.send("Input.setInterceptDrags", enabled=True)
    try:
        await clock.input(_event("mouseMoved", start), _event("mousePressed", start, 1))
        end = await _reachable_point(clock, onto)
        for number in range(1, _DRAG_MOVES + 1):
            await clock.input(_event("mouseMoved", _between(start, end, number / _DRAG_MOVES), held=True))
            if await clock.world.value("fairtrial.dragging()"):
                await _drop(clock, await carried, end)
                return
        await clock.input(_event("mouseReleased", end, 1))
    finally:
        clock.world.session.remove_listener("Input.dragIntercepted", carry)
        await clock.world.send("Input.setInterceptDrags", enabled=False)


async def scroll_to(element: Locator) -> None:
    """Scroll an element into view. Playwright's own method would wait for frames."""
    await element.evaluate("element => element.scrollIntoViewIfNeeded()", timeout=CALL_MS)


async def _drop(clock: Clock, data: dict[str, Any], point: MousePosition) -> None:
    for kind in ("dragEnter", "dragOver", "drop"):
        await clock.world.send("Input.dispatchDragEvent", type=kind, x=point.x, y=point.y, data=data)
        await clock.wait(FRAME_MS)


async def _reachable_point(clock: Clock, element: Locator, *, enabled: bool = False) -> MousePosition:
    """Wait until an element is at rest and not covered, and return where to press it."""
    end = clock.now + PATIENCE_MS
    before: MousePosition | None = None
    while True:
        place = await element.evaluate(_PLACE, before is None, timeout=CALL_MS)
        point = MousePosition(place[0], place[1]) if place else None
        rests = point == before and place and place[2]
        if point is not None and rests and (not enabled or await element.is_enabled(timeout=CALL_MS)):
            return point
        if clock.now >= end:
            raise UnreachableError("it could not be done: something covers it, or it is disabled")
        before = point
        await clock.wait(FRAME_MS)


def _between(start: MousePosition, end: MousePosition, share: float) -> MousePosition:
    return MousePosition(start.x + share * (end.x - start.x), start.y + share * (end.y - start.y))


def _event(kind: str, point: MousePosition, count: int = 0, *, held: bool = False) -> dict[str, Any]:
    left = held or count > 0
    held = held or kind == "mousePressed"
    event = {"type": kind, "x": point.x, "y": point.y, "button": "left" if left else "none", "buttons": int(held)}
    return {**event, "clickCount": count} if count else event
