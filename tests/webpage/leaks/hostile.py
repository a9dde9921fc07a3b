"""Pages that try to reach a server: every way out we know, each as a piece of a page's body."""

from __future__ import annotations

import json
from dataclasses import dataclass


@dataclass(frozen=True)
class Server:
    """Whom a page tries to reach: by number, by name, and with datagrams."""

    host: str
    port: int
    udp: int
    name: str = "localhost"

    @property
    def home(self) -> str:
        return f"http://{self.host}:{self.port}"

    @property
    def named(self) -> str:
        return f"http://{self.name}:{self.port}"


def page(*pieces: str) -> str:
    return f"<!doctype html><html><body>{''.join(pieces)}<p id=end>end</p></body></html>"


def script(code: str) -> str:
    return f"<script>{{ {code} }}</script>"


def after(element: str, code: str) -> str:
    """An element, and a script to which it is `it`."""
    return element + script(f"const it = document.currentScript.previousElementSibling; {code}")


def quoted(text: str) -> str:
    """A string for a script in a page."""
    return json.dumps(text).replace("</", "<\\/")


def webrtc(to: Server) -> str:
    return script(
        f"const p = new RTCPeerConnection({{iceServers: [{{urls: 'stun:{to.host}:{to.udp}'}}, "
        f"{{urls: 'turn:{to.host}:{to.port}?transport=tcp', username: 'a', credential: 'b'}}]}});"
        "p.createDataChannel('x'); p.createOffer().then((o) => p.setLocalDescription(o))"
    )


def requests(to: Server) -> dict[str, str]:
    """What a policy can forbid."""
    home = to.home
    rules = json.dumps({"prefetch": [{"source": "list", "urls": [f"{home}/"]}]})
    worker = f"fetch('{home}/').catch(() => 0); try {{ importScripts('{home}/a') }} catch {{}} try {{ new WebSocket('ws://{to.host}:{to.port}') }} catch {{}}"
    return {
        "fetch": script(f"fetch('{home}/').catch(() => 0)"),
        "xhr": script(f"const x = new XMLHttpRequest(); x.open('GET', '{home}/'); x.send()"),
        "beacon": script(f"navigator.sendBeacon('{home}/', 'x')"),
        "image": f"<img src='{home}/a'>" + script(f"new Image().src = '{home}/b'"),
        "srcset": f"<img srcset='{home}/a 1x'><picture><source srcset='{home}/b'><img></picture>",
        "style": f"<style>@import '{home}/a'; body {{ background: url({home}/b) }}</style><link rel=stylesheet href='{home}/c'>",
        "font": f"<style>@font-face {{ font-family: f; src: url({home}/f) }} body {{ font-family: f }}</style>text",
        "script": f"<script src='{home}/a'></script>" + script(f"import('{home}/b').catch(() => 0)"),
        "media": f"<video src='{home}/a' autoplay></video><audio src='{home}/b' autoplay></audio>",
        "websocket": script(f"new WebSocket('ws://{to.host}:{to.port}/')"),
        "events": script(f"new EventSource('{home}/')"),
        "transport": script(f"try {{ new WebTransport('https://{to.host}:{to.udp}/') }} catch {{}}"),
        "worker": script(f"new Worker(URL.createObjectURL(new Blob([{quoted(worker)}])))"),
        "module worker": script(f"new Worker(URL.createObjectURL(new Blob([\"import '{home}/a'\"], {{type: 'text/javascript'}})), {{type: 'module'}})"),
        "form": after(f"<form method=post action='{home}/'><input name=a value=b></form>", "it.submit(); it.requestSubmit()"),
        "form by click": after(f"<form method=post action='{home}/'><button>go</button></form>", "it.firstChild.click()"),
        "popup": script(f"window.open('{home}/')"),
        "blank link": after(f"<a target=_blank href='{home}/'>x</a>", "it.click()"),
        "ping": after(f"<a href='#x' ping='{home}/'>x</a>", "it.click()"),
        "speculation": f"<script type=speculationrules>{rules}</script>",
        "object": f"<object data='{home}/a'></object><embed src='{home}/b'>",
        "base": f"<base href='{home}/'><img src=a>",
        "svg image": f"<svg><image href='{home}/a'/><use href='{home}/b#x'/></svg>",
    }  # fmt: skip


def frames(to: Server) -> dict[str, str]:
    """What no policy forbids, in a window of its own: WebRTC in a frame."""
    inner = webrtc(to)
    dynamic = quoted(inner)
    code = inner.removeprefix("<script>").removesuffix("</script>").replace("'", "&#38;#34;").replace("=>", "=&#38;gt;")
    entity = (
        "<!DOCTYPE x [<!ENTITY f \"<iframe xmlns='http://www.w3.org/1999/xhtml' "
        f"src&#100;oc='&#38;lt;script&#38;gt;{code}&#38;lt;/script&#38;gt;'/>\">]><x>&f;</x>"
    )
    made = "const f = document.createElement('iframe');"
    return {
        "webrtc": inner,
        "webrtc in a frame": f'<iframe srcdoc="{inner}"></iframe>',
        "webrtc in a made frame": script(f"{made} f.srcdoc = {dynamic}; document.body.append(f)"),
        "webrtc in a shadow": after("<div></div>", f"{made} f.srcdoc = {dynamic}; it.attachShadow({{mode: 'closed'}}).append(f)"),
        "webrtc in a declared shadow": f'<div><template shadowrootmode=closed><iframe srcdoc="{inner}"></iframe></template></div>',
        "webrtc in a parsed frame": script(
            f"const d = new DOMParser().parseFromString('<iframe src' + 'doc=' + JSON.stringify({dynamic}) + '>', 'text/html'); if (d) document.body.append(d.body.firstChild)"
        ),
        "webrtc in inserted HTML": after(
            "<div contenteditable>x</div>",
            f"it.focus(); document.execCommand('insertHTML', false, '<iframe src' + 'doc=\"' + {dynamic} + '\"></iframe>')",
        ),
        "webrtc in an entity": script(
            f"const d = new DOMParser().parseFromString({quoted(entity)}, 'text/xml'); if (d) document.body.append(...d.documentElement.childNodes)"
        ),
    }  # fmt: skip


def tampering(to: Server) -> dict[str, str]:
    """The same by pages that first change what a guard might use."""
    inner = webrtc(to)
    dynamic, written = quoted(inner), json.dumps(json.dumps(inner)).replace("</", "<\\/")
    made = "const f = document.createElement('iframe');"
    link = f"const l = document.createElement('link'); l.setAttribute('rel', 'preconnect'); l.setAttribute('href', '{to.named}'); document.head.append(l)"
    tag = quoted(f"<link rel=preconnect href='{to.named}'>")
    return {
        "webrtc in a written shadow": script(
            "document.write('<div><template shadowroot'); document.write('mode=closed>'); "
            f"document.write('<iframe srcdoc=' + {written} + '></iframe></template></div>')"
        ),
        **{
            f"webrtc, {name}": script(f"{tamper}; {made} f['src' + 'doc'] = {dynamic}; document.body.append(f)")
            for name, tamper in {
                "iterators": "NodeList.prototype[Symbol.iterator] = Array.prototype[Symbol.iterator] = function* () {}",
                "call": "Function.prototype.call = () => 0",
                "records": "Object.defineProperty(MutationRecord.prototype, 'addedNodes', {get: () => []})",
                "nodes": "Object.defineProperty(Node.prototype, 'nodeType', {get() { throw 1 }})",
                "texts": "String.prototype.toLowerCase = () => ''; String.prototype.indexOf = () => -1; RegExp.prototype.exec = () => null",
            }.items()
        },
        "webrtc before anybody looks": script(
            f"{made} f.setAttribute({{n: 0, toString() {{ return this.n++ ? 'src' + 'doc' : 'title' }}}}, {dynamic}); "
            "document.body.append(f); const t = Date.now(); while (Date.now() - t < 500);"
        ),
        "preconnect, texts": script(
            "String.prototype.toLowerCase = () => 'div'; String.prototype.replace = String.prototype.slice = function () { return this + '' }; String.prototype.indexOf = () => -1;"
            f"Map.prototype.get = () => 'link'; Array.prototype.includes = Set.prototype.has = () => false; Function.prototype.apply = Function.prototype.call = () => 0; {link}"
        ),
        "preconnect, patterns": script(
            "RegExp.prototype[Symbol.replace] = (t) => t; RegExp.prototype.exec = () => null; RegExp.prototype.test = () => false;"
            "for (const n of ['flags', 'global', 'unicode', 'sticky']) Object.defineProperty(RegExp.prototype, n, {get: () => ''});"
            f"document.body.innerHTML = {tag}"
        ),
        "preconnect, objects": script(
            "Object.prototype.link = 'link'; Object.prototype.toString = () => 'x'; Reflect.apply = () => 0; Object.defineProperty = (o) => o; Array.prototype[Symbol.iterator] = function* () {};"
            f"{link}; document.body.innerHTML = {tag}"
        ),
        "preconnect, own policy": script("document.querySelectorAll('meta').forEach((m) => m.remove())") + f"<link rel=preconnect href='{to.named}'>",
        "preconnect, own type policy": script(f"if (window.trustedTypes) {{ const p = trustedTypes.createPolicy('mine', {{createHTML: (t) => t}}); document.body.innerHTML = p.createHTML({tag}) }}"),
        "preconnect, own default policy": script(f"if (window.trustedTypes) {{ trustedTypes.createPolicy('default', {{createHTML: (t) => t}}); document.body.innerHTML = {tag} }}"),
    }  # fmt: skip


def leaving(to: Server) -> dict[str, str]:
    """A page that goes elsewhere, or puts something of elsewhere into a frame."""
    there = f"{to.named}/"
    tag = quoted(f"<link rel=preconnect href='{to.named}'>")
    rtc = quoted(webrtc(to))
    return {
        "location": script(f"location = '{to.home}/'"),
        "location, named": script(f"location = '{there}'"),
        "assign": script(f"location.assign('{there}')"),
        "replace": script(f"location.replace('{there}')"),
        "href": script(f"document.location.href = '{there}'"),
        "top": script(f"try {{ top.location = '{there}' }} catch {{}}"),
        "open self": script(f"open('{there}', '_self')"),
        "navigation": script(f"window.navigation ? navigation.navigate('{there}') : location = '{there}'"),
        "refresh": f"<meta http-equiv=refresh content='0;url={there}'>",
        "made refresh": script(
            f"const m = document.createElement('meta'); m.httpEquiv = 'refresh'; m.content = '0;url={there}'; document.head.append(m)"
        ),
        "link": after(f"<a href='{there}'>x</a>", "it.click()"),
        "stopped link": script("addEventListener('click', (e) => e.stopImmediatePropagation(), true)")
        + after(f"<a href='{there}'>x</a>", "it.click()"),
        "loose link": script(f"const a = document.createElement('a'); a.href = '{there}'; a.click()"),
        "download": script(f"const a = document.createElement('a'); a.href = '{there}'; a.download = 'x'; a.click()"),
        "svg link": after(
            f"<svg><a href='{there}'><text>x</text></a></svg>",
            "it.firstChild.dispatchEvent(new MouseEvent('click', {bubbles: true}))",
        ),
        "area": after(f"<map><area href='{there}'></map>", "it.firstChild.click()"),
        "get form": after(f"<form action='{there}'></form>", "HTMLFormElement.prototype.submit.call(it)"),
        "frame": f"<iframe src='{there}'></iframe>",
        "made frame": script(f"const f = document.createElement('iframe'); f.src = '{there}'; document.body.append(f)"),
        "frameset": f"<frameset><frame src='{there}'></frameset>",
        "made object": script(
            f"const o = document.createElement('object'); o.data = '{there}'; o.type = 'text/html'; document.body.append(o)"
        ),
        # A page that an address holds, or makes, would come without the guard.
        "script address": script(f"location = 'javascript:location=\"{there}\"'"),
        "page in a script address": script(f"location = 'javascript:' + JSON.stringify({tag})"),
        "page in a late script address": script(
            f"setTimeout(() => {{ location.href = 'JavaScript:' + JSON.stringify({tag}) }}, 100)"
        ),
        "page in a clicked script address": after("<a>x</a>", f"it.href = 'javascript:' + JSON.stringify({tag}); it.click()"),
        "page in a comment": script(f"location = 'javascript:' + JSON.stringify({tag}) + '//'"),
        "page in an opened script address": script(f"open('javascript:' + JSON.stringify({tag}), '_self')"),
        "page in a form's script address": after("<form></form>", f"it.action = 'javascript:' + JSON.stringify({tag}); it.submit()"),
        "webrtc in a script address": script(f"location = 'javascript:' + JSON.stringify({rtc})"),
        "page as data": script(f"location = 'data:text/html,' + encodeURIComponent({tag})"),
        "page as a blob": script(f"location = URL.createObjectURL(new Blob([{tag}], {{type: 'text/html'}}))"),
        "blank self": script("location = 'about:blank'"),
        "history": script("history.pushState({}, '', '#a'); history.back(); history.go(0)"),
        "written later": script(f"setTimeout(() => {{ document.open(); document.write({tag}); document.close() }}, 50)"),
    }  # fmt: skip


def hints(to: Server) -> dict[str, str]:
    """Connections and look-ups that browsers make before any policy is asked."""
    tag = f"<link rel=preconnect href='{to.named}'>"
    look = f"<link rel=dns-prefetch href='//{to.name}'>"
    xhtml = f"<link xmlns='http://www.w3.org/1999/xhtml' rel='preconnect' href='{to.named}'/>"
    prefixed = f"<r xmlns:h='http://www.w3.org/1999/xhtml'><h:link rel='preconnect' href='{to.named}'/></r>"
    entity = f'<!DOCTYPE r [<!ENTITY e "{xhtml.replace("<link", "&#60;li&#110;k")}">]><r>&e;</r>'
    svg = f"<svg xmlns='http://www.w3.org/2000/svg'>{xhtml}</svg>"
    style = (
        "<xsl:stylesheet version='1.0' xmlns:xsl='http://www.w3.org/1999/XSL/Transform'><xsl:template match='/'><xsl:element name='link'>"
        f"<xsl:attribute name='rel'>preconnect</xsl:attribute><xsl:attribute name='href'>{to.named}</xsl:attribute></xsl:element></xsl:template></xsl:stylesheet>"
    )
    said = quoted(tag)
    ready = f"l.rel = 'preconnect'; l.href = '{to.named}'; l.setAttribute('rel', 'preconnect'); l.setAttribute('href', '{to.named}'); document.head.append(l)"
    twice = "{n: 0, toString() { return this.n++ ? %s : %s }}"

    def made(code: str) -> str:
        return script(f"const l = {code}; {ready}")

    def parsed(text: str, kind: str) -> str:
        code = f"const d = new DOMParser().parseFromString({quoted(text)}, '{kind}'); if (d) document.body.append(d.documentElement)"
        return script(code)

    def commanded(name: str) -> str:
        return after("<div contenteditable>x</div>", f"it.focus(); document.execCommand({name}, false, {said})")

    return {
        "preconnect": tag,
        "preconnect by number": f"<link rel=preconnect href='{to.home}'>",
        "preconnect, secure": f"<link rel=preconnect href='https://{to.name}:{to.port}' crossorigin>",
        "preconnect in capitals": tag.upper().replace(to.named.upper(), to.named),
        "preconnect with a slash": tag.replace("<link ", "<link/"),
        "preconnect over lines": tag.replace(" ", "\n"),
        "preconnect in svg": f"<svg><foreignObject>{tag}</foreignObject></svg><math><mtext>{tag}</mtext></math>",
        "preconnect in noscript": after("<div></div>", f"it.innerHTML = '<noscript>' + {said} + '</noscript>'; it.innerHTML = it.firstChild.textContent"),
        "preconnect in a template": after(f"<template>{tag}</template>", "document.body.append(it.content)"),
        "preconnect in a declared shadow": f"<div><template shadowrootmode=open>{tag}</template></div>",
        "dns-prefetch": look,
        "dns-prefetch switched on": f"<meta http-equiv=x-dns-prefetch-control content=on>{look}",
        "link that is seen": f"<a href='{to.named}'>x</a>",
        "prefetch": f"<link rel=prefetch href='{to.named}/a'>",
        "preload": f"<link rel=preload as=image href='{to.named}/a'>",
        "modulepreload": f"<link rel=modulepreload href='{to.named}/a'>",
        "prerender": f"<link rel=prerender href='{to.named}/a'><link rel=next href='{to.named}/b'>",
        "icon": f"<link rel=icon href='{to.named}/a'><link rel=manifest href='{to.named}/b'>",
        "stylesheet": f"<link rel=stylesheet href='{to.named}/a'><link rel='alternate stylesheet' href='{to.named}/b'>",
        "made": made("document.createElement('link')"),
        "made look-up": script(f"const l = document.createElement('link'); l.rel = 'dns-prefetch'; l.href = '{to.named}'; document.head.append(l)"),
        "made in capitals": made("document.createElement('LiNK')"),
        "made in a namespace": made("document.createElementNS('http://www.w3.org/1999/xhtml', 'link')"),
        "made with a prefix": made("document.createElementNS('http://www.w3.org/1999/xhtml', 'h:link')"),
        "made with another name first": made(f"document.createElement({twice % (quoted('link'), quoted('div'))})"),
        "made with another name then": made(f"document.createElement({twice % (quoted('div'), quoted('link'))})"),
        "made elsewhere": made("document.implementation.createHTMLDocument('').createElement('link')"),
        "made as a root": made("document.implementation.createDocument('http://www.w3.org/1999/xhtml', 'link').documentElement"),
        "made in a document": script(f"const d = document.implementation.createDocument('http://www.w3.org/1999/xhtml', 'html'); d.documentElement.innerHTML = {quoted(xhtml)}; document.body.append(...d.documentElement.childNodes)"),
        "of a class": script(f"class L extends HTMLLinkElement {{}}; customElements.define('x-{to.port}', L, {{extends: 'link'}}); const l = new L(); {ready}"),
        "of a class that says so later": script(f"class L extends HTMLLinkElement {{}}; let n = 0; customElements.define('y-{to.port}', L, {{get extends() {{ return n++ ? 'link' : 'meta' }}}}); const l = new L(); {ready}"),
        "of a registry": script(f"class L extends HTMLLinkElement {{}}; const r = new CustomElementRegistry(); r.define('z-{to.port}', L, {{extends: 'link'}}); const l = new L(); {ready}"),
        "inner": after("<div></div>", f"it.innerHTML = {said}"),
        "outer": after("<div></div>", f"it.outerHTML = {said}"),
        "adjacent": after("<div></div>", f"it.insertAdjacentHTML('beforebegin', {said})"),
        "said twice": after("<div></div>", f"it.innerHTML = {twice % (quoted(''), said)}; it.innerHTML = {twice % (said, quoted(''))}"),
        "fragment": script(f"document.body.append(document.createRange().createContextualFragment({said}))"),
        "parsed": parsed(f"<p>{tag}", "text/html"),
        "parsed as XML": parsed(xhtml, "application/xml"),
        "parsed with a prefix": parsed(prefixed, "application/xhtml+xml"),
        "parsed with an entity": parsed(entity, "text/xml"),
        "parsed as svg": parsed(svg, "image/svg+xml"),
        "in a shadow": after("<div></div>", f"it.attachShadow({{mode: 'closed'}}).innerHTML = {said}"),
        "in a parsed shadow": after("<div></div>", f"if (it.setHTMLUnsafe) it.setHTMLUnsafe('<p><template shadowrootmode=open>' + {said} + '</template></p>')"),
        "in a parsed document": script(f"if (Document.parseHTMLUnsafe) document.body.append(Document.parseHTMLUnsafe({said}).documentElement)"),
        "written": script(f"document.write({said})"),
        "written in pieces": script(f"document.write('<li'); document.write({quoted(tag[3:])})"),
        "inserted by command": commanded("'insertHTML'"),
        "inserted by loud command": commanded("'INSERTHTML'"),
        "inserted by another command": commanded(twice % (quoted("bold"), quoted("insertHTML"))),
        "transformed": script(
            f"if (window.XSLTProcessor) {{ const read = (t) => new DOMParser().parseFromString(t, 'text/xml'); const x = new XSLTProcessor(); x.importStylesheet(read({quoted(style)})); "
            "document.body.append(x.transformToFragment(read('<a/>'), document)) }"
        ),
        "blank frame": script(f"const f = document.createElement('iframe'); document.body.append(f); f.contentWindow.document.body.innerHTML = {said}"),
    }  # fmt: skip
