"""Charts in a page that is not ours: they look right in both themes, and change nothing around them."""

import re

import pytest

from fairtrial.present.charts import ForestRow, part, scoped_style, small_forest
from fairtrial.present.charts.style import WRAPPER

_OTHERS = '<table id="own"><tr><th>a</th><td class="num lead">1</td></tr></table><svg id="pic" width="30"><text>x</text></svg>'
_LOOK = """id => { const s = getComputedStyle(document.getElementById(id)); return [s.width, s.display, s.color, s.fontSize] }"""


def test_every_rule_is_inside_the_wrapper():
    css = scoped_style()
    assert len(css) < 20_000 and css.count("{") == css.count("}")
    depth = 0
    outermost = []
    for piece in re.split(r"([{}])", css):
        if depth == 0 and piece.strip() not in ("", "{", "}"):
            outermost.append(piece.strip())
        depth += {"{": 1, "}": -1}.get(piece, 0)
    assert outermost and all(WRAPPER in rule or rule.startswith("@media") for rule in outermost)


@pytest.mark.slow
@pytest.mark.parametrize(("theme", "system"), [("true", "dark"), ("false", "light"), ("", "dark"), ("", "light")])
async def test_a_notebook(browser, theme, system):
    chart = small_forest([ForestRow("<b>", 1.0, (0.5, 1.5), "1.0", "0.5 to 1.5")], name="arm", number_name="n")
    shown = part("A <title>", chart, says=["said"])
    attribute = f' data-jp-theme-light="{theme}"' if theme else ""
    page = await browser.new_page(color_scheme=system)
    await page.set_content(f"<!doctype html><body{attribute}>{_OTHERS}</body>")
    before = [await page.evaluate(_LOOK, name) for name in ("own", "pic")]
    await page.set_content(f"<!doctype html><body{attribute}>{_OTHERS}{shown}</body>")
    assert [await page.evaluate(_LOOK, name) for name in ("own", "pic")] == before
    dark = theme == "false" or (not theme and system == "dark")
    colour = await page.evaluate(f"getComputedStyle(document.querySelector('.{WRAPPER}')).backgroundColor")
    assert colour == ("rgb(21, 24, 28)" if dark else "rgb(255, 255, 255)")
    assert "A <title>" in await page.inner_text(f".{WRAPPER}") and await page.locator(f".{WRAPPER} b").count() == 1
