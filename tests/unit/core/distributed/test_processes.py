"""Real processes: what they can do together, and what happens when some of them do not."""

import re
from typing import Any, Protocol

import pytest

SOON = 5.0


class Processes(Protocol):
    """The fixture, as far as it is used here."""

    def __call__(self, scenario: str, size: int, **how: Any) -> list[Any]: ...
    def start(self, scenario: str, size: int, **how: Any) -> list[Any]: ...
    def report(self, rank: Any) -> Any: ...


@pytest.mark.parametrize(("size", "local_size"), [(1, 1), (2, 2), (2, 1), (4, 4), (4, 2)])
def test_every_collective_reaches_its_ranks(processes: Processes, size: int, local_size: int) -> None:
    everybody = list(range(size))

    for rank, report in enumerate(processes("collectives", size, local_size=local_size)):
        first = rank - rank % local_size
        machine = everybody[first : first + local_size]
        assert report == {
            "gather": everybody if rank == 0 else None,
            "allgather": everybody,
            "broadcast": 0,
            "gather_local": machine if rank == first else None,
            "allgather_local": machine,
            "broadcast_local": first,
        }


def test_a_signed_job_works_like_any_other(processes: Processes) -> None:
    reports = processes("collectives", 4, local_size=2, RESOLUTE_COLLECTIVE_KEY="secret")

    assert [report["allgather"] for report in reports] == [[0, 1, 2, 3]] * 4


@pytest.mark.parametrize("key", ["", "secret"])
def test_64_megabytes_pass_between_two_ranks(processes: Processes, key: str) -> None:
    reports = processes("large", 2, RESOLUTE_COLLECTIVE_KEY=key)

    assert [report["gathered"] for report in reports] == [[0.0, 8388608.0]] * 2
    assert [report["given"] for report in reports] == [0.0, 0.0]


@pytest.mark.parametrize("victim", [0, 1, 3])
@pytest.mark.parametrize("scenario", ["die", "die_with_children"])
def test_a_killed_rank_is_named_to_the_others_at_once(
    processes: Processes, scenario: str, victim: int
) -> None:
    reports = processes(scenario, 4, local_size=2, VICTIM=str(victim))

    assert reports.pop(victim) is None
    for report in reports:
        assert report["error"] == "PeerLostError"
        assert report["ranks"] == [victim]
        assert re.match(rf"rank {victim}\b", report["text"])
        assert report["seconds"] < SOON


@pytest.mark.parametrize("victim", [2, 3])
def test_a_rank_killed_in_a_collective_of_its_machine_is_named_there(
    processes: Processes, victim: int
) -> None:
    reports = processes("die_local", 4, local_size=2, VICTIM=str(victim))

    assert reports[:2] == [[[0, 1], [0, 1]]] * 2
    (other,) = (report for rank, report in enumerate(reports) if rank in {2, 3} - {victim})
    assert other["error"] == "PeerLostError"
    assert other["ranks"] == [victim]


def test_workers_hear_of_a_death_while_the_chief_is_busy(processes: Processes) -> None:
    chief, victim, worker = processes.start("die_while_the_chief_is_busy", 3, VICTIM="1")

    assert processes.report(victim) is None
    assert processes.report(worker)["ranks"] == [1]
    assert processes.report(chief)["ranks"] == [1]


@pytest.mark.parametrize("victim", [0, 2])
def test_a_rank_that_ends_with_an_error_is_named(processes: Processes, victim: int) -> None:
    reports = processes("crash", 3, VICTIM=str(victim))

    assert reports.pop(victim) is None
    for report in reports:
        assert report["error"] == "PeerClosedError"
        assert report["ranks"] == [victim]
        assert report["seconds"] < SOON


def test_a_stopped_rank_is_named_when_the_time_is_over(processes: Processes) -> None:
    ranks = processes.start("freeze", 3, VICTIM="1", RESOLUTE_COLLECTIVE_TIMEOUT="1")

    for rank in (ranks[0], ranks[2]):
        report = processes.report(rank)
        assert report["error"] == "CollectiveTimeoutError"
        assert report["ranks"] == [1]


def test_ranks_that_never_come_are_named(processes: Processes) -> None:
    reports = processes("start", 4, local_size=2, only=2, RESOLUTE_COLLECTIVE_START_TIMEOUT="1")

    for report in reports:
        assert report["error"] == "CollectiveTimeoutError"
        assert report["ranks"] == [2, 3]
        assert "ranks 2, 3 of 4 did not join within" in report["text"]


def test_a_rank_that_dies_before_the_start_is_named(processes: Processes) -> None:
    reports = processes("start_and_die", 3, only=2, VICTIM="1")

    assert reports[1] is None
    assert reports[0]["error"] == "PeerLostError"
    assert reports[0]["ranks"] == [1]


def test_the_last_broadcasts_of_a_chief_that_ended_still_arrive(processes: Processes) -> None:
    chief, worker = processes.start("farewell", 2)
    assert processes.report(chief) == "sent"

    size, last, after = processes.report(worker)

    assert (size, last) == (1_000_000, "last")
    assert after["error"] == "PeerClosedError"
    assert after["ranks"] == [0]


def test_forked_children_are_refused_and_do_no_harm(processes: Processes) -> None:
    assert processes("fork", 2) == [[0, 1], [0, 1]]


def test_an_interrupted_rank_says_so_and_lets_the_others_know(processes: Processes) -> None:
    chief, worker = processes.start("interrupted", 2)

    report = processes.report(chief)
    assert report["error"] == "ContextClosedError"
    assert "interrupted by KeyboardInterrupt" in report["text"]
    assert processes.report(worker)["error"] == "PeerClosedError"
