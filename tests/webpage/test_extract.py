"""The page in an answer, whatever the model wrote around, beside and inside of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairtrial.webpage.extract import PageStream, extract
from fairtrial.webpage.seal import POLICY, sealed

PAGE = "<!doctype html>\n<html><head><title>T</title></head><body><h1>Hello</h1></body></html>"


def fenced(text: str, info: str = "html") -> str:
    return f"```{info}\n{text}\n```"


@pytest.mark.parametrize(
    "answer",
    [
        fenced(PAGE),
        f"Sure! Here it is:\n\n{fenced(PAGE)}\n\nI hope you like it. Use `<b>` for more.",
        fenced(PAGE, "HTML"),
        fenced(PAGE, 'html title="index.html"'),
        fenced(PAGE, "html:index.html"),
        fenced(PAGE, "index.html"),
        fenced(PAGE, ""),
        f"~~~html\n{PAGE}\n~~~",
        f"````html\n{PAGE}\n````",
        f"1. The page:\n\n   ```html\n   {PAGE}\n   ```",
        PAGE,
        f"Here is the page.\n{PAGE}\nThat is all.",
        f"<think>I could write ```html\n<p>draft</p>\n``` first.</think>\n{fenced(PAGE)}",
        fenced(PAGE).replace("\n", "\r\n"),
    ],
)
def test_one_document_is_found_as_it_is(answer):
    found = extract(answer)
    assert found.complete and found.findings == ()
    assert "".join(found.html.split()) == "".join(PAGE.split())


def test_separate_blocks_are_put_together():
    found = extract(f"{fenced('<h1>x</h1>')}\n{fenced('h1 { color: red }', 'css')}\n{fenced('run()', 'js')}")
    assert found.findings == ("fragment", "assembled")
    assert found.html.index("h1 { color: red }") < found.html.index("<h1>x</h1>") < found.html.index("run()")
    assert found.html.index("run()") < found.html.index("</body>") and "viewport" in found.html


def test_blocks_take_the_place_of_the_files_that_the_page_asks_for():
    page = (
        "<!doctype html><html><head><link rel='stylesheet' href='css/style.css'>"
        "<script src='https://cdn.example/lib.js'></script></head>"
        "<body><script src='beta.js' type='module'></script><script src=alpha.js></script></body></html>"
    )
    answer = "\n".join(
        [fenced(page), fenced("h1{}", "css"), fenced("one()", "js alpha.js"), fenced("two()", "javascript beta.js")]
    )
    html = extract(answer).html
    assert "style.css" not in html and "alpha.js" not in html and "beta.js" not in html
    assert 'type="module">\ntwo()' in html and html.index("two()") < html.index("one()")
    assert "https://cdn.example/lib.js" in html  # that one stays, and is blocked and counted


@pytest.mark.parametrize(
    ("answer", "finding"),
    [
        ("", "no_code"),
        ("I cannot write pages, but 1 < 2 and <em>you</em> can.", "no_code"),
        (fenced("print('hi')", "python"), "no_code"),
        (fenced("export default () => <App/>", "jsx"), "needs_build"),
        (f"Use a <div> like this:\n{fenced('x = 1', 'python')}", "no_code"),
    ],
)
def test_nothing_found_is_a_finding(answer, finding):
    assert extract(answer).html is None and extract(answer).findings == (finding,)


@pytest.mark.parametrize(
    "answer",
    [f"```html\n{PAGE[:60]}", PAGE[:60], fenced(PAGE[:70]), f"{fenced('<h1>x</h1>')}\n```js\nlet half = `"],
)
def test_what_breaks_off_says_so(answer):
    found = extract(answer)
    assert found.html is not None and "unclosed" in found.findings and not found.complete


def test_of_several_documents_the_last_whole_one_counts_and_index_before_all():
    first, last = PAGE.replace("Hello", "First"), PAGE.replace("Hello", "Last")
    assert "Last" in extract(f"{fenced(first)}\nBetter:\n{fenced(last)}").html
    assert "First" in extract(f"{fenced(first)}\nBetter:\n```html\n{last[:50]}").html
    assert "First" in extract(f"{fenced(first, 'html index.html')}\n{fenced(last, 'html about.html')}").html
    assert "First" in extract(f"{fenced(first)}\nYou may add:\n{fenced('<p>a snippet</p>')}").html


def test_a_script_that_waits_for_the_page_still_does():
    page = "<!doctype html><html><head><script src='script.js' defer></script></head><body><b>x</b></body></html>"
    html = extract(f"{fenced(page)}\n{fenced('document.querySelector(1)', 'js')}").html
    assert html.index("<b>x</b>") < html.index("document.querySelector(1)") < html.index("</body>")


def test_an_afterthought_is_no_part_of_a_whole_page():
    page = "<!doctype html><html><head><style>b {}</style></head><body><script>a()</script></body></html>"
    found = extract(
        f"{fenced(page)}\nFor a dark theme:\n{fenced('body { color: black }', 'css')}\n{fenced('evil()', 'js')}"
    )
    assert found.html == page and found.findings == ()


def test_a_fence_within_a_page_does_not_end_it():
    page = "<!doctype html><html><body><textarea>\n```\nnot the end\n```\n</textarea><p>end</p></body></html>"
    assert extract(fenced(page)).html == page


def test_a_page_in_json():
    import json

    assert extract(json.dumps({"title": "x", "html": PAGE})).html == PAGE


def test_tags_in_a_script_do_not_break_it():
    page = "<!doctype html><html><body><script>let a = '</body>';</script><p>x</p></body></html>"
    html = extract(f"{fenced('<p>x</p>')}\n{fenced('document.title = `</script>`', 'js')}").html
    assert "<\\/script>`" in html and extract(fenced(page)).html == page


def test_names_of_files_are_found_where_people_write_them():
    pages = f"**index.html**\n{fenced(PAGE)}\n**about.html**\n{fenced(PAGE.replace('Hello', 'About'))}"
    assert "Hello" in extract(pages).html
    page = "<!doctype html><html><body><script src=main.js></script></body></html>"
    scripts = (
        f"{fenced('// utils.js' + chr(10) + 'document.a', 'js')}\n{fenced('// main.js' + chr(10) + 'document.b', 'js')}"
    )
    html = extract(f"{fenced(page)}\n{scripts}").html
    assert html.index("document.b") < html.index("document.a")


def test_speaking_of_tags_is_no_page():
    assert extract("Use the <button> element, as in <button>x</button>. I cannot do more.").html is None
    assert extract(f"{fenced('export default () => 1', 'jsx')}\n{fenced('a {}', 'css')}").findings == ("needs_build",)
    assert extract(fenced("const fs = require('fs'); fs.read()", "js")).findings == ("no_code",)
    assert extract(fenced("<svg><circle r='1'/></svg>", "xml")).html is not None
    assert extract(fenced("<!doctype html><html><body><p>no end tags</p>")).complete


def test_svg_and_fragments_are_pages():
    assert extract("<svg viewBox='0 0 1 1'><circle r='1'/></svg>").findings == ("fragment",)
    assert "<circle" in extract(fenced("<svg><circle r='1'/></svg>", "svg")).html
    assert extract(fenced("document.body.append('hi')", "js")).findings == ("no_html",)


@given(st.text(alphabet="`~<>/ahtmlscriptbody \n\"'=", max_size=200))
def test_any_text_can_be_read_and_sealed(text):
    found = extract(text)
    assert (found.html is None) == bool({"no_code", "needs_build"} & set(found.findings))
    page = sealed(found.html or text)
    assert page.startswith(f'<!doctype html><meta http-equiv="Content-Security-Policy" content="{POLICY}">')


@given(st.integers(1, 40))
def test_a_page_that_streams_grows_and_ends_as_the_whole(size):
    page = PAGE.replace("</body>", "<script>let a = '<b>';\nrun(a)</script><p class='x'>end</p></body>")
    answer = f"Here:\n{fenced(page)}\nbye"
    stream, shown = PageStream(), []
    for start in range(0, len(answer), size):
        if (html := stream.feed(answer[start : start + size])) is not None:
            shown.append(html)
    if (html := stream.end()) is not None:
        shown.append(html)
    assert shown[-1] == extract(answer).html
    for html in shown[:-1]:  # nothing half-written is ever run
        assert html.count("<script") == html.count("</script>") and not html.rstrip().endswith("<")


@pytest.mark.slow
def test_a_hostile_length_does_not_take_long():
    import time

    started = time.process_time()
    for text in ("<script" * 20_000, "<link rel=stylesheet " * 5_000, "```" * 50_000, "<" * 100_000, "<div" * 30_000):
        extract(text)
        PageStream().feed(f"<html>{text}")
    assert time.process_time() - started < 60  # a processor's seconds, whatever else it does
