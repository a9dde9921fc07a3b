"""The comment shows names and answers as text, whatever they contain."""

from html.parser import HTMLParser

import pytest
from markdown_it import MarkdownIt

from fairtrial.analyse.caveats import GateChanged
from fairtrial.analyse.gate_changes import BaselineChanges, Worse
from fairtrial.analyse.gate_reasons import ChangedSince, Settle, StatedReason
from fairtrial.analyse.gate_result import Flaky, Gate, GateCheck
from fairtrial.reports.comment import marker, render, run_of
from fairtrial.reports.markdown import plain

NASTY = [
    "@everyone",
    "<img src=x onerror=alert(1)><script>alert(1)</script>",
    "[click](https://evil.example) ![x](https://evil.example/x.png) https://evil.example",
    "```\n# out of the fence\n```",
    "a | b \\| c \\\\| d",
    "`tick` ``two`` `",
    "</pre></td></table></details>\n\n# heading\n\n/close\n- item #12 !3 ~bug",
    "<!-- fairtrial gate s run=x -->",
    "line\r\n\r\n    code\x1b[31m",
]


class _Seen(HTMLParser):
    """Collects elements, and the text outside of code and preformatted text."""

    def __init__(self):
        super().__init__()
        self.tags, self.loose, self.kept, self._depth = set(), "", "", 0

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self._depth += tag in ("code", "pre")

    def handle_endtag(self, tag):
        self._depth -= tag in ("code", "pre")

    def handle_data(self, data):
        if self._depth:
            self.kept += data + "\n"
        else:
            self.loose += data


def gate(text, result="failed"):
    check = GateCheck(
        name="regression",
        arm=text,
        result=result,
        reason=StatedReason(text=text),
        value=-0.1,
        interval=(-0.2, -0.01),
        limit=-0.05,
    )
    return Gate(
        run_ids=["01a"],
        against=[text],
        checks=[check, GateCheck(name=f"category {text}", arm=text, result="passed", reason=StatedReason(text=text))],
        caveats=[GateChanged(baseline=text, demands=[text])],
        flaky=[Flaky(case=text, arm=text, passed=1, answers=3)],
        quarantined=[text],
        settle=[Settle(name="regression", arm=text, cases=100, repeats=None, now=3, noise_known=True)],
    )


def changes(text):
    worse = Worse(
        case=text, arm=text, question=text, expected=text, before=text, after=text, score_before=1, score_after=0
    )
    return BaselineChanges(
        differences=[ChangedSince(what="gone", arms=[text])],
        answers=10,
        reused=4,
        cost_usd=0.5,
        cost_known=False,
        worse=[worse],
    )


@pytest.mark.parametrize("text", NASTY)
def test_whatever_it_contains_it_is_text(text):
    body = render(gate(text), changes(text), suite=text, run_id="1m7-01a", report="https://ci.example/1#artifacts")
    page = MarkdownIt("commonmark", {"html": True}).enable("table").render(body)
    seen = _Seen()
    seen.feed(page)
    harmless = {
        "h3",
        "code",
        "pre",
        "table",
        "tr",
        "td",
        "th",
        "tbody",
        "thead",
        "details",
        "summary",
        "p",
        "br",
        "sub",
    }
    assert seen.tags <= harmless | {"a", "ul", "li"}, seen.tags
    assert page.count("<a ") == 1 and "https://ci.example/1#artifacts" in page  # the report, and no other link
    for word in ("@everyone", "evil", "alert", "out of the fence", "/close", "#12", "tick"):
        assert word not in seen.loose, word
        assert word not in text or word in seen.kept
    assert not any(line.lstrip().startswith(("/", "@")) for line in body.splitlines())
    assert run_of(body, text) == "1m7-01a" and run_of(body, "another") is None


def test_what_it_says():
    body = render(gate("bot", "cannot tell"), changes("bot"), suite="refunds", run_id="01a")
    assert body.startswith(marker("refunds", "01a")) and "### ❔ `refunds`: cannot tell yet" in body
    assert "6 answers asked for; 4 that this change cannot affect were reused. Cost: ≥ $0.50." in body
    assert "--until-sure" in body and "●" in body and "−10.0 (−20.0 to −1.0)" in body
    assert "<th>before</th><th>now</th>" in body and "100.0 → 0.0" in body
    alone = Gate(
        run_ids=["01a"],
        against=[],
        origin=StatedReason(text="no baseline: none yet"),
        checks=gate("bot", "cannot tell").checks,
    )
    body = render(alone, changes("bot"), suite="refunds", run_id="01a")
    assert "### ❔ `refunds`: cannot tell: there is no baseline" in body


@pytest.mark.parametrize(
    ("name", "result", "says"),
    [
        ("regression", "failed", "blocked: something got worse"),
        ("must_pass", "failed", "blocked: a rule is not met"),
        ("coverage", "passed", "passed; compared with nothing"),
        ("guard cost", "passed", "passed: nothing got worse by more than it may"),
    ],
)
def test_the_headline_says_no_more_than_was_checked(name, result, says):
    found = Gate(
        run_ids=["1"], against=[], checks=[GateCheck(name=name, arm="a", result=result, reason=StatedReason(text="m"))]
    )
    assert f"`s`: {says}\n" in render(found, changes("bot"), suite="s", run_id="1")


def test_text_in_a_summary_mentions_nobody_and_links_nothing():
    text = plain("@everyone https://evil.example www.evil.example &amp; ~~gone~~")
    assert "https://" not in text and "www." not in text
    page = MarkdownIt("commonmark").enable("strikethrough").render(text)
    assert "<s>" not in page and "@everyone" not in page and "&amp;amp;" in page and "https://evil.example" in page


def test_it_fits_whatever_the_answers():
    many = [changes("x" * 1100).worse[0]] * 60
    body = render(gate("bot"), BaselineChanges(differences=[], answers=1, reused=0, cost_usd=0, cost_known=True, worse=many),
                  suite="s", run_id="01a")  # fmt: skip
    assert len(body) < 65_000 and "The answers are in the report." in body and body.rstrip().endswith("</sub>")
