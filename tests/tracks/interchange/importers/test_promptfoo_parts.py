"""The parts of the promptfoo importer that read small languages: templates, short assertions, transforms, whole files."""

from contextlib import suppress

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from fairtrial.config import load_suite
from fairtrial.core.errors import FairtrialError
from fairtrial.core.templates import TemplateError, fill
from fairtrial.foreign.suites import suite_text
from fairtrial.tracks.interchange.importers._promptfoo.code import CodeFile
from fairtrial.tracks.interchange.importers._promptfoo.conversion import Conversion, Notes
from fairtrial.tracks.interchange.importers._promptfoo.files import Folder
from fairtrial.tracks.interchange.importers._promptfoo.nunjucks import converted, filled, finish, literal
from fairtrial.tracks.interchange.importers._promptfoo.tests import short_form
from fairtrial.tracks.interchange.importers._promptfoo.transforms import extraction
from fairtrial.tracks.interchange.importers.promptfoo import Promptfoo


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("{{ a | dump }}", "{{ a | tojson }}"),
        ("{{ a | dump(2) }}", "{{ a | tojson(2) }}"),
        ("{% if a === 'x && y' %}1{% elseif b !== c && d %}2{% endif %}", "{% if a == 'x && y' %}1{% elif b != c and d %}2{% endif %}"),
        ("{{ a.b.length }} a.length", "{{ (a.b | length) }} a.length"),
        ("{{ env.KEY }}/{{env['OTHER']}}", "${KEY}/${OTHER}"),
        ("{{ env.KEY | default('x') }}", "${KEY:-x}"),
        ("costs ${5} && more", "costs $${5} && more"),
        ("{{ mine }} {{ env.SET }}", "{{ mine }} here"),
    ],
)  # fmt: skip
def test_templates_are_converted(theirs, ours):
    assert finish(converted(theirs, {"SET": "here"})) == ours


@given(st.text(max_size=60))
def test_a_literal_says_the_text(text):
    if "endraw" not in text:
        assert fill(literal(text), {}) == text


@given(st.text(alphabet="ab{}%|.= '\"env", max_size=30))
def test_any_template_is_filled_in_or_refused_in_one_sentence(text):
    try:
        assert isinstance(filled(text, {"a": "1"}), str)
    except TemplateError as error:
        assert "\n" not in str(error)


def test_names_without_a_value_are_blank():
    assert filled("a{{ b }}c", {}) == "ac"


@pytest.mark.parametrize(
    ("text", "check"),
    [
        ("Paris", {"type": "equals", "value": "Paris"}),
        ("Note: this", {"type": "equals", "value": "Note: this"}),
        ("contains: Paris", {"type": "contains", "value": "Paris"}),
        ("not-icontains:x:y", {"type": "not-icontains", "value": "x:y"}),
        ("similar(0.8): x", {"type": "similar", "threshold": 0.8, "value": "x"}),
        ("latency(1000)", {"type": "latency", "threshold": 1000.0}),
        ("is-json", {"type": "is-json"}),
        ("cost", {"type": "equals", "value": "cost"}),
        ("grade: is polite", {"type": "llm-rubric", "value": "is polite"}),
        ("fn:output > 1", {"type": "javascript", "value": "output > 1"}),
        ("file://check.py", {"type": "python", "value": "file://check.py"}),
    ],
)
def test_short_forms(text, check):
    assert short_form(text) == check


@given(st.text(max_size=40))
def test_any_cell_is_an_assertion(text):
    assert "type" in short_form(text)


@pytest.mark.parametrize(
    ("code", "extract"),
    [
        ("JSON.parse(output).a.b[0]", {"json": "a.b[0]"}),
        ("JSON.parse(output)?.a?.['b c']", {"json": "a['b c']"}),
        ("JSON.parse(output)", {"json": "$"}),
        ("output.city.name", {"json": "city.name"}),
        ("output[0].name", {"json": "[0].name"}),
        ("output.split('Answer:').pop().trim();", {"after": "Answer:"}),
        (r"output.match(/x-(\d+)/i)?.[1]", {"regex": r"/x-(\d+)/i", "group": 1}),
        ("output", None),
    ],
)
def test_transforms_that_extract_can_say(tmp_path, code, extract):
    notes = Notes()
    assert extraction(Conversion(Folder(tmp_path), notes, CodeFile()), code, "test 1") == extract
    assert not notes.findings()


@pytest.mark.parametrize("code", ["require('x')(output)", "context.vars.x + output", "await f(output)"])
def test_transforms_that_nothing_can_say(tmp_path, code):
    notes = Notes()
    assert extraction(Conversion(Folder(tmp_path), notes, CodeFile()), code, "test 1") is None
    assert "(test 1)" in notes.findings()[0]


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 9)
    | st.sampled_from(["", "x", "{{q}}", "{% if", "file://none.txt", "${A}"]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["q", "id", "type", "value"]), inner, max_size=2)
    ),
    max_leaves=4,
)
KINDS = st.sampled_from(
    ["equals", "contains", "not-contains-any", "regex", "is-json", "javascript", "python", "levenshtein", "llm-rubric",
     "latency", "assert-set", "word-count", "trajectory:tool-used", "g-eval", "is-xml", "odd"]
)  # fmt: skip
CHECKS = st.fixed_dictionaries(
    {"type": KINDS}, optional={"value": VALUES, "threshold": VALUES, "weight": VALUES, "transform": VALUES}
)
TESTS = st.fixed_dictionaries(
    {},
    optional={"vars": VALUES, "assert": st.lists(CHECKS, max_size=2) | VALUES, "options": VALUES, "threshold": VALUES},
)
CONFIGS = st.fixed_dictionaries(
    {"prompts": VALUES, "tests": st.lists(TESTS, max_size=2) | VALUES},
    optional={"providers": VALUES, "defaultTest": TESTS, "scenarios": VALUES, "evaluateOptions": VALUES, "env": VALUES},
)


@pytest.mark.slow
def test_any_configuration_is_a_suite_or_one_sentence(tmp_path_factory):
    path = tmp_path_factory.mktemp("any") / "c.yaml"

    @given(CONFIGS)
    def check(config):
        path.write_text(yaml.safe_dump(config))
        try:
            text = suite_text(Promptfoo().read(path))
        except FairtrialError as error:
            assert str(path) in str(error)
            return
        path.with_name("suite.yaml").write_text(text)
        with suppress(FairtrialError):  # said as a problem: never a crash
            load_suite(path.with_name("suite.yaml"), environment={}, placeholders=True)

    check()
