"""The calls of a supervisor to the control plane."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Protocol, cast

import grpc

from resolute.api.experiments.v1 import allocations_service_pb2 as pb2
from resolute.api.experiments.v1.allocations_service_pb2_grpc import AllocationsServiceStub
from resolute.api.experiments.v1.experiment_pb2 import ExperimentKey
from resolute.api.experiments.v1.experiments_service_pb2 import GetModelDefinitionRequest
from resolute.api.experiments.v1.experiments_service_pb2_grpc import ExperimentsServiceStub
from resolute.api.experiments.v1.launch_spec_pb2 import LaunchSpec
from resolute.api.experiments.v1.machine_usage_pb2 import MachineUsage
from resolute.api.experiments.v1.run_environment_pb2 import RunEnvironment
from resolute.api.experiments.v1.run_pb2 import GpuUsage
from resolute.api.experiments.v1.secrets_service_pb2 import GetRunSecretsRequest
from resolute.api.experiments.v1.secrets_service_pb2_grpc import SecretsServiceStub
from resolute.api.preemption.v1.preemption_service_pb2 import (
    SignalSubscription,
    WatchSignalsRequest,
    WatchSignalsResponse,
)
from resolute.api.preemption.v1.preemption_service_pb2_grpc import PreemptionServiceStub
from resolute.api.preemption.v1.signal_pb2 import Signal, SignalReason
from resolute.contracts.run.exit_record import ExitRecord
from resolute.contracts.run.launch_order import LaunchOrder
from resolute.contracts.times import to_timestamp

CONTROL_DEADLINE = 10.0
FETCH_DEADLINE = 600.0
RENDEZVOUS_DEADLINE = 5.0
"""Short, because a run that is killed at the start barrier waits for it; the call is repeated."""


class SignalStream(Protocol):
    """A stream of signals that can be cancelled."""

    def __iter__(self) -> Iterator[WatchSignalsResponse]: ...

    def cancel(self) -> None:
        """Cancels it; its iteration raises an error."""


class ControlPlane:
    """The calls of one container, with their deadlines.

    Args:
        channel: A channel of ``resolute.rpc``.
        order: The launch order, which names the allocation and the container.
    """

    def __init__(self, channel: grpc.Channel, order: LaunchOrder) -> None:
        self._allocation = order.allocation_id
        self._rank = order.container_rank
        self._allocations = AllocationsServiceStub(channel)
        self._experiments = ExperimentsServiceStub(channel)
        self._preemption = PreemptionServiceStub(channel)
        self._secrets = SecretsServiceStub(channel)

    def launch_spec(self) -> LaunchSpec:
        """Fetches what to run."""
        request = pb2.GetLaunchSpecRequest(allocation_id=self._allocation, container_rank=self._rank)
        return self._allocations.GetLaunchSpec(request, timeout=CONTROL_DEADLINE).spec

    def run_secrets(self) -> dict[str, str]:
        """Fetches the values of the secrets that the config of the run names."""
        request = GetRunSecretsRequest(allocation_id=self._allocation)
        return dict(self._secrets.GetRunSecrets(request, timeout=CONTROL_DEADLINE).values)

    def model_definition(self, experiment_id: str) -> Iterator[bytes]:
        """Fetches the archive of the model definition, in chunks."""
        request = GetModelDefinitionRequest(experiment=ExperimentKey(experiment_id=experiment_id))
        for response in self._experiments.GetModelDefinition(request, timeout=FETCH_DEADLINE):
            yield response.chunk

    def rendezvous(self, *, address: str, slot_count: int, ports: Sequence[int]) -> pb2.RendezvousResponse:
        """Announces this container and waits a while for the others."""
        request = pb2.RendezvousRequest(
            allocation_id=self._allocation,
            container_rank=self._rank,
            address=address,
            slot_count=slot_count,
            ports=ports,
        )
        return self._allocations.Rendezvous(request, timeout=RENDEZVOUS_DEADLINE)

    def renew_lease(self, *, pid: int, hang: str = "", idle: str = "") -> pb2.RenewLeaseResponse:
        """Renews the lease of the run.

        Args:
            pid: Process id of the entrypoint; zero before it runs.
            hang: What keeps the container's processes from moving; empty while they move.
            idle: How little its GPUs do; empty while they do enough.
        """
        request = pb2.RenewLeaseRequest(
            allocation_id=self._allocation, container_rank=self._rank, pid=pid or None, hang=hang, idle=idle
        )
        return self._allocations.RenewLease(request, timeout=CONTROL_DEADLINE)

    def acknowledge_signal(self, revision: int) -> None:
        """Reports that the trial will exit because of the signal."""
        request = pb2.AcknowledgeSignalRequest(allocation_id=self._allocation, revision=revision)
        self._allocations.AcknowledgeSignal(request, timeout=CONTROL_DEADLINE)

    def request_preemption(self, reason: SignalReason.ValueType) -> Signal:
        """Asks for the preemption of the whole allocation."""
        request = pb2.RequestPreemptionRequest(allocation_id=self._allocation, reason=reason)
        return self._allocations.RequestPreemption(request, timeout=CONTROL_DEADLINE).signal

    def report_environment(self, environment: RunEnvironment) -> None:
        """Reports the software and the machine of the run."""
        request = pb2.ReportEnvironmentRequest(allocation_id=self._allocation, environment=environment)
        self._allocations.ReportEnvironment(request, timeout=CONTROL_DEADLINE)

    def report_machine_usage(self, usage: MachineUsage) -> None:
        """Reports what the machine of this container did so far."""
        request = pb2.ReportMachineUsageRequest(
            allocation_id=self._allocation, container_rank=self._rank, usage=usage
        )
        self._allocations.ReportMachineUsage(request, timeout=CONTROL_DEADLINE)

    def report_exit(self, record: ExitRecord) -> None:
        """Reports how this container ended."""
        request = pb2.ReportExitRequest(
            allocation_id=self._allocation,
            container_rank=self._rank,
            exit_code=record.exit_code,
            acknowledged=record.acknowledged,
            early_exit_reason=pb2.EarlyExitReason.Value(
                f"EARLY_EXIT_REASON_{record.early_exit_reason or 'UNSPECIFIED'}"
            ),
            failure=record.failure,
            failed_before_entrypoint=record.failed_before_entrypoint,
            end_time=to_timestamp(record.end_time),
            initialize_time=to_timestamp(record.initialized_at) if record.initialized_at else None,
            left_out=record.left_out,
            gpu_usage=None if record.gpu_usage is None else GpuUsage(**asdict(record.gpu_usage)),
        )
        self._allocations.ReportExit(request, timeout=CONTROL_DEADLINE)

    def watch_signal(self, *, after_revision: int) -> SignalStream:
        """Watches the signal."""
        subscription = SignalSubscription(
            key=self._allocation, allocation_id=self._allocation, after_revision=after_revision
        )
        request = WatchSignalsRequest(subscriptions=[subscription])
        stream: Iterable[WatchSignalsResponse] = self._preemption.WatchSignals(request)
        return cast("SignalStream", stream)
