"""Who may join a group."""

import dataclasses
from typing import Any

import pytest

from resolute.core.distributed import MalformedFrameError
from resolute.core.distributed.group.handshake import Handshake, Hello
from resolute.core.distributed.group.membership import Membership

HELLO = Hello(member=1, size=3, job="7.1", place="pid 5 on node-a", nonce="n1")


@pytest.fixture
def membership() -> Membership:
    return Membership([4, 5, 6])


@pytest.fixture
def roll(membership: Membership) -> Handshake:
    return Handshake(membership, "7.1")


def test_members_are_missing_until_they_come(roll: Handshake) -> None:
    roll.enter(HELLO)

    assert roll.missing == [0, 2]


def test_a_member_of_this_job_is_admitted(roll: Handshake) -> None:
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
def test_strangers_are_told_why_they_cannot_join(
    roll: Handshake, change: dict[str, Any], reason: str
) -> None:
    assert reason in str(roll.refusal(dataclasses.replace(HELLO, **change)))


def test_a_second_process_of_one_rank_is_refused(roll: Handshake) -> None:
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


def test_members_are_named_by_their_rank_in_the_job(membership: Membership) -> None:
    membership.locate(1, "pid 5 on node-a")

    assert membership.describe([1]) == "rank 5 (pid 5 on node-a)"
    assert membership.describe([2, 0]) == "ranks 4, 6"
    assert membership.job_ranks([2, 0]) == (4, 6)


def test_ranks_that_become_known_later_keep_the_number_of_members() -> None:
    membership = Membership([-1, -1])
    membership.assign([2, 3])

    assert membership.describe([1]) == "rank 3"
    with pytest.raises(ValueError, match="1 ranks for 2 members"):
        membership.assign([1])
