"""The browser's protocol for one page, and the JavaScript world in it that the page can neither see nor change."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.async_api import CDPSession

_NAME = "fairtrial"


class UnmeasurableError(Exception):
    """What is asked of a page cannot be worked out there."""


class World:
    """One page, spoken to through the protocol. `listen` and the other probes run before anything of the page."""

    def __init__(self, session: CDPSession) -> None:
        self._session = session
        self._frame = ""
        self._context: int | None = None  # as long as the page shows the same document

    async def open(self) -> None:
        """Make the probes part of every document that the page will show."""
        await self.send("Page.enable")
        await self.send("Page.addScriptToEvaluateOnNewDocument", source=_probes(), worldName=_NAME)
        self._frame = (await self.send("Page.getFrameTree"))["frameTree"]["frame"]["id"]
        self._session.on("Page.frameNavigated", self._navigated)

    def _navigated(self, event: dict[str, Any]) -> None:
        if "parentId" not in event["frame"]:
            self._frame, self._context = event["frame"]["id"], None

    @property
    def session(self) -> CDPSession:
        """For those who listen to events."""
        return self._session

    async def send(self, method: str, **params: Any) -> dict[str, Any]:
        """One call of the protocol."""
        answer: dict[str, Any] = await self._session.send(method, params)
        return answer

    async def value(self, expression: str, *, gesture: bool = False) -> Any:
        """The value of an expression in our world; with `gesture`, as if a person had asked for it."""
        from playwright.async_api import Error

        known = self._context is not None
        try:
            return await self._evaluated(expression, gesture)
        except Error:
            if not known:
                raise
            self._context = None  # the document has changed since
            return await self._evaluated(expression, gesture)

    async def _evaluated(self, expression: str, gesture: bool) -> Any:
        if self._context is None:
            made = await self.send("Page.createIsolatedWorld", frameId=self._frame, worldName=_NAME)
            self._context = made["executionContextId"]
        told = await self.send(
            "Runtime.evaluate",
            expression=expression,
            contextId=self._context,
            returnByValue=True,
            userGesture=gesture,
        )
        if "exceptionDetails" in told:
            raise UnmeasurableError(f"the page cannot be measured: {told['exceptionDetails'].get('text', '')}")
        return told["result"].get("value")


@cache
def _probes() -> str:
    return (Path(__file__).parent / "probes.js").read_text("utf-8")
