"""Frames of AWS's event stream are decoded as by botocore, and damaged ones are refused."""

import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairtrial.core.answer import Failure
from fairtrial.core.experiment import TargetSpec
from fairtrial.core.listening import NOBODY
from fairtrial.providers.aws_frames import DamagedError, Frames
from fairtrial.providers.streamed import Collected
from fairtrial.targets.bedrock_api import BedrockApi, BedrockOptions
from tests.servers.vendors import frame

_NUMBERS = {2: ">b", 3: ">h", 4: ">i", 5: ">q", 8: ">q"}


def integers(bits):
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


VALUES = st.one_of(
    st.tuples(st.sampled_from([0, 1]), st.none()),
    *(st.tuples(st.just(kind), integers(8 * struct.calcsize(code))) for kind, code in _NUMBERS.items()),
    st.tuples(st.just(6), st.binary(max_size=300)),
    st.tuples(st.just(7), st.text(max_size=80)),
    st.tuples(st.just(9), st.binary(min_size=16, max_size=16)),
)
FRAMES = st.tuples(st.dictionaries(st.text(max_size=40), VALUES, max_size=6), st.binary(max_size=300))


def packed(kind, value):
    """Encode the value of a header, after its type."""
    if kind in _NUMBERS:
        return struct.pack(_NUMBERS[kind], value)
    if kind in (6, 7):
        body = value.encode() if kind == 7 else value
        return struct.pack(">H", len(body)) + body
    return value or b""


def header(name, kind, value):
    return bytes([len(name.encode())]) + name.encode() + bytes([kind]) + packed(kind, value)


def sealed(headers, payload, *, length=None, size=None):
    """Put a frame together, with checksums that are right even if the lengths are not."""
    length = 16 + len(headers) + len(payload) if length is None else length
    prelude = struct.pack(">II", length, len(headers) if size is None else size)
    message = prelude + struct.pack(">I", zlib.crc32(prelude)) + headers + payload
    return message + struct.pack(">I", zlib.crc32(message))


def encoded(frames):
    return b"".join(
        sealed(b"".join(header(name, *value) for name, value in headers.items()), payload)
        for headers, payload in frames
    )


def chunks(data, cuts):
    ends = [*sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]


def decoded(*parts):
    """Return the frames of a stream that arrives in these parts, and whether it was refused in the end."""
    frames, found = Frames(), []
    try:
        for part in parts:
            for one in frames.feed(part):
                found.append((dict(one.headers), one.payload))
    except DamagedError:
        return found, True
    return found, False


def reference(*parts):
    """Return the same of botocore."""
    eventstream = pytest.importorskip("botocore.eventstream")
    buffer, found = eventstream.EventStreamBuffer(), []
    try:
        for part in parts:
            buffer.add_data(part)
            for message in buffer:
                found.append((message.headers, message.payload))
    except eventstream.ParserError:
        return found, True
    return found, False


@pytest.mark.slow
@given(frames=st.lists(FRAMES, max_size=4), cuts=st.lists(st.integers(0, 5000), max_size=8))
def test_they_equal_botocores_however_they_are_cut(frames, cuts):
    data = encoded(frames)
    found, refused = decoded(*chunks(data, cuts))
    assert not refused and (found, refused) == reference(data)
    assert [payload for _, payload in found] == [payload for _, payload in frames]


@pytest.mark.slow
@given(
    frames=st.lists(FRAMES, min_size=1, max_size=3),
    place=st.integers(0, 5000),
    flip=st.integers(1, 255),
    cut=st.integers(0, 5000),
)
def test_a_changed_byte_is_refused_where_botocore_refuses_it(frames, place, flip, cut):
    data = bytearray(encoded(frames))
    data[place % len(data)] ^= flip
    parts = chunks(bytes(data), [cut])
    assert decoded(*parts) == reference(*parts)


def test_every_changed_byte_is_noticed():
    whole = frame("contentBlockDelta", {"delta": {"text": "ok"}})
    for place in range(len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= 1
        assert decoded(bytes(damaged) + whole) == ([], True), place


def test_frames_before_a_damaged_one_are_read():
    whole = frame("messageStart", {"role": "assistant"})
    found, refused = decoded(whole + whole[:-1] + b"\0")
    assert len(found) == 1 and refused


def test_one_byte_at_a_time():
    data = frame("messageStart", {"role": "assistant"}) + frame("messageStop", {"stopReason": "end_turn"})
    found, refused = decoded(*(data[at : at + 1] for at in range(len(data))))
    assert [headers[":event-type"] for headers, _ in found] == ["messageStart", "messageStop"] and not refused


def test_a_frame_that_does_not_end_is_not_read():
    assert decoded(frame("messageStop", {"stopReason": "end_turn"})[:-1]) == ([], False)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (sealed(header("a", 7, "x") + header("a", 7, "x"), b""), "twice"),
        (sealed(b"\x01a\x0a", b""), "unknown type 10"),
        (sealed(b"\x01a\x07\x00\x09x", b""), "does not end"),
        (sealed(b"\x05a", b""), "does not end"),
        (sealed(b"\x01a", b""), "cannot be read"),
        (sealed(b"\x01a\x04\x00", b""), "cannot be read"),
        (sealed(b"\x01\xff\x00", b""), "cannot be read"),
        (sealed(b"\x01a\x07\x00\x01\xff", b""), "cannot be read"),
        (sealed(b"", b"", length=0), "a frame of 0 bytes"),
        (sealed(b"", b"", length=2**31), "a frame of 2147483648 bytes"),
        (sealed(b"", b"x" * 8, size=9), "a frame of 24 bytes with headers of 9"),
        (sealed(b"", b"", size=2**17 + 1, length=2**18), "headers of 131073 bytes"),
    ],
)
def test_what_is_no_frame_is_refused_with_a_reason(body, reason):
    with pytest.raises(DamagedError, match=reason):
        list(Frames().feed(body))


def test_a_large_frame_in_small_pieces_is_joined_once():
    body = sealed(header(":event-type", 7, "x"), b"x" * 2**23)
    found, refused = decoded(*(body[at : at + 2**12] for at in range(0, len(body), 2**12)))
    assert not refused and len(found[0][1]) == 2**23


class Response:
    """A reply whose body arrives in these parts."""

    def __init__(self, *parts):
        self.headers, self.content, self.parts = {}, self, parts

    async def iter_any(self):
        for part in self.parts:
            yield part


@pytest.mark.parametrize("body", [sealed(b"\x01a\x0a", b""), frame("messageStop", {})[:-1] + b"\0"])
async def test_a_damaged_stream_is_a_failure_that_is_tried_again(body, tmp_path):
    spec = TargetSpec(id="b", kind="bedrock_api", provider="bedrock", model="m", base_url="http://127.0.0.1:9")
    target = BedrockApi(spec, BedrockOptions(), tmp_path)
    said = frame("contentBlockDelta", {"delta": {"text": "ok"}})
    answer = await target.read_stream(Response(said, body), Collected(NOBODY, 0.0))
    assert isinstance(answer, Failure) and answer.retryable, answer
