"""Functions of users: what they take is read from whatever can be called."""

from dataclasses import dataclass

from fairtrial.core.calling import parameters_of


@dataclass(frozen=True)
class Counter:
    words: list

    def __call__(self, response, expected): ...


def test_an_object_that_can_be_called_tells_its_parameters_even_if_it_has_no_hash():
    assert [one.name for one in parameters_of(Counter(["a"]))] == ["response", "expected"]
