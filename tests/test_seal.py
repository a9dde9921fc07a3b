"""A sealed page reaches nothing: whatever it tries, a listening server hears no request, and nobody's page is touched."""

import asyncio
import json
from contextlib import asynccontextmanager
from functools import partial

import pytest

from fairtrial.export import export
from fairtrial.web.guard import Guard
from fairtrial.web.preview import Previews
from fairtrial.web.serving import bound, names_of, served
from fairtrial.webpage.render import Renderer
from fairtrial.webpage.seal import SANDBOX


class Ear:
    """Hears every connection, every byte and every datagram."""

    def __init__(self):
        self.connections, self.said, self.datagrams = 0, [], 0

    async def open(self):
        self._server = await asyncio.start_server(self._hear, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        ear = self

        class Datagrams(asyncio.DatagramProtocol):
            def datagram_received(self, data, address):
                ear.datagrams += 1

        loop = asyncio.get_running_loop()
        self._udp, _ = await loop.create_datagram_endpoint(Datagrams, local_addr=("127.0.0.1", 0))
        self.udp_port = self._udp.get_extra_info("sockname")[1]
        return self

    async def _hear(self, reader, writer):
        self.connections += 1
        data = await reader.read(1000)
        if data:
            self.said.append(data)
        writer.close()

    def close(self):
        self._server.close()
        self._udp.close()


@pytest.fixture
async def ear():
    found = await Ear().open()
    yield found
    found.close()


def attacks(ear: Ear) -> dict[str, str]:
    """Ways out, each as a page's body."""
    home = f"http://127.0.0.1:{ear.port}"
    rtc = (
        f"const p = new RTCPeerConnection({{iceServers: [{{urls: 'stun:127.0.0.1:{ear.udp_port}'}}, "
        f"{{urls: 'turn:127.0.0.1:{ear.port}?transport=tcp', username: 'a', credential: 'b'}}]}});"
        "p.createDataChannel('x'); p.createOffer().then((o) => p.setLocalDescription(o))"
    )
    script = "<script>{{ {} }}</script>".format
    inner = script(rtc)
    dynamic = json.dumps(inner).replace("</", "<\\/")
    written = json.dumps(json.dumps(inner)).replace("</", "<\\/")
    rules = json.dumps({"prefetch": [{"source": "list", "urls": [f"{home}/"]}]})
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
        "websocket": script(f"new WebSocket('ws://127.0.0.1:{ear.port}/')"),
        "events": script(f"new EventSource('{home}/')"),
        "transport": script(f"try {{ new WebTransport('https://127.0.0.1:{ear.port}/') }} catch {{}}"),
        "worker": script(f"new Worker(URL.createObjectURL(new Blob([\"fetch('{home}/')\"])))"),
        "webrtc": inner,
        "webrtc in a frame": f'<iframe srcdoc="{inner}"></iframe>',
        "webrtc in a made frame": script(f"const f = document.createElement('iframe'); f.srcdoc = {dynamic}; document.body.append(f)"),
        "webrtc in a shadow": "<div id=h></div>"
        + script(f"const f = document.createElement('iframe'); f.srcdoc = {dynamic}; h.attachShadow({{mode: 'closed'}}).append(f)"),
        "webrtc in a declared shadow": f'<div><template shadowrootmode=closed><iframe srcdoc="{inner}"></iframe></template></div>',
        "webrtc in a written shadow": script(
            "document.write('<div><template shadowroot'); document.write('mode=closed>'); "
            f"document.write('<iframe srcdoc=' + {written} + '></iframe></template></div>')"
        ),
        # The page may change every prototype before it tries.
        **{
            f"webrtc, {name}": script(f"{tamper}; const f = document.createElement('iframe'); f['src' + 'doc'] = {dynamic}; document.body.append(f)")
            for name, tamper in {
                "iterators": "NodeList.prototype[Symbol.iterator] = Array.prototype[Symbol.iterator] = function* () {}",
                "call": "Function.prototype.call = () => 0",
                "records": "Object.defineProperty(MutationRecord.prototype, 'addedNodes', {get: () => []})",
                "nodes": "Object.defineProperty(Node.prototype, 'nodeType', {get() { throw 1 }})",
                "texts": "String.prototype.toLowerCase = () => ''; String.prototype.indexOf = () => -1; RegExp.prototype.exec = () => null",
            }.items()
        },
        "webrtc before anybody looks": script(
            f"const f = document.createElement('iframe'); f.setAttribute({{n: 0, toString() {{ return this.n++ ? 'src' + 'doc' : 'title' }}}}, {dynamic}); "
            "document.body.append(f); const t = Date.now(); while (Date.now() - t < 500);"
        ),
        "webrtc in a parsed frame": script(
            f"const d = new DOMParser().parseFromString('<iframe src' + 'doc=' + JSON.stringify({dynamic}) + '>', 'text/html'); if (d) document.body.append(d.body.firstChild)"
        ),
        "form": f"<form id=f method=post action='{home}/'><input name=a value=b></form>" + script("f.submit(); f.requestSubmit()"),
        "form by click": f"<form method=post action='{home}/'><button id=b>go</button></form>" + script("b.click()"),
        "popup": script(f"window.open('{home}/')"),
        "blank link": f"<a id=a target=_blank href='{home}/'>x</a>" + script("a.click()"),
        "ping": f"<a id=a href='#x' ping='{home}/'>x</a>" + script("a.click()"),
        "hints": f"<link rel=preconnect href='{home}'><link rel=prefetch href='{home}/a'><link rel=preload as=image href='{home}/b'><link rel=dns-prefetch href='//localhost'>",
        "speculation": f"<script type=speculationrules>{rules}</script>",
        "object": f"<object data='{home}/a'></object><embed src='{home}/b'>",
        "base": f"<base href='{home}/'><img src=a>",
    }  # fmt: skip


def leaving(ear: Ear) -> dict[str, str]:
    """A page that goes elsewhere, or puts something of elsewhere into a frame."""
    home = f"http://127.0.0.1:{ear.port}"
    return {
        "location": f"<script>location = '{home}/'</script>",
        "top": f"<script>try {{ top.location = '{home}/' }} catch {{}}</script>",
        "refresh": f"<meta http-equiv=refresh content='0;url={home}/'>",
        "link": f"<a id=a href='{home}/'>x</a><script>a.click()</script>",
        "frame": f"<iframe src='{home}/'></iframe>",
    }


def together(ear: Ear) -> tuple[str, str]:
    """All attacks on one page, but for the one that tears what follows it."""
    tried = attacks(ear)
    torn = tried.pop("webrtc in a written shadow") + "".join(
        tried.pop(name) for name in list(tried) if "webrtc, " in name
    )
    return "".join(tried.values()), torn


def page(body: str) -> str:
    return f"<!doctype html><html><body>{body}<p id=end>end</p></body></html>"


async def _fulfil(html, route):
    await route.fulfill(body=html, content_type="text/html")


async def test_without_the_seal_these_are_ways_out(ear, browser):
    """Else the tests below would show nothing."""
    for name in ("fetch", "image", "font", "websocket", "webrtc", "webrtc in a frame", "form", "hints", "worker"):
        before = ear.connections + ear.datagrams
        tab = await browser.new_page()
        await tab.route(
            "http://unsealed.test/",
            partial(_fulfil, page(attacks(ear)[name])),
        )
        await tab.goto("http://unsealed.test/", wait_until="commit")
        for _ in range(100):
            if ear.connections + ear.datagrams > before:
                break
            await tab.wait_for_timeout(50)
        assert ear.connections + ear.datagrams > before, name
        await tab.close()


async def test_nothing_is_heard_when_pages_are_rendered(ear, chromium):
    pages = map(page, (*together(ear), *leaving(ear).values()))
    async with Renderer() as renderer:
        seen, _, *gone = await asyncio.gather(*map(renderer.render, pages))
    assert (ear.connections, ear.datagrams) == (0, 0)
    for other in gone:  # a page that wants to leave stays, and that it wanted to is known
        assert other.desktop["text"] in ("", "x end", "end") and (other.blocked or other.desktop["text"] == "x end")
    assert len(seen.blocked) >= 7
    assert seen.desktop["text"].endswith("end")


@asynccontextmanager
async def shown(browser, previews: Previews):
    """A page of ours that shows sealed ones in a frame, from another port."""
    from starlette.applications import Starlette
    from starlette.responses import HTMLResponse
    from starlette.routing import Route

    main, other = bound(), bound()
    origin = f"http://{names_of(other)[0]}"

    async def outer(request):
        address = f"{origin}{request.query_params['path']}"
        policy = f"default-src 'none'; script-src 'unsafe-inline'; frame-src {origin}"
        html = f"<title>ours</title><h1>ours</h1><iframe sandbox='{SANDBOX}' src='{address}'></iframe>"
        return HTMLResponse(html, headers={"Content-Security-Policy": policy})

    app = Starlette(routes=[Route("/", outer)])
    async with served((Guard(app, names_of(main)), main), (Guard(previews.app, names_of(other)), other)):
        context = await browser.new_context()

        async def show(html: str):
            tab = await context.new_page()
            await tab.goto(f"http://{names_of(main)[0]}/?path={previews.add(html)}")
            await tab.wait_for_timeout(400)
            return tab

        yield show
        await context.close()


async def test_nothing_is_heard_when_pages_are_previewed(ear, browser):
    tried = attacks(ear)
    alone = {name: tried.pop(name) for name in list(tried) if name.startswith(("webrtc", "form", "popup"))}
    async with shown(browser, Previews()) as show:
        for name, body in {**alone, "the others": "".join(tried.values())}.items():
            tab = await show(page(body))
            assert (ear.connections, ear.datagrams) == (0, 0), name
            await tab.close()


async def test_a_page_that_leaves_gets_nowhere(ear, browser):
    """Chromium may open a connection before it asks its policy; not a byte goes over it."""
    async with shown(browser, Previews()) as show:
        for name, body in leaving(ear).items():
            tab = await show(page(body))
            assert await tab.title() == "ours" and tab.url.startswith("http://127.0.0.1"), name
            assert (ear.said, ear.datagrams) == ([], 0), name
            assert len(tab.context.pages) == 1, name
            await tab.close()


_PRYING = """<script>
const said = {};
const attempt = (name, f) => { try { said[name] = String(f()); } catch (error) { said[name] = error.name; } };
attempt("parent", () => parent.document.title);
attempt("top", () => top.document.title);
attempt("opener", () => window.opener);
attempt("origin", () => self.origin);
attempt("database", () => indexedDB.open("x"));
attempt("storage", () => { localStorage.setItem("a", "1"); sessionStorage.b = "2"; document.cookie = "c=3"; return localStorage.length + localStorage.a; });
attempt("alert", () => alert("hi"));
document.getElementById("out").textContent = JSON.stringify(said);
</script>"""


async def test_a_page_sees_nothing_of_ours_and_stores_nothing(browser):
    async with shown(browser, Previews()) as show:
        for _ in range(2):  # the second one finds nothing of the first
            tab = await show(f"<p id=out></p>{_PRYING}")
            said = json.loads(await tab.frame_locator("iframe").locator("#out").inner_text())
            assert said["parent"] == said["top"] == "SecurityError"
            assert said["origin"] == "null" and said["database"] == "ReferenceError"
            assert said["storage"] == "11" and said["alert"] == "undefined"
        assert await tab.context.cookies() == []


async def test_a_preview_is_served_once_and_under_its_own_name_only():
    from starlette.testclient import TestClient

    previews = Previews()
    client = TestClient(Guard(previews.app, ["127.0.0.1:9"]), base_url="http://127.0.0.1:9")
    path = previews.add("<h1>x</h1>")
    assert client.get(path, headers={"Host": "evil.example"}).status_code == 403
    first = client.get(path)
    assert first.status_code == 200 and "sandbox allow-scripts" in first.headers["content-security-policy"]
    assert first.text.startswith('<!doctype html><meta http-equiv="Content-Security-Policy"')
    assert client.get(path).status_code == 404 and client.get("/").status_code == 404
    assert client.post(path).status_code in (403, 405)


async def test_nothing_is_heard_from_the_report(ear, browser, run_suite, tmp_path):
    tried = {"everything": page(together(ear)[0]), "webrtc": page(attacks(ear)["webrtc in a frame"])}
    answers = {name: f"```html\n{html}\n```" for name, html in tried.items()}
    run = await run_suite(
        targets=[{"id": "m", "target": "mock:m", "options": {"answers": answers}}],
        scorer="browser",
        cases=[{"id": name, "input": name} for name in tried],
    )
    tab = await browser.new_page()
    await tab.goto(export(run, tmp_path / "report.html").as_uri())
    await tab.wait_for_selector("html[data-ready]")
    buttons = tab.locator("button.live")
    assert await buttons.count() == len(tried)
    for number in range(len(tried)):
        await buttons.nth(number).click()
        shown = tab.frame_locator(f"iframe >> nth={number}").locator("#end")
        assert await shown.inner_text() == "end"
    await tab.wait_for_timeout(1000)
    assert (ear.connections, ear.datagrams) == (0, 0)
