"""A trial on a small cluster for tests of the SDK: real services and a sender, but no supervisor."""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.ports import free_port
from support.services.checkpoints import ANY_BUCKET
from support.services.in_process import Running, serving
from support.services.stand_ins import workspaces
from support.services.stand_ins.no_roles import NoRoles

import resolute
import resolute_metrics.blueprint
import resolute_searcher.blueprint
from resolute import info as info_module
from resolute.api.experiments.v1 import trials_service_pb2 as trials
from resolute.api.metrics.v1 import metrics_service_pb2 as metrics
from resolute.api.metrics.v1.metrics_service_pb2_grpc import MetricsServiceStub
from resolute.api.searcher.v1 import event_pb2 as event_pb
from resolute.api.searcher.v1 import search_spec_pb2 as spec_pb
from resolute.api.searcher.v1 import searcher_service_pb2 as searcher
from resolute.api.searcher.v1.searcher_service_pb2_grpc import SearcherServiceStub
from resolute.contracts.files.atomic_files import write_atomically
from resolute.contracts.run.directory import RunDirectory
from resolute.contracts.run.shared_memory.flags import Flags
from resolute.contracts.values import to_mapping, to_value
from resolute.info import ClusterInfo, RendezvousInfo, TrialInfo
from resolute.rpc.channel import open_channel
from resolute.runtime.connection import Connection
from resolute.spool.delivery.requests import RunIdentity
from resolute.spool.delivery.sender import SpoolSender
from resolute.spool.delivery.sender_thread import SenderThread
from resolute.spool.delivery.services import ReportDelivery
from resolute_serving.context import TrialRun
from resolute_serving.server.service import Blueprint, Environment

DEADLINE = 30.0


class TrialsServiceStub:
    """The one call of the trials service that a trial makes, without experiments around it."""

    name = "trials"
    grpc_names: Sequence[str] = ()
    access_lookup = NoRoles()

    def __init__(self) -> None:
        self.statuses: list[str] = []
        self.metadata: dict[str, Any] = {}

    async def take(self, request: trials.SetTrialStatusRequest, _: Any) -> trials.SetTrialStatusResponse:
        if request.status:
            self.statuses.append(request.status)
        if request.HasField("metadata"):
            self.metadata = to_mapping(request.metadata)
        return trials.SetTrialStatusResponse(metadata=to_value(self.metadata))

    def register(self, server: grpc.aio.Server) -> None:
        handler = grpc.unary_unary_rpc_method_handler(
            self.take,
            request_deserializer=trials.SetTrialStatusRequest.FromString,
            response_serializer=trials.SetTrialStatusResponse.SerializeToString,
        )
        service = "resolute.api.experiments.v1.TrialsService"
        server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(service, {"SetTrialStatus": handler}),)
        )

    async def start(self) -> None: ...

    async def stop(self) -> None: ...


class Services:
    """The services in a thread of their own; they can go away and come back."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._port = free_port()
        self._key = Ed25519PrivateKey.generate()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="test-services", daemon=True)
        self._thread.start()
        self._stack: AsyncExitStack | None = None
        self.notes = TrialsServiceStub()
        self.running: Running

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._port}"

    def up(self) -> None:
        self.running = self._run(self._up())

    def down(self) -> None:
        self._run(self._down())

    def end(self) -> None:
        self.down()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(DEADLINE)
        self._loop.close()

    async def _up(self) -> Running:
        def notes(environment: Environment) -> TrialsServiceStub:
            return self.notes

        self._stack = AsyncExitStack()
        return await self._stack.enter_async_context(
            serving(
                [
                    resolute_metrics.blueprint.BLUEPRINT,
                    resolute_searcher.blueprint.BLUEPRINT,
                    ANY_BUCKET,
                    Blueprint(name="trials", package="", create=notes),
                    workspaces.BLUEPRINT,
                ],
                self._path,
                key=self._key,
                port=self._port,
            )
        )

    async def _down(self) -> None:
        if self._stack is not None:
            await self._stack.aclose()
            self._stack = None

    def _run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(DEADLINE)


@dataclass
class Trial:
    """One trial of one search, with a run directory and anyone who sends what it reports."""

    path: Path
    services: Services
    experiment_id: str
    trial_id: str
    run: int = 1
    config: dict[str, Any] = field(default_factory=dict)
    time_metric: str = ""
    metric: str = "loss"
    """What the search decides by."""

    def __post_init__(self) -> None:
        self.directory = RunDirectory(self.path / f"run{self.run}")
        self.directory.prepare()
        self.flags = Flags(self.directory.flags_file)
        write_atomically(self.directory.token_file, self.services.running.trial_token(self._principal))
        self._channel = open_channel(self.services.address, token=self.directory.read_token)
        identity = RunIdentity(
            self.trial_id,
            self.run,
            self.experiment_id,
            searcher_metric="loss",
            smaller_is_better=True,
            time_metric=self.time_metric,
        )
        sender = SpoolSender(self.directory.spool, ReportDelivery.over(self._channel, identity))
        self.sender = SenderThread(sender, name="test-sender", idle_seconds=0.02)
        self.sender.start()

    @property
    def _principal(self) -> TrialRun:
        return TrialRun(
            self.trial_id, self.run, self.experiment_id, f"{self.trial_id}.{self.run}", "workspace"
        )

    @property
    def info(self) -> ClusterInfo:
        return ClusterInfo(
            master_url=f"http://{self.services.address}",
            cluster_id="cluster",
            agent_id="agent",
            slot_ids=[0],
            task_id="task",
            allocation_id=f"{self.trial_id}.{self.run}",
            session_token="",
            task_type="TRIAL",
            trial_info=TrialInfo(12, 7, 3, {"lr": 0.1}, self.config, 0, self.run),
            rendezvous_info=RendezvousInfo(["127.0.0.1"], 0, [1]),
            connection=Connection(
                address=self.services.address,
                experiment_id=self.experiment_id,
                trial_id=self.trial_id,
                run=self.run,
                token_path=str(self.directory.token_file),
                storage={"directory": {"path": str(self.path / "checkpoints")}},
                searcher_metric=self.metric,
                time_driven=bool(self.time_metric),
                trace_id="trace",
            ),
        )

    def enter(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Makes this process one of the trial's; it works in a directory for the trial's code alone."""
        code = self.path / "code"
        code.mkdir(exist_ok=True)
        monkeypatch.chdir(code)
        self.info.write(self.directory.info)
        monkeypatch.setenv("RESOLUTE_RUN_DIR", str(self.directory.path))
        monkeypatch.setenv("RESOLUTE_INFO_DIR", str(self.directory.info))
        monkeypatch.setattr(info_module, "_info", "unloaded")
        monkeypatch.setattr(resolute, "get_cluster_info", info_module.get_cluster_info)

    def environment(self) -> dict[str, str]:
        """What makes another process one of the trial's."""
        self.info.write(self.directory.info)
        return {
            "RESOLUTE_RUN_DIR": str(self.directory.path),
            "RESOLUTE_INFO_DIR": str(self.directory.info),
        }

    def series(self, group: str, name: str) -> list[tuple[int, float]]:
        """What arrives of a metric once all is sent that was reported: steps and values."""
        assert self.sender.drain(30)
        channel = open_channel(self.services.address, token=self.services.running.user_token)
        request = metrics.GetSeriesRequest(trial_id=self.trial_id, group=group, name=name)
        found = MetricsServiceStub(channel).GetSeries(request)
        channel.close()
        return list(zip(found.steps, found.values, strict=True))

    def end(self) -> None:
        self.sender.stop()
        self._channel.close()
        self.flags.close()


@contextmanager
def cluster(
    tmp_path: Path,
    *,
    max_length: int = 8,
    unit: str = "batches",
    halving: spec_pb.AsyncHalvingMethod | None = None,
    time_metric: str = "",
) -> Iterator[Trial]:
    """Serves an experiment and yields its first trial.

    The search gives operations, several by halving; with a time metric, validation reports drive it.
    """
    services = Services(tmp_path / "services")
    (tmp_path / "services").mkdir()
    services.up()
    try:
        experiment_id = str(uuid.uuid4())
        trial = Trial(
            tmp_path,
            services,
            experiment_id,
            _first_trial(services, experiment_id, max_length, halving, time_metric),
            config={"searcher": {"name": "single", "max_length": {unit: max_length}}},
            time_metric=time_metric,
        )
        try:
            yield trial
        finally:
            trial.end()
    finally:
        services.end()


def _first_trial(
    services: Services,
    search_id: str,
    max_length: int,
    halving: spec_pb.AsyncHalvingMethod | None,
    time_metric: str,
) -> str:
    """Creates a search and tells it that its first trial exists, as the experiments service does."""
    channel = open_channel(services.address, token=services.running.service_token)
    stub = SearcherServiceStub(channel)
    spec = spec_pb.SearchSpec(
        metric="loss",
        smaller_is_better=True,
        seed=1,
        space=spec_pb.Space(),
        time_metric=time_metric or None,
        single=None if halving else spec_pb.SingleMethod(max_length=max_length),
        async_halving=halving,
    )
    stub.CreateSearch(searcher.CreateSearchRequest(search_id=search_id, spec=spec))
    stream = stub.FollowActions(searcher.FollowActionsRequest(search_id=search_id))
    create = next(action.create_trial for answer in stream for action in answer.actions)
    stream.cancel()
    event = event_pb.Event(
        event_id="created", trial_created=event_pb.Event.TrialCreated(trial_key=create.trial_key)
    )
    stub.ReportEvents(searcher.ReportEventsRequest(search_id=search_id, events=[event]))
    channel.close()
    return create.trial_id
