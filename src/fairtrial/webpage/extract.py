"""The page in an answer: one document put together from whatever the model wrote around, beside and inside of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

_KINDS = {
    "html": "html", "htm": "html", "xhtml": "html", "svg": "html", "html5": "html",
    "css": "css",
    "js": "js", "javascript": "js", "mjs": "js", "ecmascript": "js",
    "jsx": "build", "tsx": "build", "ts": "build", "typescript": "build", "vue": "build", "svelte": "build",
}  # fmt: skip
_THOUGHT = re.compile(r"\A\s*<(think|thinking)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_FENCE = re.compile(r"^[ ]{0,12}(`{3,}|~{3,})[ \t]*([^\n`]*)$")
_DOCUMENT = re.compile(r"<!doctype\s+html|<html[\s>]", re.IGNORECASE)
_DOCUMENT_END = re.compile(r"</html\s*>", re.IGNORECASE)
_ELEMENT = re.compile(
    r"<(?:body|head|main|header|section|article|nav|div|form|table|svg|canvas|style|script|button|dialog|h1|ul|p)\b[^<]*>",
    re.IGNORECASE,
)
_OWN_LINE = re.compile(rf"(?:^|\n)\s*(?={_ELEMENT.pattern})", re.IGNORECASE)
_ELSEWHERE = re.compile(r"(?:https?:)?//|data:|blob:", re.IGNORECASE)
_FOR_PAGES = re.compile(r"\b(?:document|window|addEventListener|getContext)\b")
_FILE = re.compile(r"[\w./-]+\.(?:html?|css|m?js)\b", re.IGNORECASE)
_LAST_TAG = re.compile(r".*>", re.DOTALL)
# Attributes are looked for within a few hundred characters: a tag without an end must not be read to the end each time.
_STYLESHEET = re.compile(
    r"<link\b(?=[^>]{0,300}\bstylesheet\b)[^>]{0,300}?\bhref\s{0,9}=\s{0,9}[\"']?(?P<file>[^\"'\s>]{1,300})[^>]{0,300}>",
    re.IGNORECASE,
)
_SCRIPT_FILE = re.compile(
    r"<script\b[^>]{0,300}?\bsrc\s{0,9}=\s{0,9}[\"']?(?P<file>[^\"'\s>]{1,300})[\"']?[^>]{0,300}>\s{0,99}</script\s{0,9}>",
    re.IGNORECASE,
)
_HEAD_END = re.compile(r"</head\s*>|<body\b", re.IGNORECASE)
_BODY_END = re.compile(r"</body\s*>", re.IGNORECASE)
_OPEN_SCRIPT = re.compile(r"<script\b(?:(?!</script\s*>).)*\Z", re.DOTALL | re.IGNORECASE)
_OPEN_TAG = re.compile(r"<[^<>]*\Z")


class Extracted(msgspec.Struct, frozen=True, kw_only=True):
    """The page of an answer, or none.

    findings: no_code, no_html (only script or style), needs_build (a framework's source), unclosed (the code breaks
    off), fragment (no document, we put one around it), assembled (from several blocks), several (more than one page)
    """

    html: str | None = None
    findings: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether nothing of the page is missing, as far as its end tells."""
        return self.html is not None and "unclosed" not in self.findings


class _Block(NamedTuple):
    kind: str  # html, css, js, build or empty
    name: str  # of a file, where the fence names one
    text: str
    closed: bool


def extract(answer: str) -> Extracted:
    """Find the page in an answer. Nothing found is a finding."""
    text = _unwrapped(_THOUGHT.sub("", answer.replace("\r\n", "\n")))
    blocks = [block for block in _blocks(text) if block.text.strip()]
    pages = [block for block in blocks if block.kind == "html"]
    if not pages and (raw := _raw_page(text, blocks)):
        pages = [raw]
    styles = [block for block in blocks if block.kind == "css"]
    scripts = [block for block in blocks if block.kind == "js"]
    document = any(_DOCUMENT.search(page.text) for page in pages)
    if not document and any(block.kind == "build" for block in blocks):
        return Extracted(findings=("needs_build",))
    if not pages and not any(_FOR_PAGES.search(script.text) for script in scripts):
        return Extracted(findings=("no_code",))
    chosen, findings = _chosen(pages)
    if document:  # what stands beside a whole document belongs to it only if it asks for it, or has nothing of the kind
        styles = styles if _wants(chosen[0], _STYLESHEET, "<style") else []
        scripts = scripts if _wants(chosen[0], _SCRIPT_FILE, "<script") else []
    used = [*chosen, *styles, *scripts]
    if any(not block.closed for block in used):
        findings.append("unclosed")
    if len(used) > 1:
        findings.append("assembled")
    return Extracted(html=_assembled(chosen, styles, scripts, findings), findings=tuple(findings))


def _unwrapped(text: str) -> str:
    """The page in an answer that is nothing but JSON around it."""
    if not text.lstrip().startswith("{"):
        return text
    try:
        found = msgspec.json.decode(text.encode("utf-8", "replace"))
    except msgspec.DecodeError:
        return text
    pages = [value for value in found.values() if isinstance(value, str) and _ELEMENT.search(value)]
    return pages[0] if pages else text


def _wants(page: _Block, reference: re.Pattern[str], own: str) -> bool:
    files = (match["file"] for match in reference.finditer(page.text))
    return any(not _ELSEWHERE.match(file) for file in files) or own not in page.text.lower()


def _blocks(text: str) -> Iterator[_Block]:
    """Fenced blocks; the last one may never end. A file's name may stand on the line before."""
    fence, info, before, lines = "", "", "", list[str]()
    rest = text.split("\n")
    for number, line in enumerate(rest):
        mark = _FENCE.match(line)
        if not fence:
            if mark:
                fence, info, lines = mark[1], mark[2].strip(), []
            elif line.strip():
                before = line
        elif mark and mark[1][0] == fence[0] and len(mark[1]) >= len(fence) and not mark[2].strip():
            if _goes_on(lines, rest[number + 1 :]):  # a fence in a text of the page's own
                lines.append(line)
                continue
            yield _block(info, "\n".join(lines), before, closed=True)
            fence = before = ""
        else:
            lines.append(line)
    if fence:
        yield _block(info, "\n".join(lines), before, closed=False)


def _goes_on(lines: Sequence[str], rest: Sequence[str]) -> bool:
    """Whether a document has not ended at what looks like the end of its fence, and ends later, before another."""
    whole = "\n".join(lines)
    if not _DOCUMENT.search(whole[:2000]) or _DOCUMENT_END.search(whole):
        return False
    for line in rest:
        if _DOCUMENT_END.search(line):
            return True
        if _DOCUMENT.search(line):
            return False
    return False


def _named(info: str, before: str, text: str) -> str:
    """The name of a block's file: in its fence, in its first comment, or on the line before."""
    name = next((word for word in re.split(r"[\s:{}=\"']+", info) if "." in word), "")
    first = text.lstrip().split("\n", 1)[0]
    comment = first if first.startswith(("//", "/*", "<!--")) else ""
    for place in (name, comment, before if len(before) < 120 else ""):
        if found := _FILE.search(place):
            return found[0]
    return name


def _block(info: str, text: str, before: str, *, closed: bool) -> _Block:
    words = re.split(r"[\s:{]+", info)
    kind = _KINDS.get(words[0].lower(), "")
    name = _named(info, before, text)
    if not kind and name and not words[0].isalpha():
        kind = _KINDS.get(name.rpartition(".")[2].lower(), "")
    start = text.lstrip()[:2000]
    if (
        not kind
        and words[0].lower() in ("", "xml", "markup", "text")
        and start.startswith("<")
        and (_DOCUMENT.search(start) or _ELEMENT.search(start))
    ):
        kind = "html"
    if kind == "html" and closed and _DOCUMENT.search(text) and not text.rstrip().endswith(">"):
        closed = False  # the fence was closed, the page was not
    return _Block(kind, name, text, closed)


def _raw_page(text: str, blocks: Sequence[_Block]) -> _Block | None:
    """A page without a fence, with or without prose around it."""
    document = _DOCUMENT.search(text)
    if document:
        ends = [end.end() for end in _DOCUMENT_END.finditer(text, document.end())]
        return _Block("html", "", text[document.start() : (ends or [len(text)])[-1]], closed=bool(ends))
    if blocks:  # tags in the prose around other code are not a page
        return None
    first = _OWN_LINE.search(text)  # in the middle of a sentence, a tag is spoken of
    last = _LAST_TAG.match(text, first.start()) if first else None
    if first is None or last is None or "</" not in last[0]:
        return None
    return _Block("html", "", last[0], closed=True)


def _chosen(pages: list[_Block]) -> tuple[list[_Block], list[str]]:
    """One document, or every fragment. Of several documents `index.html`, else the last: it is the corrected one."""
    documents = [page for page in pages if _DOCUMENT.search(page.text)]
    if not documents:
        return pages, ["fragment" if pages else "no_html"]
    named = [page for page in documents if page.name.lower().endswith("index.html")]
    whole = [page for page in documents if page.closed]
    return [(named or whole or documents)[-1]], ["several"] if len(documents) > 1 else []


def _assembled(
    pages: Sequence[_Block], styles: Sequence[_Block], scripts: Sequence[_Block], findings: Sequence[str]
) -> str:
    body = "\n".join(page.text.strip() for page in pages)
    if not pages or "fragment" in findings:
        body = (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n</head>\n'
            f"<body>\n{body}\n</body>\n</html>"
        )
    body = _inlined(body, styles, _STYLESHEET, _HEAD_END, "style")
    return _inlined(body, scripts, _SCRIPT_FILE, _BODY_END, "script")


def _inlined(page: str, blocks: Sequence[_Block], reference: re.Pattern[str], end: re.Pattern[str], tag: str) -> str:
    """Blocks take the place of the files that the page asks for; those that it does not ask for are put in."""
    left, at_the_end = list(blocks), list[str]()

    def fill(match: re.Match[str]) -> str:
        file = match["file"]
        if not left or _ELSEWHERE.match(file):
            return match[0]
        named = next((block for block in left if block.name and block.name.endswith(file.rpartition("/")[2])), None)
        block = named or left[0]
        left.remove(block)
        module = "module" in match[0]
        if tag == "script" and not module and re.search(r"\b(?:defer|async)\b", match[0]):
            at_the_end.append(_element(tag, block.text))  # it waits for the page, which a script in place would not
            return ""
        return _element(tag, block.text, module=tag == "script" and module)

    page = reference.sub(fill, page)
    at_the_end += [_element(tag, block.text) for block in left]
    if not at_the_end:
        return page
    places = [match.start() for match in end.finditer(page)]
    # The head ends once, and first; the body's end is the last one: others may stand in a script.
    position = (places[0] if tag == "style" else places[-1]) if places else len(page)
    added = "\n".join(at_the_end)
    return f"{page[:position]}{added}\n{page[position:]}"


def _element(tag: str, text: str, *, module: bool = False) -> str:
    kind = ' type="module"' if module else ""
    safe = re.sub(rf"</(?={tag})", r"<\\/", text, flags=re.IGNORECASE)  # its own end within a text
    return f"<{tag}{kind}>\n{safe}\n</{tag}>"


class PageStream:
    """The page of an answer that is still being written: what can be shown of it so far."""

    def __init__(self) -> None:
        self._text, self._read = "", 0
        self._shown: str | None = None

    def feed(self, text: str) -> str | None:
        """Take the next piece; the page as it stands, if there is more of it to see than before.

        A long answer is not read anew for every word: only when it has grown by some part.
        """
        self._text += text
        if len(self._text) - self._read < max(100, self._read // 30):
            return None
        return self.end()

    def end(self) -> str | None:
        """The page as it stands, if there is more of it to see than before."""
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
    """Without what would break or only half run: a script or tag that has not ended yet."""
    return _OPEN_TAG.sub("", _OPEN_SCRIPT.sub("", html))
