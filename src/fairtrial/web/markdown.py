"""Markdown written by models: rendered, then stripped of everything active."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from html import escape
from typing import Any

import nh3

_MAX_CHARACTERS = 200_000
_MAX_MARKS = 4_000  # in one paragraph: what it takes to pair them grows with their square
_MARKS = "[]*_`<~!&\\"
_TAGS = {
    *("p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "strong", "em", "s", "del", "code", "pre", "blockquote"),
    *("ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td", "sup", "sub"),
}


def render_markdown(text: str) -> str:
    """Return safe HTML: raw HTML stays text, images are not loaded, and of links the address is shown.

    A link would have a browser look its host up as soon as the mouse is over it.
    """
    clean: str = nh3.clean(_parser().render(text[:_MAX_CHARACTERS]), tags=_TAGS, attributes={})
    return clean


@cache
def _parser() -> Any:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "linkify": False}).enable("table").disable("image")
    parser.core.ruler.at("inline", _parse_inline)
    parser.add_render_rule("link_open", lambda *_: "")
    parser.add_render_rule("link_close", _show_address)
    return parser


def _parse_inline(state: Any) -> None:
    """Parse what is in paragraphs; one with thousands of marks stays as it is written."""
    from markdown_it.token import Token

    for token in state.tokens:
        if token.type != "inline":
            continue
        if sum(map(token.content.count, _MARKS)) > _MAX_MARKS:
            token.children = [Token("text", "", 0, content=token.content)]
        else:
            token.children = []
            state.md.inline.parse(token.content, state.md, state.env, token.children)


def _show_address(_: Any, tokens: Sequence[Any], place: int, *more: Any) -> str:
    """Return the address after the text of a link, unless it is the text."""
    start = next(number for number in range(place, -1, -1) if tokens[number].type == "link_open")
    address = str(tokens[start].attrGet("href"))
    text = "".join(token.content for token in tokens[start:place])
    return "" if address.removeprefix("mailto:") == text else f" ({escape(address)})"
