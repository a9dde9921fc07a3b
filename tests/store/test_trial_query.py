"""Places of trials in little memory, and names that fit their columns."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from fairtrial.cli.tables import shortened
from fairtrial.core.place import Place
from fairtrial.store.trial_query import Places

NUMBER = st.integers(0, 2**40)


@pytest.mark.slow
@given(st.lists(st.tuples(NUMBER, NUMBER, NUMBER)), st.integers(-5, 5), st.integers(-5, 5))
def test_places_are_a_sequence_like_any_other(triples, first, last):
    places = Places()
    for triple in triples:
        places.add(*triple)
    expected = [Place(*triple) for triple in triples]
    assert list(places) == expected and len(places) == len(expected) and bool(places) == bool(expected)
    assert places[first:last] == expected[first:last]
    if expected:
        assert places[-1] == expected[-1] and expected[0] in places


@given(st.text(alphabet="ab问题🙂é"), st.integers(3, 40))
def test_a_shortened_name_fits(name, width):
    short = shortened(name, width)
    assert cell_len(short) <= width and (short == name) == (cell_len(name) <= width)
