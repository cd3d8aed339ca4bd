"""Who may join a star."""

import dataclasses
from typing import Any

import pytest

from resolute.core.distributed import MalformedFrameError
from resolute.core.distributed.rollcall import Hello, RollCall
from resolute.core.distributed.roster import Roster

HELLO = Hello(member=1, size=3, job="7.1", place="pid 5 on node-a", nonce="n1")


@pytest.fixture
def roster() -> Roster:
    return Roster([4, 5, 6])


@pytest.fixture
def roll(roster: Roster) -> RollCall:
    return RollCall(roster, "7.1")


def test_members_are_missing_until_they_come(roll: RollCall) -> None:
    roll.enter(HELLO)

    assert roll.missing == [0, 2]


def test_a_member_of_this_job_is_admitted(roll: RollCall) -> None:
    assert roll.refusal(HELLO) is None


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"job": "8.1"}, "it belongs to run '8.1' and this is run '7.1'"),
        ({"size": 2}, "it expects 2 processes and this job has 3"),
        ({"member": 3}, "it expects 3 processes"),
        ({"member": -1}, "it expects 3 processes"),
    ],
)
def test_strangers_are_told_why_they_cannot_join(roll: RollCall, change: dict[str, Any], reason: str) -> None:
    assert reason in str(roll.refusal(dataclasses.replace(HELLO, **change)))


def test_a_second_process_of_one_rank_is_refused(roll: RollCall) -> None:
    roll.enter(HELLO)

    assert "rank 5 (pid 5 on node-a) is here already" in str(
        roll.refusal(dataclasses.replace(HELLO, nonce="n2", place="pid 6 on node-b"))
    )


def test_a_hello_travels_as_plain_fields() -> None:
    assert Hello.from_fields(HELLO.to_fields()) == HELLO


@pytest.mark.parametrize("fields", [{}, {**HELLO.to_fields(), "member": "first"}, {"member": None}])
def test_an_incomplete_hello_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(MalformedFrameError, match="HELLO"):
        Hello.from_fields(fields)


def test_members_are_named_by_their_rank_in_the_job(roster: Roster) -> None:
    roster.locate(1, "pid 5 on node-a")

    assert roster.describe([1]) == "rank 5 (pid 5 on node-a)"
    assert roster.describe([2, 0]) == "ranks 4, 6"
    assert roster.job_ranks([2, 0]) == (4, 6)


def test_ranks_that_become_known_later_keep_the_number_of_members() -> None:
    roster = Roster([-1, -1])
    roster.assign([2, 3])

    assert roster.describe([1]) == "rank 3"
    with pytest.raises(ValueError, match="1 ranks for 2 members"):
        roster.assign([1])
