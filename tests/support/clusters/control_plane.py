"""A control plane of one allocation for the tests of supervisors: real gRPC, state in plain attributes."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import grpc
from support.ports import free_port

from resolute.api.experiments.v1 import allocations_service_pb2 as allocations
from resolute.api.experiments.v1 import allocations_service_pb2_grpc as allocations_grpc
from resolute.api.experiments.v1 import experiments_service_pb2 as experiments
from resolute.api.experiments.v1 import experiments_service_pb2_grpc as experiments_grpc
from resolute.api.experiments.v1.launch_spec_pb2 import LaunchSpec
from resolute.api.experiments.v1.machine_usage_pb2 import MachineUsage
from resolute.api.experiments.v1.run_environment_pb2 import RunEnvironment
from resolute.api.logs.v1 import line_pb2
from resolute.api.logs.v1 import logs_service_pb2 as logs
from resolute.api.logs.v1 import logs_service_pb2_grpc as logs_grpc
from resolute.api.metrics.v1 import metrics_service_pb2 as metrics
from resolute.api.metrics.v1 import metrics_service_pb2_grpc as metrics_grpc
from resolute.api.preemption.v1 import preemption_service_pb2 as preemption
from resolute.api.preemption.v1 import preemption_service_pb2_grpc as preemption_grpc
from resolute.api.preemption.v1.signal_pb2 import Signal
from resolute.contracts.calls.keepalive import TOLERANCE_OPTIONS
from resolute.contracts.times import to_duration
from resolute.contracts.values import to_value

WAIT_SECONDS = 60.0


def pack(files: Mapping[str, str]) -> bytes:
    """Makes a model definition of some files."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(text.encode()), 0o644
            archive.addfile(info, io.BytesIO(text.encode()))
    # Runs of one experiment have one archive, whenever it is packed here.
    return gzip.compress(buffer.getvalue(), mtime=0)


def make_spec(entrypoint: Any, *, archive: bytes = b"", **changes: Any) -> LaunchSpec:
    """Makes the spec of a run with one container; times are given in seconds."""
    config = {
        "entrypoint": entrypoint,
        "searcher": {"name": "single", "metric": "loss", "smaller_is_better": True},
        "environment": {"environment_variables": {"cpu": ["FROM_CONFIG=yes"], "cuda": [], "rocm": []}},
        **changes.pop("config", {}),
    }
    values: dict[str, Any] = {
        "allocation_id": "allocation-1",
        "container_count": 1,
        "slot_ids": [0],
        "experiment_id": str(uuid.uuid4()),
        "experiment_number": 7,
        "trial_id": str(uuid.uuid4()),
        "trial_number": 12,
        "run": 1,
        "hparams": to_value({"lr": 0.1, "layers": 2}),
        "trial_seed": 42,
        "config": to_value(config),
        "cluster_id": "cluster-1",
        "lease_ttl": 3.0,
        "preemption_timeout": 60.0,
        "model_definition_sha256": hashlib.sha256(archive).hexdigest() if archive else "",
        "trace_id": "trace-1",
        **changes,
    }
    for name in values.keys() & {"lease_ttl", "preemption_timeout", "termination_grace"}:
        values[name] = to_duration(values[name])
    return LaunchSpec(**values)


class ControlPlane(
    allocations_grpc.AllocationsServiceServicer,
    experiments_grpc.ExperimentsServiceServicer,
    logs_grpc.LogsServiceServicer,
    metrics_grpc.MetricsServiceServicer,
    preemption_grpc.PreemptionServiceServicer,
):
    """What the services would know. Tests read its attributes and wait for what they want to see."""

    def __init__(self, spec: LaunchSpec, *, archive: bytes = b"", host: str = "127.0.0.1") -> None:
        self.spec = spec
        self._host = host
        self.archive = archive
        self.changed = threading.Condition()
        self.signal = Signal(allocation_id=spec.allocation_id)
        self.refusal: tuple[grpc.StatusCode, str] | None = None
        """Answers every renewal, once set."""
        self.watches_answer = True
        self.takes_lines = True
        """Whether the logs service answers."""
        self.only_token = ""
        """The token that the logs service wants; empty for any."""
        self.pids: list[int] = []
        self.hangs: list[str] = []
        self.tokens: list[str] = []
        self.acknowledged: list[int] = []
        self.preemptions: list[int] = []
        self.exits: list[allocations.ReportExitRequest] = []
        self.environments: list[RunEnvironment] = []
        self.machine_usage: MachineUsage | None = None
        """What was told last."""
        self.announced: dict[int, allocations.RendezvousRequest] = {}
        self.lines: dict[str, list[line_pb2.Line]] = {}
        self.reports: dict[str, int] = {}
        self.calls: list[str] = []
        self.on_exit: Callable[[], None] = lambda: None
        self.port = free_port()
        self._server: grpc.Server | None = None

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"{self._host}:{self.port}"

    def start(self) -> None:
        """Begins to listen, again on the same port."""
        self._server = grpc.server(
            ThreadPoolExecutor(16, thread_name_prefix="control-plane"), options=TOLERANCE_OPTIONS
        )
        allocations_grpc.add_AllocationsServiceServicer_to_server(self, self._server)
        experiments_grpc.add_ExperimentsServiceServicer_to_server(self, self._server)
        logs_grpc.add_LogsServiceServicer_to_server(self, self._server)
        metrics_grpc.add_MetricsServiceServicer_to_server(self, self._server)
        preemption_grpc.add_PreemptionServiceServicer_to_server(self, self._server)
        self._server.add_insecure_port(self.address)
        self._server.start()

    def stop(self) -> None:
        """Goes away."""
        if self._server is not None:
            server, self._server = self._server, None
            with self.changed:
                self.changed.notify_all()
            server.stop(0).wait()

    def send_signal(self, **fields: Any) -> None:
        """Changes the signal."""
        with self.changed:
            changed = Signal(
                allocation_id=self.spec.allocation_id, revision=self.signal.revision + 1, **fields
            )
            self.signal.CopyFrom(changed)
            self.changed.notify_all()

    def wait_for(self, condition: Callable[[], Any], *, seconds: float = WAIT_SECONDS) -> None:
        """Waits until something has been seen here."""
        with self.changed:
            seen = self.changed.wait_for(condition, seconds)
        assert seen, f"not seen within {seconds} s; exits: {self.exits}, lines: {self.text()}"

    def text(self, *, stdtype: str | None = None) -> list[str]:
        """The messages of all lines, source after source."""
        return [
            line.message
            for lines in self.lines.values()
            for line in lines
            if stdtype is None or line.stdtype == stdtype
        ]

    def all_lines(self) -> list[line_pb2.Line]:
        """All lines, source after source."""
        return [line for lines in self.lines.values() for line in lines]

    def GetLaunchSpec(self, request: Any, context: Any) -> allocations.GetLaunchSpecResponse:  # noqa: N802
        self._note("GetLaunchSpec", context)
        spec = LaunchSpec()
        spec.CopyFrom(self.spec)
        spec.container_rank = request.container_rank
        return allocations.GetLaunchSpecResponse(spec=spec)

    def GetModelDefinition(self, request: Any, context: Any) -> Iterator[Any]:  # noqa: N802
        self._note("GetModelDefinition", context)
        assert request.experiment.experiment_id == self.spec.experiment_id
        for start in range(0, len(self.archive), 1000):
            yield experiments.GetModelDefinitionResponse(chunk=self.archive[start : start + 1000])

    def Rendezvous(self, request: Any, context: Any) -> allocations.RendezvousResponse:  # noqa: N802
        with self.changed:
            self.announced[request.container_rank] = request
            self.changed.notify_all()
            self.changed.wait_for(lambda: len(self.announced) == self.spec.container_count, 0.5)
            missing = [r for r in range(self.spec.container_count) if r not in self.announced]
            response = allocations.RendezvousResponse(complete=not missing, missing_ranks=missing)
            for rank in sorted(self.announced) if not missing else ():
                peer = self.announced[rank]
                response.peers.add(address=peer.address, slot_count=peer.slot_count, ports=peer.ports)
            return response

    def RenewLease(self, request: Any, context: Any) -> allocations.RenewLeaseResponse:  # noqa: N802
        self._note("RenewLease", context)
        if self.refusal is not None:
            context.abort(*self.refusal)
        with self.changed:
            self.pids.append(request.pid)
            if request.hang and request.hang not in self.hangs:
                self.hangs.append(request.hang)
            self.changed.notify_all()
            return allocations.RenewLeaseResponse(
                ttl=self.spec.lease_ttl, bearer_token=f"token-{len(self.pids)}", signal=self.signal
            )

    def AcknowledgeSignal(self, request: Any, context: Any) -> Any:  # noqa: N802
        with self.changed:
            self.acknowledged.append(request.revision)
            self.changed.notify_all()
        return allocations.AcknowledgeSignalResponse()

    def RequestPreemption(self, request: Any, context: Any) -> Any:  # noqa: N802
        with self.changed:
            self.preemptions.append(request.reason)
        self.send_signal(preempt=True, reason=request.reason)
        return allocations.RequestPreemptionResponse(signal=self.signal)

    def ReportEnvironment(self, request: Any, context: Any) -> Any:  # noqa: N802
        with self.changed:
            self.environments.append(request.environment)
            self.changed.notify_all()
        return allocations.ReportEnvironmentResponse()

    def ReportMachineUsage(self, request: Any, context: Any) -> Any:  # noqa: N802
        with self.changed:
            self.machine_usage = request.usage
        return allocations.ReportMachineUsageResponse()

    def ReportExit(self, request: Any, context: Any) -> allocations.ReportExitResponse:  # noqa: N802
        self._note("ReportExit", context)
        self.on_exit()
        with self.changed:
            self.exits.append(request)
            self.changed.notify_all()
        return allocations.ReportExitResponse()

    def WatchSignals(self, request: Any, context: Any) -> Iterator[Any]:  # noqa: N802
        (subscription,) = request.subscriptions
        seen = subscription.after_revision
        while context.is_active() and self._server is not None:
            with self.changed:
                if self.signal.revision == seen or not self.watches_answer:
                    self.changed.wait(0.2)
                    continue
                seen = self.signal.revision
            yield preemption.WatchSignalsResponse(key=subscription.key, signal=self.signal)

    def IngestLines(self, request: Any, context: Any) -> logs.IngestLinesResponse:  # noqa: N802
        if not self.takes_lines:
            context.abort(grpc.StatusCode.UNAVAILABLE, "the logs service is away")
        if self.only_token not in ("", _token_of(context)):
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "the token has expired")
        with self.changed:
            known = self.lines.setdefault(request.source, [])
            known.extend(lines_of(request.lines)[max(0, len(known) - request.first_sequence) :])
            self.changed.notify_all()
            return logs.IngestLinesResponse(next_sequence=len(known))

    def IngestReports(self, request: Any, context: Any) -> metrics.IngestReportsResponse:  # noqa: N802
        with self.changed:
            known = self.reports.get(request.source, 0)
            self.reports[request.source] = max(known, request.first_sequence + request.count)
            self.changed.notify_all()
            return metrics.IngestReportsResponse(next_sequence=self.reports[request.source])

    def _note(self, call: str, context: Any) -> None:
        with self.changed:
            self.calls.append(call)
            self.tokens.append(_token_of(context))
            self.changed.notify_all()


def _token_of(context: Any) -> str:
    return str(dict(context.invocation_metadata()).get("authorization", "")).removeprefix("Bearer ")


@contextmanager
def control_plane(
    entrypoint: Any,
    *,
    files: Mapping[str, str] | None = None,
    host: str = "127.0.0.1",
    **changes: Any,
) -> Iterator[ControlPlane]:
    """A control plane that listens, for one run, at an address of this machine."""
    archive = pack(files) if files else b""
    spec = make_spec(entrypoint, archive=archive, **changes)
    plane = ControlPlane(spec, archive=archive, host=host)  # type: ignore[abstract]  # what is not called is not there
    plane.start()
    try:
        yield plane
    finally:
        plane.stop()


def lines_of(columns: line_pb2.LineColumns) -> list[line_pb2.Line]:
    """Columns as lines, one by one."""
    lines = []
    for place, message in enumerate(columns.messages):
        writer = columns.writers[columns.writer_indexes[place]]
        line = line_pb2.Line(
            message=message,
            level=columns.levels[place],
            stdtype=writer.stdtype,
            origin=writer.origin,
            container=writer.container,
            agent=writer.agent,
        )
        line.time.FromNanoseconds(columns.times[place])
        if columns.ranks[place] >= 0:
            line.rank = columns.ranks[place]
        lines.append(line)
    return lines
