"""What every engine must do, as cases that each engine's tests inherit and run on the real thing."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from support.clusters.control_plane import ControlPlane
from support.engines.session import (
    ALLOCATION,
    SECONDS,
    STUBBORN,
    TRAIN,
    EngineSession,
    EngineUnderTest,
    cleared,
    engine_session,
    scenario,
    seen,
    until,
)
from support.ports import free_port
from support.waiting import wait_until_async

from resolute.errors import NotFoundError
from resolute_engines.protocol import ContainerState, Engine, HasBacklog, KeepsRunFiles

_LONG = "n" * 120
"""More than the header of a tar has room for."""
_COUNTED = b"".join(b"%d\n" % number for number in range(1, 200_001))
_LEAVES_FILES = f"""
mkdir out && seq 200000 > out/counted && : > out/empty && echo long > out/{_LONG}
ln -s ../token link; ln -s /etc away; exit 3
"""
_TWO_CONTAINERS: Mapping[str, Any] = {"container_count": 2, "collective_key": "k"}


class EngineContract:
    """The cases. A subclass gives the fixture ``engine``."""

    def test_what_was_never_launched_is_unknown_and_everything_may_be_asked_of_it(
        self, engine: EngineUnderTest
    ) -> None:
        async def body() -> None:
            async with engine_session(engine) as session:
                assert await session.engine.inspect(ALLOCATION) == []
                await session.engine.stop(ALLOCATION, grace=0.0)
                await session.engine.kill(ALLOCATION)
                await session.engine.release(ALLOCATION)
                assert ALLOCATION not in await session.engine.leftovers()

        scenario(body)

    def test_an_allocation_that_is_launched_several_times_at_once_runs_once(
        self, engine: EngineUnderTest
    ) -> None:
        async def body() -> None:
            with engine.control_plane(TRAIN) as plane:
                async with cleared(engine), engine_session(engine) as session:
                    spec = engine.spec(plane)
                    await asyncio.gather(*(session.engine.launch(spec) for _ in range(4)))
                    await seen(plane, "training")
                    await session.engine.launch(spec)
                    assert plane.calls.count("GetLaunchSpec") == 1
                    await session.runs()

        scenario(body)

    def test_the_exit_code_is_told_once_and_what_ended_is_not_launched_again(
        self, engine: EngineUnderTest
    ) -> None:
        async def body() -> None:
            with engine.control_plane("echo done; exit 3") as plane:
                async with cleared(engine), engine_session(engine) as session:
                    await session.engine.launch(engine.spec(plane))
                    (report,) = await session.ended()
                    assert (report.allocation_id, report.container_rank) == (ALLOCATION, 0)
                    assert report.exit is not None
                    assert report.exit.exit_code == 3
                    await session.engine.launch(engine.spec(plane))
                    assert await session.states() == [ContainerState.ENDED]
                    assert plane.calls.count("GetLaunchSpec") == 1
                    assert plane.text() == ["done"]

        scenario(body)

    def test_the_next_life_of_the_control_plane_finds_what_runs_and_hears_of_its_end(
        self, engine: EngineUnderTest
    ) -> None:
        async def body() -> None:
            with engine.control_plane(TRAIN) as plane:
                async with cleared(engine):
                    async with engine_session(engine) as first:
                        await first.engine.launch(engine.spec(plane))
                        await seen(plane, "training")
                    async with engine_session(engine) as second:
                        await second.runs()
                        await second.engine.launch(engine.spec(plane))
                        assert not second.ends()
                        await second.engine.kill(ALLOCATION)
                        (report,) = await second.ended()
                        assert report.lost
                    assert plane.calls.count("GetLaunchSpec") == 1

        scenario(body)

    def test_what_ended_while_nobody_watched_is_found(self, engine: EngineUnderTest) -> None:
        async def body() -> None:
            with engine.control_plane("echo training; sleep 1; exit 5") as plane:
                async with cleared(engine):
                    async with engine_session(engine) as first:
                        await first.engine.launch(engine.spec(plane))
                        await seen(plane, "training")
                    await asyncio.to_thread(plane.wait_for, lambda: plane.exits, seconds=SECONDS)
                    async with engine_session(engine) as second:

                        async def over() -> bool:
                            return await second.states() == [ContainerState.ENDED]

                        await until(over, "the end to be known")
                        (report,) = await second.engine.inspect(ALLOCATION)
                        assert report.exit is not None
                        assert report.exit.exit_code == 5

        scenario(body)

    def test_inspect_watches_what_an_earlier_life_launched(self, engine: EngineUnderTest) -> None:
        async def body() -> None:
            with engine.control_plane(TRAIN) as plane:
                async with cleared(engine):
                    async with engine_session(engine) as first:
                        await first.engine.launch(engine.spec(plane))
                        await seen(plane, "training")
                    async with engine_session(engine) as second:
                        await second.runs()
                        await engine.lose(ALLOCATION)
                        (report,) = await second.ended()
                        assert report.lost

        scenario(body)

    def test_an_allocation_may_have_no_slots(self, engine: EngineUnderTest) -> None:
        async def body() -> None:
            with engine.control_plane("echo done") as plane:
                async with cleared(engine), engine_session(engine) as session:
                    await session.engine.launch(replace(engine.spec(plane), placements=((),)))
                    (report,) = await session.ended()
                    assert report.exit is not None
                    assert report.exit.exit_code == 0

        scenario(body)

    def test_a_stop_lets_a_run_exit_by_itself(self, engine: EngineUnderTest) -> None:
        async def body() -> None:
            with engine.control_plane(TRAIN, preemption_timeout=0.2) as plane:
                async with cleared(engine), engine_session(engine) as session:
                    await session.engine.launch(engine.spec(plane))
                    await seen(plane, "training")
                    await session.engine.stop(ALLOCATION, grace=SECONDS)
                    (report,) = await session.ended()
                    assert report.exit is not None, "its supervisor saw its end"
                    assert plane.preemptions, "the control plane heard of it first"

        scenario(body)

    def test_a_stop_kills_what_outlasts_its_grace(self, engine: EngineUnderTest) -> None:
        async def body() -> None:
            with engine.control_plane(STUBBORN) as plane:
                async with cleared(engine), engine_session(engine) as session:
                    await session.engine.launch(engine.spec(plane))
                    await seen(plane, "training")
                    await session.engine.stop(ALLOCATION, grace=0.5)
                    (report,) = await session.ended()
                    assert report.lost

        scenario(body)

    def test_a_kill_ends_everything_and_may_be_repeated(self, engine: EngineUnderTest) -> None:
        async def body() -> None:
            with engine.control_plane(STUBBORN) as plane:
                async with cleared(engine), engine_session(engine) as session:
                    await session.engine.launch(engine.spec(plane))
                    await seen(plane, "training")
                    await session.engine.kill(ALLOCATION)
                    (report,) = await session.ended()
                    assert report.lost
                    await session.engine.kill(ALLOCATION)
                    assert await session.states() == [ContainerState.ENDED]

        scenario(body)

    def test_a_lost_supervisor_is_noticed(self, engine: EngineUnderTest) -> None:
        async def body() -> None:
            with engine.control_plane(TRAIN) as plane:
                async with cleared(engine), engine_session(engine) as session:
                    await session.engine.launch(engine.spec(plane))
                    await seen(plane, "training")
                    await engine.lose(ALLOCATION)
                    (report,) = await session.ended()
                    assert report.lost

        scenario(body)

    def test_nothing_runs_any_more_when_a_loss_is_reported(self, engine: EngineUnderTest) -> None:
        async def body() -> None:
            port = free_port()
            with engine.control_plane(f"{_connected(port)} & {TRAIN}") as plane:
                host = plane.address.rpartition(":")[0]
                async with cleared(engine), engine_session(engine) as session:
                    with socket.create_server((host, port)) as server:
                        server.settimeout(SECONDS)
                        await session.engine.launch(engine.spec(plane))
                        connection, _ = await asyncio.to_thread(server.accept)
                    with connection:
                        await engine.lose(ALLOCATION)
                        (report,) = await session.ended()
                        assert report.lost
                        assert _is_closed(connection), "a process of the lost container runs"

        scenario(body)

    def test_lines_that_waited_for_the_services_are_sent_after_the_release(
        self, engine: EngineUnderTest
    ) -> None:
        async def body() -> None:
            with engine.control_plane("echo training; sleep 1; echo last words; exit 0") as plane:
                async with cleared(engine), engine_session(engine) as session:
                    await session.engine.launch(engine.spec(plane))
                    await seen(plane, "training")
                    plane.takes_lines = False
                    await session.ended()
                    assert "last words" not in plane.text()
                    plane.takes_lines = True
                    await session.engine.release(ALLOCATION, token="token-fresh")
                    await seen(plane, "last words")

        scenario(body)

    def test_an_allocation_is_left_over_until_it_is_released(self, engine: EngineUnderTest) -> None:
        async def body() -> None:
            with engine.control_plane("echo done") as plane:
                async with cleared(engine):
                    async with engine_session(engine) as first:
                        await first.engine.launch(engine.spec(plane))
                        await first.ended()
                    async with engine_session(engine) as second:
                        assert await second.engine.leftovers() == [ALLOCATION]
                        await second.engine.release(ALLOCATION, token="token-fresh")
                        assert await second.engine.leftovers() == []

                        async def gone() -> bool:
                            return not await engine.resources()

                        await until(gone, "everything to be removed")
                        assert await second.engine.inspect(ALLOCATION) == []

        scenario(body)

    def test_the_next_life_sends_and_removes_what_an_earlier_one_released(
        self, engine: EngineUnderTest
    ) -> None:
        async def body() -> None:
            with engine.control_plane("echo training; sleep 1; echo last words; exit 0") as plane:
                async with cleared(engine):
                    async with engine_session(engine) as first:
                        await first.engine.launch(engine.spec(plane))
                        await seen(plane, "training")
                        plane.takes_lines = False
                        await first.ended()
                        await first.engine.release(ALLOCATION, token="token-fresh")
                    async with engine_session(engine) as second:
                        plane.takes_lines = True
                        # An engine may forget a release with its process, and name the allocation again.
                        if ALLOCATION in await second.engine.leftovers():
                            await second.engine.release(ALLOCATION, token="token-fresh")
                        await seen(plane, "last words")

                        async def gone() -> bool:
                            return not await engine.resources()

                        await until(gone, "the next life to remove everything")

        scenario(body)

    def test_an_allocation_may_have_several_containers_which_find_each_other(
        self, engine: EngineUnderTest
    ) -> None:
        async def body() -> None:
            script = "echo rank $DET_CONTAINER_RANK; exit 0"
            with engine.control_plane(script, **_TWO_CONTAINERS) as plane:
                async with cleared(engine), engine_session(engine) as session:
                    await session.engine.launch(engine.spec(plane, containers=2))
                    reports = await session.ended(2)
                    assert [report.container_rank for report in reports] == [0, 1]
                    assert all(report.exit is not None for report in reports)
                    assert {request.address for request in plane.announced.values()} != {""}
                    assert len(plane.announced) == 2

        scenario(body)

    def test_a_stop_reaches_every_container(self, engine: EngineUnderTest) -> None:
        async def body() -> None:
            with engine.control_plane(TRAIN, preemption_timeout=SECONDS, **_TWO_CONTAINERS) as plane:
                async with cleared(engine), engine_session(engine) as session:
                    await _launch_two(session, engine, plane)
                    await session.engine.stop(ALLOCATION, grace=2 * SECONDS)
                    # Each supervisor that gets the signal tells the control plane of it.
                    await asyncio.to_thread(
                        plane.wait_for, lambda: len(plane.preemptions) == 2, seconds=SECONDS
                    )

        scenario(body)

    def test_a_kill_reaches_every_container(self, engine: EngineUnderTest) -> None:
        async def body() -> None:
            with engine.control_plane(TRAIN, **_TWO_CONTAINERS) as plane:
                async with cleared(engine), engine_session(engine) as session:
                    await _launch_two(session, engine, plane)
                    await session.engine.kill(ALLOCATION)
                    reports = await session.ended(2)
                    assert [(report.container_rank, report.lost) for report in reports] == [
                        (0, True),
                        (1, True),
                    ]

        scenario(body)

    def test_inspect_has_the_containers_by_rank(self, engine: EngineUnderTest) -> None:
        async def body() -> None:
            with engine.control_plane(TRAIN, **_TWO_CONTAINERS) as plane:
                async with cleared(engine), engine_session(engine) as session:
                    await _launch_two(session, engine, plane)
                    reports = await session.engine.inspect(ALLOCATION)
                    assert [report.container_rank for report in reports] == [0, 1]

        scenario(body)


class TokenContract:
    """The case of engines that send with the token of a release. A subclass gives the fixture ``engine``.

    Where runs are kept by processes that send by themselves, the last token of the run outlives them.
    """

    def test_what_was_left_is_sent_with_the_token_of_the_release(self, engine: EngineUnderTest) -> None:
        async def body() -> None:
            with engine.control_plane("echo training; sleep 1; echo last words; exit 0") as plane:
                async with cleared(engine), engine_session(engine) as session:
                    await session.engine.launch(engine.spec(plane))
                    await seen(plane, "training")
                    plane.takes_lines = False
                    await session.ended()
                    plane.only_token = "token-fresh"
                    plane.takes_lines = True
                    await session.engine.release(ALLOCATION, token="token-fresh")
                    await seen(plane, "last words")

        scenario(body)


class LinesContract:
    """The cases of engines that deliver lines on demand. A subclass gives the fixture ``engine``."""

    def test_nothing_is_delivered_of_what_was_never_launched(self, engine: EngineUnderTest) -> None:
        async def body() -> None:
            async with engine_session(engine) as session:
                assert isinstance(session.engine, HasBacklog)
                assert await session.engine.backlog.deliver_lines({ALLOCATION: ""})

        scenario(body)

    def test_the_lines_of_a_lost_supervisor_arrive(self, engine: EngineUnderTest) -> None:
        async def body() -> None:
            script = "for i in $(seq 200); do echo line $i; done; " + TRAIN
            with engine.control_plane(script) as plane:
                async with cleared(engine), engine_session(engine) as session:
                    await session.engine.launch(engine.spec(plane))
                    await seen(plane, "training")
                    await engine.lose(ALLOCATION)
                    (report,) = await session.ended()
                    assert report.lost

                    async def arrived() -> bool:
                        # On a busy machine the sender may begin only after the time for which this waits.
                        assert isinstance(session.engine, HasBacklog)
                        return await session.engine.backlog.deliver_lines({ALLOCATION: "token-fresh"})

                    await until(arrived, "its lines")
                    numbered = [text for text in plane.text() if text.startswith("line ")]
                    assert numbered == [f"line {number}" for number in range(1, 201)]

        scenario(body)


class FilesContract:
    """The cases of engines that show files of ended runs. A subclass gives the fixture ``engine``."""

    def test_what_an_ended_run_wrote_is_listed_and_read_until_its_release(
        self, engine: EngineUnderTest
    ) -> None:
        async def body() -> None:
            with engine.control_plane(_LEAVES_FILES) as plane:
                async with cleared(engine):
                    async with engine_session(engine) as session:
                        await session.engine.launch(engine.spec(plane))
                        await session.ended()
                        await _shows_files(session.engine)
                    # Nothing is known in the next life.
                    async with engine_session(engine) as session:
                        await _shows_files(session.engine)
                        await session.engine.release(ALLOCATION)

        scenario(body)


async def _shows_files(engine: Engine) -> None:
    assert isinstance(engine, KeepsRunFiles)
    listed = {file.path: file.size for file in await engine.run_files.list_files(ALLOCATION)}
    assert listed["0/work/out/counted"] == len(_COUNTED)
    assert {path for path in listed if path.startswith("0/work/")} == {
        "0/work/out/counted",
        f"0/work/out/{_LONG}",
        "0/work/out/empty",
    }
    assert "0/exit.json" in listed
    assert not any("token" in path or "launch" in path for path in listed)

    async def read(path: str, offset: int, size: int) -> bytes:
        return await engine.run_files.read_file(ALLOCATION, path, offset=offset, size=size)

    middle = len(_COUNTED) // 2
    assert await read("0/work/out/counted", 0, middle) == _COUNTED[:middle]
    assert await read("0/work/out/counted", middle, len(_COUNTED)) == _COUNTED[middle:]
    assert await read("0/work/out/counted", middle - 5, 10) == _COUNTED[middle - 5 : middle + 5]
    assert await read("0/work/out/counted", len(_COUNTED), 10) == b""
    assert await read("0/work/out/empty", 0, 10) == b""
    assert await read(f"0/work/out/{_LONG}", 0, 10) == b"long\n"
    for path in ("0/work/link", "0/work/away/hostname", "0/token", "0/work/../token", "1/exit.json", "../x"):
        with pytest.raises(NotFoundError, match="is none of the files that the run left"):
            await read(path, 0, 10)


class QueueContract:
    """The case of engines with a queue. A subclass gives the fixtures ``engine`` and ``never_fits``.

    ``never_fits`` says how many containers are more than the pool ever has room for, and a part of the reason
    for which they wait.
    """

    def test_what_waits_says_why_and_is_taken_out_of_the_queue_without_a_loss(
        self, engine: EngineUnderTest, never_fits: tuple[int, str]
    ) -> None:
        containers, reason = never_fits

        async def body() -> None:
            with engine.control_plane(TRAIN) as plane:
                async with cleared(engine), engine_session(engine) as session:
                    await session.engine.launch(engine.spec(plane, containers=containers))

                    async def waits() -> bool:
                        reports = await session.engine.inspect(ALLOCATION)
                        return len(reports) == containers and all(
                            report.state is ContainerState.QUEUED and reason in report.reason
                            for report in reports
                        )

                    await until(waits, "inspect to say why it waits")
                    await wait_until_async(
                        lambda: session.queued() == set(range(containers)),
                        seconds=SECONDS,
                        what="watch to report what waits",
                    )
                    await session.engine.stop(ALLOCATION, grace=0.0)
                    for report in await session.ended(containers):
                        assert report.exit is not None, "what never began was lost"
                        assert report.exit.acknowledged
                    async with engine_session(engine) as second:
                        reports = await second.engine.inspect(ALLOCATION)
                        assert len(reports) == containers
                        assert all(report.exit and report.exit.acknowledged for report in reports)
                    assert not plane.calls.count("GetLaunchSpec")

        scenario(body)


class BacklogContract:
    """The cases of engines that know what waits there. A subclass gives the fixture ``engine``."""

    def test_what_waits_for_the_services_is_known_until_it_arrives(self, engine: EngineUnderTest) -> None:
        async def body() -> None:
            with engine.control_plane("echo training; sleep 1; echo last words; exit 0") as plane:
                async with cleared(engine), engine_session(engine) as session:
                    assert isinstance(session.engine, HasBacklog)
                    backlog = session.engine.backlog
                    assert list(await backlog.unreported()) == []
                    await session.engine.launch(engine.spec(plane))
                    await seen(plane, "training")
                    await session.ended()
                    await session.engine.release(ALLOCATION, token="token-fresh")

                    async def arrived() -> bool:
                        return not await backlog.unreported() and not await backlog.seconds()

                    await until(arrived, "everything to arrive")
                    assert "last words" in plane.text()

        scenario(body)


def _connected(port: int) -> str:
    """A command that holds a connection to the control plane's machine; only SIGKILL ends it."""
    return (
        'python3 -c "import os, signal, socket; signal.signal(signal.SIGTERM, signal.SIG_IGN); os.setsid(); '
        f"socket.create_connection((os.environ['DET_MASTER_HOST'], {port})).recv(1)\""
    )


def _is_closed(connection: socket.socket) -> bool:
    """Whether the other end is closed, as the kernel closes those of a process that ends."""
    connection.setblocking(False)
    try:
        return connection.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True


async def _launch_two(session: EngineSession, engine: EngineUnderTest, plane: ControlPlane) -> None:
    """Launches two containers, and waits until both train."""
    await session.engine.launch(engine.spec(plane, containers=2))
    await asyncio.to_thread(plane.wait_for, lambda: plane.text().count("training") == 2, seconds=SECONDS)
