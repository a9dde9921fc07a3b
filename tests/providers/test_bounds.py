"""What a server counts: which token counts can be true of a request, whatever they are."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairtrial.core.answer import FILTERED, Answer, Failure, Request, Usage
from fairtrial.core.experiment import TargetSpec
from fairtrial.core.file import File
from fairtrial.providers.bounds import Most, believed, can_be_true, most_in_body, most_tokens

FIELDS = Usage.__struct_fields__
MOST = Most(1000, 100)
anything = st.one_of(
    st.integers(-(2**70), 2**70), st.integers(-1, 1001), st.floats(), st.booleans(), st.text(), st.none()
)
usages = st.builds(Usage, **dict.fromkeys(FIELDS, anything))


@st.composite
def possible(draw):
    prompt, completion = draw(st.integers(1, MOST.prompt)), draw(st.integers(1, MOST.completion))
    read = draw(st.integers(0, prompt))
    written = draw(st.integers(0, prompt - read))
    return Usage(
        prompt=prompt, completion=completion, cache_read=read, cache_write=written,
        cache_write_1h=draw(st.integers(0, written)), reasoning=draw(st.integers(0, completion)),
    )  # fmt: skip


@given(usages, st.sampled_from([None, MOST, Most(1000, None)]), st.booleans())
def test_whatever_is_believed_is_possible(usage, most, wrote):
    if not can_be_true(usage, most, wrote=wrote):
        return
    assert all(type(getattr(usage, name)) is int and getattr(usage, name) >= 0 for name in FIELDS)
    assert usage.prompt > 0 and usage.cache_read + usage.cache_write <= usage.prompt
    assert usage.cache_write_1h <= usage.cache_write and usage.reasoning <= usage.completion
    assert usage.completion or not wrote
    assert most is None or usage.prompt <= most.prompt
    assert most is None or most.completion is None or usage.completion <= most.completion


@given(possible(), st.booleans())
def test_whatever_is_possible_is_believed(usage, wrote):
    for most in (None, MOST, Most(1000, None)):
        assert can_be_true(usage, most, wrote=wrote)
        answer = Answer(text="yes", usage=usage)
        assert believed(answer, most) is answer


@given(usages)
def test_results_stay_what_they_are_but_for_the_counts(usage):
    answer, failure = Answer(text="yes", usage=usage, model="m"), Failure(kind="server", message="no", usage=usage)
    for result in (answer, failure):
        found = believed(result, MOST)
        assert found is result or found.usage is None
    found = believed(failure, MOST)
    assert found is failure or found.maybe_billed  # what is unknown is not free


@pytest.mark.parametrize(
    ("result", "true"),
    [
        (Answer(text="yes", usage=Usage()), False),
        (Answer(text=" ", usage=Usage(prompt=3)), True),  # an empty answer
        (Answer(text="", reasoning="Hm.", usage=Usage(prompt=3)), False),  # thoughts are written, too
        (Answer(text="blocked", finish_reason=FILTERED, usage=Usage()), True),  # the filter spoke, not the model
        (Answer(text="blocked", finish_reason=FILTERED, usage=Usage(completion=3)), False),
        (Answer(text="x" * 9000, finish_reason=FILTERED, usage=Usage()), False),  # no filter says so much
        (Answer(text="no", reasoning="Hm.", finish_reason=FILTERED, usage=Usage()), False),
        (Answer(text="yes", usage=Usage(prompt=9, cache_read=9, completion=1)), True),  # all of it was cached
        (Failure(kind="server", message="", usage=Usage()), True),  # nothing was done
    ],
)
def test_special_cases(result, true):
    assert (believed(result, MOST).usage is not None) == true


def test_a_reply_without_a_limit_has_one():
    usage = Usage(prompt=9, completion=10**8)
    assert can_be_true(usage) and not can_be_true(usage, Most(10, None))  # a session of many calls; one call


def test_an_embedding_has_no_completion():
    assert believed(Answer(text="[0.5]", usage=Usage(prompt=3)), MOST, embeds=True).usage == Usage(prompt=3)


def test_what_a_request_can_contain():
    spec = TargetSpec(id="t", kind="openai_api", provider="openai", model="gpt-4o")
    request = Request(trial_id="t", case_id="c", input="é", system="s")
    assert most_tokens(spec, request, {}) == Most(3 + 64, None)
    assert most_tokens(spec, request, {"max_tokens": 5, "extra": {"n": 3}}) == Most(3 + 64 + len('{"n":3}'), 15)
    more = msgspec.structs.replace(request, files=(File(body=b""),), schema={})
    assert most_tokens(spec, more, {"max_tokens": 5}) == Most(3 + 64 + 5000 + 2 + 1000, 5)
    told = msgspec.structs.replace(spec, model="openai/gpt-oss-20b")
    assert most_tokens(told, request, {}).prompt == 3 + 64 + 128
    assert most_in_body(spec, request, b"12345", {"max_tokens": 7}) == Most(5 + 64 + 1000, 7)
