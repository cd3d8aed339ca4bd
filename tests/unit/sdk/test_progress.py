"""How far it is, in lines that come now and then."""

from __future__ import annotations

import pytest
from support.clocks import ManualClock

from resolute.transfer.progress import ProgressLines, count_attempt

GIB = 1 << 30


def test_a_line_comes_every_ten_seconds_and_tells_how_long_it_takes() -> None:
    clock, said = ManualClock(), list[str]()
    progress = ProgressLines("checkpoint a is uploaded", total=5 * GIB, say=said.append, clock=clock)
    for _ in range(25):
        clock.advance(1.0)
        progress.advance(GIB // 8)
    assert said == [
        "checkpoint a is uploaded: 1.2 GiB of 5.0 GiB (25%), 128.0 MiB/s, about 30 s left",
        "checkpoint a is uploaded: 2.5 GiB of 5.0 GiB (50%), 128.0 MiB/s, about 20 s left",
    ]


def test_what_is_soon_over_says_nothing() -> None:
    clock, said = ManualClock(), list[str]()
    progress = ProgressLines("it goes", total=100, say=said.append, clock=clock)
    clock.advance(9.9)
    progress.advance(100)
    assert said == []


def test_without_a_total_there_is_no_share() -> None:
    clock, said = ManualClock(), list[str]()
    progress = ProgressLines("it goes", total=0, say=said.append, clock=clock)
    clock.advance(10.0)
    progress.advance(5000)
    assert said == ["it goes: 4.9 KiB so far, 500 B/s"]


def test_an_attempt_that_fails_counts_for_nothing() -> None:
    clock, said = ManualClock(), list[str]()
    progress = ProgressLines("it goes", total=100, say=said.append, clock=clock)

    def send(*, breaks: bool) -> None:
        with count_attempt(progress) as count:
            count(50)
            if breaks:
                raise OSError("broken")

    with pytest.raises(OSError, match="broken"):
        send(breaks=True)
    clock.advance(10.0)
    send(breaks=False)
    assert said == ["it goes: 50 B of 100 B (50%), 5 B/s, about 10 s left"]
