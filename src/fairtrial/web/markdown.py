"""Markdown written by models: rendered, then stripped of everything active."""

from __future__ import annotations

from functools import cache
from typing import Any

import nh3

_MAX_CHARACTERS = 200_000
_TAGS = {
    *("p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "strong", "em", "s", "del", "code", "pre", "blockquote"),
    *("ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td", "a", "sup", "sub"),
}


def render_markdown(text: str) -> str:
    """Return safe HTML: raw HTML stays text, images are not loaded, and links are not followed automatically."""
    html = _parser().render(text[:_MAX_CHARACTERS])
    clean: str = nh3.clean(
        html, tags=_TAGS, attributes={"a": {"href"}}, url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
    )  # fmt: skip
    return clean


@cache
def _parser() -> Any:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False, "linkify": False}).enable("table").disable("image")
