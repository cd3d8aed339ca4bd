"""How long nothing of a run has moved."""

from __future__ import annotations

from support.clocks import ManualClock

from resolute_launch.hangs.stall import LEAST_SECONDS, Stall


def stall(after: float | None = None, *, interval: float = 5.0) -> tuple[Stall, ManualClock]:
    clock = ManualClock()
    return Stall(after, interval=interval, clock=clock), clock


def test_time_without_a_sign_of_life_adds_up_until_there_is_one() -> None:
    measured, clock = stall(20.0)
    for expected in (5.0, 10.0, 15.0):
        clock.advance(5)
        assert measured.look(moved=False) == expected
    clock.advance(5)
    assert measured.look(moved=True) == 0.0
    clock.advance(5)
    assert measured.look(moved=False) == 5.0
    assert measured.limit == 20.0


def test_time_for_which_the_machine_stood_still_does_not_count() -> None:
    measured, clock = stall(20.0)
    clock.advance(5)
    measured.look(moved=False)
    clock.advance(3600)
    assert measured.look(moved=False) == 5.0
    clock.advance(5)
    assert measured.look(moved=False) == 10.0


def test_time_that_the_watch_itself_took_counts() -> None:
    measured, clock = stall(60.0)
    clock.advance(5)
    measured.look(moved=False)
    clock.advance(30)
    measured.skip()
    assert measured.seconds == 35.0
    clock.advance(5)
    assert measured.look(moved=False) == 40.0


def test_the_limit_follows_the_pauses_of_the_run_itself() -> None:
    measured, clock = stall()
    assert measured.limit == LEAST_SECONDS
    for pause in (5, 5, 300):
        for _ in range(pause // 5 - 1):
            clock.advance(5)
            measured.look(moved=False)
        clock.advance(5)
        measured.look(moved=True)
    assert measured.limit == 3000.0


def test_one_long_pause_of_many_does_not_count() -> None:
    measured, clock = stall()
    for number in range(1000):
        for _ in range(119 if number == 500 else 0):
            clock.advance(5)
            measured.look(moved=False)
        clock.advance(5)
        measured.look(moved=True)
    assert measured.limit == LEAST_SECONDS
