"""Many ranks' parts as one message."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolute.core.distributed import MalformedFrameError
from resolute.core.distributed.transport.bundle import Bundle, unbundle
from resolute.core.distributed.transport.payload import LARGE, view

# A frame as its filling and how often that is repeated: what Hypothesis shows of it stays short.
FRAMES = st.tuples(st.binary(min_size=1, max_size=1), st.integers(0, 20) | st.just(LARGE))


@given(st.dictionaries(st.integers(0, 9), st.lists(FRAMES, max_size=3), max_size=4), st.integers(0, 9))
def test_every_receiver_gets_the_parts_of_the_others(
    recipe: dict[int, list[tuple[bytes, int]]], receiver: int
) -> None:
    parts = {rank: [filling * times for filling, times in frames] for rank, frames in recipe.items()}

    got = unbundle(Bundle(parts).frames_for(receiver), receiver)

    plain = {rank: [bytes(view(frame)) for frame in frames] for rank, frames in got.items()}
    assert plain == {rank: frames for rank, frames in parts.items() if rank != receiver}


def test_small_frames_travel_together_and_large_ones_shared() -> None:
    large = b"x" * LARGE
    bundle = Bundle({rank: [b"small", b"too"] for rank in range(8)} | {8: [large]})

    frames = bundle.frames_for(0)

    assert len(frames) == 3
    assert frames[2] is large


def test_a_rank_does_not_get_its_own_large_frames_back() -> None:
    assert len(Bundle({0: [b"x" * LARGE], 1: [b"small"]}).frames_for(0)) == 2


@pytest.mark.parametrize(
    "frames",
    [
        [],
        [b"", b"left over"],
        [b"\0" * 8, b""],
        [b"\0" * 7, b""],
        [Bundle({1: [b"part"]}).frames_for(0)[0], b"pa"],
        [*Bundle({1: [b"part"]}).frames_for(0), b"one more"],
    ],
)
def test_a_result_that_does_not_fit_its_table_is_refused(frames: list[bytes]) -> None:
    with pytest.raises(MalformedFrameError, match="cannot be read"):
        unbundle(frames, 0)
