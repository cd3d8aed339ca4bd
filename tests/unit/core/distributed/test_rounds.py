"""The collectives of a star, without sockets and with a clock that is only a number."""

import logging
import random
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resolute.core.distributed import errors
from resolute.core.distributed.bundle import unbundle
from resolute.core.distributed.payload import view
from resolute.core.distributed.roster import Roster
from resolute.core.distributed.rounds import Cause, Delivery, Ending, Rounds
from resolute.core.distributed.wire import Op


def rounds(size: int = 3, timeout: float | None = None) -> Rounds:
    return Rounds(Roster(range(size)), timeout=timeout)


def contribute(table: Rounds, member: int, serial: int, op: Op, *, now: float = 0.0) -> list[Delivery]:
    return table.contribute(member, serial=serial, op=op, part=[part(member, serial)], now=now)


def part(member: int, serial: int) -> bytes:
    return f"{member}.{serial}".encode()


def received(delivery: Delivery) -> dict[int, bytes]:
    if not delivery.frames:
        return {}
    parts = unbundle(delivery.frames, delivery.member)
    return {rank: bytes(view(frames[0])) for rank, frames in parts.items()}


def ending(table: Rounds) -> Ending:
    assert table.ending is not None
    return table.ending


def run(table: Rounds, op: Op, members: Iterable[int] = (0, 1, 2), serial: int = 1) -> list[Delivery]:
    return [delivery for member in members for delivery in contribute(table, member, serial, op)]


def test_an_allgather_gives_everybody_the_parts_of_the_others() -> None:
    deliveries = run(rounds(), Op.ALLGATHER, (2, 0, 1))

    assert {delivery.member: received(delivery) for delivery in deliveries} == {
        0: {1: b"1.1", 2: b"2.1"},
        1: {0: b"0.1", 2: b"2.1"},
        2: {0: b"0.1", 1: b"1.1"},
    }


def test_a_gather_gives_the_centre_the_parts_and_lets_the_others_go() -> None:
    deliveries = run(rounds(), Op.GATHER)

    assert {delivery.member: received(delivery) for delivery in deliveries} == {
        0: {1: b"1.1", 2: b"2.1"},
        1: {},
        2: {},
    }


def test_nothing_is_delivered_before_the_last_has_come() -> None:
    assert run(rounds(), Op.ALLGATHER, (2, 0)) == []


def test_a_broadcast_goes_out_when_the_centre_comes() -> None:
    table = rounds()

    assert contribute(table, 2, 1, Op.BROADCAST) == []
    deliveries = contribute(table, 0, 1, Op.BROADCAST)
    assert contribute(table, 1, 1, Op.BROADCAST) == []

    assert {delivery.member: received(delivery) for delivery in deliveries} == {
        1: {0: b"0.1"},
        2: {0: b"0.1"},
    }


def test_the_centre_may_broadcast_ahead_of_the_others() -> None:
    table = rounds(2)

    first = contribute(table, 0, 1, Op.BROADCAST)
    second = contribute(table, 0, 2, Op.BROADCAST)

    assert [delivery.serial for delivery in (*first, *second)] == [1, 2]
    assert table.unheard == {1}
    contribute(table, 1, 1, Op.BROADCAST)
    contribute(table, 1, 2, Op.BROADCAST)
    assert table.unheard == set()


@pytest.mark.parametrize("serial", [0, 1, 3])
def test_a_serial_out_of_order_ends_the_star_with_the_rank_at_fault(serial: int) -> None:
    table = rounds()
    run(table, Op.ALLGATHER)

    contribute(table, 2, serial, Op.ALLGATHER)

    assert ending(table).ranks == (2,)
    with pytest.raises(
        errors.CollectiveOrderError,
        match=rf"out of order: rank 2 sent number {serial} \(allgather\(\)\) where number 2 was due",
    ):
        raise ending(table).error()


def test_ranks_that_call_different_things_are_both_named() -> None:
    table = rounds()
    contribute(table, 1, 1, Op.GATHER)

    contribute(table, 2, 1, Op.BROADCAST)

    assert ending(table).cause is Cause.ORDER
    assert "rank 1 called gather() and rank 2 called broadcast()" in ending(table).text


def test_a_lost_rank_ends_the_star_at_once() -> None:
    table = rounds()
    contribute(table, 0, 1, Op.ALLGATHER)
    contribute(table, 1, 1, Op.ALLGATHER)

    table.lose(2)

    assert ending(table).ranks == (2,)
    with pytest.raises(errors.PeerLostError, match=r"rank 2 is gone.*ranks 0, 1 waited in allgather\(\)"):
        raise ending(table).error()


def test_a_rank_that_left_is_not_lost() -> None:
    table = rounds()

    table.leave(2)
    table.lose(2)

    assert table.ending is None


@pytest.mark.parametrize("leaves_first", [True, False])
def test_a_rank_that_left_cannot_be_waited_for(leaves_first: bool) -> None:
    table = rounds()

    if leaves_first:
        table.leave(2)
    contribute(table, 1, 1, Op.GATHER)
    if not leaves_first:
        table.leave(2)

    assert ending(table).ranks == (2,)
    with pytest.raises(errors.PeerClosedError, match=r"rank 2 closed .* while rank 1 called gather\(\)"):
        raise ending(table).error()


def test_a_broadcast_does_not_need_a_rank_that_left() -> None:
    table = rounds()
    table.leave(2)

    deliveries = run(table, Op.BROADCAST, (0, 1))

    assert [delivery.member for delivery in deliveries] == [1]
    assert table.ending is None
    assert table.unheard == set()


def test_nothing_works_without_the_centre() -> None:
    table = rounds()

    table.leave(0)

    with pytest.raises(errors.PeerClosedError, match="rank 0 closed its DistributedContext"):
        raise ending(table).error()


def test_only_the_first_cause_is_told() -> None:
    table = rounds()

    table.lose(1)
    table.lose(2)

    assert ending(table).ranks == (1,)


def test_a_silent_rank_is_named_when_the_time_is_over() -> None:
    table = rounds(4, timeout=5.0)
    contribute(table, 0, 1, Op.GATHER, now=100.0)
    contribute(table, 2, 1, Op.GATHER, now=103.0)

    table.tick(104.9)
    assert table.ending is None
    table.tick(105.0)

    assert ending(table).ranks == (1, 3)
    with pytest.raises(errors.CollectiveTimeoutError, match=r"ranks 1, 3 did not come to gather\(\).* 5 s"):
        raise ending(table).error()


def test_who_waits_for_a_broadcast_waits_for_the_centre_only() -> None:
    table = rounds(timeout=5.0)
    contribute(table, 1, 1, Op.BROADCAST)

    table.tick(6.0)

    assert ending(table).ranks == (0,)


def test_a_broadcast_that_somebody_has_not_taken_is_never_late() -> None:
    table = rounds(timeout=5.0)
    contribute(table, 0, 1, Op.BROADCAST)

    table.tick(1000.0)

    assert table.ending is None
    assert table.next_deadline() is None


def test_a_long_wait_is_logged_at_doubling_times(caplog: pytest.LogCaptureFixture) -> None:
    table = rounds()
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
    table = rounds(timeout=20.0)
    contribute(table, 0, 1, Op.ALLGATHER, now=7.0)

    assert table.next_deadline() == 27.0


def test_an_ended_star_delivers_nothing() -> None:
    table = rounds()
    table.lose(2)

    assert contribute(table, 0, 1, Op.BROADCAST) == []
    assert table.next_deadline() is None


@pytest.mark.parametrize("cause", Cause)
def test_an_ending_travels_as_plain_fields(cause: Cause) -> None:
    end = Ending(cause, "text", (1, 2))

    assert Ending.from_fields(end.to_fields()) == end
    assert end.error().ranks == (1, 2)


@pytest.mark.parametrize(
    "fields", [{}, {"cause": "x", "text": "", "ranks": []}, {"cause": "lost", "text": ""}]
)
def test_an_ending_that_cannot_be_read_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(errors.MalformedFrameError, match="ABORT"):
        Ending.from_fields(fields)


@settings(deadline=None)
@given(
    st.integers(2, 5),
    st.lists(st.sampled_from([Op.GATHER, Op.ALLGATHER, Op.BROADCAST]), max_size=12),
    st.randoms(use_true_random=False),
)
def test_any_interleaving_gives_every_rank_its_results_in_order(
    size: int, ops: list[Op], chance: random.Random
) -> None:
    table = rounds(size)
    called = [0] * size
    got: list[list[Delivery]] = [[] for _ in range(size)]
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

    assert table.ending is None
    assert called == [len(ops)] * size
    for member in range(size):
        expected = [
            (serial, op) for serial, op in enumerate(ops, start=1) if op is not Op.BROADCAST or member != 0
        ]
        assert [(delivery.serial, delivery.op) for delivery in got[member]] == expected
        for delivery in got[member]:
            assert all(text == part(rank, delivery.serial) for rank, text in received(delivery).items())
