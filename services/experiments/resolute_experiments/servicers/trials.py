"""Handlers of TrialsService."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from sqlalchemy.engine import Connection

from resolute.api.experiments.v1 import run_pb2, trial_pb2
from resolute.api.experiments.v1 import trials_service_pb2 as pb2
from resolute.api.experiments.v1.machine_usage_pb2 import MachineUsage
from resolute.api.experiments.v1.run_environment_pb2 import RunEnvironment
from resolute.contracts.values import to_mapping, to_value
from resolute.errors import InvalidArgumentError, NotFoundError, RunSupersededError
from resolute_experiments.accounts.storage_quotas import StorageQuota
from resolute_experiments.accounts.store import users
from resolute_experiments.admission.config_reader import ConfigReader
from resolute_experiments.admission.storage_roots import StorageRoots
from resolute_experiments.context import ServiceContext
from resolute_experiments.lifecycle import commands, edits
from resolute_experiments.scheduling.wait_reasons import WaitReasons
from resolute_experiments.servicers.checks.page_bytes import shortened_page
from resolute_experiments.servicers.checks.sizes import check_metadata_size
from resolute_experiments.servicers.messages.experiments import transition_message, trial_message, trial_state
from resolute_experiments.specs.identity import run_identity
from resolute_experiments.specs.storage import storage
from resolute_experiments.states import RunOutcome
from resolute_experiments.store import experiments, runs, trial_transitions, trials
from resolute_experiments.store.experiments import Experiment
from resolute_experiments.store.runs import Run
from resolute_experiments.topics import SCHEDULER_WAKEUP, SIGNAL_CHANGES, watched
from resolute_experiments.transitions.signals import allocation_id
from resolute_experiments.unmanaged import tracking
from resolute_experiments.unmanaged.heartbeats import HeartbeatMonitor
from resolute_serving.auth.tokens import TokenSigner
from resolute_serving.context import current_token_expired
from resolute_serving.pagination import decode_token, encode_token, page_size
from resolute_serving.updates import check_etag, update_paths
from resolute_serving.validation import invalid, parse_uuid

_STATUS_LENGTH = 200
_FAILURE_LENGTH = 10_000
_DEFAULT_NUMBERS = 10_000
_MAX_NUMBERS = 20_000
"""Numbers and keys of as many trials take less than a megabyte."""
_MAX_TRIAL_IDS = 1000
_REPORTED_OUTCOMES: Mapping[int, RunOutcome] = {
    run_pb2.RUN_OUTCOME_COMPLETED: RunOutcome.COMPLETED,
    run_pb2.RUN_OUTCOME_FAILED: RunOutcome.FAILED,
    run_pb2.RUN_OUTCOME_INVALID_HP: RunOutcome.INVALID_HP,
}
"""How a run outside of the cluster may say that it ended."""


class TrialHandlers:
    """Shows trials, and handles the few requests that change one.

    Args:
        core: The context that all handlers share.
        wait_reasons: The reasons why trials wait.
        signer: Issues the tokens of runs outside of the cluster.
        reader: Reads configs.
        heartbeats: Receives the heartbeats.
        storage_quota: Checks whether a workspace may have more checkpoints.
        storage_roots: Checks where checkpoints may be stored.
        token_ttl: Seconds for which a token is valid.
    """

    def __init__(
        self,
        core: ServiceContext,
        *,
        wait_reasons: WaitReasons,
        signer: TokenSigner,
        reader: ConfigReader,
        heartbeats: HeartbeatMonitor,
        storage_quota: StorageQuota,
        storage_roots: StorageRoots,
        token_ttl: float,
    ) -> None:
        self._core = core
        self._wait_reasons = wait_reasons
        self._signer = signer
        self._reader = reader
        self._heartbeats = heartbeats
        self._storage_quota = storage_quota
        self._storage_roots = storage_roots
        self._token_ttl = token_ttl

    async def GetTrial(self, request: pb2.GetTrialRequest, context: Any) -> pb2.GetTrialResponse:
        """Returns a trial with its runs."""
        message = await self._core.database.read(
            lambda c: self._with_notes(c, self._core.trial(c, request.trial))
        )
        return pb2.GetTrialResponse(trial=message)

    async def ListTrials(self, request: pb2.ListTrialsRequest, context: Any) -> pb2.ListTrialsResponse:
        """Lists the trials of an experiment."""
        states = {trial_state(number) for number in request.states}
        if request.max_hparams < 0:
            raise invalid("max_hparams", f"max_hparams is {request.max_hparams}; it must be zero or above")
        _check_ids(request)

        def work(connection: Connection) -> pb2.ListTrialsResponse:
            experiment = self._core.experiment(connection, request.experiment)
            page_items, token = trials.page(connection, request, experiment.id, states=states)
            ids = [trial.id for trial in page_items] if request.include_runs else []
            history = runs.of_trials(connection, ids)
            times = runs.times_of(connection, [trial.id for trial in page_items])
            return pb2.ListTrialsResponse(
                trials=[
                    trial_message(
                        trial,
                        experiment,
                        explanation=self._wait_reasons.explain(trial),
                        times=times.get(trial.id),
                        runs=history.get(trial.id),
                        max_hparams=request.max_hparams if request.HasField("max_hparams") else None,
                    )
                    for trial in page_items
                ],
                next_page_token=token,
            )

        return await self._core.database.read(partial(shortened_page, work=work, request=request))

    async def ListTrialNumbers(
        self, request: pb2.ListTrialNumbersRequest, context: Any
    ) -> pb2.ListTrialNumbersResponse:
        """Lists the numbers of trials beside their keys."""
        size = page_size(request.page_size, default=_DEFAULT_NUMBERS, most=_MAX_NUMBERS)
        _check_ids(request)
        after = max(request.after_number, decode_token(request) or 0)

        def work(connection: Connection) -> pb2.ListTrialNumbersResponse:
            experiment = self._core.experiment(connection, request.experiment)
            numbers = trials.numbers(
                connection, experiment.id, after=after, limit=size + 1, trial_ids=request.trial_ids
            )
            page = numbers[:size]
            return pb2.ListTrialNumbersResponse(
                numbers=[item.number for item in page],
                trial_keys=[item.key for item in page],
                trial_ids=[item.trial_id for item in page] if request.trial_ids else (),
                next_page_token=encode_token(request, page[-1].number) if len(numbers) > size else "",
            )

        return await self._core.database.read(work)

    async def ListTrialTransitions(
        self, request: pb2.ListTrialTransitionsRequest, context: Any
    ) -> pb2.ListTrialTransitionsResponse:
        """Lists the changes of a trial's state with their reasons."""

        def work(connection: Connection) -> pb2.ListTrialTransitionsResponse:
            trial = self._core.trial(connection, request.trial)
            transitions, token = trial_transitions.page(connection, request, trial.id)
            return pb2.ListTrialTransitionsResponse(
                transitions=map(transition_message, transitions), next_page_token=token
            )

        return await self._core.database.read(work)

    async def GetRunEnvironment(
        self, request: pb2.GetRunEnvironmentRequest, context: Any
    ) -> pb2.GetRunEnvironmentResponse:
        """Returns the software and the machine of a run."""

        def work(connection: Connection) -> tuple[int, bytes | None]:
            trial = self._core.trial(connection, request.trial)
            number = request.run or trial.run
            if not 1 <= number <= trial.run:
                raise NotFoundError(f"{trial.label} has no run {number}; it has had {trial.run}")
            return number, runs.read_environment(connection, allocation_id(trial.id, number))

        number, content = await self._core.database.read(work)
        environment = None if content is None else RunEnvironment.FromString(content)
        return pb2.GetRunEnvironmentResponse(run=number, environment=environment)

    async def GetMachineUsage(
        self, request: pb2.GetMachineUsageRequest, context: Any
    ) -> pb2.GetMachineUsageResponse:
        """Returns what the machines of a run did."""

        def work(connection: Connection) -> tuple[int, Mapping[int, bytes]]:
            trial = self._core.trial(connection, request.trial)
            number = request.run or trial.run
            if not 0 <= number <= trial.run:
                raise NotFoundError(f"{trial.label} has no run {number}; it has had {trial.run}")
            return number, runs.read_machine_usage(connection, allocation_id(trial.id, number))

        number, found = await self._core.database.read(work)
        return pb2.GetMachineUsageResponse(
            run=number,
            containers=[
                pb2.GetMachineUsageResponse.Container(
                    container_rank=rank, usage=_usage(content, newest=request.newest)
                )
                for rank, content in found.items()
            ],
        )

    async def UpdateTrial(self, request: pb2.UpdateTrialRequest, context: Any) -> pb2.UpdateTrialResponse:
        """Changes what people write of a trial."""
        paths = update_paths(request.update_mask, allowed=edits.TRIAL_FIELDS)
        changes = edits.TrialEdits.read(request.trial, paths)
        now = self._core.clock.time()

        def work(connection: Connection) -> trial_pb2.Trial:
            trial = self._core.trial(connection, request.key)
            check_etag(request.etag, revision=trial.edit_revision, resource=trial.label)
            edits.apply_to_trial(connection, trial, changes, now=now)
            return self._with_notes(connection, trials.get(connection, trial_id=trial.id))

        message = await self._core.database.write(work)
        self._core.notifier.notify(watched(message.experiment_id))
        return pb2.UpdateTrialResponse(trial=message)

    async def KillTrial(self, request: pb2.KillTrialRequest, context: Any) -> pb2.KillTrialResponse:
        """Ends a trial at once; its experiment continues."""
        timing = self._core.timing()

        def work(connection: Connection) -> trial_pb2.Trial:
            trial = self._core.trial(connection, request.trial)
            commands.kill_trial(connection, trial, timing)
            return self._whole(connection, trials.get(connection, trial_id=trial.id))

        message = await self._core.database.write(work)
        self._core.notifier.notify(message.experiment_id, SCHEDULER_WAKEUP, SIGNAL_CHANGES)
        self._heartbeats.ended(message.experiment_id)
        return pb2.KillTrialResponse(trial=message)

    async def SetTrialStatus(
        self, request: pb2.SetTrialStatusRequest, context: Any
    ) -> pb2.SetTrialStatusResponse:
        """Says what a trial is doing and keeps its metadata; a superseded run is refused."""
        changes: dict[str, Any] = {}
        if request.HasField("status"):
            changes["status"] = request.status[:_STATUS_LENGTH]
        if request.HasField("metadata"):
            check_metadata_size(request)
            changes["metadata"] = to_mapping(request.metadata)

        def work(connection: Connection) -> trials.Trial:
            trial = trials.get(connection, trial_id=request.trial_id)
            if changes and trial.run == request.run and not trial.ended:
                trials.update(connection, trial, **changes)
            return trials.get(connection, trial_id=request.trial_id)

        trial = await self._core.database.write(work)
        self._core.notifier.notify(watched(trial.experiment_id))
        return pb2.SetTrialStatusResponse(metadata=to_value(trial.metadata))

    async def BeginRun(self, request: pb2.BeginRunRequest, context: Any) -> pb2.BeginRunResponse:
        """Keeps a run that continues, or has ended, outside of the cluster; or its experiment alone."""
        beginning = await self._run_start(request)
        timing = self._core.timing()
        if await self._core.database.read(lambda c: tracking.is_new(c, beginning)):
            await self._storage_roots.require(beginning.config)
            await self._storage_quota.admit(beginning.workspace)
        if request.experiment_only:
            begin_experiment = partial(tracking.begin_experiment, beginning=beginning, timing=timing)
            created = await self._core.database.write(begin_experiment)
            self._core.notifier.notify(watched(created.id))
            return pb2.BeginRunResponse(experiment_number=created.number)

        def work(connection: Connection) -> tuple[Run, Experiment, trial_pb2.Trial]:
            run = tracking.begin(connection, beginning, timing=timing)
            experiment = experiments.get(connection, experiment_id=run.experiment_id)
            return run, experiment, self._whole(connection, trials.get(connection, trial_id=run.trial_id))

        run, experiment, message = await self._core.database.write(work)
        self._heartbeats.note(run)
        searcher = experiment.config["searcher"]
        return pb2.BeginRunResponse(
            trial=message,
            token=await self._token(run),
            run=run.run,
            storage=storage(experiment.config),
            searcher_metric=searcher["metric"],
            smaller_is_better=searcher["smaller_is_better"],
            cluster_id=self._core.cluster_id,
            experiment_number=experiment.number,
        )

    async def RenewRun(self, request: pb2.RenewRunRequest, context: Any) -> pb2.RenewRunResponse:
        """Notes that a run outside of the cluster continues."""
        timing, expired = self._core.timing(), current_token_expired.get()

        def work(connection: Connection) -> tuple[bool, Run, bool]:
            ended = tracking.renew(connection, request.trial_id, request.run, timing=timing)
            run = runs.get(connection, allocation_id(request.trial_id, request.run))
            if ended and expired:
                raise RunSupersededError(
                    f"{run.label} has ended, and its token has expired; "
                    "`resolute sync` sends what it recorded",
                    resource=run.label,
                )
            owner = users.owner_of(connection, run.experiment_id)
            return ended, run, owner is None or owner.active

        ended, run, owner_active = await self._core.database.write(work)
        if not ended:
            self._heartbeats.note(run)
        # A run that has ended, or has no owner, keeps its token, which nothing takes once it has expired.
        token = await self._token(run) if owner_active and not ended else _present_token(context)
        return pb2.RenewRunResponse(token=token, ended=ended)

    async def EndRun(self, request: pb2.EndRunRequest, context: Any) -> pb2.EndRunResponse:
        """Ends a run outside of the cluster."""
        outcome = _REPORTED_OUTCOMES.get(request.outcome)
        if outcome is None:
            raise InvalidArgumentError("outcome must be COMPLETED, FAILED or INVALID_HP")
        ended_at = request.end_time.ToMicroseconds() / 1e6
        timing = self._core.timing()
        if ended_at:
            timing = replace(timing, now=ended_at)

        def work(connection: Connection) -> trial_pb2.Trial:
            tracking.end(
                connection,
                request.trial_id,
                request.run,
                outcome=outcome,
                failure=request.failure[:_FAILURE_LENGTH],
                left_out=request.left_out,
                timing=timing,
            )
            return self._whole(connection, trials.get(connection, trial_id=request.trial_id))

        message = await self._core.database.write(work)
        self._heartbeats.ended(message.experiment_id)
        return pb2.EndRunResponse(trial=message)

    async def _run_start(self, request: pb2.BeginRunRequest) -> tracking.RunStart:
        for field in ("external_experiment_id", "external_trial_id"):
            if len(getattr(request, field)) > tracking.MAX_EXTERNAL_ID:
                raise invalid(field, f"{field} is longer than {tracking.MAX_EXTERNAL_ID} characters")
        if request.external_trial_id and not request.external_experiment_id:
            raise invalid(
                "external_trial_id", "an external_trial_id names a trial only with external_experiment_id"
            )
        if request.experiment_only and not request.external_experiment_id:
            raise invalid(
                "external_experiment_id", "experiment_only needs one, by which runs find the experiment later"
            )
        check_metadata_size(request)
        read = await self._reader.unmanaged_run(request)
        return tracking.RunStart(
            request_id=parse_uuid(request.external_run_id, field="external_run_id"),
            name=request.name,
            config=read.config,
            hparams=read.hparams,
            metadata=read.metadata,
            started_at=request.start_time.ToMicroseconds() / 1e6 or self._core.clock.time(),
            external_experiment_id=request.external_experiment_id,
            external_trial_id=request.external_trial_id,
        )

    async def _token(self, run: Run) -> str:
        identity = await self._core.database.read(lambda c: run_identity(c, run))
        return self._signer.trial(identity, ttl=self._token_ttl)

    def _whole(self, connection: Connection, trial: trials.Trial) -> trial_pb2.Trial:
        history = runs.of_trial(connection, trial.id)
        containers = runs.containers_of(connection, history[-1].allocation_id) if history else []
        experiment = experiments.get(connection, experiment_id=trial.experiment_id)
        return trial_message(
            trial,
            experiment,
            explanation=self._wait_reasons.explain(trial),
            times=runs.times_of(connection, [trial.id]).get(trial.id),
            runs=history,
            containers=containers,
        )

    def _with_notes(self, connection: Connection, trial: trials.Trial) -> trial_pb2.Trial:
        message = self._whole(connection, trial)
        message.notes = trials.notes(connection, trial.id)
        return message


def _usage(content: bytes, *, newest: bool) -> MachineUsage:
    whole = MachineUsage.FromString(content)
    if not newest:
        return whole
    return MachineUsage(
        node=whole.node,
        start_time=whole.start_time + sum(whole.seconds[:-1]),
        seconds=whole.seconds[-1:],
        series=[MachineUsage.Series(name=series.name, values=series.values[-1:]) for series in whole.series],
    )


def _present_token(context: Any) -> str:
    header = dict(context.invocation_metadata()).get("authorization", "")
    return str(header).partition(" ")[2]


def _check_ids(request: pb2.ListTrialsRequest | pb2.ListTrialNumbersRequest) -> None:
    if len(request.trial_ids) > _MAX_TRIAL_IDS:
        many = len(request.trial_ids)
        raise invalid("trial_ids", f"trial_ids names {many} trials; name at most {_MAX_TRIAL_IDS}")
