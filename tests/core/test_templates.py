"""Templates: what is filled in, and what a template can never do."""

import time
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairtrial.core.templates import TemplateError, fill, is_template, names_in


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("Translate into {{ language }}: {{input}}", "Translate into French: cheese"),
        ("{% if tags %}{{ tags | join(', ') }}{% endif %}", "a, b"),
        ("{{ tags }} {{ nothing }} {{ flag }} {{ table }}", '["a","b"]  true {"x":1}'),
        ("{{ missing | default('none') }}", "none"),
        ("{% for tag in tags %}- {{ tag }}\n{% endfor %}", "- a\n- b\n"),
        ("{% raw %}{{ literal }}{% endraw %}", "{{ literal }}"),
        ("{{ table.x }} {{ tags[1] }} {{ language | upper }}", "1 b FRENCH"),
        ("no template {at} all\n", "no template {at} all\n"),
    ],
)
def test_values_are_filled_in(text, filled):
    values = {"language": "French", "input": "cheese", "tags": ["a", "b"], "nothing": None, "flag": True}
    assert fill(text, {**values, "table": {"x": 1}}) == filled


@given(st.text())
def test_data_is_never_a_template(value):
    assert fill("<{{ x }}>", {"x": value}) == f"<{value}>"
    assert fill("<{{ x }}>", {"x": "{{ 7 * 7 }}{% raw %}"}) == "<{{ 7 * 7 }}{% raw %}>"


@given(st.text(alphabet="{}%#ab |.'\"()[]*\n"))
def test_any_text_is_filled_in_or_refused_in_one_sentence(text):
    try:
        names_in(text)
        fill(text, dict.fromkeys("ab", "x"))
    except TemplateError as error:
        assert str(error) and "\n" not in str(error).strip()


@given(st.lists(st.sampled_from(["{{ a }}", "{{a}}", "{{ b }}", "{{ c }}", "{ x }", "}}", "\n", "ä {", "%}"])))
def test_simple_templates_are_as_jinja_fills_them_in(pieces):
    from fairtrial.core.template_work import limited_work
    from fairtrial.core.templates import _compiled, _simple

    text, values = "".join(pieces), {"a": "{{ b }}", "b": [1, {"x": None}], "c": None}
    if _simple(text) is not None and is_template(text):
        with limited_work(text):
            assert fill(text, values) == _compiled(text).render(values)


def test_a_name_without_a_value_is_an_error():
    with pytest.raises(TemplateError, match="`contxt` is undefined"):
        fill("{{ contxt }}", {"context": "x"})
    assert names_in("{{ a }} {% for b in c %}{{ b }}{% endfor %}") == {"a", "c"}
    assert not is_template("{a}") and names_in("{a}") == frozenset()


@pytest.mark.parametrize(
    "text",
    [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ x.__init__.__globals__ }}",
        "{{ cycler.__init__.__globals__.os.popen('id').read() }}",
        "{{ self._TemplateReference__context }}",
        "{{ x | attr('__class__') }}",
        "{% include '/etc/passwd' %}",
        "{% import 'os' as os %}",
        "{% extends 'x' %}",
        "{{ lipsum.__globals__ }}",
        "{{ range(10 ** 12) | list }}",
        "{{ 'a' * 10 ** 10 }}",
        "{{ [0] * 10 ** 10 }}",
        "{{ 9 ** 9 ** 9 }}",
        "{{ '%9999999999d' % 1 }}",
        "{{ '{:9999999999}'.format(1) }}",
        "{{ 'a'.ljust(10 ** 10) }}",
        "{{ 'a' | center(10 ** 10) }}",
        "{{ x.append(1) }}",
        "{% set x.y = 1 %}",
        "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
        "{{ 1 / 0 }}",
        "{{ x | nosuchfilter }}",
        "{{ open }",
    ],
)
def test_nothing_is_executed_and_nothing_grows(text):
    started = time.process_time()
    tracemalloc.start()
    try:
        with pytest.raises(TemplateError) as caught:
            fill(text, {"x": [1]})
        assert tracemalloc.get_traced_memory()[1] < 100 << 20  # one of these once took 9.5 GB
    finally:
        tracemalloc.stop()
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 300
    assert time.process_time() - started < 20


def test_a_filled_in_template_has_a_limit():
    with pytest.raises(TemplateError, match="at most 10,000,000 characters"):
        fill("{% for n in range(9000) %}{{ x }}{% endfor %}", {"x": "y" * 10_000})


def test_a_template_that_is_nested_too_deeply_is_said_to_be():
    with pytest.raises(TemplateError, match="the template is nested too deeply"):
        fill("{{ " + "(" * 3000 + "1" + ")" * 3000 + " }}", {})
