"""The DevTools protocol for one page, and an isolated JavaScript world that the page can neither see nor change."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.async_api import CDPSession

_NAME = "fairtrial"


class UnmeasurableError(Exception):
    """An expression could not be evaluated in a page."""


class World:
    """One page, controlled through the protocol. `listen` and the other probes are loaded before the page's scripts."""

    def __init__(self, session: CDPSession) -> None:
        self.session = session
        self._frame = ""
        self._context: int | None = None  # valid while the page shows the same document

    async def open(self) -> None:
        """Add the probes to every document that the page will show."""
        await self.send("Page.enable")
        await self.send("Page.addScriptToEvaluateOnNewDocument", source=_probes(), worldName=_NAME)
        self._frame = (await self.send("Page.getFrameTree"))["frameTree"]["frame"]["id"]
        self.session.on("Page.frameNavigated", self._navigated)

    def _navigated(self, event: dict[str, Any]) -> None:
        if "parentId" not in event["frame"]:
            self._frame, self._context = event["frame"]["id"], None

    async def send(self, method: str, **params: Any) -> dict[str, Any]:
        """Send one protocol command and return its answer."""
        answer: dict[str, Any] = await self.session.send(method, params)
        return answer

    async def value(self, expression: str, *, gesture: bool = False) -> Any:
        """Evaluate an expression in the isolated world; with `gesture`, as if triggered by a user."""
        from playwright.async_api import Error

        had_context = self._context is not None
        try:
            return await self._evaluate(expression, gesture)
        except Error:
            if not had_context:
                raise
            self._context = None  # the document has changed since
            return await self._evaluate(expression, gesture)

    async def _evaluate(self, expression: str, gesture: bool) -> Any:
        if self._context is None:
            world = await self.send("Page.createIsolatedWorld", frameId=self._frame, worldName=_NAME)
            self._context = world["executionContextId"]
        reply = await self.send(
            "Runtime.evaluate",
            expression=expression,
            contextId=self._context,
            returnByValue=True,
            userGesture=gesture,
        )
        if "exceptionDetails" in reply:
            raise UnmeasurableError(f"the page cannot be measured: {reply['exceptionDetails'].get('text', '')}")
        return reply["result"].get("value")


@cache
def _probes() -> str:
    return (Path(__file__).parent / "probes.js").read_text("utf-8")
