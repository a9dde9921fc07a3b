"""Small inputs, small costs: what is read of strangers takes time and memory in proportion to its size."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from fairtrial.web.markdown import render_markdown
from fairtrial.webpage.extract import PageStream, extract
from fairtrial.webpage.seal import guarded

SIZE = 100_000  # characters
MOST = (
    10.0  # seconds of the processor's time, of which each takes a small part; without a limit most would take minutes
)

ANSWERS = {
    "newlines": "\n",
    "newlines and spaces": "\n ",
    "fences": "```\n",
    "fences in a document": ("```html\n<html>\n", "```\n", "</html>"),
    "blocks": "```js\nx\n```\n",
    "documents": "```html\n<html>\n```\n",
    "open scripts": ("", "<script ", "</script>"),
    "open tags": "<p",
    "open style sheets": ("```html\n<html>", "<link/stylesheet/href=", "\n```\n```css\na\n```"),
    "open files of scripts": ("```html\n<html>", "<script/src=", "\n```\n```js\na\n```"),
    "style sheets": ("```html\n<html>", "<link rel=stylesheet href=a>", "\n```\n```css\na\n```"),
    "a name of a file": ("```", "a.", "\nx\n```"),
    "a comment with a file": ("```\n//", "a/", "\n```"),
    "ends": ("<html>", "</html ", ">"),
    "thinking": "<think>",
    "braces": "{",
    "links": '<a href="',
    "links and spaces": ("<a href=", "\n", ">"),
    "animations and spaces": ("<set attributeName=", "\n", ">"),
}
TEXTS = [
    "[", "![", "[[]", "[a](", "[a](<b", '[a](b "', "](", "*a ", "_a ", "*a_ ", "**a", "***a", "*a **b", "_*", "`", "`a``b```c", "<", "<a ",
    "<!--", "<http://a", "&", "&#1;", "\\", "\\[", "> ", ">\n", "- ", "* ", "1. ", "# ", "\n- a\n\n", "  - a\n", "|", "|a|b\n", "|a\n|-\n", "a\n",
    "[a]\n", "[a]: b\n", "[a]: <", "[a]:", "```\n", "~~", "\t", "\u00a0",
]  # fmt: skip


def cost(work: Callable[[], object]) -> float:
    """Return how many seconds of the processor's time something takes."""
    start = time.process_time()
    work()
    return time.process_time() - start


def filled(parts: str | tuple[str, str, str], size: int = SIZE) -> str:
    before, part, after = ("", parts, "") if isinstance(parts, str) else parts
    return before + part * (size // len(part)) + after


@pytest.mark.parametrize("name", ANSWERS)
def test_a_page_is_extracted_and_sealed_in_time(name: str) -> None:
    text = filled(ANSWERS[name])
    assert cost(lambda: extract(text)) < MOST
    assert cost(lambda: guarded(text)) < MOST


@pytest.mark.parametrize("name", ANSWERS)
def test_a_page_is_streamed_in_time(name: str) -> None:
    text = filled(ANSWERS[name], 20_000)

    def stream() -> None:
        page = PageStream()
        for start in range(0, len(text), 50):
            page.feed(text[start : start + 50])
        page.end()

    assert cost(stream) < MOST


@pytest.mark.parametrize("text", TEXTS)
def test_markdown_is_rendered_in_time(text: str) -> None:
    assert cost(lambda: render_markdown(filled(text))) < MOST


def test_a_wide_table_is_rendered_in_time() -> None:
    assert cost(lambda: render_markdown("a|" * 1000 + "\n" + "-|" * 1000 + "\n" + "x\n" * 50_000)) < MOST


def test_a_paragraph_with_too_many_marks_is_shown_as_it_is_written() -> None:
    html = render_markdown("**bold**\n\n" + "*a " * 5000 + "\n\n*last*")
    assert "<strong>bold</strong>" in html and "*a *a *a" in html and "<em>last</em>" in html


def test_of_a_link_the_address_is_shown() -> None:
    html = render_markdown(
        "[text](https://example.org/a?b=1&c=2) <https://example.org> **[x *y*](http://z)** <a@b.org>"
    )
    assert "<a" not in html and "href" not in html
    assert (
        "text (https://example.org/a?b=1&amp;c=2) https://example.org <strong>x <em>y</em> (http://z)</strong> a@b.org"
        in html
    )
