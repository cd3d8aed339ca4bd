"""Messages, their bytes, and what proves their origin."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolute.core.distributed import CollectiveAuthError, CollectiveError, MalformedFrameError
from resolute.core.distributed.transport.messages import Codec, Kind, Message, Op, pack_fields, unpack_fields
from resolute.core.distributed.transport.payload import Encoding, Frame, view

PLAIN = Codec(None)
SIGNING = Codec(b"secret")
MESSAGE = Message(
    Kind.CONTRIBUTE, 3, b"12345678", 17, Op.ALLGATHER, Encoding.PICKLE, frames=(b"stream", b"buffer")
)


@pytest.mark.parametrize("codec", [PLAIN, SIGNING])
def test_a_message_survives_the_way(codec: Codec) -> None:
    assert codec.decode(codec.encode(MESSAGE)) == MESSAGE


def flip(frames: list[Frame], index: int, byte: int) -> list[Frame]:
    changed = bytearray(view(frames[index]))
    changed[byte] ^= 1
    return [*frames[:index], bytes(changed), *frames[index + 1 :]]


@given(st.integers(0, 2), st.data())
def test_whatever_bit_is_changed_the_signature_tells(frame: int, data: st.DataObject) -> None:
    frames = SIGNING.encode(MESSAGE)
    byte = data.draw(st.integers(0, len(frames[frame]) - 1))

    with pytest.raises(CollectiveError):
        SIGNING.decode(flip(frames, frame, byte))


def test_payload_cannot_be_cut_differently() -> None:
    header, *_ = SIGNING.encode(MESSAGE)

    with pytest.raises(CollectiveAuthError, match="payload of rank 3"):
        SIGNING.decode([header, b"streambuf", b"fer"])


def test_who_passes_a_message_on_need_not_read_its_payload() -> None:
    header, *_ = SIGNING.encode(MESSAGE)

    assert SIGNING.decode([header, b"something else"], with_payload=False).rank == 3


def test_unsigned_messages_are_refused_where_there_is_a_key() -> None:
    with pytest.raises(CollectiveAuthError, match="unsigned message arrived: set RESOLUTE_COLLECTIVE_KEY"):
        SIGNING.decode(PLAIN.encode(MESSAGE))


def test_signed_messages_are_refused_where_there_is_no_key() -> None:
    with pytest.raises(CollectiveAuthError, match="RESOLUTE_COLLECTIVE_KEY is not set here"):
        PLAIN.decode(SIGNING.encode(MESSAGE))


def test_messages_signed_with_another_key_are_refused() -> None:
    with pytest.raises(CollectiveAuthError, match="another RESOLUTE_COLLECTIVE_KEY"):
        SIGNING.decode(Codec(b"other").encode(MESSAGE))


@given(st.lists(st.binary(max_size=120), max_size=3), st.sampled_from([PLAIN, SIGNING]))
def test_garbage_is_no_message(frames: list[bytes], codec: Codec) -> None:
    with pytest.raises((MalformedFrameError, CollectiveAuthError)):
        codec.decode(frames)


def test_a_message_that_lost_its_payload_is_refused() -> None:
    with pytest.raises(MalformedFrameError, match="lost its payload"):
        PLAIN.decode(PLAIN.encode(MESSAGE)[:1])


def test_fields_travel_without_pickle() -> None:
    message = Message(Kind.WAIT, 0, frames=pack_fields({"missing": [1, 2]}))

    assert unpack_fields(message) == {"missing": [1, 2]}


@pytest.mark.parametrize("frames", [(), (b"\xff",), (b"[]",)])
def test_a_message_without_its_fields_is_refused(frames: tuple[bytes, ...]) -> None:
    with pytest.raises(MalformedFrameError, match="WAIT message without its fields"):
        unpack_fields(Message(Kind.WAIT, 0, frames=frames))
