"""Small inputs, small costs: what is read of strangers takes time and memory in proportion to its size."""

from __future__ import annotations

import contextlib
import time
import tracemalloc
from collections.abc import Callable

import pytest
import yaml

from fairtrial.config.editing import Editor
from fairtrial.config.source import SuiteSource
from fairtrial.core.errors import FairtrialError
from fairtrial.core.templates import TemplateError, fill
from fairtrial.core.variables import Variables
from fairtrial.text.yaml_text import read_yaml
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


_LONG = "('a' * 900000)"
_DOUBLED = "{% set a = 'a' * 1000000 %}" + "".join(
    f"{{% set {new} = {old} OPERATOR {old} %}}" for old, new in zip("abcdefghijklmnop", "bcdefghijklmnopq", strict=True)
)
TEMPLATES = {
    "joined": f"{{{{ range(2500) | join({_LONG}) | length }}}}",
    "joined by a method": f"{{{{ {_LONG}.join(['a', 'b'] * 2500) | length }}}}",
    "replaced": f"{{{{ {_LONG} | replace('a', {_LONG}) | length }}}}",
    "replaced by a method": f"{{{{ {_LONG}.replace('a', {_LONG}) | length }}}}",
    "nothing replaced": f"{{{{ {_LONG}.replace('', {_LONG}) | length }}}}",
    "translated": f"{{{{ {_LONG}.translate({{97: {_LONG}}}) | length }}}}",
    "wrapped": f"{{{{ ('a ' * 400000) | wordwrap(1, wrapstring={_LONG}) | length }}}}",
    "linked": f"{{{{ ('http://a.b ' * 9000) | urlize(target={_LONG}) | length }}}}",
    "indented JSON": "{{ x | tojson(indent=99999999) | length }}",
    "bytes": "{{ (5).to_bytes(9999999999, 'big') | length }}",
    "bytes, filled": "{{ 'a'.encode().ljust(9999999999) | length }}",
    "added": _DOUBLED.replace("OPERATOR", "+"),
    "put together": _DOUBLED.replace("OPERATOR", "~"),
    "multiplied": "{% set a = 10 ** 60 %}"
    + "".join(f"{{% set a{n + 1} = a{n or ''} * a{n or ''} %}}" for n in range(40)),
    "caught": f"{{% set x %}}{{% for n in range(10000) %}}{{{{ {_LONG} }}}}{{% endfor %}}{{% endset %}}",
    "caught text": "{% set x %}{% for n in range(10000) %}{% for m in range(100) %}" + "a" * 10_000 + "{% endfor %}{% endfor %}{% endset %}",
    "macros": "{% macro m0() %}" + "a" * 999 + "{% endmacro %}"
    + "".join(f"{{% macro m{n + 1}() %}}{f'{{{{ m{n}() }}}}' * 10}{{% endmacro %}}" for n in range(9)) + "{% set x = m9() %}",
    "macros without end": "{% macro m() %}{{ m() }}{{ m() }}{% endmacro %}{{ m() }}",
    "loops": "{% for a in range(9999) %}{% for b in range(9999) %}{% for c in range(9999) %}{% endfor %}{% endfor %}{% endfor %}",
    "loops into themselves": "{% for a in range(9999) recursive %}{% if loop.depth < 9 %}{{ loop(range(9999)) }}{% endif %}{% endfor %}",
    "lists of lists": "{% set a = range(9999) | list %}{% for b in a %}{% set c = a + a | list %}{% for d in c %}{% endfor %}{% endfor %}",
    "compared": f"{{% set a = {_LONG} %}}{{% set b = {_LONG} %}}{{% for x in range(9999) %}}{{% for y in range(99) %}}{{% if a == b %}}{{% endif %}}{{% endfor %}}{{% endfor %}}",
    "searched": f"{{% set a = {_LONG} %}}{{% for x in range(9999) %}}{{% for y in range(99) %}}{{{{ a.count('b') }}}}{{% endfor %}}{{% endfor %}}",
    "counted": f"{{% set a = {_LONG} %}}{{% for x in range(9999) %}}{{{{ a | wordcount }}}}{{% endfor %}}",
    "sliced": f"{{% set a = {_LONG} %}}{{% for x in range(9999) %}}{{% set b = a[1:] %}}{{% endfor %}}",
    "sorted": "{% for x in range(9999) %}{% set b = range(9999) | list | sort(reverse=true) %}{% endfor %}",
    "mapped": "{% for x in range(9999) %}{% set b = range(9999) | map('string') | list %}{% endfor %}",
}  # fmt: skip


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_that_works_too_much_is_ended(name: str) -> None:
    tracemalloc.start()
    try:
        start = time.process_time()
        with pytest.raises(TemplateError) as caught:
            fill(TEMPLATES[name], {"x": [[1]]})
        assert tracemalloc.get_traced_memory()[1] < 400 << 20
    finally:
        tracemalloc.stop()
    assert time.process_time() - start < 6 * MOST  # memory is traced
    assert len(str(caught.value)) < 300


def test_a_template_that_works_much_is_filled_in() -> None:
    rows = [{"name": f"n{number}", "tags": ["a", "b"], "text": "word " * 50} for number in range(3000)]
    text = (
        "{% for row in rows if row.name != 'n7' %}{{ loop.index }}/{{ loop.length }}{% if not loop.last %},{% endif %} "
        "{{ row.name | upper }}: {{ row.tags | join(', ') }} {{ row.text.replace('word', 'w') | trim }} {{ row.tags[0] ~ '-' ~ loop.index0 }}\n"
        "{% else %}none{% endfor %}"
    )
    filled_in = fill(text, {"rows": rows})
    assert filled_in.startswith("1/2999, N0: a, b w w") and filled_in.count("\n") == 2999 and " a-2998\n" in filled_in
    tree = {"n": 1, "c": [{"n": 2, "c": []}, {"n": 3, "c": [{"n": 4, "c": []}]}]}
    walk = "{% for x in [t] recursive %}{{ x.n }}({{ loop(x.c) }}){% endfor %}"
    assert fill(walk, {"t": tree}) == "1(2()3(4()))"


_LAUGHS = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n + 1}: &a{n + 1} [{', '.join([f'*a{n}'] * 10)}]\n" for n in range(9)
)
_MERGES = "a0: &a0 {x0: 1}\n" + "".join(f"a{n + 1}: &a{n + 1} {{<<: [*a{n}, *a{n}], x{n + 1}: 1}}\n" for n in range(40))
DOCUMENTS = {
    "aliases of aliases": _LAUGHS,
    "merges of merges": _MERGES,
    "an anchor in itself": "a: &a [*a]",
    "brackets": "[" * 50_000,
    "closed brackets": "[" * 20_000 + "]" * 20_000,
    "braces": "{a: " * 20_000,
    "indents": "".join(" " * n + "a:\n" for n in range(600)),
    "dashes": "- " * 20_000,
    "questions": "? " * 20_000,
    "digits": "a: " + "9" * 100_000,
    "sixties": "a: 1" + ":59" * 30_000,
    "a long float": "a: 1." + "9" * 100_000,
    "a date that cannot be": "a: 2026-99-99",
    "quotes": "a: '" + "''" * 50_000,
    "escapes": 'a: "' + "\\" * 100_001,
    "anchors": "".join(f"a{n}: &a{n} x\n" for n in range(5000)),
    "keys": "{" + ",".join(f"k{n}: 1" for n in range(10_000)) + "}",
    "the same key": "a: 1\n" * 10_000,
    "documents": "--- a\n" * 10_000,
    "tags": "".join(f"%TAG !a{n}! tag:x\n" for n in range(2000)) + "--- a",
    "a tag that runs": "!!python/object/apply:os.system ['true']",
    "colons": ":" * 50_000,
    "new lines": "a: |\n" + "\n" * 100_000,
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_yaml_is_read_in_time_or_refused(name: str) -> None:
    text = DOCUMENTS[name]

    def read() -> None:
        with contextlib.suppress(yaml.YAMLError):
            read_yaml(text)
        with contextlib.suppress(FairtrialError):
            SuiteSource(text, "suite.yaml", Variables({}))

    assert cost(read) < MOST


@pytest.mark.parametrize(
    "name", ["aliases of aliases", "an anchor in itself", "brackets", "indents", "digits", "sixties"]
)
def test_yaml_that_is_larger_than_it_looks_is_refused_everywhere(name: str) -> None:
    for read in (read_yaml, Editor, lambda text: SuiteSource(text, "suite.yaml", Variables({}))):
        with pytest.raises((yaml.YAMLError, FairtrialError)):
            read(DOCUMENTS[name])
