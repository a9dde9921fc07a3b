"""Extracting the page from an answer: one document assembled from the code blocks that the model wrote."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import msgspec

_KINDS = {
    "html": "html", "htm": "html", "xhtml": "html", "svg": "html", "html5": "html",
    "css": "css",
    "js": "js", "javascript": "js", "mjs": "js", "ecmascript": "js",
    "jsx": "build", "tsx": "build", "ts": "build", "typescript": "build", "vue": "build", "svelte": "build",
}  # fmt: skip
_THINKING = re.compile(r"\A\s*<(think|thinking)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_FENCE = re.compile(r"^[ ]{0,12}(`{3,}|~{3,})[ \t]*([^\n`]*)$")
_DOCUMENT = re.compile(r"<!doctype\s+html|<html[\s>]", re.IGNORECASE)
_HEAD = 2000  # characters in which a document says that it is one
_DOCUMENT_END = re.compile(r"</html\s*>", re.IGNORECASE)
_ELEMENT = re.compile(
    r"<(?:body|head|main|header|section|article|nav|div|form|table|svg|canvas|style|script|button|dialog|h1|ul|p)\b[^<]*>",
    re.IGNORECASE,
)
_OWN_LINE = re.compile(rf"^[^\S\n]*(?={_ELEMENT.pattern})", re.IGNORECASE | re.MULTILINE)
_EXTERNAL = re.compile(r"(?:https?:)?//|data:|blob:", re.IGNORECASE)
_BROWSER_CODE = re.compile(r"\b(?:document|window|addEventListener|getContext)\b")
_FILE = re.compile(r"(?<![\w./-])[\w./-]{1,200}\.(?:html?|css|m?js)\b", re.IGNORECASE)
_LAST_TAG = re.compile(r".*>", re.DOTALL)
# Answers may be hostile: no pattern looks at a part of the text more than a few times, however it is written.
_STYLESHEET = re.compile(r"<link\b(?P<attributes>[^<>]{0,900})>", re.IGNORECASE)
_SCRIPT_FILE = re.compile(r"<script\b(?P<attributes>[^<>]{0,900})>\s{0,99}</script\s{0,9}>", re.IGNORECASE)
_ADDRESS = {
    _STYLESHEET: re.compile(r"\bhref\s{0,9}=\s{0,9}[\"']?(?P<file>[^\"'\s>]{1,300})", re.IGNORECASE),
    _SCRIPT_FILE: re.compile(r"\bsrc\s{0,9}=\s{0,9}[\"']?(?P<file>[^\"'\s>]{1,300})", re.IGNORECASE),
}
_KIND = re.compile(r"\bstylesheet\b", re.IGNORECASE)
_HEAD_END = re.compile(r"</head\s*>|<body\b", re.IGNORECASE)
_BODY_END = re.compile(r"</body\s*>", re.IGNORECASE)
_SCRIPT, _SCRIPT_END = re.compile(r"<script\b", re.IGNORECASE), re.compile(r"</script\s*>", re.IGNORECASE)
_OPEN_TAG = re.compile(r"<[^<>]*\Z")


class ExtractedPage(msgspec.Struct, frozen=True, kw_only=True):
    """The page of an answer, or None if there is none.

    findings: no_code, no_html (only script or style), needs_build (a framework's source), unclosed (the code is cut
    off), fragment (not a document, so we wrapped it), assembled (from several blocks), several (more than one page)
    """

    html: str | None = None
    findings: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether the page is complete, judging by its end."""
        return self.html is not None and "unclosed" not in self.findings


class _CodeBlock(NamedTuple):
    kind: str  # html, css, js, build or empty
    name: str  # of the file, if one is given
    text: str
    closed: bool


def extract(answer: str) -> ExtractedPage:
    """Find the page in an answer; if there is none, the findings say why."""
    text = _unwrap_json(_THINKING.sub("", answer.replace("\r\n", "\n")))
    blocks = [block for block in _blocks(text) if block.text.strip()]
    pages = [block for block in blocks if block.kind == "html"]
    if not pages and (raw := _raw_page(text, blocks)):
        pages = [raw]
    styles = [block for block in blocks if block.kind == "css"]
    scripts = [block for block in blocks if block.kind == "js"]
    document = any(_DOCUMENT.search(page.text) for page in pages)
    if not document and any(block.kind == "build" for block in blocks):
        return ExtractedPage(findings=("needs_build",))
    if not pages and not any(_BROWSER_CODE.search(script.text) for script in scripts):
        return ExtractedPage(findings=("no_code",))
    chosen, findings = _choose_pages(pages)
    if document:  # other blocks belong to a whole document only if it refers to them, or has none of that kind
        styles = styles if _uses_blocks(chosen[0], _STYLESHEET, "<style") else []
        scripts = scripts if _uses_blocks(chosen[0], _SCRIPT_FILE, "<script") else []
    used = [*chosen, *styles, *scripts]
    if any(not block.closed for block in used):
        findings.append("unclosed")
    if len(used) > 1:
        findings.append("assembled")
    return ExtractedPage(html=_assemble(chosen, styles, scripts, findings), findings=tuple(findings))


def _unwrap_json(text: str) -> str:
    """Return the page in an answer that is a JSON object with the page as a value; other text unchanged."""
    if not text.lstrip().startswith("{"):
        return text
    try:
        document = msgspec.json.decode(text.encode("utf-8", "replace"))
    except msgspec.DecodeError:
        return text
    pages = [value for value in document.values() if isinstance(value, str) and _ELEMENT.search(value)]
    return pages[0] if pages else text


def _uses_blocks(page: _CodeBlock, reference: re.Pattern[str], own: str) -> bool:
    files = filter(None, (_file_of(match, reference) for match in reference.finditer(page.text)))
    return any(not _EXTERNAL.match(file) for file in files) or own not in page.text.lower()


def _file_of(match: re.Match[str], reference: re.Pattern[str]) -> str:
    """Return the file to which an element refers; empty if it refers to none."""
    attributes = match["attributes"]
    if reference is _STYLESHEET and not _KIND.search(attributes):
        return ""
    found = _ADDRESS[reference].search(attributes)
    return found["file"] if found else ""


def _blocks(text: str) -> Iterator[_CodeBlock]:
    """Yield the fenced blocks; the last one may be unclosed. The line before may name the file."""
    fence, info, before, lines = "", "", "", list[str]()
    rest = text.split("\n")
    continues = _Continuing(rest)
    for number, line in enumerate(rest):
        mark = _FENCE.match(line)
        if not fence:
            if mark:
                fence, info, lines = mark[1], mark[2].strip(), []
                continues.begin()
            elif line.strip():
                before = line
        elif mark and mark[1][0] == fence[0] and len(mark[1]) >= len(fence) and not mark[2].strip():
            if continues.after(number):  # a fence inside the page's own text
                lines.append(line)
                continue
            yield _block(info, "\n".join(lines), before, closed=True)
            fence = before = ""
        else:
            lines.append(line)
            continues.add(line)
    if fence:
        yield _block(info, "\n".join(lines), before, closed=False)


class _Continuing:
    """Whether a document continues after what looks like its closing fence, and ends before another begins.

    Every line is looked at once, however many fences there are.
    """

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self.begin()

    @cached_property
    def _marks(self) -> list[int]:
        """The lines in which a document ends or begins."""
        return [n for n, line in enumerate(self._lines) if _DOCUMENT_END.search(line) or _DOCUMENT.search(line)]

    def begin(self) -> None:
        """Begin a block."""
        self._head, self._ended = "", False

    def add(self, line: str) -> None:
        """Add a line of the block."""
        if len(self._head) < _HEAD:
            self._head += f"{line}\n"
        self._ended = self._ended or _DOCUMENT_END.search(line) is not None

    def after(self, number: int) -> bool:
        """Return whether it continues after the line of this number."""
        if self._ended or not _DOCUMENT.search(self._head[:_HEAD]):
            return False
        later = bisect_right(self._marks, number)
        return later < len(self._marks) and _DOCUMENT_END.search(self._lines[self._marks[later]]) is not None


def _file_name(info: str, before: str, text: str) -> str:
    """Return the file name of a block: from its fence, its first comment, or the line before."""
    name = next((word for word in re.split(r"[\s:{}=\"']+", info) if "." in word), "")
    first = text.lstrip().split("\n", 1)[0]
    comment = first if first.startswith(("//", "/*", "<!--")) else ""
    for place in (name, comment, before if len(before) < 120 else ""):
        if match := _FILE.search(place):
            return match[0]
    return name


def _block(info: str, text: str, before: str, *, closed: bool) -> _CodeBlock:
    words = re.split(r"[\s:{]+", info)
    kind = _KINDS.get(words[0].lower(), "")
    name = _file_name(info, before, text)
    if not kind and name and not words[0].isalpha():
        kind = _KINDS.get(name.rpartition(".")[2].lower(), "")
    start = text.lstrip()[:_HEAD]
    if (
        not kind
        and words[0].lower() in ("", "xml", "markup", "text")
        and start.startswith("<")
        and (_DOCUMENT.search(start) or _ELEMENT.search(start))
    ):
        kind = "html"
    if kind == "html" and closed and _DOCUMENT.search(text) and not text.rstrip().endswith(">"):
        closed = False  # the fence is closed, but the page is not
    return _CodeBlock(kind, name, text, closed)


def _raw_page(text: str, blocks: Sequence[_CodeBlock]) -> _CodeBlock | None:
    """Return a page without a fence, with or without prose around it."""
    document = _DOCUMENT.search(text)
    if document:
        ends = [end.end() for end in _DOCUMENT_END.finditer(text, document.end())]
        return _CodeBlock("html", "", text[document.start() : (ends or [len(text)])[-1]], closed=bool(ends))
    if blocks:  # tags in the prose around other code are not a page
        return None
    first = _OWN_LINE.search(text)  # a tag inside a sentence is only mentioned
    last = _LAST_TAG.match(text, first.start()) if first else None
    if first is None or last is None or "</" not in last[0]:
        return None
    return _CodeBlock("html", "", last[0], closed=True)


def _choose_pages(pages: list[_CodeBlock]) -> tuple[list[_CodeBlock], list[str]]:
    """Return one document, or every fragment. Of several documents `index.html`, else the last: the corrected one."""
    documents = [page for page in pages if _DOCUMENT.search(page.text)]
    if not documents:
        return pages, ["fragment" if pages else "no_html"]
    named = [page for page in documents if page.name.lower().endswith("index.html")]
    whole = [page for page in documents if page.closed]
    return [(named or whole or documents)[-1]], ["several"] if len(documents) > 1 else []


def _assemble(
    pages: Sequence[_CodeBlock], styles: Sequence[_CodeBlock], scripts: Sequence[_CodeBlock], findings: Sequence[str]
) -> str:
    body = "\n".join(page.text.strip() for page in pages)
    if not pages or "fragment" in findings:
        body = (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n</head>\n'
            f"<body>\n{body}\n</body>\n</html>"
        )
    body = _inline(body, styles, _STYLESHEET, _HEAD_END, "style")
    return _inline(body, scripts, _SCRIPT_FILE, _BODY_END, "script")


def _inline(page: str, blocks: Sequence[_CodeBlock], reference: re.Pattern[str], end: re.Pattern[str], tag: str) -> str:
    """Replace the files that the page refers to by their blocks, and add the blocks that it does not refer to."""
    remaining, at_the_end = list(blocks), list[str]()

    def fill(match: re.Match[str]) -> str:
        file = _file_of(match, reference)
        if not remaining or not file or _EXTERNAL.match(file):
            return match[0]
        named = next(
            (block for block in remaining if block.name and block.name.endswith(file.rpartition("/")[2])), None
        )
        block = named or remaining[0]
        remaining.remove(block)
        module = "module" in match[0]
        if tag == "script" and not module and re.search(r"\b(?:defer|async)\b", match[0]):
            at_the_end.append(
                _element(tag, block.text)
            )  # a deferred script waits for the page; an inline one would not
            return ""
        return _element(tag, block.text, module=tag == "script" and module)

    page = reference.sub(fill, page)
    at_the_end += [_element(tag, block.text) for block in remaining]
    if not at_the_end:
        return page
    places = [match.start() for match in end.finditer(page)]
    # The first end of the head counts, and the last end of the body: others may be inside a script.
    position = (places[0] if tag == "style" else places[-1]) if places else len(page)
    added = "\n".join(at_the_end)
    return f"{page[:position]}{added}\n{page[position:]}"


def _element(tag: str, text: str, *, module: bool = False) -> str:
    kind = ' type="module"' if module else ""
    safe = re.sub(rf"</(?={tag})", r"<\\/", text, flags=re.IGNORECASE)  # a closing tag within the text
    return f"<{tag}{kind}>\n{safe}\n</{tag}>"


class PageStream:
    """The page of an answer that is still being written, as far as it can be shown."""

    def __init__(self) -> None:
        self._text, self._read = "", 0
        self._shown: str | None = None

    def feed(self, text: str) -> str | None:
        """Add the next piece and return the page so far, if it shows more than before.

        A long answer is not parsed again for every word, only when it has grown by a certain share.
        """
        self._text += text
        if len(self._text) - self._read < max(100, self._read // 30):
            return None
        return self.end()

    def end(self) -> str | None:
        """Return the page so far, if it shows more than before."""
        self._read = len(self._text)
        page = extract(self._text)
        if page.html is None:
            return None
        html = page.html if page.complete else _showable(page.html)
        if html == self._shown:
            return None
        self._shown = html
        return html


def _showable(html: str) -> str:
    """Remove an unclosed script or tag, which would break or run only in part."""
    ends = [match.end() for match in _SCRIPT_END.finditer(html)]
    script = _SCRIPT.search(html, ends[-1] if ends else 0)
    return _OPEN_TAG.sub("", html[: script.start()] if script else html)
