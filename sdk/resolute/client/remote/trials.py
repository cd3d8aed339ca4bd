"""The trials of experiments."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from google.protobuf import json_format
from google.protobuf.field_mask_pb2 import FieldMask

from resolute.api.experiments.v1 import run_pb2, trial_pb2, trials_service_pb2, trials_service_pb2_grpc
from resolute.client.connection.paging import all_items
from resolute.client.connection.session import Session
from resolute.client.schema import convert
from resolute.client.schema.environments import EnvironmentRecord, environment
from resolute.client.schema.machines import MachineUsage, machine_usage
from resolute.client.schema.records import TrialRecord
from resolute.client.schema.transitions import TransitionRecord, transition
from resolute.contracts.messages import datetime_field
from resolute.contracts.run.exit_record import ExitRecord
from resolute.contracts.values import to_value
from resolute.errors import UnimplementedError
from resolute.runtime.offline_run import OfflineRun


@dataclass(frozen=True)
class StartedRun:
    """The cluster's record of a run outside of it."""

    trial: TrialRecord
    run: int
    """Number within the trial, from 1."""
    token: str
    """Lets the holder speak for the run, for some hours."""
    storage: dict[str, Any]
    """Where checkpoints go, as the JSON form of ``checkpoints.v1.Storage``."""
    searcher_metric: str
    smaller_is_better: bool
    cluster_id: str


@dataclass(frozen=True)
class HeartbeatResponse:
    """The response to the heartbeat of a run outside of the cluster."""

    token: str
    """Replaces the one it has."""
    ended: bool
    """Whether it is to end."""


@dataclass(frozen=True)
class RunFileRecord:
    """A file that a run left behind."""

    path: str
    """Relative, with the rank of its container first."""
    size: int
    """Bytes."""


@dataclass(frozen=True)
class RunFiles:
    """The stored files of a run."""

    run: int
    hold_time: datetime | None
    """Until when."""
    files: tuple[RunFileRecord, ...]


class Trials:
    """Calls of the trials service.

    Args:
        session: The connection.
    """

    def __init__(self, session: Session) -> None:
        self._stub = session.stub(trials_service_pb2_grpc.TrialsServiceStub)

    def get(self, key: int | str) -> TrialRecord:
        """Returns a trial with its runs.

        Raises:
            NotFoundError: There is none.
        """
        request = trials_service_pb2.GetTrialRequest(trial=convert.trial_key(key))
        return convert.trial(self._stub.GetTrial(request).trial)

    def list(
        self, experiment: int | str, *, order_by: str = "", limit: int | None = None, with_runs: bool = False
    ) -> Iterator[TrialRecord]:
        """Yields the trials of an experiment.

        Args:
            experiment: The experiment.
            order_by: Fields of the API, such as ``"best_validation desc"``; empty for their numbers.
            limit: Most of them; None for all.
            with_runs: Also ask for the runs of each trial.
        """
        request = trials_service_pb2.ListTrialsRequest(
            experiment=convert.experiment_key(experiment), order_by=order_by, include_runs=with_runs
        )
        for message in all_items(self._stub.ListTrials, request, "trials", limit=limit):
            yield convert.trial(message)

    def transitions(self, key: int | str) -> Iterator[TransitionRecord]:
        """Yields the changes of a trial's state, oldest first, with their reasons."""
        request = trials_service_pb2.ListTrialTransitionsRequest(trial=convert.trial_key(key))
        for message in all_items(self._stub.ListTrialTransitions, request, "transitions"):
            yield transition(message)

    def environment(self, key: int | str, run: int) -> EnvironmentRecord | None:
        """Returns the software and the machine of a run; None when they were not recorded.

        Raises:
            NotFoundError: There is no such trial or run.
        """
        request = trials_service_pb2.GetRunEnvironmentRequest(trial=convert.trial_key(key), run=run)
        response = self._stub.GetRunEnvironment(request)
        return environment(response.environment) if response.HasField("environment") else None

    def machine_usage(self, key: int | str, *, run: int = 0, newest: bool = False) -> Sequence[MachineUsage]:
        """Reads what the machines of a run did, by the rank of its containers.

        Args:
            key: The trial.
            run: The run; zero for the newest.
            newest: Whether only the newest period is wanted.
        """
        request = trials_service_pb2.GetMachineUsageRequest(
            trial=convert.trial_key(key), run=run, newest=newest
        )
        return [machine_usage(container) for container in self._stub.GetMachineUsage(request).containers]

    def files(self, key: int | str, *, run: int = 0) -> RunFiles:
        """Lists the files that are held of a run; zero for the latest with any.

        Raises:
            FailedPreconditionError: None are held.
        """
        request = trials_service_pb2.ListRunFilesRequest(trial=convert.trial_key(key), run=run)
        response = self._stub.ListRunFiles(request)
        return RunFiles(
            run=response.run,
            hold_time=datetime_field(response, "hold_time"),
            files=tuple(RunFileRecord(file.path, file.size) for file in response.files),
        )

    def read_file(self, key: int | str, path: str, *, run: int) -> Iterator[bytes]:
        """Yields the parts of a file that is held of a run.

        Raises:
            NotFoundError: There is no such file.
        """
        request = trials_service_pb2.ReadRunFileRequest(trial=convert.trial_key(key), run=run, path=path)
        while data := self._stub.ReadRunFile(request).data:
            yield data
            request.offset += len(data)

    def update(
        self,
        key: int | str,
        *,
        labels: Sequence[str] | None = None,
        notes: str | None = None,
        etag: str = "",
    ) -> TrialRecord:
        """Changes what people write of a trial; what is None stays.

        Args:
            key: The trial.
            labels: All of its labels.
            notes: Notes, Markdown.
            etag: The etag that was read, to change the trial only if it is still that; empty for any.

        Raises:
            ConflictError: Somebody else changed it meanwhile.
            InvalidArgumentError: A value is too long.
            NotFoundError: There is none.
        """
        given = {"labels": labels, "notes": notes}
        changes: dict[str, Any] = {field: value for field, value in given.items() if value is not None}
        request = trials_service_pb2.UpdateTrialRequest(
            key=convert.trial_key(key),
            trial=trial_pb2.Trial(**changes),
            update_mask=FieldMask(paths=sorted(changes)),
            etag=etag,
        )
        return convert.trial(self._stub.UpdateTrial(request).trial)

    def kill(self, key: int | str) -> TrialRecord:
        """Ends a trial at once; its experiment continues."""
        request = trials_service_pb2.KillTrialRequest(trial=convert.trial_key(key))
        return convert.trial(self._stub.KillTrial(request).trial)

    def begin(self, run: OfflineRun) -> StartedRun:
        """Keeps a run that continues, or has ended, outside of the cluster; once, however often called."""
        request = trials_service_pb2.BeginRunRequest(
            external_run_id=run.run_id,
            name=run.name,
            metadata=to_value(run.metadata) if run.metadata else None,
            hparams=to_value(run.hparams),
            config=to_value(run.config),
            external_experiment_id=run.external_experiment_id or None,
            external_trial_id=run.external_trial_id or None,
        )
        request.start_time.FromMicroseconds(round(run.started_at * 1e6))
        response = self._stub.BeginRun(request)
        return StartedRun(
            trial=convert.trial(response.trial),
            run=response.run,
            token=response.token,
            storage=json_format.MessageToDict(response.storage),
            searcher_metric=response.searcher_metric,
            smaller_is_better=response.smaller_is_better,
            cluster_id=response.cluster_id,
        )

    def begin_experiment(self, *, name: str, config: Mapping[str, Any], external_id: str) -> int:
        """Makes the experiment of runs outside of the cluster, and begins none; returns its number.

        Args:
            name: Its name.
            config: Fields of its config.
            external_id: Names it for the runs.

        Raises:
            UnimplementedError: The cluster is too old; it began a run of one trial as well.
        """
        request = trials_service_pb2.BeginRunRequest(
            external_run_id=str(uuid.uuid4()),
            name=name,
            config=to_value(dict(config)),
            external_experiment_id=external_id,
            experiment_only=True,
        )
        number = self._stub.BeginRun(request).experiment_number
        if not number:
            raise UnimplementedError(
                "this cluster is too old to make an experiment without a run: upgrade it, or use core_v2.init"
            )
        return number

    def renew(self, trial_uuid: str, run: int) -> HeartbeatResponse:
        """Says that a run outside of the cluster continues."""
        request = trials_service_pb2.RenewRunRequest(trial_id=trial_uuid, run=run)
        response = self._stub.RenewRun(request)
        return HeartbeatResponse(response.token, response.ended)

    def end(self, trial_uuid: str, run: int, ended: ExitRecord) -> None:
        """Says how a run outside of the cluster ended."""
        outcome = run_pb2.RUN_OUTCOME_FAILED
        if ended.early_exit_reason == "INVALID_HP":
            outcome = run_pb2.RUN_OUTCOME_INVALID_HP
        elif ended.exit_code == 0:
            outcome = run_pb2.RUN_OUTCOME_COMPLETED
        request = trials_service_pb2.EndRunRequest(
            trial_id=trial_uuid, run=run, outcome=outcome, failure=ended.failure, left_out=ended.left_out
        )
        request.end_time.FromMicroseconds(round(ended.end_time * 1e6))
        self._stub.EndRun(request)
