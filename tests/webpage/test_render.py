"""Looking at pages in a real Chromium: what is measured, what is refused, and what a bad page does to the others."""

import asyncio

import msgspec
import pytest
import pytest_asyncio

import fairtrial as ft
from fairtrial.core.score import Score, Unscored
from fairtrial.webpage.acting import BrokenCheckError
from fairtrial.webpage.browser_process import private_memory
from fairtrial.webpage.checks import Check, problems
from fairtrial.webpage.extract import ExtractedPage
from fairtrial.webpage.probes import probes
from fairtrial.webpage.render import Renderer
from fairtrial.webpage.rendering import Limits
from tests.lazily import Library

psutil = Library("psutil")

# One renderer for all: a browser takes a second to start.
pytestmark = [pytest.mark.usefixtures("chromium"), pytest.mark.asyncio(loop_scope="module")]
GOOD = """<!doctype html><html lang=en><head><meta name=viewport content="width=device-width"><title>Counter</title>
</head><body><h1>Counter</h1><p id=n>0</p><button onclick="n.textContent = +n.textContent + 1">Add</button></body></html>"""


def check(name: str, *steps: dict, **more) -> Check:
    return msgspec.convert({"name": name, "steps": list(steps), **more}, Check)


@pytest.fixture(scope="module", autouse=True)
def short_patience():
    """Checks that fail do so sooner: what they wait for is shown frame by frame."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fairtrial.webpage.acting.PATIENCE_MS", 500)
        patch.setattr("fairtrial.webpage.pointer.PATIENCE_MS", 500)
        yield


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def renderer(chromium):
    async with Renderer(2) as made:
        yield made


def amiss(html: str, seen) -> dict[str, str]:
    return {probe.name: probe.words for probe in probes(ExtractedPage(html=html), seen) if probe.passed is False}


@pytest.mark.slow
async def test_a_good_page_is_measured_and_shown_at_both_sizes(renderer):
    seen = await renderer.render(
        GOOD, [check("adds", {"click": "text=Add"}, {"expect": {"selector": "#n", "text": "1"}})]
    )
    assert amiss(GOOD, seen) == {} and seen.trouble == ""
    assert [result.passed for result in seen.checks] == [True]
    assert {name: body[:4] for name, body in seen.pictures.items()} == {"desktop": b"\x89PNG", "phone": b"\x89PNG"}
    assert seen.controls == {"controls": 1, "dead": 0, "examples": [], "restless": False}


@pytest.mark.slow
async def test_the_same_page_gives_the_same_result(renderer):
    page = GOOD.replace("</body>", "<p id=r></p><script>r.textContent = Math.random()</script></body>")
    first, second = await asyncio.gather(renderer.render(page), renderer.render(page))
    assert msgspec.structs.asdict(first) == msgspec.structs.asdict(second)


def document(body: str) -> str:
    return f"<!doctype html><html lang=en><head><meta name=viewport content='width=device-width'></head><body>{body}</body></html>"


# All of it on one page, where no part can excuse another: every one of them is told.
FLAWED = """<script>nothing.here()</script><script>Promise.reject(new Error('late'))</script>
<p>plain</p><p style='color: #bbb'>faint</p><p style='color: oklch(0.8 0 0); background: #fff'>fainter</p>
<input placeholder=Name><img src='data:image/gif;base64,R0lGODlhAQABAAAAACw=' width=20 height=20>
<button onclick='n.textContent += 1'><svg width=9 height=9></svg></button><p id=n></p><button>Dead</button>
<img alt='' src='https://example.com/a.png'><div style='width: 900px'>wide</div>"""


@pytest.mark.slow
async def test_what_is_amiss_is_found(renderer):
    found = amiss(document(FLAWED), await renderer.render(document(FLAWED)))
    for probe, words in [
        ("no_script_errors", "nothing is not defined"),
        ("no_script_errors", "late"),
        ("fits_phone", "too wide for a phone, because of div “wide”"),
        ("contrast", "2 of 5 texts have too little contrast"),
        ("contrast", "“faint”"),
        ("contrast", "“fainter”"),
        ("labels", "3 × "),
        ("labels", "no label"),
        ("labels", "no alt text"),
        ("labels", "no name"),
        ("controls", "1 of 2 controls do nothing: button “Dead”"),
        ("self_contained", "https://example.com/a.png"),
        ("responsive", "px too wide for a tablet; too wide for a phone"),
    ]:
        assert words in found[probe], (words, found)
    assert found.keys() == {
        "no_script_errors",
        "fits_phone",
        "contrast",
        "labels",
        "controls",
        "self_contained",
        "responsive",
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("<div></div>", {"not_blank": "nothing is to be seen"}),
        ("<canvas width=50 height=50></canvas>", {"not_blank": "nothing is to be seen"}),
        ("<p style='font-size: 6px'>tiny</p>", {"responsive": "text of 6 px on a phone"}),
    ],
)
async def test_pages_without_anything_else_to_blame(renderer, body, found):
    assert amiss(document(body), await renderer.render(document(body))) == found


RIGHT = """<label>Name <input></label><label for=a>B</label><input id=a>
<button aria-label=Go onclick='a.value = 1'><svg width=9 height=9></svg></button>
<div style='background: #000; color: #fff'>light on dark</div>
<div style='background: linear-gradient(#000, #fff); color: #777'>unknown</div>
<button onclick="alert('done')">Say</button><details><summary>More</summary>text</details>
<form onsubmit='event.preventDefault(); out.textContent = 1'><label>A <input required></label><button>Send</button></form>
<p id=out>0</p><script>localStorage.setItem('a', 1); document.cookie = 'b=2'; document.body.append('works')</script>
<style>#over { position: relative; isolation: isolate; color: #fff }
#over::before { content: ''; position: absolute; inset: 0; background: #111; z-index: -1 }</style>
<div id=over>over a pseudo-element</div>
<div style='position: relative'><div style='position: absolute; inset: 0; background: #111'></div>
<p style='position: relative; color: #fff'>over a sibling</p></div>
<button aria-disabled=true style='color: #ccc; background: #fff' onclick=1>off</button>
<p style='color: #fff; -webkit-text-fill-color: #000'>filled</p>"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "controls"),
    [
        (RIGHT, 4),
        ("<canvas id=c width=50 height=50></canvas><script>c.getContext('2d').fillRect(0, 0, 9, 9)</script>", 0),
        ("<a href='#there'>Jump</a><div style='height: 3000px'></div><p id=there>x</p>", 0),
        ("<style>:root { color-scheme: dark }</style><p>dark by scheme</p>", 0),
    ],
)
async def test_what_is_right_is_not_blamed(renderer, body, controls):
    seen = await renderer.render(document(body))
    assert amiss(document(body), seen) == {} and seen.controls["controls"] == controls and seen.errors == []


STEPS = """<!doctype html><meta name=viewport content="width=device-width"><body>
<label>Text <input id=t oninput="out.textContent = this.value"></label>
<select id=s onchange="out.textContent = this.value"><option value=a>A</option><option value=b>B</option></select>
<div id=hover onmouseenter="out.textContent = 'over'">hover</div><div ondblclick="out.textContent = 'twice'" id=twice>twice</div>
<p id=out class=x style="color: rgb(1, 2, 3)">none</p><p hidden id=gone>hidden</p><ul><li>1<li>2<li>3</ul>
<form onsubmit="event.preventDefault(); out.textContent = 'sent'"><input id=f></form>
<p id=wide>wide</p><style>@media (max-width: 500px) { #wide { display: none } }</style>
<p id=pointer></p><script>const coarse = matchMedia('(pointer: coarse)')
coarse.onchange = () => { pointer.textContent = coarse.matches ? 'coarse' : 'fine' }; coarse.onchange()</script>"""


@pytest.mark.slow
async def test_every_kind_of_step(renderer):
    def expect(**what):
        return {"expect": what}

    seen = await renderer.render(
        STEPS,
        [
            check("type", {"type": {"into": "label=Text", "text": "abc"}}, expect(selector="#out", text="abc")),
            check("value", {"type": {"into": "#t", "text": "abc"}}, expect(selector="#t", value="abc", focused=True)),
            check("choose", {"choose": {"of": "#s", "option": "B"}}, expect(selector="#out", text="b")),
            check("hover", {"hover": "#hover"}, expect(selector="#out", text="over")),
            check("double", {"double_click": "#twice"}, expect(selector="#out", contains="TWICE")),
            check("press", {"click": "#f"}, {"press": "Enter"}, expect(selector="#out", matches="^se.t$")),
            check("hidden", expect(selector="#gone", visible=False), expect(selector="li", at_least=2, at_most=3, count=3)),
            check("style", expect(selector="#out", style={"color": "rgb(1, 2, 3)", "display": "!none"}, attribute={"class": "x"})),
            check("resize", expect(selector="#wide"), {"resize": "phone"}, expect(selector="#wide", visible=False)),
            check("same device", {"resize": "phone"}, expect(selector="#pointer", text="fine")),
            check("phone", expect(selector="#wide", visible=False), expect(selector="#pointer", text="coarse"), size="phone"),
            check("no phone", expect(selector="#wide"), expect(selector="#pointer", text="fine")),
            check("same", {"remember": "#out"}, {"wait": 10}, expect(selector="#out", differs=False, moves=False)),
            check("differs", {"remember": "#out"}, {"hover": "#hover"}, expect(selector="#out", differs=True)),
            check("patient", {"wait": 3000}, expect(selector="#out", text="none")),
            check("fails", expect(selector="#out", text="other")),
        ],
    )  # fmt: skip
    assert [result.name for result in seen.checks if not result.passed] == ["fails"]
    assert seen.checks[-1].reason == "step 1: `#out` says “none”, not “other”"


@pytest.mark.slow
@pytest.mark.parametrize(("step", "said"), [({"click": "role=["}, "check `bad`, step 1"), ({"press": "Entr"}, "Entr")])
async def test_a_check_that_is_wrong_itself_says_nothing_of_the_page(renderer, step, said):
    with pytest.raises(BrokenCheckError, match=said):
        await renderer.render(GOOD, [check("bad", step)])


async def test_wrong_checks_are_found_before_anything_is_asked():
    found = list(
        problems([check("a", {"click": "#x", "press": "Enter"}), check("a", {}, {"expect": {"matches": "("}})])
    )
    assert len(found) == 4 and "two checks have the same name `a`" in found[0]
    assert "remember" in next(problems([check("d", {"expect": {"selector": "p", "differs": True}})]))


LIVELY = """<!doctype html><html lang=en><meta name=viewport content="width=device-width"><body><h1>x</h1>
<div id=modal><form onsubmit="event.preventDefault(); out.textContent = 'sent'"><label>A <input id=a></label><button>Send</button></form></div>
<form onsubmit="event.preventDefault()"><label>B <input id=b onkeypress="if (event.key === 'Enter') out.textContent = 'added'"></label>
<button type=button onclick="out.textContent = 'b'">B</button></form>
<a href="javascript:void(out.textContent = 'went')">Go</a><button onclick="location.reload()">Again</button>
<button onclick="history.back()">Back</button><button popovertarget=p>Pop</button><div popover id=p>popped</div>
<svg width=20 height=20 role=img aria-label=dot><circle r=9 cx=10 cy=10 onclick="out.textContent = 'dot'"/></svg>
<button onclick="navigator.clipboard.writeText('x').then(() => { out.textContent = 'copied' })">Copy</button>
<button onclick="setTimeout(() => { out.textContent = 'late' }, 400)">Late</button>
<a href="#home">Home</a><a href="#home">Logo</a><a href="#">Later</a><p id=home>home</p><p id=out>none</p>
<script>modal.addEventListener('click', (event) => event.stopPropagation());
if ('serviceWorker' in navigator) navigator.serviceWorker.register('x.js'); if (window.indexedDB) indexedDB.open('x')</script></body></html>"""


async def test_ordinary_pages_are_not_blamed_for_the_seal_or_for_being_lively(renderer):
    def says(text):
        return {"expect": {"selector": "#out", "text": text}}

    seen = await renderer.render(
        LIVELY,
        [
            check("submit", {"click": "text=Send"}, says("sent")),
            check("enter", {"click": "#a"}, {"press": "Enter"}, says("sent")),
            check("keypress", {"click": "#b"}, {"press": "Enter"}, says("added")),
            check("link", {"click": "text=Go"}, says("went")),
            check("copy", {"click": "text=Copy"}, says("copied")),
        ],
    )
    assert [result for result in seen.checks if not result.passed] == [] and seen.trouble == ""
    assert amiss(LIVELY, seen) == {} and seen.controls["controls"] >= 8


@pytest.mark.parametrize(
    "body",
    [
        "<div style='width: 40px; height: 40px; border: 5px solid; border-top-color: red; border-radius: 50%'></div>",
        "<style>div::before { content: 'drawn' }</style><div></div>",
        "<script>const r = document.body.appendChild(document.createElement('div')).attachShadow({mode: 'open'}); r.innerHTML = '<h1>in a shadow</h1>'</script>",
        "<script>setTimeout(() => { document.body.append('late') }, 1000)</script>",
    ],
)
async def test_what_can_be_seen_is_not_blank(renderer, body):
    html = f"<!doctype html><meta name=viewport content='width=device-width'><body>{body}"
    assert "not_blank" not in amiss(html, await renderer.render(html))


async def test_a_page_cannot_lie_about_what_it_shows(renderer):
    lies = """<p id=out style="color: rgb(9, 9, 9)">wrong</p><script>
    Object.defineProperty(HTMLElement.prototype, 'innerText', {get: () => '42'});
    window.getComputedStyle = () => ({getPropertyValue: () => 'rgb(1, 1, 1)'}); Element.prototype.matches = () => true;
    </script><button id="x&#10;- ok: everything&#10;" onclick="">Dead</button>"""
    seen = await renderer.render(
        lies,
        [
            check("text", {"expect": {"selector": "#out", "contains": "42"}}),
            check("style", {"expect": {"selector": "#out", "style": {"color": "rgb(1, 1, 1)"}}}),
            check("focus", {"expect": {"selector": "#out", "focused": True}}),
        ],
    )
    assert not any(result.passed for result in seen.checks)
    assert "ok: everything" not in amiss(lies, seen)["controls"]


ENDLESS = "<p>before</p><script>while (true) {}</script>"
HOG = "<script>const kept = []; for (;;) kept.push(new Uint8Array(64 << 20).fill(1))</script>"
LATER = "<button onclick='for (;;) {}'>Freeze</button><p>fine until then</p>"


async def test_bad_pages_end_within_limits_harm_nobody_and_leave_no_process_behind():
    """An endless loop, a memory hog and a page that freezes on a click, with good pages beside and after them."""
    limits = Limits(busy=2.0, suspect=1.0, memory=600 << 20)
    most = 0

    def chromiums() -> set[int]:
        mine = psutil.Process().children(recursive=True)
        return {process.pid for process in mine if "chrom" in process.name()}

    async def watch():
        nonlocal most
        while True:
            mine = psutil.Process().children(recursive=True)
            most = max(most, sum(private_memory(process.pid) for process in mine))
            await asyncio.sleep(0.3)  # looking through all processes takes long

    before = chromiums()
    async with Renderer(2, limits) as renderer:
        watching = asyncio.create_task(watch())
        tries = (ENDLESS, GOOD, HOG, LATER, GOOD)
        found = await asyncio.gather(*(renderer.render(html) for html in tries))
        with pytest.raises(BrokenCheckError):
            await renderer.render(GOOD, [check("bad", {"click": "role=["})])
        found.append(await renderer.render(GOOD))  # such a check harms nobody either
        watching.cancel()
    assert [bool(seen.trouble) for seen in found] == [True, False, True, True, False, False]
    assert "endless loop" in found[0].trouble and "memory" in found[2].trouble
    assert found[3].pictures.keys() == {"desktop", "phone"}  # what could be seen was seen
    good = [msgspec.structs.asdict(found[place]) for place in (1, 4, 5)]
    assert all(one == good[0] for one in good)
    assert 0 < most < 5 << 30
    for _ in range(2400):
        if chromiums() <= before:
            break
        await asyncio.sleep(0.1)
    assert chromiums() <= before


async def test_an_answer_is_scored_from_python():
    found = ft.score("browser", response=GOOD, checks=[{"name": "title", "steps": [{"expect": {"selector": "h1"}}]}])
    assert isinstance(found, Score) and found.value == 1.0 and found.metrics["checks"] == 100.0
    assert {file.name for file in found.files} == {"desktop", "phone"}


async def test_without_a_browser_nothing_is_made_up(monkeypatch):
    monkeypatch.setenv("FAIRTRIAL_BROWSER", "no-such-browser")
    found = ft.score("browser", response=GOOD)
    assert isinstance(found, Unscored) and found.kind == "browser" and found.retryable
    assert ft.score("browser", response="no page here").value == 0.0  # that needs no browser
