"""The merged watch: all kinds of news by one stream, parts that end, callers who go."""

from __future__ import annotations

import asyncio
import json
import struct
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from faults.fuzz.world import Caller
from google.protobuf import json_format
from support.services.gateway import gateway
from support.services.in_process import Running, serving
from support.services.logs import columns, line
from support.services.metrics import block
from support.services.stand_ins.scripted_grpc import scripted_grpc

from resolute.api.experiments.v1 import experiments_service_pb2
from resolute.api.gateway.v1 import gateway_service_pb2 as api
from resolute.api.logs.v1 import logs_service_pb2
from resolute.contracts.calls.tls import aio_channel
from resolute.errors import InvalidArgumentError, UnavailableError
from resolute_embedded.blueprints import BLUEPRINTS
from resolute_gateway.backends import Backends
from resolute_gateway.rpc.sign_in import SignInCheck
from resolute_gateway.watch.merged import MergedWatches
from resolute_gateway.watch.parts import wanted_by
from resolute_gateway.watch.service import GatewayServicer
from resolute_gateway.watch.unchecked import UncheckedWatch
from resolute_serving.context import TrialRun

WATCH = "/resolute.api.gateway.v1.GatewayService/Watch"
LINES = "/resolute.api.logs.v1.LogsService/FollowLines"
EXPERIMENTS = "/resolute.api.experiments.v1.ExperimentsService/WatchExperiments"
TRIALS = 8
CONFIG = "{name: watched, entrypoint: 'true', searcher: {name: single, metric: loss, max_length: 1}}"


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(scenario(), 120))


class Reports:
    """Reports of some trials."""

    def __init__(self, running: Running) -> None:
        self.runs = [TrialRun(str(uuid.uuid4()), 1, str(uuid.uuid4()), "a", "w") for _ in range(TRIALS)]
        self._caller = Caller(running)
        self._tokens = [running.trial_token(one) for one in self.runs]
        self._sent = 0

    async def send(self) -> None:
        """Sends a line and a point of each trial."""
        for one, token in zip(self.runs, self._tokens, strict=True):
            owner = {
                "trial_id": one.trial_id,
                "run": 1,
                "source": "s",
                "experiment_id": one.experiment_id,
                "first_sequence": self._sent,
            }
            text = columns([line(f"line {self._sent}")])
            await self._caller.call("IngestLines", token=token, lines=text, **owner)
            points = [block("training", [self._sent], [self._sent], loss=[float(self._sent)])]
            await self._caller.call("IngestReports", token=token, count=1, blocks=points, **owner)
        self._sent += 1

    async def experiment(self) -> Any:
        """Creates an experiment that waits."""
        return (
            await self._caller.call(
                "CreateExperiment",
                token=self._caller.admin,
                request_id=str(uuid.uuid4()),
                spec={"config_yaml": CONFIG, "paused": True},
            )
        ).experiment

    async def rename(self, experiment_id: str) -> None:
        """Changes the experiment."""
        await self._caller.call(
            "UpdateExperiment",
            token=self._caller.admin,
            key={"experiment_id": experiment_id},
            experiment={"name": "renamed"},
            update_mask={"paths": ["name"]},
        )

    async def close(self) -> None:
        """Closes the connection."""
        await self._caller.channel.close()

    def request(self, experiment: Any) -> api.WatchRequest:
        """Asks for everything."""
        key: Any = {"number": experiment.number}
        subscription = experiments_service_pb2.WatchExperimentsRequest.ExperimentSubscription
        wanted = api.WatchRequest()
        wanted.experiments.experiments.append(subscription(key="e", experiment=key, include_trials=True))
        wanted.experiments.queue.key = "q"
        wanted.searches.subscriptions.add(key="s", search_id=experiment.experiment_id)
        for number, one in enumerate(self.runs):
            wanted.lines.subscriptions.add(key=str(number)).filter.trial_id = one.trial_id
            wanted.series.subscriptions.add(
                key=str(number), trial_id=one.trial_id, group="training", name="loss"
            )
        return wanted


def watching(channel: grpc.aio.Channel, request: api.WatchRequest, token: str) -> Any:
    call: Any = channel.unary_stream(
        WATCH,
        request_serializer=lambda message: message.SerializeToString(),
        response_deserializer=api.WatchResponse.FromString,
    )
    return call(request, metadata=[("authorization", f"Bearer {token}")])


async def until(news: Any, *wanted: Callable[[api.WatchResponse], bool]) -> None:
    """Reads until each of some things has come."""
    left = list(wanted)
    while left:
        response = await news.read()
        left = [one for one in left if not one(response)]


def log_line(key: int, text: str) -> Callable[[api.WatchResponse], bool]:
    return lambda got: got.lines.key == str(key) and text in [one.message for one in got.lines.lines]


def point(key: int, step: int) -> Callable[[api.WatchResponse], bool]:
    return lambda got: got.series.key == str(key) and step in got.series.steps


def experiment_named(name: str) -> Callable[[api.WatchResponse], bool]:
    return lambda got: got.experiments.experiment_change.experiment.name == name


def test_one_stream_has_the_news_of_experiments_queue_searches_series_and_logs(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(BLUEPRINTS, tmp_path) as running:
            reports = Reports(running)
            experiment = await reports.experiment()
            await reports.send()
            async with aio_channel(running.address, tls=None, options=()) as channel:
                news = watching(channel, reports.request(experiment), running.user_token())
                await until(
                    news,
                    experiment_named("watched"),
                    lambda got: got.experiments.HasField("queue_change"),
                    lambda got: got.searches.HasField("status"),
                    *(log_line(number, "line 0") for number in range(TRIALS)),
                    *(point(number, 0) for number in range(TRIALS)),
                )
                await reports.send()
                await reports.rename(experiment.experiment_id)
                await until(
                    news,
                    experiment_named("renamed"),
                    *(log_line(number, "line 1") for number in range(TRIALS)),
                    *(point(number, 1) for number in range(TRIALS)),
                )
                news.cancel()
            await reports.close()

    run(scenario)


def test_a_part_that_fails_or_is_complete_ends_without_the_others(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(BLUEPRINTS, tmp_path) as running:
            reports = Reports(running)
            await reports.send()
            request = api.WatchRequest()
            log = request.lines.subscriptions.add(key="l")
            log.filter.trial_id = reports.runs[0].trial_id
            missing = request.experiments.experiments.add(key="e")
            missing.experiment.number = 999
            caller = Caller(running)
            async with aio_channel(running.address, tls=None, options=()) as channel:
                news = watching(channel, request, running.user_token())
                ends = {}
                async for response in news:
                    if response.HasField("end"):
                        ends[response.end.part] = response.end.code
                        if response.end.part == api.PART_EXPERIMENTS:
                            await caller.call(
                                "CloseTrialLogs", token=caller.service, trial_id=log.filter.trial_id
                            )
            await caller.channel.close()
            await reports.close()
        assert ends == {api.PART_EXPERIMENTS: grpc.StatusCode.NOT_FOUND.value[0], api.PART_LINES: 0}

    run(scenario)


def test_what_ends_for_one_view_goes_on_for_the_others(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(BLUEPRINTS, tmp_path) as running:
            reports = Reports(running)
            experiment = await reports.experiment()
            request = api.WatchRequest()
            for key, number in (("first", experiment.number), ("second", 999)):
                view = request.views.add(key=key)
                # The keys of what each wants may be the same.
                view.experiments.experiments.add(key="1").experiment.number = number
                view.experiments.experiments[0].include_trials = True
            async with aio_channel(running.address, tls=None, options=()) as channel:
                news = watching(channel, request, running.user_token())
                await until(
                    news,
                    lambda got: got.view == "first" and experiment_named("watched")(got),
                    lambda got: got.view == "second" and got.end.code == grpc.StatusCode.NOT_FOUND.value[0],
                )
                await reports.rename(experiment.experiment_id)
                await until(news, lambda got: got.view == "first" and experiment_named("renamed")(got))
                news.cancel()
            await reports.close()

    run(scenario)


@pytest.mark.parametrize("keys", [["same", "same"], [""], [str(number) for number in range(33)]])
def test_views_have_keys_of_their_own_and_are_few(keys: list[str]) -> None:
    request = api.WatchRequest()
    for key in keys:
        request.views.add(key=key).lines.SetInParent()
    with pytest.raises(InvalidArgumentError, match="view"):
        wanted_by(request)


def test_a_view_that_wants_nothing_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="has no part"):
        wanted_by(api.WatchRequest(views=[api.WatchRequest.View(key="empty")]))


@pytest.mark.parametrize(
    ("token", "code"),
    [("nonsense", grpc.StatusCode.UNAUTHENTICATED), ("", grpc.StatusCode.INVALID_ARGUMENT)],
)
def test_strangers_and_empty_requests_are_refused(tmp_path: Path, token: str, code: grpc.StatusCode) -> None:
    async def scenario() -> None:
        async with serving(BLUEPRINTS, tmp_path) as running:
            request = api.WatchRequest()
            if token:
                request.lines.subscriptions.add(key="l").filter.trial_id = str(uuid.uuid4())
            async with aio_channel(running.address, tls=None, options=()) as channel:
                with pytest.raises(grpc.aio.AioRpcError) as refused:
                    await watching(channel, request, token or running.user_token()).read()
        assert refused.value.code() is code

    run(scenario)


def test_what_cannot_be_read_is_refused_in_words_and_strangers_as_such(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with serving(BLUEPRINTS, tmp_path) as running:
            backends = Backends({"*": running.address})
            watches = MergedWatches(backends.channel)
            # As the gateway alone serves it, where no interceptor stands before it.
            server = grpc.aio.server()
            unchecked = UncheckedWatch(GatewayServicer(watches), SignInCheck(backends))
            server.add_generic_rpc_handlers((unchecked,))
            port = server.add_insecure_port("127.0.0.1:0")
            await server.start()
            codes = {}
            async with aio_channel(f"127.0.0.1:{port}", tls=None, options=()) as channel:
                watch: Any = channel.unary_stream(WATCH)
                for token in ("nonsense", running.user_token()):
                    metadata = (("authorization", f"Bearer {token}"),)
                    with pytest.raises(grpc.aio.AioRpcError) as refused:
                        await watch(b"\xff\xff", metadata=metadata).read()
                    codes[token == "nonsense"] = refused.value.code()
            watches.close()
            await server.stop(None)
            await backends.close()
        assert codes == {True: grpc.StatusCode.UNAUTHENTICATED, False: grpc.StatusCode.INVALID_ARGUMENT}
        assert not [record for record in caplog.records if record.exc_info]

    run(scenario)


def json_messages(data: bytes) -> Iterator[bytes]:
    """The messages of a stream of Connect, without what tells its end."""
    while data:
        (flags, length), data = struct.unpack(">BI", data[:5]), data[5:]
        if not flags:
            yield data[:length]
        data = data[length:]


def test_a_page_reads_it_as_json(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with (
            serving(BLUEPRINTS, tmp_path) as running,
            gateway(running.address, token=running.user_token()) as http,
        ):
            reports = Reports(running)
            await reports.send()
            trial = reports.runs[0].trial_id
            caller = Caller(running)
            await caller.call("CloseTrialLogs", token=caller.service, trial_id=trial)
            wanted = {"lines": {"subscriptions": [{"key": "l", "filter": {"trialId": trial}}]}}
            body = json.dumps(wanted).encode()
            response = await http.post(
                WATCH, struct.pack(">BI", 0, len(body)) + body, kind="application/connect+json"
            )
            alive, lines, *_ = [
                json_format.Parse(text, api.WatchResponse()) for text in json_messages(response.data)
            ]
            assert alive == api.WatchResponse()
            assert [one.message for one in lines.lines.lines] == ["line 0"]
            await caller.channel.close()
            await reports.close()

    run(scenario)


def test_services_are_read_no_further_than_the_caller_reads_and_left_with_it() -> None:
    sent = 0
    left = asyncio.Event()
    one = logs_service_pb2.FollowLinesResponse(key="l", lines=[line("x" * 100_000)]).SerializeToString()

    async def endless(data: bytes, context: Any) -> AsyncIterator[bytes]:
        nonlocal sent
        try:
            while True:
                yield one
                sent += 1
        finally:
            left.set()

    async def scenario() -> None:
        async with scripted_grpc(streams={LINES: endless}) as address:
            async with aio_channel(address, tls=None, options=()) as channel:
                watches = MergedWatches(lambda _: channel)
                request = api.WatchRequest(lines=logs_service_pb2.FollowLinesRequest())
                news = watches.watch(request, ())
                for taken in range(300):
                    await news.__anext__()
                    # What is under way: the queue, and the windows of one stream.
                    assert sent < taken + 200
                await news.aclose()  # type: ignore[attr-defined]
            await left.wait()

    run(scenario)


def test_a_gateway_that_stops_tells_its_callers_to_connect_again() -> None:
    async def silent(data: bytes, context: Any) -> AsyncIterator[bytes]:
        yield experiments_service_pb2.WatchExperimentsResponse().SerializeToString()
        await asyncio.Event().wait()

    async def scenario() -> None:
        async with (
            scripted_grpc(streams={EXPERIMENTS: silent}) as address,
            aio_channel(address, tls=None, options=()) as channel,
        ):
            watches = MergedWatches(lambda _: channel)
            request = api.WatchRequest()
            request.experiments.SetInParent()
            news = watches.watch(request, ())
            assert not (await news.__anext__()).WhichOneof("event")
            watches.close()
            with pytest.raises(UnavailableError, match="connect again"):
                await news.__anext__()

    run(scenario)


def test_a_stream_shows_that_it_is_open_before_there_is_news(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(BLUEPRINTS, tmp_path) as running:
            request = api.WatchRequest()
            request.lines.subscriptions.add(key="l").filter.trial_id = str(uuid.uuid4())
            async with aio_channel(running.address, tls=None, options=()) as channel:
                assert await watching(channel, request, running.user_token()).read() == api.WatchResponse()

    run(scenario)
