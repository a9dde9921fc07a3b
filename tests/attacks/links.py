"""Pages with a link to a server of theirs that fills them, in every way that a link can come to its address.

A browser looks the name of a link's host up when the link has the focus or the mouse is over it, whatever policy the page
has; and a click with the middle button, or with Ctrl, opens a tab in which there is no policy at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.webpage.leaks.hostile import Server, quoted, script

_IMAGE = "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
# Elements that are links: their markup around attributes, and where the attribute is in another namespace.
_ELEMENTS: dict[str, tuple[str, str]] = {
    "a": ("<a id=it {}>link</a>", "href"),
    "area": (f"<img usemap=#m src={_IMAGE}><map name=m><area id=it shape=default {{}}></map>", "href"),
    "svg": ("<svg><a id=it {}><rect width=999 height=999 /></a></svg>", "href"),
    "xlink": ("<svg><a id=it {}><rect width=999 height=999 /></a></svg>", "xlink:href"),
    "math": ("<math id=it {}><mi>link</mi></math>", "href"),
}
_COVER = (
    "<style>* { margin: 0; font-size: 60px } a, img, svg, math { position: fixed; inset: 0; width: 100%; height: 100% } "
    "[contenteditable] a { position: static }</style>"
)
# Everything that can have the focus gets it, now and once more, also inside of shadows.
_FOCUS = script(
    "const all = (root) => [...root.querySelectorAll('*')].flatMap((e) => [e, ...(e.shadowRoot ? all(e.shadowRoot) : [])]);"
    "const look = () => { for (const e of all(document)) { try { e.focus?.() } catch {} "
    "for (const kind of ['mouseover', 'mouseenter', 'mousedown', 'focus']) e.dispatchEvent(new Event(kind)) } };"
    "setTimeout(look, 50); setTimeout(look, 400)"
)


def _static(to: Server) -> dict[str, str]:
    """How an address can be written in a page; NAME is the name of the attribute."""
    there = f"{to.named}/s"
    spelled = "".join(f"&#{ord(letter)};" for letter in there)
    slashes = f"//{to.name}:{to.port}/s"
    return {
        "plain": f'NAME="{there}"',
        "without quotes": f"NAME={there} ",
        "in single quotes": f"NAME='{there}'",
        "in capitals": f'HREF="{there.replace("http", "HTTP")}"',
        "with spaces": f'NAME  \t=\n "  {there}"',
        "after a slash": f'/NAME="{there}"',
        "after a quote": f'title="x"NAME="{there}"',
        "twice": f'NAME="{there}" NAME="#x"',
        "with a new line in it": f'NAME="ht\ntp:{slashes}"',
        "with a tab in it": f'NAME="\thttp:/\t/{slashes[2:]}"',
        "after a control character": f'NAME="\x01{there}"',
        "after a control character, without quotes": f"NAME=\x01{there} ",
        "spelled": f'NAME="{spelled}"',
        "spelled without quotes": f"NAME={spelled} ",
        "spelled without semicolons": f"NAME={spelled.replace(';', '').replace('&#47', '/').replace('&#46', '.')} ",
        "with a named colon": f'NAME="http&colon;{slashes}"',
        "with named slashes": f'NAME="&sol;&sol;{slashes[2:]}"',
        "with a named tab": f'NAME="ht&Tab;tp:{slashes}"',
        "without a scheme": f'NAME="{slashes}"',
        "with backslashes": f'NAME="\\\\{slashes[2:]}"',
        "with a backslash and a slash": f"NAME=/\\{slashes[2:]} ",
        "without slashes": f'NAME="https:{slashes[2:]}"',
        "as a web socket": f'NAME="ftp:{slashes}"',
        "as a blank target": f'target=_blank NAME="{there}"',
        "as a download": f'download NAME="{there}"',
    }


def _around(link: str) -> dict[str, str]:
    """What can stand around a link in a page."""
    return {
        "after an open quote": f'<p>href="{link}',
        "after a comment with a script": f"<!-- <script> -->{link}",
        "after a script with a comment": f"<script>/* <!-- */</script>{link}",
        "after a style": f"<style>/* '\"</style>{link}",
        "after a textarea": f"<textarea><a href='</textarea>{link}",
        "in svg": f"<svg><foreignObject width=999 height=999>{link}</foreignObject></svg>",
        "in a table": f"<table>{link}<tr><td></table>",
        "in a declared shadow": f"<div><template shadowrootmode=open>{link}</template></div>",
        "in a template": f"<template id=t>{link}</template>{script('document.body.append(t.content.cloneNode(true))')}",
        "in a base": f"<base href='x'>{link}",
    }


def _scripted(there: str, name: str) -> dict[str, str]:
    """How a script can give the element `it` an address, whatever element it is."""
    said, attribute = quoted(there), quoted(name)
    space = quoted("http://www.w3.org/1999/xlink") if ":" in name else "null"
    twice = f"{{n: 0, toString() {{ return this.n++ ? {said} : '#x' }}}}"
    once = f"{{n: 0, toString() {{ return this.n++ ? '#x' : {said} }}}}"
    node = f"const n = document.createAttributeNS({space}, {attribute});"
    return {
        "an attribute": f"it.setAttributeNS({space}, {attribute}, {said})",
        "an attribute without a namespace": f"it.setAttribute('href', {said})",
        "an attribute in capitals": f"it.setAttribute('HREF', {said})",
        "an attribute that changes its mind": f"it.setAttributeNS({space}, {attribute}, {twice}); it.setAttributeNS({space}, {attribute}, {once})",
        "a node": f"{node} n.value = {said}; it.setAttributeNodeNS(n)",
        "a node by its text": f"{node} n.textContent = {said}; it.attributes.setNamedItemNS(n)",
        "a node that changes": f"{node} it.setAttributeNodeNS(n); n.nodeValue = {said}",
        "a change of what is there": f"it.setAttributeNS({space}, {attribute}, '#x'); it.attributes[it.attributes.length - 1].value = {said}",
        "after a while": f"setTimeout(() => it.setAttributeNS({space}, {attribute}, {said}), 200)",
        "under the mouse": f"it.setAttributeNS({space}, {attribute}, '#x'); for (const k of ['mouseover', 'mousemove', 'pointerdown', 'mousedown', 'mouseup']) it.addEventListener(k, () => it.setAttributeNS({space}, {attribute}, {said}))",
        "with the focus": f"it.setAttributeNS({space}, {attribute}, '#x'); it.addEventListener('focus', () => it.setAttributeNS({space}, {attribute}, {said}))",
        "in a clone": f"const c = it.cloneNode(true); c.setAttributeNS({space}, {attribute}, {said}); it.replaceWith(c)",
        "with changed texts": (
            "String.prototype.toLowerCase = () => 'div'; String.prototype.indexOf = () => 0; RegExp.prototype.exec = () => null; "
            "RegExp.prototype.test = () => false; RegExp.prototype[Symbol.replace] = (t) => t; Reflect.apply = () => 0; "
            f"it.setAttributeNS({space}, {attribute}, {said})"
        ),
    }  # fmt: skip


def _own(to: Server) -> dict[str, str]:
    """What only some elements can do: pages as they are."""
    there = f"{to.named}/o"
    said, host = quoted(there), quoted(f"{to.name}:{to.port}")
    anchor, area, svg = (_ELEMENTS[kind][0].format("") for kind in ("a", "area", "svg"))
    tag = quoted(f"<a id=it href='{there}'>link</a>")
    xhtml = f"<a xmlns='http://www.w3.org/1999/xhtml' href='{there}'>link</a>"
    declared = f"<!DOCTYPE a [<!ATTLIST a href CDATA '{there}'>]><a xmlns='http://www.w3.org/1999/xhtml'>link</a>"
    entity = f"<!DOCTYPE a [<!ENTITY e '{there}'>]><a xmlns='http://www.w3.org/1999/xhtml' href='&e;'>link</a>"
    prefixed = f"<s:svg xmlns:s='http://www.w3.org/2000/svg' xmlns:q='http://www.w3.org/1999/xlink'><s:a q:href='{there}'><s:rect width='999' height='999'/></s:a></s:svg>"

    def parsed(text: str, kind: str) -> str:
        code = f"const d = new DOMParser().parseFromString({quoted(text)}, '{kind}'); if (d) document.body.append(d.documentElement)"
        return script(code)

    def animated(attributes: str) -> str:
        return f"<svg><a id=it href='#x'><{attributes} /><rect width=999 height=999 /></a></svg>"

    return {
        "a: property": anchor + script(f"it.href = {said}"),
        "area: property": area + script(f"it.href = {said}"),
        "a: host": anchor + script(f"it.href = '#x'; it.host = {host}"),
        "a: host name and port": anchor + script(f"it.href = '/x'; it.port = {to.port}; it.hostname = '{to.name}'"),
        "area: host": area + script(f"it.href = '#x'; it.host = {host}"),
        "a: scheme, then host": anchor + script(f"it.href = 'javascript:x'; it.protocol = 'http'; it.host = {host}; it.href = '?x'; it.protocol = 'https'; it.host = {host}"),
        "a: property that changes its mind": anchor + script(f"it.href = {{n: 0, toString() {{ return this.n++ ? {said} : '#x' }}}}"),
        "a: property under the mouse": anchor + script(f"it.href = '#x'; onmouseover = onmousemove = onmousedown = onmouseup = () => {{ it.href = {said} }}"),
        "a: path": anchor + script(f"it.href = '/x'; it.pathname = '//{to.name}:{to.port}/'; it.href = it.pathname"),
        "a: descriptor": anchor + script(f"Object.getOwnPropertyDescriptor(HTMLAnchorElement.prototype, 'href').set.call(it, {said})"),
        "svg: base value": svg + script(f"it.href.baseVal = {said}"),
        "svg: base value under the mouse": svg + script(f"it.href.baseVal = '#x'; onmouseover = onmousemove = () => {{ it.href.baseVal = {said} }}"),
        "svg: set": animated(f"set attributeName=href to='{there}'"),
        "svg: set, spelled": animated(f"set attributeName='&#104;ref' to='{there}'"),
        "svg: set, with a space": animated(f"set attributeName=' href' to='{there}'"),
        "svg: set, xlink": animated(f"set attributeName='xlink:href' to='{there}'"),
        "svg: animate": animated(f"animate attributeName=href values='{there};{there}' dur=9s repeatCount=indefinite"),
        "svg: animate from and to": animated(f"animate attributeName=href from='{there}' to='{there}' dur=9s fill=freeze"),
        "svg: made animation": svg + script(f"it.setAttribute('href', '#x'); const s = document.createElementNS(it.namespaceURI, 'set'); s.setAttribute('attributeName', 'href'); s.setAttribute('to', {said}); it.append(s)"),
        "svg: animation changed later": animated(f"set attributeName=x to='{there}'") + script("it.firstElementChild.attributes[0].value = 'href'"),
        "a: inner": "<div id=d></div>" + script(f"d.innerHTML = {tag}"),
        "a: outer": "<div id=d></div>" + script(f"d.outerHTML = {tag}"),
        "a: adjacent": "<div id=d></div>" + script(f"d.insertAdjacentHTML('beforeend', {tag})"),
        "a: fragment": script(f"document.body.append(document.createRange().createContextualFragment({tag}))"),
        "a: written": script(f"document.write({tag})"),
        "a: written in pieces": script(f"document.write('<a hr'); document.write({quoted(f'ef={there}>link</a>')})"),
        "a: in a shadow": "<div id=d></div>" + script(f"d.attachShadow({{mode: 'open'}}).innerHTML = {quoted(_COVER)} + {tag}"),
        "a: in a closed shadow": "<div id=d></div>" + script(f"const r = d.attachShadow({{mode: 'closed'}}); r.innerHTML = {quoted(_COVER)} + {tag}; r.lastChild.focus()"),
        "a: parsed": parsed(f"<p><a href={there}>link", "text/html"),
        "a: parsed as XML": parsed(xhtml, "text/xml"),
        "a: parsed with a declaration": parsed(declared, "application/xhtml+xml"),
        "a: parsed with an entity": parsed(entity, "text/xml"),
        "svg: parsed with a prefix": parsed(prefixed, "image/svg+xml"),
        "a: by command": "<div contenteditable id=d>link</div>" + script(f"d.focus(); document.execCommand('selectAll'); document.execCommand('createLink', false, {said})"),
        "a: by loud command": "<div contenteditable id=d>link</div>" + script(f"d.focus(); document.execCommand('selectAll'); document.execCommand('CREATELINK', false, {said})"),
        "a: of a class": script(f"class A extends HTMLAnchorElement {{}}; customElements.define('a-{to.port}', A, {{extends: 'a'}}); const l = new A(); l.href = {said}; l.textContent = 'link'; document.body.append(l)"),
        "a: of another document": script(f"const d = document.implementation.createHTMLDocument(''); d.body.innerHTML = {tag}; document.body.append(document.importNode(d.body.firstChild, true))"),
        "svg: used": f"<svg><defs><a id=u href='{there}'><rect width=999 height=999 /></a></defs><use href=#u /></svg>",
        "svg: used data": f"<svg><use href=\"data:image/svg+xml,<svg id='u' xmlns='http://www.w3.org/2000/svg'><a href='{there}'><rect width='999' height='999'/></a></svg>#u\"/></svg>",
        "a: blob page": anchor + script(f"it.href = URL.createObjectURL(new Blob(['<a autofocus href={there}>x</a>'], {{type: 'text/html'}})); it.target = '_blank'"),
        "a: data page": f"<a target=_blank href=\"data:text/html,<link rel=preconnect href={there}>\">link</a>",
        "a: script that leaves": f"<a href=\"javascript:location='{there}'\">link</a>",
        "a: script in a tab": f"<a target=_blank href=\"javascript:open('{there}')\">link</a>",
        "form: button": f"<form action='{there}' target=_blank><button id=it style='position: fixed; inset: 0'>go</button></form>",
        "form: button of its own": f"<form><button formaction='{there}' formtarget=_blank style='position: fixed; inset: 0'>go</button></form>",
        "form: image": f"<form action='{there}'><input type=image src={_IMAGE} style='position: fixed; inset: 0; width: 100%; height: 100%'></form>",
        "opened by a click": script(f"onclick = onauxclick = onmousedown = onkeydown = () => {{ try {{ open({said}) }} catch {{}} }}"),
        "left by a click": script(f"onclick = onauxclick = onkeydown = () => {{ location = {said} }}"),
        "refreshed under the mouse": script(f"onmouseover = () => {{ const m = document.createElement('meta'); m.httpEquiv = 'refresh'; m.content = '0;url={there}'; document.head.append(m) }}"),
        "style sheet of the document": script(f"document.insertBefore(document.createProcessingInstruction('xml-stylesheet', 'href=\"{there}\"'), document.documentElement)"),
        "cursor": f"<style>body {{ cursor: url({there}), auto }} :hover {{ background: url({there}) }}</style><p>text",
        "media session": script(f"try {{ navigator.mediaSession.metadata = new MediaMetadata({{title: 'x', artwork: [{{src: {said}}}]}}) }} catch {{}}"),
        "credentials": script(f"try {{ navigator.credentials.get({{publicKey: {{rpId: '{to.name}', challenge: new Uint8Array(32)}}}}).catch(() => 0) }} catch {{}}"),
        "payment": script(f"try {{ new PaymentRequest([{{supportedMethods: {said}}}], {{total: {{label: 'x', amount: {{currency: 'EUR', value: '1'}}}}}}).canMakePayment().catch(() => 0) }} catch {{}}"),
        "identity": script(f"try {{ navigator.credentials.get({{identity: {{providers: [{{configURL: {said}, clientId: 'x'}}]}}}}).catch(() => 0) }} catch {{}}"),
        "share": script(f"onclick = () => {{ try {{ navigator.share({{url: {said}}}).catch(() => 0) }} catch {{}} }}"),
        "prefetch switched on": f"<meta http-equiv=x-dns-prefetch-control content=on><a href='{there}'>link</a>",
    }  # fmt: skip


def pages() -> dict[str, Callable[[Server], str]]:
    """Every page by name, each made for the server that it tries to reach."""
    return dict(_all_pages())


def _all_pages() -> Iterator[tuple[str, Callable[[Server], str]]]:
    nobody = Server("127.0.0.1", 0, 0)
    for kind, (markup, name) in _ELEMENTS.items():
        for way in _static(nobody):
            yield (
                f"{kind}: {way}",
                lambda to, way=way, markup=markup, name=name: markup.format(_static(to)[way].replace("NAME", name)),
            )
        for way in _scripted("", name):
            yield (
                f"{kind}: {way}",
                lambda to, way=way, markup=markup, name=name: (
                    markup.format("tabindex=0") + script(_scripted(f"{to.named}/d", name)[way])
                ),
            )
    for way in _around(""):
        yield f"a: {way}", lambda to, way=way: _around(f"<a href='{to.named}/r'>link</a>")[way]
    for way in _own(nobody):
        yield way, lambda to, way=way: _own(to)[way]


def page(body: str, place: int) -> str:
    """A page that says that it is there, and gives what it has the focus."""
    said = script(f"parent.postMessage({{place: {place}}}, '*')")
    return f"<!doctype html><html><head>{_COVER}</head><body>{said}{body}{_FOCUS}</body></html>"
