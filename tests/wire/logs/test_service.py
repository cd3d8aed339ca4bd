"""The logs service over a real connection."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import grpc
import pytest
from support.services.in_process import Running, serving
from support.services.logs import columns, following, line
from support.services.stand_ins.platform_stub import PlatformStub

from resolute.api.logs.v1 import line_pb2
from resolute.api.logs.v1 import logs_service_pb2 as api
from resolute.api.logs.v1.logs_service_pb2_grpc import LogsServiceStub
from resolute.contracts.spool.format import Line, Stdtype
from resolute.errors import InvalidArgumentError, PermissionDeniedError, UnavailableError
from resolute.rpc.channel import open_channel
from resolute.spool.delivery.requests import RunIdentity
from resolute.spool.delivery.sender import SpoolSender
from resolute.spool.delivery.services import LineDelivery
from resolute.spool.line_writer import LineWriter
from resolute_logs.blueprint import BLUEPRINT
from resolute_serving.context import Role, TrialRun
from resolute_serving.server import calls

if TYPE_CHECKING:
    from resolute.api.logs.v1 import logs_service_pb2_grpc

RUN = TrialRun(
    trial_id=str(uuid.uuid4()),
    run=1,
    experiment_id=str(uuid.uuid4()),
    allocation_id=str(uuid.uuid4()),
    workspace="default",
)


class Callers:
    """Stubs for different callers, whose channels stay open as long as they do."""

    def __init__(self, running: Running) -> None:
        self.running = running
        self._channels: list[grpc.aio.Channel] = []

    def trial(self) -> logs_service_pb2_grpc.LogsServiceAsyncStub:
        return self._stub(self.running.trial_token(RUN))

    def user(self, role: Role = Role.VIEWER) -> logs_service_pb2_grpc.LogsServiceAsyncStub:
        return self._stub(self.running.user_token(role=role))

    def service(self) -> logs_service_pb2_grpc.LogsServiceAsyncStub:
        stub = PlatformStub(LogsServiceStub, signer=self.running.signer, address=self.running.address)
        self._channels.append(stub.peers.channel("*"))
        return cast("logs_service_pb2_grpc.LogsServiceAsyncStub", stub)

    async def close(self) -> None:
        for channel in self._channels:
            await channel.close()

    def _stub(self, token: str) -> logs_service_pb2_grpc.LogsServiceAsyncStub:
        channel = self.running.channel(token)
        self._channels.append(channel)
        return cast("logs_service_pb2_grpc.LogsServiceAsyncStub", LogsServiceStub(channel))


Scenario = Callable[[Callers], Awaitable[None]]
WANTED = line_pb2.LineFilter(trial_id=RUN.trial_id)


def _on_a_server(tmp_path: Path, scenario: Scenario) -> None:
    async def serve() -> None:
        async with serving([BLUEPRINT], tmp_path) as running:
            callers = Callers(running)
            try:
                await asyncio.wait_for(scenario(callers), 60)
            finally:
                await callers.close()

    asyncio.run(serve())


def _batch(*texts: str, first: int = 0) -> api.IngestLinesRequest:
    return api.IngestLinesRequest(
        trial_id=RUN.trial_id,
        run=1,
        source="logs",
        experiment_id=RUN.experiment_id,
        first_sequence=first,
        lines=columns(line(text) for text in texts),
    )


async def _collect(callers: Callers, into: list[str], news: asyncio.Event) -> None:
    person = callers.user()
    async for response in person.FollowLines(following(WANTED)):
        into += [one.message for one in response.lines]
        news.set()


def test_a_person_follows_a_trial_to_its_end(tmp_path: Path) -> None:
    async def scenario(callers: Callers) -> None:
        found: list[str] = []
        news = asyncio.Event()
        follower = asyncio.create_task(_collect(callers, found, news))
        trial = callers.trial()
        await trial.IngestLines(_batch("a", "b"))
        await news.wait()
        await trial.IngestLines(_batch("c", first=2))
        closing = api.CloseTrialLogsRequest(trial_id=RUN.trial_id)
        with pytest.raises(PermissionDeniedError):
            await trial.CloseTrialLogs(closing)
        await callers.service().CloseTrialLogs(closing)
        await follower
        assert found == ["a", "b", "c"]

    _on_a_server(tmp_path, scenario)


def test_a_stopping_service_ends_streams_with_an_error_that_can_be_retried(tmp_path: Path) -> None:
    found: list[str] = []

    async def serve() -> None:
        news = asyncio.Event()
        async with serving([BLUEPRINT], tmp_path) as running:
            callers = Callers(running)
            await callers.trial().IngestLines(_batch("a"))
            follower = asyncio.create_task(_collect(callers, found, news))
            await news.wait()
        with pytest.raises(UnavailableError):
            await asyncio.wait_for(follower, 60)
        await callers.close()

    asyncio.run(serve())
    assert found == ["a"]


def test_a_client_that_reads_nothing_is_told_to_follow_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given_up = asyncio.Event()
    write = calls._write

    async def noted(context: Any, response: Any) -> None:
        try:
            await write(context, response)
        except UnavailableError:
            given_up.set()
            raise

    monkeypatch.setattr(calls, "UNREAD_SECONDS", 0.2)
    monkeypatch.setattr(calls, "_write", noted)

    async def scenario(callers: Callers) -> None:
        trial = callers.trial()
        for first in range(0, 1000, 250):
            await trial.IngestLines(_batch(*["x" * 8_000] * 250, first=first))
        seen: list[int] = []

        async def follow() -> None:
            async for response in callers.user().FollowLines(following(WANTED)):
                seen.append(len(response.lines))
                await given_up.wait()

        with pytest.raises(UnavailableError, match="read nothing"):
            await follow()
        assert 0 < sum(seen) < 1000

    _on_a_server(tmp_path, scenario)


def test_a_wrong_regular_expression_is_an_error_that_names_the_field(tmp_path: Path) -> None:
    async def scenario(callers: Callers) -> None:
        person = callers.user(Role.ADMIN)
        wrong = line_pb2.LineFilter(trial_id=RUN.trial_id, regex="(")
        with pytest.raises(InvalidArgumentError, match="missing") as caught:
            await person.ListLines(api.ListLinesRequest(filter=wrong))
        assert caught.value.violations[0].field == "filter.regex"
        with pytest.raises(InvalidArgumentError):
            async for _ in person.FollowLines(following(wrong)):
                pass

    _on_a_server(tmp_path, scenario)


def test_a_spool_of_lines_arrives_once_and_in_order(tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    spool.mkdir()
    writer = LineWriter(spool)
    texts = [f"[rank={number % 3}] INFO: line {number}" for number in range(5000)]
    writer.append_lines(Line(1.0, Stdtype.STDOUT, text.encode()) for text in texts)
    writer.close()

    async def scenario(callers: Callers) -> None:
        token = callers.running.trial_token(RUN)
        channel = open_channel(callers.running.address, token=lambda: token)
        identity = RunIdentity(trial_id=RUN.trial_id, run=1, experiment_id=RUN.experiment_id)
        sender = SpoolSender(spool, LineDelivery.over(channel, identity))
        while await asyncio.to_thread(sender.pump):
            pass
        assert sender.drained()
        sender.close()
        channel.close()
        found: list[line_pb2.Line] = []
        request = api.ListLinesRequest(filter=WANTED, page_size=1000)
        while not found or request.page_token:
            response = await callers.user(Role.ADMIN).ListLines(request)
            assert len(response.lines) == 1000
            found += response.lines
            request.page_token = response.next_page_token
        assert [one.message for one in found] == [f"INFO: line {number}" for number in range(5000)]
        assert [one.rank for one in found[:4]] == [0, 1, 2, 0]
        assert {one.level for one in found} == {line_pb2.LEVEL_INFO}

    _on_a_server(tmp_path, scenario)
