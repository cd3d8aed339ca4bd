"""Handlers of AllocationsService, for supervisors and the preemption service."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from typing import Any, Protocol

import structlog
from sqlalchemy.engine import Connection

from resolute.api.experiments.v1 import allocations_service_pb2 as pb2
from resolute.api.experiments.v1 import allocations_service_pb2_grpc, launch_spec_pb2
from resolute.api.preemption.v1 import signal_pb2
from resolute.contracts.times import seconds_of, to_duration
from resolute_experiments.accounts import run_tokens
from resolute_experiments.accounts.store import users, workspaces
from resolute_experiments.allocations import hangs, idle_runs
from resolute_experiments.allocations.leases import Leases
from resolute_experiments.allocations.living_runs import living_run
from resolute_experiments.context import ServiceContext
from resolute_experiments.exits.recording import record_container_exit
from resolute_experiments.servicers.checks.environments import check_environment
from resolute_experiments.servicers.checks.gpu_usage import added_usage, check_usage
from resolute_experiments.servicers.checks.machine_usage import check_machine_usage
from resolute_experiments.servicers.messages.experiments import signal_message
from resolute_experiments.specs.identity import run_identity
from resolute_experiments.specs.launch import LaunchParameters, launch_spec
from resolute_experiments.states import TrialEvent, TrialState
from resolute_experiments.store import experiments, runs, trials
from resolute_experiments.timing import Timing
from resolute_experiments.topics import SIGNAL_CHANGES, Topic, watched
from resolute_experiments.transitions import signals, transition_trial
from resolute_experiments.transitions.signals import SignalReason
from resolute_experiments.window import Window
from resolute_serving.auth.tokens import TokenSigner
from resolute_serving.context import TrialRun
from resolute_serving.database.remembered import Remembered
from resolute_serving.following import PollIntervals, Turn, follow
from resolute_serving.validation import invalid

_RECHECK_SECONDS = 1.0
_PACE = PollIntervals(recheck=5.0, heartbeat=15.0)
"""How often the stream of signals looks without an event."""
_RENDEZVOUS_MARGIN = 1.0
"""Seconds before a call's own deadline at which it answers who is missing."""
_RENDEZVOUS_LONGEST = 30.0
_MAX_PORTS = 100
_FAILURE_LENGTH = 64 * 1024
_log = structlog.get_logger("allocations")


class _Note(Protocol):
    """Records a supervisor's statement about its container, with its consequences."""

    def __call__(
        self, connection: Connection, allocation_id: str, rank: int, sentence: str, *, timing: Timing
    ) -> None: ...


MOST_NOTES_A_MINUTE = 30
"""How often a run may say something else of what keeps it: each may be an alert."""


@dataclass(frozen=True, kw_only=True)
class _LeaseFacts:
    """The facts on which the renewal of a lease depends."""

    identity: TrialRun
    run: runs.Run
    container: runs.Container
    """The container that renews, as it was before."""
    news: bool
    """Whether the run's processes were not known before."""
    owner: users.Account | None
    token: run_tokens.RunToken | None
    """The token of the SDK in the run's scripts; None while it may not act for the owner."""


class AllocationsServicer(allocations_service_pb2_grpc.AllocationsServiceServicer):
    """The handlers of calls by supervisors of running trials.

    Args:
        core: The context that all handlers share.
        signer: Issues tokens.
        leases: The leases of running allocations.
        token_ttl: Seconds for which a trial's token is valid, long enough for an outage of this service.
    """

    def __init__(
        self, core: ServiceContext, *, signer: TokenSigner, leases: Leases, token_ttl: float
    ) -> None:
        self._core = core
        self._signer = signer
        self._leases = leases
        self._token_ttl = token_ttl
        self._signalled = Remembered(core.database, runs.signalled)
        self._noted = Window(core.clock, most=MOST_NOTES_A_MINUTE)

    async def GetLaunchSpec(
        self, request: pb2.GetLaunchSpecRequest, context: Any
    ) -> pb2.GetLaunchSpecResponse:
        """Gives everything that a container needs."""

        def work(connection: Connection) -> launch_spec_pb2.LaunchSpec:
            run = runs.get(connection, request.allocation_id)
            runs.container(connection, request.allocation_id, request.container_rank)
            return launch_spec(
                run=run,
                containers=runs.containers_of(connection, run.allocation_id),
                container_rank=request.container_rank,
                trial=trials.get(connection, trial_id=run.trial_id),
                experiment=experiments.get(connection, experiment_id=run.experiment_id),
                workspace=workspaces.of_experiment(connection, run.experiment_id),
                earlier=[past for past in runs.of_trial(connection, run.trial_id) if past.run < run.run],
                terms=LaunchParameters(
                    cluster_id=self._core.cluster_id,
                    lease_ttl=self._leases.ttl,
                    preemption_timeout=run.grace(self._core.preemption_timeout),
                    collective_key=self._signer.derive_secret(f"collectives of {run.allocation_id}"),
                ),
            )

        return pb2.GetLaunchSpecResponse(spec=await self._core.database.read(work))

    async def Rendezvous(self, request: pb2.RendezvousRequest, context: Any) -> pb2.RendezvousResponse:
        """Announces a container's address and waits for the others for as long as the call may."""
        allocation = request.allocation_id
        if len(request.ports) > _MAX_PORTS:
            raise invalid("ports", f"ports has {len(request.ports)} elements; {_MAX_PORTS} are allowed")

        def announce(connection: Connection) -> None:
            living_run(connection, allocation)
            runs.container(connection, allocation, request.container_rank)
            runs.update_container(
                connection,
                allocation,
                request.container_rank,
                address=request.address,
                ports=list(request.ports),
            )

        await self._core.database.write(announce)
        self._core.notifier.notify((allocation, "rendezvous"))
        longest = min(context.time_remaining() or _RENDEZVOUS_LONGEST, _RENDEZVOUS_LONGEST)
        deadline = self._core.clock.monotonic() + longest - _RENDEZVOUS_MARGIN
        with self._core.notifier.subscribe((allocation, "rendezvous")) as changes:
            while True:
                present = await self._core.database.read(lambda c: runs.containers_of(c, allocation))
                missing = [container.container_rank for container in present if not container.address]
                left = deadline - self._core.clock.monotonic()
                if not missing or left <= 0 or self._core.notifier.closed:
                    return _rendezvous(present, missing)
                await changes.wait(min(left, _RECHECK_SECONDS))

    async def RenewLease(self, request: pb2.RenewLeaseRequest, context: Any) -> pb2.RenewLeaseResponse:
        """Renews a lease, and answers with a fresh token and the signal."""
        allocation = request.allocation_id
        facts = await self._core.database.read(
            lambda c: _lease_facts(c, allocation, request.container_rank, request.pid)
        )
        if facts.news:
            timing = self._core.timing()
            await self._core.database.write(
                lambda c: confirm_running(
                    c, allocation, rank=request.container_rank, pid=request.pid, timing=timing
                )
            )
            self._core.notifier.notify(watched(facts.run.experiment_id))
        hang, idle = hangs.shortened(request.hang), hangs.shortened(request.idle)
        if hang != facts.container.hang and self._may_note(allocation):
            await self._note(facts.run, request.container_rank, hang, note=hangs.note_hang)
        if idle != facts.container.idle and self._may_note(allocation):
            await self._note(facts.run, request.container_rank, idle, note=idle_runs.note_idle)
        self._leases.renew(allocation, rank=request.container_rank)
        # A run without its owner goes on until its token expires; nothing takes its calls after that.
        renewed = facts.owner is None or facts.owner.active
        return pb2.RenewLeaseResponse(
            ttl=to_duration(self._leases.ttl),
            bearer_token=self._signer.trial(facts.identity, ttl=self._token_ttl) if renewed else "",
            user_token=await self._user_token(facts),
            signal=signal_message(facts.run),
        )

    def _may_note(self, allocation: str) -> bool:
        """Whether the run may say something else now; otherwise a later renewal does."""
        full = self._noted.full(allocation)
        if not full:
            self._noted.add(allocation)
        return not full

    async def _note(self, run: runs.Run, rank: int, sentence: str, *, note: _Note) -> None:
        timing = self._core.timing()
        await self._core.database.write(lambda c: note(c, run.allocation_id, rank, sentence, timing=timing))
        self._core.notifier.notify(watched(run.experiment_id), SIGNAL_CHANGES, run.experiment_id)

    async def _user_token(self, facts: _LeaseFacts) -> str:
        """Signs the token of the SDK in the run's scripts; empty if there is none."""
        owner, token = facts.owner, facts.token
        if owner is None or token is None:
            return ""
        now, ttl, record = self._core.clock.time(), self._token_ttl, token.record
        try:
            if record is None or token.is_due(now=now, ttl=ttl):
                record = await self._core.database.write(
                    lambda c: run_tokens.renew(c, facts.run, owner, now=now, ttl=ttl)
                )
        except Exception as failure:  # noqa: BLE001 - the lease is renewed whether or not scripts can sign in
            _log.warning(
                "token of the SDK was not renewed", allocation=facts.run.allocation_id, error=str(failure)
            )
        if record is None or record.expires_at <= now:
            return ""
        return self._signer.user(token.user, ttl=record.expires_at - now, token_id=record.id)

    async def AcknowledgeSignal(
        self, request: pb2.AcknowledgeSignalRequest, context: Any
    ) -> pb2.AcknowledgeSignalResponse:
        """Notes that the trial will exit because of its signal."""

        def work(connection: Connection) -> None:
            signals.acknowledge(connection, living_run(connection, request.allocation_id))

        await self._core.database.write(work)
        return pb2.AcknowledgeSignalResponse()

    async def RequestPreemption(
        self, request: pb2.RequestPreemptionRequest, context: Any
    ) -> pb2.RequestPreemptionResponse:
        """Preempts an allocation from within."""
        timing = self._core.timing()
        name = signal_pb2.SignalReason.Name(request.reason).removeprefix("SIGNAL_REASON_")
        reason = SignalReason.MACHINE if name == "UNSPECIFIED" else SignalReason(name)

        def work(connection: Connection) -> runs.Run:
            run = living_run(connection, request.allocation_id)
            trial = trials.get(connection, trial_id=run.trial_id)
            transition_trial(connection, trial, TrialEvent.PREEMPT, timing, reason=reason)
            return runs.get(connection, request.allocation_id)

        run = await self._core.database.write(work)
        self._core.notifier.notify(SIGNAL_CHANGES, run.experiment_id)
        return pb2.RequestPreemptionResponse(signal=signal_message(run))

    async def ReportEnvironment(
        self, request: pb2.ReportEnvironmentRequest, context: Any
    ) -> pb2.ReportEnvironmentResponse:
        """Keeps the software and the machine of a run. The first report stands."""
        check_environment(request.environment)
        content = request.environment.SerializeToString(deterministic=True)

        def work(connection: Connection) -> None:
            run = living_run(connection, request.allocation_id)
            runs.record_environment(connection, run.allocation_id, content)

        await self._core.database.write(work)
        return pb2.ReportEnvironmentResponse()

    async def ReportMachineUsage(
        self, request: pb2.ReportMachineUsageRequest, context: Any
    ) -> pb2.ReportMachineUsageResponse:
        """Keeps what the machine of a container did so far."""
        check_machine_usage(request.usage)
        content = request.usage.SerializeToString()

        def work(connection: Connection) -> None:
            run = living_run(connection, request.allocation_id)
            container = runs.container(connection, run.allocation_id, request.container_rank)
            runs.record_machine_usage(connection, run, container.container_rank, content)

        await self._core.database.write(work)
        return pb2.ReportMachineUsageResponse()

    async def ReportExit(self, request: pb2.ReportExitRequest, context: Any) -> pb2.ReportExitResponse:
        """Notes how a container ended. The first report of a container stands."""
        check_usage(request.gpu_usage)
        reason = pb2.EarlyExitReason.Name(request.early_exit_reason).removeprefix("EARLY_EXIT_REASON_")
        timing = self._core.timing()

        def work(connection: Connection) -> str:
            run = runs.get(connection, request.allocation_id)
            container = runs.container(connection, request.allocation_id, request.container_rank)
            if not container.over:
                if request.container_rank == 0 and request.HasField("initialize_time"):
                    initialized_at = seconds_of(request.initialize_time)
                    runs.update(connection, run.allocation_id, initialized_at=initialized_at)
                if request.HasField("gpu_usage"):
                    runs.update(connection, run.allocation_id, **added_usage(run, request.gpu_usage))
                record_container_exit(
                    connection,
                    run,
                    request.container_rank,
                    timing,
                    end_time=seconds_of(request.end_time),
                    exited=True,
                    exit_code=request.exit_code,
                    acknowledged=request.acknowledged or run.acknowledged,
                    early_exit_reason="" if reason == "UNSPECIFIED" else reason,
                    failure=request.failure[:_FAILURE_LENGTH],
                    left_out=request.left_out,
                )
            return run.experiment_id

        experiment_id = await self._core.database.write(work)
        self._leases.forget(request.allocation_id)
        self._core.notifier.notify(experiment_id)
        return pb2.ReportExitResponse()

    async def FollowSignalChanges(
        self, request: pb2.FollowSignalChangesRequest, context: Any
    ) -> AsyncIterator[pb2.FollowSignalChangesResponse]:
        """Sends the signals of all live allocations that have one at once, then every change."""
        sent: dict[str, int] | None = None

        async def look(_: Turn[Topic]) -> AsyncGenerator[pb2.FollowSignalChangesResponse, None]:
            nonlocal sent
            asked = await self._signalled.get()
            known, first = sent or {}, sent is None
            changed = [run for run in asked if known.get(run.allocation_id, 0) < run.signal_revision]
            sent = {run.allocation_id: run.signal_revision for run in asked}
            if changed or first:
                yield pb2.FollowSignalChangesResponse(
                    signals=[signal_message(run) for run in changed], reset=first
                )

        responses = follow(
            [SIGNAL_CHANGES],
            look,
            topics=lambda topic: (topic,),
            notifier=self._core.notifier,
            clock=self._core.clock,
            pace=_PACE,
            quiet=pb2.FollowSignalChangesResponse(),
        )
        async for response in responses:
            yield response


def _lease_facts(connection: Connection, allocation_id: str, rank: int, pid: int) -> _LeaseFacts:
    run = living_run(connection, allocation_id)
    trial = trials.get(connection, trial_id=run.trial_id)
    container = runs.container(connection, allocation_id, rank)
    news = bool(pid) and (container.pid != pid or trial.state is TrialState.STARTING)
    owner, identity = users.owner_of(connection, run.experiment_id), run_identity(connection, run)
    token = (
        run_tokens.find(connection, run, owner, workspace_id=identity.workspace_id)
        if owner is not None and owner.active
        else None
    )
    return _LeaseFacts(identity=identity, run=run, container=container, news=news, owner=owner, token=token)


def confirm_running(
    connection: Connection, allocation_id: str, *, rank: int, pid: int, timing: Timing
) -> None:
    """Writes down which process runs a container, and that its run holds its slots.

    Raises:
        RunSupersededError: The run has ended, or another has taken its place.
    """
    run = living_run(connection, allocation_id)
    runs.update_container(connection, allocation_id, rank, pid=pid)
    runs.note_slots(connection, run, timing.now)
    transition_trial(
        connection, trials.get(connection, trial_id=run.trial_id), TrialEvent.CONFIRM_RUNNING, timing
    )


def _rendezvous(present: list[runs.Container], missing: list[int]) -> pb2.RendezvousResponse:
    if missing:
        return pb2.RendezvousResponse(complete=False, missing_ranks=missing)
    peers = [
        pb2.RendezvousResponse.Peer(
            address=container.address, slot_count=len(container.slot_ids), ports=container.ports
        )
        for container in present
    ]
    return pb2.RendezvousResponse(complete=True, peers=peers)
