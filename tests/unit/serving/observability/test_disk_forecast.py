"""Disks that will be full soon are named in time, and those on which files come and go are not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from support.clocks import ManualClock

from resolute_serving.observability.disk_forecast import DiskForecast

GIB = 1 << 30


def forecast(
    folder: Path, free: Callable[[int], float], *, minutes: int = 60, pause: float = 60.0
) -> list[str]:
    """What is said of a disk after some minutes, of which each has some GiB free."""
    clock, minute = ManualClock(), 0
    disks = DiskForecast(
        [folder / "a", folder / "b"], clock=clock, free_bytes=lambda _: int(free(minute) * GIB)
    )
    problems: list[str] = []
    for minute in range(minutes):  # noqa: B007 - what is free depends on it
        problems = disks.problems()
        assert disks.problems() == problems, "asked again within the minute"
        clock.advance(pause)
    return problems


def test_a_disk_that_fills_is_named_hours_before(tmp_path: Path) -> None:
    (problem,) = forecast(tmp_path, lambda minute: 100 - minute / 6)
    assert problem.startswith(f"the disk of {tmp_path} will be full in about 9.0 hours at the pace")
    assert "(96.8 GB free): free some space there" in problem


def test_it_takes_an_hour_to_know_a_pace(tmp_path: Path) -> None:
    assert forecast(tmp_path, lambda minute: 10 - minute / 6, minutes=59) == []


def test_a_slow_pace_is_no_problem(tmp_path: Path) -> None:
    assert forecast(tmp_path, lambda minute: 1000 - minute / 6) == []


def test_files_that_come_and_go_are_none(tmp_path: Path) -> None:
    assert forecast(tmp_path, lambda minute: 100 - minute % 7 * 10) == []
    assert forecast(tmp_path, lambda minute: 10 + minute) == []


def test_samples_that_are_far_apart_count_for_nothing(tmp_path: Path) -> None:
    assert forecast(tmp_path, lambda minute: 100 - minute / 6, minutes=200, pause=600.0) == []
