"""What a model wrote as Markdown, shown as such: rendered, then cleaned of everything that could do anything."""

from __future__ import annotations

from functools import cache
from typing import Any

import nh3

_LONGEST = 200_000
_TAGS = {
    *("p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "strong", "em", "s", "del", "code", "pre", "blockquote"),
    *("ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td", "a", "sup", "sub"),
}


def rendered(text: str) -> str:
    """Safe HTML. Raw HTML in the text stays text, pictures are not loaded, and links lead nowhere by themselves."""
    html = _parser().render(text[:_LONGEST])
    clean: str = nh3.clean(
        html, tags=_TAGS, attributes={"a": {"href"}}, url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
    )  # fmt: skip
    return clean


@cache
def _parser() -> Any:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False, "linkify": False}).enable("table").disable("image")
