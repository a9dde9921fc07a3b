"""When two calls are the same."""

import pytest

from fairtrial.agents.doubles.matching import contains, key_of, with_places, without_places

SCHEMA = {
    "properties": {
        "pieces": {"type": "integer", "default": 1},
        "filter": {"type": "object", "properties": {"page": {"default": 1}}},
    }
}


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ({"a": 1, "b": [1.0, 2]}, {"b": [1, 2.0], "a": 1.0}, True),
        ({"a": 1}, {"a": "1"}, False),
        ({"a": 1}, {"a": True}, False),
        ({"a": [1, 2]}, {"a": [2, 1]}, False),
        ({}, {"pieces": 1}, True),
        ({"filter": {}}, {"filter": {"page": 1.0}}, True),
        ({}, {"filter": {"page": 1}}, False),
        (None, {}, True),
        ({"a": None}, {}, False),
    ],
)
def test_arguments(one, other, same):
    assert (key_of("tool", "t", one, SCHEMA) == key_of("tool", "t", other, SCHEMA)) is same


@pytest.mark.parametrize(
    ("ignore", "one", "other", "same"),
    [
        (["now"], {"a": 1, "now": 5}, {"a": 1}, True),
        (["/now"], {"a": 1, "now": 5}, {"a": 1, "now": 6}, True),
        (["/f/page"], {"f": {"page": 1, "q": "x"}}, {"f": {"page": 2, "q": "x"}}, True),
        (["/f/page"], {"f": {"page": 1, "q": "x"}}, {"f": {"page": 1, "q": "y"}}, False),
        (["/list/0"], {"list": [1, 2]}, {"list": [3, 2]}, True),
        (["/a~1b"], {"a/b": 1}, {"a/b": 2}, True),
        (["page"], {"f": {"page": 1}}, {"f": {"page": 2}}, False),
    ],
)
def test_what_is_ignored(ignore, one, other, same):
    assert (key_of("tool", "t", one, None, ignore) == key_of("tool", "t", other, None, ignore)) is same


def test_names_and_kinds_tell_calls_apart():
    keys = {key_of(kind, name, {}) for kind in ("tool", "prompt") for name in ("a", "b")}
    assert len(keys) == 4


def test_paths_of_workspaces():
    value = {"path": "/tmp/x/place/a", "list": ["in /tmp/x/place", 3]}
    plain = without_places(value, ["/tmp/x/place", ""])
    assert plain == {"path": "{{workspace}}/a", "list": ["in {{workspace}}", 3]}
    assert with_places(plain, "/y") == {"path": "/y/a", "list": ["in /y", 3]}
    assert without_places(value, []) == with_places(value, "") == value


def test_answers_of_mocks():
    assert contains({"a": 1, "b": {"c": 2, "d": 3}}, {"b": {"c": 2.0}})
    assert (
        contains({"a": 1}, {})
        and not contains({}, {"a": None})
        and not contains({"a": [1]}, {"a": []})
        and not contains({"a": True}, {"a": 1})
    )
