"""The collectives of a group, without sockets and with a clock that is only a number."""

import logging
import random
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolute.core.distributed import errors
from resolute.core.distributed.group.collectives import (
    Cause,
    CollectiveResult,
    PendingCollectives,
    Termination,
)
from resolute.core.distributed.group.membership import Membership
from resolute.core.distributed.transport.bundle import unbundle
from resolute.core.distributed.transport.messages import Op
from resolute.core.distributed.transport.payload import view


def collectives(size: int = 3, timeout: float | None = None) -> PendingCollectives:
    return PendingCollectives(Membership(range(size)), timeout=timeout)


def contribute(
    table: PendingCollectives, member: int, serial: int, op: Op, *, now: float = 0.0
) -> list[CollectiveResult]:
    return table.contribute(member, serial=serial, op=op, part=[part(member, serial)], now=now)


def part(member: int, serial: int) -> bytes:
    return f"{member}.{serial}".encode()


def received(delivery: CollectiveResult) -> dict[int, bytes]:
    if not delivery.frames:
        return {}
    parts = unbundle(delivery.frames, delivery.member)
    return {rank: bytes(view(frames[0])) for rank, frames in parts.items()}


def termination(table: PendingCollectives) -> Termination:
    assert table.termination is not None
    return table.termination


def run(
    table: PendingCollectives, op: Op, members: Iterable[int] = (0, 1, 2), serial: int = 1
) -> list[CollectiveResult]:
    return [delivery for member in members for delivery in contribute(table, member, serial, op)]


def test_an_allgather_gives_everybody_the_parts_of_the_others() -> None:
    results = run(collectives(), Op.ALLGATHER, (2, 0, 1))

    assert {delivery.member: received(delivery) for delivery in results} == {
        0: {1: b"1.1", 2: b"2.1"},
        1: {0: b"0.1", 2: b"2.1"},
        2: {0: b"0.1", 1: b"1.1"},
    }


def test_a_gather_gives_the_centre_the_parts_and_lets_the_others_go() -> None:
    results = run(collectives(), Op.GATHER)

    assert {delivery.member: received(delivery) for delivery in results} == {
        0: {1: b"1.1", 2: b"2.1"},
        1: {},
        2: {},
    }


def test_nothing_is_delivered_before_the_last_has_come() -> None:
    assert run(collectives(), Op.ALLGATHER, (2, 0)) == []


def test_a_broadcast_goes_out_when_the_centre_comes() -> None:
    table = collectives()

    assert contribute(table, 2, 1, Op.BROADCAST) == []
    results = contribute(table, 0, 1, Op.BROADCAST)
    assert contribute(table, 1, 1, Op.BROADCAST) == []

    assert {delivery.member: received(delivery) for delivery in results} == {
        1: {0: b"0.1"},
        2: {0: b"0.1"},
    }


def test_the_centre_may_broadcast_ahead_of_the_others() -> None:
    table = collectives(2)

    first = contribute(table, 0, 1, Op.BROADCAST)
    second = contribute(table, 0, 2, Op.BROADCAST)

    assert [delivery.serial for delivery in (*first, *second)] == [1, 2]
    assert table.undelivered == {1}
    contribute(table, 1, 1, Op.BROADCAST)
    contribute(table, 1, 2, Op.BROADCAST)
    assert table.undelivered == set()


@pytest.mark.parametrize("serial", [0, 1, 3])
def test_a_serial_out_of_order_ends_the_star_with_the_rank_at_fault(serial: int) -> None:
    table = collectives()
    run(table, Op.ALLGATHER)

    contribute(table, 2, serial, Op.ALLGATHER)

    assert termination(table).ranks == (2,)
    with pytest.raises(
        errors.CollectiveOrderError,
        match=rf"out of order: rank 2 sent number {serial} \(allgather\(\)\) where number 2 was due",
    ):
        raise termination(table).error()


def test_ranks_that_call_different_things_are_both_named() -> None:
    table = collectives()
    contribute(table, 1, 1, Op.GATHER)

    contribute(table, 2, 1, Op.BROADCAST)

    assert termination(table).cause is Cause.ORDER
    assert "rank 1 called gather() and rank 2 called broadcast()" in termination(table).text


def test_a_lost_rank_ends_the_star_at_once() -> None:
    table = collectives()
    contribute(table, 0, 1, Op.ALLGATHER)
    contribute(table, 1, 1, Op.ALLGATHER)

    table.mark_lost(2)

    assert termination(table).ranks == (2,)
    with pytest.raises(errors.PeerLostError, match=r"rank 2 is gone.*ranks 0, 1 waited in allgather\(\)"):
        raise termination(table).error()


def test_a_rank_that_left_is_not_lost() -> None:
    table = collectives()

    table.leave(2)
    table.mark_lost(2)

    assert table.termination is None


@pytest.mark.parametrize("leaves_first", [True, False])
def test_a_rank_that_left_cannot_be_waited_for(leaves_first: bool) -> None:
    table = collectives()

    if leaves_first:
        table.leave(2)
    contribute(table, 1, 1, Op.GATHER)
    if not leaves_first:
        table.leave(2)

    assert termination(table).ranks == (2,)
    with pytest.raises(errors.PeerClosedError, match=r"rank 2 closed .* while rank 1 called gather\(\)"):
        raise termination(table).error()


def test_a_broadcast_does_not_need_a_rank_that_left() -> None:
    table = collectives()
    table.leave(2)

    results = run(table, Op.BROADCAST, (0, 1))

    assert [delivery.member for delivery in results] == [1]
    assert table.termination is None
    assert table.undelivered == set()


def test_nothing_works_without_the_centre() -> None:
    table = collectives()

    table.leave(0)

    with pytest.raises(errors.PeerClosedError, match="rank 0 closed its DistributedContext"):
        raise termination(table).error()


def test_only_the_first_cause_is_told() -> None:
    table = collectives()

    table.mark_lost(1)
    table.mark_lost(2)

    assert termination(table).ranks == (1,)


def test_a_silent_rank_is_named_when_the_time_is_over() -> None:
    table = collectives(4, timeout=5.0)
    contribute(table, 0, 1, Op.GATHER, now=100.0)
    contribute(table, 2, 1, Op.GATHER, now=103.0)

    table.tick(104.9)
    assert table.termination is None
    table.tick(105.0)

    assert termination(table).ranks == (1, 3)
    with pytest.raises(errors.CollectiveTimeoutError, match=r"ranks 1, 3 did not come to gather\(\).* 5 s"):
        raise termination(table).error()


def test_who_waits_for_a_broadcast_waits_for_the_centre_only() -> None:
    table = collectives(timeout=5.0)
    contribute(table, 1, 1, Op.BROADCAST)

    table.tick(6.0)

    assert termination(table).ranks == (0,)


def test_a_broadcast_that_somebody_has_not_taken_is_never_late() -> None:
    table = collectives(timeout=5.0)
    contribute(table, 0, 1, Op.BROADCAST)

    table.tick(1000.0)

    assert table.termination is None
    assert table.next_deadline() is None


def test_a_long_wait_is_logged_at_doubling_times(caplog: pytest.LogCaptureFixture) -> None:
    table = collectives()
    contribute(table, 0, 1, Op.ALLGATHER)

    with caplog.at_level(logging.WARNING):
        for now in range(0, 300, 10):
            table.tick(float(now))

    assert [record.getMessage() for record in caplog.records] == [
        "allgather() has waited 60 s for ranks 1, 2",
        "allgather() has waited 120 s for ranks 1, 2",
        "allgather() has waited 240 s for ranks 1, 2",
    ]


def test_the_next_deadline_is_the_nearest() -> None:
    table = collectives(timeout=20.0)
    contribute(table, 0, 1, Op.ALLGATHER, now=7.0)

    assert table.next_deadline() == 27.0


def test_an_ended_star_delivers_nothing() -> None:
    table = collectives()
    table.mark_lost(2)

    assert contribute(table, 0, 1, Op.BROADCAST) == []
    assert table.next_deadline() is None


@pytest.mark.parametrize("cause", Cause)
def test_an_ending_travels_as_plain_fields(cause: Cause) -> None:
    end = Termination(cause, "text", (1, 2))

    assert Termination.from_fields(end.to_fields()) == end
    assert end.error().ranks == (1, 2)


@pytest.mark.parametrize(
    "fields", [{}, {"cause": "x", "text": "", "ranks": []}, {"cause": "lost", "text": ""}]
)
def test_an_ending_that_cannot_be_read_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(errors.MalformedFrameError, match="ABORT"):
        Termination.from_fields(fields)


@given(
    st.integers(2, 5),
    st.lists(st.sampled_from([Op.GATHER, Op.ALLGATHER, Op.BROADCAST]), max_size=12),
    st.randoms(use_true_random=False),
)
def test_any_interleaving_gives_every_rank_its_results_in_order(
    size: int, ops: list[Op], chance: random.Random
) -> None:
    table = collectives(size)
    called = [0] * size
    got: list[list[CollectiveResult]] = [[] for _ in range(size)]
    awaited = [0] * size

    def may_go_on(member: int) -> bool:
        return called[member] < len(ops) and len(got[member]) >= awaited[member]

    while runnable := [member for member in range(size) if may_go_on(member)]:
        member = chance.choice(runnable)
        op = ops[called[member]]
        called[member] += 1
        awaited[member] += op is not Op.BROADCAST or member != 0
        for delivery in contribute(table, member, called[member], op):
            got[delivery.member].append(delivery)

    assert table.termination is None
    assert called == [len(ops)] * size
    for member in range(size):
        expected = [
            (serial, op) for serial, op in enumerate(ops, start=1) if op is not Op.BROADCAST or member != 0
        ]
        assert [(delivery.serial, delivery.op) for delivery in got[member]] == expected
        for delivery in got[member]:
            assert all(text == part(rank, delivery.serial) for rank, text in received(delivery).items())
