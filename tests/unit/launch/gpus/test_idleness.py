"""Which GPUs are idle: 20 runs that are, and 20 that are not."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from resolute_launch.gpus.idleness import Idleness, UtilizationPolicy

HOUR = 3600
POLICY = UtilizationPolicy(below=0.05, seconds=HOUR)


def told(
    shares: Iterable[float | None], *, pause: float = 2.0, policy: UtilizationPolicy = POLICY
) -> list[str]:
    """What is reported of one GPU that works for these shares of the time, reading by reading."""
    reports: list[str] = []
    idleness = Idleness(policy, report=reports.append)
    for share in shares:
        measured = 0.0 if share is None else pause
        idleness.add(pause, measured=measured, busy=measured * (share or 0.0))
    return reports


def for_seconds(seconds: float, share: float | None) -> list[float | None]:
    return [share] * int(seconds / 2)


IDLE = {
    **{
        f"works for {share} of the time": for_seconds(1.1 * HOUR, share)
        for share in (0.0, 0.01, 0.02, 0.03, 0.045)
    },
    **{
        f"worked for {hours} hours and then stopped": for_seconds(hours * HOUR, 1.0)
        + for_seconds(1.05 * HOUR, 0)
        for hours in (0.1, 0.5, 1, 2, 5)
    },
    **{
        f"works for a moment of {seconds} s in an hour": [
            share
            for _ in range(2)
            for share in [*for_seconds(HOUR / 2, 0), *for_seconds(seconds, 1.0), *for_seconds(HOUR / 2, 0)]
        ]
        for seconds in (2, 10, 60, 120, 160)
    },
    **{
        f"its driver tells nothing for {minutes} minutes": for_seconds(minutes * 60, None)
        + for_seconds(1.05 * HOUR, 0)
        for minutes in (1, 5, 20, 40, 90)
    },
}
BUSY = {
    **{
        f"works for {share} of the time": for_seconds(3 * HOUR, share)
        for share in (0.06, 0.1, 0.25, 0.5, 1.0)
    },
    **{
        f"validates on the processor for {minutes} minutes": [
            share for _ in range(3) for share in [*for_seconds(HOUR, 1.0), *for_seconds(minutes * 60, 0)]
        ]
        for minutes in (1, 10, 30, 50, 56)
    },
    **{
        f"works for {seconds} s in each quarter of an hour": [
            share for _ in range(12) for share in [*for_seconds(900 - seconds, 0), *for_seconds(seconds, 1.0)]
        ]
        for seconds in (60, 90, 120, 300, 600)
    },
    **{f"has run for {minutes} minutes only": for_seconds(minutes * 60, 0) for minutes in (1, 10, 30, 55)},
    "its driver tells nothing": for_seconds(3 * HOUR, None),
}


def test_there_are_twenty_of_each() -> None:
    assert (len(IDLE), len(BUSY)) == (20, 20)


@pytest.mark.parametrize("case", IDLE)
def test_idle_gpus_are_found(case: str) -> None:
    reports = told(IDLE[case])
    assert reports
    assert "% of the last 60 minutes, below the limit of 5 %" in reports[0]


@pytest.mark.parametrize("case", BUSY)
def test_busy_gpus_are_left_alone(case: str) -> None:
    assert told(BUSY[case]) == []


def test_gpus_that_work_again_are_idle_no_more() -> None:
    first, last = told([*for_seconds(HOUR * 1.1, 0), *for_seconds(HOUR, 0.5)])
    assert first == "its GPUs worked for 0.0 % of the last 60 minutes, below the limit of 5 %"
    assert last == ""


def test_what_was_before_a_pause_of_the_machine_counts_for_nothing() -> None:
    reports: list[str] = []
    idleness = Idleness(POLICY, report=reports.append)
    for _ in range(3):
        for _ in range(1700):
            idleness.add(2, measured=2, busy=0)
        idleness.add(3000, measured=3000, busy=0)
    assert reports == []


def test_the_section_of_a_config_is_read() -> None:
    section = {"gpu_below": 5, "over": 3600, "then": "pause"}
    assert UtilizationPolicy.of({"utilization_policy": section}) == POLICY
    assert UtilizationPolicy.of({"utilization_policy": None}) is None
