"""The context of a rank, in jobs whose ranks are threads."""

import gc
import os
import threading
import weakref
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import pytest
from support.ports import free_port

from resolute.core.distributed import (
    CollectiveError,
    CollectiveOrderError,
    CollectiveTimeoutError,
    ContextClosedError,
    DistributedContext,
    DummyDistributedContext,
    PeerClosedError,
)
from resolute.core.distributed.group import hub
from resolute.core.distributed.group.hub_group import HubGroup

SHAPES = [(1, 1), (2, 2), (2, 1), (4, 4), (4, 2), (4, 1)]
MEGABYTE = 1024 * 1024


class Threads(Protocol):
    """The fixture, as far as it is used here."""

    port: int

    def __call__(self, size: int, work: Callable[[DistributedContext], Any], **how: Any) -> list[Any]: ...
    def attempt(self, size: int, work: Callable[[DistributedContext], Any], **how: Any) -> list[Any]: ...


@pytest.mark.parametrize("force_tcp", [False, True])
@pytest.mark.parametrize(("size", "local_size"), SHAPES)
def test_every_collective_reaches_its_ranks(
    threads: Threads, size: int, local_size: int, force_tcp: bool
) -> None:
    def work(context: DistributedContext) -> list[Any]:
        rank = context.rank
        return [
            context.gather(rank),
            context.allgather({"rank": rank}),
            context.broadcast(f"from {rank}"),
            context.gather_local(rank),
            context.allgather_local(rank),
            context.broadcast_local(rank),
        ]

    results = threads(size, work, local_size=local_size, options=lambda _: {"force_tcp": force_tcp})

    everybody = list(range(size))
    for rank, result in enumerate(results):
        first = rank - rank % local_size
        machine = everybody[first : first + local_size]
        assert result == [
            everybody if rank == 0 else None,
            [{"rank": other} for other in everybody],
            "from 0",
            machine if rank == first else None,
            machine,
            first,
        ]


@pytest.mark.parametrize("size", [1, 2])
def test_the_place_of_a_rank_can_be_asked_for(threads: Threads, size: int) -> None:
    def work(context: DistributedContext) -> tuple[int, ...]:
        return (context.get_rank(), context.get_size(), context.get_local_rank(), context.get_num_agents())

    assert threads(size, work, local_size=1) == [(rank, size, 0, size) for rank in range(size)]


def test_a_dummy_is_a_job_of_one() -> None:
    context = DummyDistributedContext()

    assert context.size == 1
    assert context.gather(3) == [3]
    assert context.allgather_local(3) == [3]
    assert context.broadcast_local() is None
    context.close()
    assert context.broadcast(3) == 3


def test_nothing_given_is_a_job_of_one() -> None:
    with DistributedContext() as context:
        assert (context.rank, context.size, context.cross_size) == (0, 1, 1)


def test_some_of_the_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="must all be provided"):
        DistributedContext(rank=0, size=2)


def test_several_machines_without_the_chiefs_address_are_refused() -> None:
    with pytest.raises(AssertionError, match="chief_ip"):
        DistributedContext(rank=0, size=2, local_rank=0, local_size=1, cross_rank=0, cross_size=2)


def test_arrays_of_every_rank_arrive_whole_and_writable(threads: Threads) -> None:
    def work(context: DistributedContext) -> list[float]:
        arrays = context.allgather(np.full(MEGABYTE, context.rank, dtype=np.float32))
        sums = [float(array.sum()) for array in arrays]
        for array in arrays:
            array.fill(-1)
        return sums

    assert threads(4, work, local_size=2) == [[0.0, MEGABYTE, 2 * MEGABYTE, 3 * MEGABYTE]] * 4


def test_the_chief_may_change_an_array_as_soon_as_it_is_broadcast(threads: Threads) -> None:
    def work(context: DistributedContext) -> float:
        array = np.ones(16 * MEGABYTE, dtype=np.uint8)
        received = context.broadcast(array)
        array[:] = 9
        return float(received.max()) if context.rank else 1.0

    assert threads(3, work) == [1.0, 1.0, 1.0]


def test_a_rank_gets_its_own_object_back(threads: Threads) -> None:
    def work(context: DistributedContext) -> bool:
        mine = [context.rank]
        return context.allgather(mine)[context.rank] is mine

    assert threads(2, work) == [True, True]


def test_a_value_that_cannot_be_pickled_does_not_confuse_the_next_call(threads: Threads) -> None:
    def work(context: DistributedContext) -> list[int]:
        if context.rank == 1:
            with pytest.raises(Exception, match="pickle"):
                context.allgather(threading.Lock())
        return context.allgather(context.rank)

    assert threads(2, work) == [[0, 1], [0, 1]]


def test_ranks_that_call_different_things_all_learn_who(threads: Threads) -> None:
    def work(context: DistributedContext) -> None:
        if context.rank == 1:
            context.gather(None)
        else:
            context.allgather(None)

    for error in threads.attempt(3, work):
        assert isinstance(error, CollectiveOrderError)
        assert "rank 1" in str(error)
        assert "gather()" in str(error)


def test_a_worker_that_expects_something_else_than_a_broadcast_is_told(threads: Threads) -> None:
    def work(context: DistributedContext) -> None:
        if context.rank == 0:
            context.broadcast(None)
        context.gather(None)

    errors = threads.attempt(2, work)

    assert [type(error) for error in errors] == [CollectiveOrderError] * 2


def test_a_serial_out_of_order_stops_everybody(threads: Threads) -> None:
    def work(context: DistributedContext) -> None:
        context.allgather(None)
        if context.rank == 1:
            assert isinstance(context._job, HubGroup)
            context._job.member._serial += 1
        context.allgather(None)

    for error in threads.attempt(3, work):
        assert isinstance(error, RuntimeError)
        assert "out of order: rank 1" in str(error)
        assert "number 4" in str(error)


def test_a_failed_job_stays_failed(threads: Threads) -> None:
    def work(context: DistributedContext) -> list[str]:
        if context.rank == 1:
            context.close()
            return []
        told = []
        for _ in range(2):
            with pytest.raises(PeerClosedError) as caught:
                context.allgather(None)
            told.append(str(caught.value))
        return told

    first, second = threads(2, work)[0]

    assert "rank 1" in first
    assert second == first


def test_workers_that_wait_for_a_chief_that_left_are_told(threads: Threads) -> None:
    def work(context: DistributedContext) -> None:
        if context.rank > 0:
            context.broadcast()

    errors = threads.attempt(3, work)

    assert errors[0] is None
    assert [type(error) for error in errors[1:]] == [PeerClosedError] * 2
    assert errors[1].ranks == (0,)


def test_broadcasts_go_on_without_a_worker_that_left(threads: Threads) -> None:
    left = threading.Event()

    def work(context: DistributedContext) -> Any:
        if context.rank == 2:
            context.close()
            left.set()
            return None
        left.wait(10)
        return context.broadcast(context.rank)

    assert threads(3, work) == [0, 0, None]


def test_a_closed_context_says_so(threads: Threads) -> None:
    def work(context: DistributedContext) -> None:
        context.close()
        context.close()
        with pytest.raises(ContextClosedError, match="closed"):
            context.allgather(None)

    threads(2, work)


def test_contexts_can_be_closed_in_any_order_from_any_thread(threads: Threads) -> None:
    contexts: list[DistributedContext] = [DummyDistributedContext()] * 3
    number = {rank: rank for rank in range(3)}

    def one(rank: int) -> None:
        contexts[rank] = DistributedContext(
            rank=rank,
            size=3,
            local_rank=rank,
            local_size=3,
            cross_rank=0,
            cross_size=1,
            pull_port=threads.port,
        )

    started = [threading.Thread(target=one, args=(rank,)) for rank in number]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    for context in contexts:
        context.close()

    assert not [t for t in threading.enumerate() if t.name.startswith("resolute-collectives")]


def test_a_forgotten_context_frees_its_threads() -> None:
    port = free_port()

    def one(rank: int) -> None:
        context = DistributedContext(
            rank=rank,
            size=2,
            local_rank=rank,
            local_size=2,
            cross_rank=0,
            cross_size=1,
            pull_port=port,
        )
        context.allgather(None)
        gone = weakref.ref(context)
        del context
        gc.collect()
        assert gone() is None

    started = [threading.Thread(target=one, args=(rank,)) for rank in range(2)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()

    assert not [t for t in threading.enumerate() if t.name.startswith("resolute-collectives")]


def test_two_threads_in_one_context_are_refused(threads: Threads, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = threading.Event()

    def work(context: DistributedContext) -> None:
        if context.rank == 1:
            refused.wait(10)
            context.allgather(None)
            return

        def second() -> None:
            while not refused.is_set():
                try:
                    context.gather(None)
                except CollectiveError as error:
                    if "another thread" in str(error):
                        refused.set()

        assert isinstance(context._job, HubGroup)
        helper = threading.Thread(target=second)
        member = context._job.member
        original = member._contribute

        def contribute(*args: Any) -> Any:
            # In the middle of the first thread's call.
            helper.start()
            refused.wait(10)
            return original(*args)

        monkeypatch.setattr(member, "_contribute", contribute)
        context.allgather(None)
        helper.join()

    threads(2, work)
    assert refused.is_set()


def test_local_ranks_that_do_not_count_up_are_named_on_every_rank(threads: Threads) -> None:
    def options(rank: int) -> dict[str, Any]:
        return {"local_rank": 0, "local_size": 2, "cross_rank": 0, "cross_size": 1} if rank < 2 else {}

    errors = threads.attempt(4, DistributedContext.get_rank, local_size=2, options=options)

    for error in errors:
        assert isinstance(error, CollectiveError)
        assert "machine 0" in str(error)
        assert "rank 1: local_rank 0 of 2" in str(error)


def test_a_chief_that_is_not_there_is_named() -> None:
    with pytest.raises(
        CollectiveTimeoutError, match=r"rank 0 cannot be reached at tcp://127.0.0.1"
    ) as caught:
        DistributedContext(
            rank=1,
            size=2,
            local_rank=1,
            local_size=2,
            cross_rank=0,
            cross_size=1,
            pull_port=free_port(),
            start_timeout=0.2,
        )

    assert caught.value.ranks == (0,)


def test_an_address_that_cannot_be_one_is_refused() -> None:
    with pytest.raises(CollectiveError, match=r"rank 0 cannot be at tcp://no host:12376"):
        DistributedContext(
            rank=1, size=2, local_rank=0, local_size=1, cross_rank=1, cross_size=2, chief_ip="no host"
        )


def test_a_port_that_another_job_uses_is_named_with_the_remedy(
    threads: Threads, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "_BIND_TIMEOUT", 0.1)

    def work(context: DistributedContext) -> None:
        if context.rank == 0:
            with pytest.raises(CollectiveError, match=r"another job on this host.*RESOLUTE_COLLECTIVE_PORTS"):
                DistributedContext(
                    rank=0,
                    size=2,
                    local_rank=0,
                    local_size=2,
                    cross_rank=0,
                    cross_size=1,
                    pull_port=threads.port,
                )
        context.allgather(None)

    threads(2, work)


def test_unix_sockets_are_the_users_own(
    threads: Threads, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def work(context: DistributedContext) -> list[int]:
        context.allgather(None)
        modes = [entry.stat().st_mode & 0o777 for entry in os.scandir(tmp_path)]
        context.allgather(None)
        return modes

    assert threads(2, work) == [[0o700], [0o700]]
    assert list(tmp_path.iterdir()) == []


def test_a_temporary_directory_with_a_long_name_falls_back_to_tcp(
    threads: Threads, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    deep = tmp_path / ("d" * 120)
    deep.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(deep))

    assert threads(2, lambda context: context.allgather_local(context.rank)) == [[0, 1], [0, 1]]


@pytest.mark.parametrize(
    ("local_size", "key", "warned"), [(1, "", True), (1, "secret", False), (2, "", False)]
)
def test_an_open_port_without_a_key_is_warned_of(
    threads: Threads,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    local_size: int,
    key: str,
    warned: bool,
) -> None:
    monkeypatch.setenv("RESOLUTE_COLLECTIVE_KEY", key)

    threads(2, DistributedContext.get_rank, local_size=local_size)

    assert ("are not signed: set RESOLUTE_COLLECTIVE_KEY" in caplog.text) is warned


def test_machines_can_meet_over_ipv6(threads: Threads) -> None:
    results = threads(
        2,
        lambda context: context.allgather(context.rank),
        local_size=1,
        options=lambda _: {"chief_ip": "::1"},
    )

    assert results == [[0, 1], [0, 1]]


def test_launchers_are_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "LOCAL_RANK", "GROUP_RANK", "CROSS_RANK"):
        monkeypatch.setenv(name, "0")
    for name in ("WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_WORLD_SIZE", "LOCAL_SIZE", "CROSS_SIZE"):
        monkeypatch.setenv(name, "1")

    for make in (DistributedContext.from_torch_distributed, DistributedContext.from_deepspeed):
        with make() as context:
            assert context.allgather("me") == ["me"]


def test_the_address_of_the_chief_is_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = {"RANK": 1, "WORLD_SIZE": 2, "LOCAL_RANK": 0, "LOCAL_WORLD_SIZE": 1}
    for name, number in {**numbers, "GROUP_RANK": 1, "GROUP_WORLD_SIZE": 2}.items():
        monkeypatch.setenv(name, str(number))
    monkeypatch.setenv("RESOLUTE_COLLECTIVE_START_TIMEOUT", "0.1")
    monkeypatch.setenv("DET_UNIQUE_PORT_OFFSET", "5")
    monkeypatch.setenv("DET_CHIEF_IP", "127.0.0.2")

    with pytest.raises(CollectiveTimeoutError, match=r"tcp://127.0.0.2:12381"):
        DistributedContext.from_torch_distributed()
    with pytest.raises(CollectiveTimeoutError, match=r"tcp://127.0.0.3:12381"):
        DistributedContext.from_torch_distributed(chief_ip="127.0.0.3")
