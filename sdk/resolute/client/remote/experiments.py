"""The experiments service: submission, lists and states of experiments."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from google.protobuf.field_mask_pb2 import FieldMask

from resolute.api.experiments.v1 import (
    access_service_pb2,
    access_service_pb2_grpc,
    experiment_pb2,
    experiments_service_pb2,
    experiments_service_pb2_grpc,
    retention_service_pb2,
    retention_service_pb2_grpc,
)
from resolute.api.searcher.v1 import search_spec_pb2
from resolute.client.connection.paging import all_items
from resolute.client.connection.resumed_stream import ResumedStream
from resolute.client.connection.session import Session
from resolute.client.schema import convert
from resolute.client.schema.records import ExperimentRecord, TrialRecord
from resolute.client.schema.states import ExperimentKind, ExperimentState
from resolute.contracts.calls.backoff import Backoff, retry
from resolute.contracts.messages import enum_member
from resolute.contracts.values import to_mapping

if TYPE_CHECKING:
    from resolute.client.submission.git_state import GitState
    from resolute.client.submission.packing import Archive

_pb = experiments_service_pb2
_TENSORBOARD_TIMEOUT = 300.0
_UPLOAD_BASE = 60.0
_SLOWEST_UPLOAD = 128 * 1024  # bytes a second; what is slower than this is as good as stuck
_UPLOAD_ATTEMPTS = 3
_ONE_MESSAGE = 1024 * 1024
"""Bytes of a model definition that is sent in one message; larger ones go in chunks."""


@dataclass(frozen=True, kw_only=True)
class Submission:
    """The experiment to create."""

    config: str
    """The config: YAML."""
    template: str = ""
    """Name of a template to merge under it; empty for none."""
    paused: bool = False
    """Create it paused."""
    test_mode: bool = False
    """Rewrite the config to train one batch."""
    kind: ExperimentKind = ExperimentKind.SEARCH
    """What it is for."""
    source: GitState | None = None
    """The git work tree that the code comes from; None for none."""
    request_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    """Makes retries safe: the same identifier gives the first answer."""


@dataclass(frozen=True)
class Created:
    """The answer to a submission."""

    experiment: ExperimentRecord
    warnings: tuple[str, ...]
    """What in the config has no effect here, and other advice."""


@dataclass(frozen=True)
class ValidConfig:
    """A config that the service accepts."""

    config: dict[str, Any]
    """All of it, defaults filled in."""
    warnings: tuple[str, ...]
    search: search_spec_pb2.SearchSpec | None
    """What the searcher would be given, to hand on to it; None from a service that does not tell."""


@dataclass(frozen=True)
class Change:
    """What changed in a watched experiment."""

    experiment: ExperimentRecord | None
    """The experiment, if it changed."""
    trials: tuple[TrialRecord, ...]
    """The trials that changed."""


@dataclass(frozen=True, kw_only=True)
class ExperimentFilter:
    """A filter of experiments. Every set field must match."""

    states: tuple[ExperimentState, ...] = ()
    owners: tuple[str, ...] = ()
    """Names of users."""
    labels: tuple[str, ...] = ()
    name: str = ""
    """Text that the name contains, in any case."""
    expression: str = ""
    """Such as ``"val_loss < 0.1 and lr > 1e-3"``; the page about the gateway says what it can compare."""
    include_archived: bool = False
    workspace_ids: tuple[int, ...] = ()
    project_ids: tuple[int, ...] = ()
    kinds: tuple[ExperimentKind, ...] = (ExperimentKind.SEARCH,)

    def takes(self, record: ExperimentRecord) -> bool:
        """Whether the state of an experiment is wanted; what it is doing counts as its state too."""
        shown = {record.state.name, record.shown_state}
        return not self.states or any(state.name in shown for state in self.states)


class Experiments:
    """Calls of the experiments service.

    Args:
        session: The connection.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._stub = session.stub(experiments_service_pb2_grpc.ExperimentsServiceStub)
        self._access = session.stub(access_service_pb2_grpc.AccessServiceStub)
        self._retention = session.stub(retention_service_pb2_grpc.RetentionServiceStub)

    def collect_checkpoints(
        self, key: int | str, policy: Mapping[str, int | None], *, preview: bool
    ) -> list[str]:
        """Deletes the checkpoints of an ended experiment that a policy does not keep.

        Args:
            key: The experiment.
            policy: How many stay, by the names of the config; None for what the config says.
            preview: Whether to only find out which would go.

        Returns:
            UUIDs of the checkpoints that are deleted, or would be.

        Raises:
            FailedPreconditionError: The experiment has not ended.
        """
        request = retention_service_pb2.CollectCheckpointsRequest(
            experiment=convert.experiment_key(key), preview=preview, **policy
        )
        return list(self._retention.CollectCheckpoints(request).deleted_checkpoint_ids)

    def delete_tensorboard_files(self, key: int | str) -> None:
        """Removes the TensorBoard files of an ended experiment.

        Raises:
            FailedPreconditionError: It has not ended.
        """
        request = retention_service_pb2.DeleteTensorBoardFilesRequest(experiment=convert.experiment_key(key))
        self._retention.DeleteTensorBoardFiles(request, timeout=_TENSORBOARD_TIMEOUT)

    def create(self, submission: Submission, archive: Archive) -> Created:
        """Uploads a model definition and creates an experiment of it.

        Args:
            submission: What is to be created.
            archive: The packed model definition.

        Raises:
            InvalidConfigError: The config is wrong; every fault is listed.
            QuotaError: The model definition is larger than the service takes.
            UnavailableError: The service cannot be reached, also after retries.
        """
        timeout = _UPLOAD_BASE + archive.size / _SLOWEST_UPLOAD
        # A stream of requests is not repeated by itself. The request id makes this safe.
        response = retry(
            lambda: self._create(submission, archive, timeout=timeout),
            backoff=Backoff(),
            attempts=_UPLOAD_ATTEMPTS,
        )
        return Created(convert.experiment(response.experiment), tuple(response.warnings))

    def _create(
        self, submission: Submission, archive: Archive, *, timeout: float
    ) -> _pb.CreateExperimentResponse | _pb.CreateExperimentInChunksResponse:
        if archive.size > _ONE_MESSAGE:
            return self._stub.CreateExperimentInChunks(_parts(submission, archive), timeout=timeout)
        request = _pb.CreateExperimentRequest(
            request_id=submission.request_id, spec=_spec(submission), model_definition=archive.content()
        )
        return self._stub.CreateExperiment(request, timeout=timeout)

    def validate(self, config: str, *, template: str = "") -> ValidConfig:
        """Checks a config as ``create`` would.

        Raises:
            InvalidConfigError: The config is wrong; every fault is listed.
        """
        response = self._stub.ValidateConfig(_pb.ValidateConfigRequest(config_yaml=config, template=template))
        search = response.search if response.HasField("search") else None
        return ValidConfig(to_mapping(response.config), tuple(response.warnings), search)

    def get(self, key: int | str) -> ExperimentRecord:
        """Returns an experiment with its config.

        Raises:
            NotFoundError: There is none.
        """
        request = _pb.GetExperimentRequest(experiment=convert.experiment_key(key))
        return convert.experiment(self._stub.GetExperiment(request).experiment)

    def list(
        self,
        wanted: ExperimentFilter | None = None,
        *,
        order_by: str = "",
        limit: int | None = None,
    ) -> Iterator[ExperimentRecord]:
        """Yields experiments.

        Args:
            wanted: Which ones; None for all that are not archived.
            order_by: Fields of the API, such as ``"name, number desc"``; empty for the newest first.
            limit: Most of them; None for all.
        """
        wanted = wanted or ExperimentFilter()
        owner_ids = _user_ids(self._access, wanted.owners)
        if wanted.owners and not owner_ids:
            return
        request = _pb.ListExperimentsRequest(
            # What an active experiment does is no state of its own to the service.
            states={_STATES.get(state, _STATES[ExperimentState.ACTIVE]) for state in wanted.states},
            owner_ids=owner_ids,
            workspace_ids=wanted.workspace_ids,
            project_ids=wanted.project_ids,
            labels=wanted.labels,
            name_contains=wanted.name,
            filter=wanted.expression,
            archived=None if wanted.include_archived else False,
            order_by=order_by,
            kinds=map(_kind, wanted.kinds),
        )
        # What an active experiment is doing is filtered here, so that more may have to be read.
        most = limit if _STATES.keys() >= set(wanted.states) else None
        messages = all_items(self._stub.ListExperiments, request, "experiments", limit=most)
        records = map(convert.experiment, messages)
        yield from itertools.islice((record for record in records if wanted.takes(record)), limit)

    def update(
        self,
        key: int | str,
        *,
        name: str | None = None,
        description: str | None = None,
        labels: Sequence[str] | None = None,
        notes: str | None = None,
        etag: str = "",
    ) -> ExperimentRecord:
        """Changes what people write of an experiment; what is None stays.

        Args:
            key: The experiment.
            name: Its name.
            description: What it is.
            labels: All of its labels.
            notes: Notes, Markdown.
            etag: The etag that was read, to change the experiment only if it is still that; empty for any.

        Raises:
            ConflictError: Somebody else changed it meanwhile.
            InvalidArgumentError: A value is too long.
            NotFoundError: There is none.
        """
        given = {"name": name, "description": description, "labels": labels, "notes": notes}
        changes: dict[str, Any] = {field: value for field, value in given.items() if value is not None}
        request = _pb.UpdateExperimentRequest(
            key=convert.experiment_key(key),
            experiment=experiment_pb2.Experiment(**changes),
            update_mask=FieldMask(paths=sorted(changes)),
            etag=etag,
        )
        return convert.experiment(self._stub.UpdateExperiment(request).experiment)

    def pause(self, key: int | str) -> ExperimentRecord:
        """Asks running trials to checkpoint and exit, and starts none."""
        request = _pb.PauseExperimentRequest(experiment=convert.experiment_key(key))
        return convert.experiment(self._stub.PauseExperiment(request).experiment)

    def activate(self, key: int | str) -> ExperimentRecord:
        """Lets a paused experiment continue."""
        request = _pb.ActivateExperimentRequest(experiment=convert.experiment_key(key))
        return convert.experiment(self._stub.ActivateExperiment(request).experiment)

    def cancel(self, key: int | str) -> ExperimentRecord:
        """Ends an experiment after its trials had the chance to checkpoint."""
        request = _pb.CancelExperimentRequest(experiment=convert.experiment_key(key))
        return convert.experiment(self._stub.CancelExperiment(request).experiment)

    def kill(self, key: int | str) -> ExperimentRecord:
        """Ends an experiment at once."""
        request = _pb.KillExperimentRequest(experiment=convert.experiment_key(key))
        return convert.experiment(self._stub.KillExperiment(request).experiment)

    def archive(self, key: int | str, *, archived: bool = True) -> ExperimentRecord:
        """Hides an ended experiment from lists, or shows it again."""
        request = _pb.ArchiveExperimentRequest(experiment=convert.experiment_key(key), archived=archived)
        return convert.experiment(self._stub.ArchiveExperiment(request).experiment)

    def delete(self, key: int | str) -> ExperimentRecord:
        """Removes an ended experiment with all it has."""
        request = _pb.DeleteExperimentRequest(experiment=convert.experiment_key(key))
        return convert.experiment(self._stub.DeleteExperiment(request).experiment)

    def watch(self, key: int | str, *, include_trials: bool = False) -> Watch:
        """Follows an experiment until it ends: its state at once, then every change."""
        return Watch(self._stub, convert.experiment_key(key), include_trials=include_trials)

    def model_definition(self, key: int | str) -> Iterator[bytes]:
        """Yields the model definition: a gzipped tar archive in pieces."""
        request = _pb.GetModelDefinitionRequest(experiment=convert.experiment_key(key))
        for response in self._stub.GetModelDefinition(request):
            yield response.chunk


class Watch:
    """The changes of one experiment. Iterate it; ``cancel`` ends it from any thread.

    It continues after an outage of the service, without repeating a change.
    """

    def __init__(
        self,
        stub: experiments_service_pb2_grpc.ExperimentsServiceStub,
        key: experiment_pb2.ExperimentKey,
        *,
        include_trials: bool,
    ) -> None:
        self._stub = stub
        self._subscription = _pb.WatchExperimentsRequest.ExperimentSubscription(
            key="experiment", experiment=key, include_trials=include_trials
        )
        self._ended = False
        self._stream = ResumedStream[_pb.WatchExperimentsResponse](self._open, finished=lambda: self._ended)

    def __iter__(self) -> Iterator[Change]:
        for response in self._stream:
            change = response.experiment_change
            record = convert.experiment(change.experiment) if change.HasField("experiment") else None
            if record is not None:
                seen = max(self._subscription.after_revision, record.revision)
                self._subscription.after_revision = seen
                self._ended = record.state.is_terminal
            yield Change(record, tuple(convert.trial(message) for message in change.trials))

    def cancel(self) -> None:
        """Ends the iteration, also one that waits for a change."""
        self._stream.cancel()

    def _open(self) -> Any:
        return self._stub.WatchExperiments(_pb.WatchExperimentsRequest(experiments=[self._subscription]))


def _user_ids(access: Any, names: Sequence[str]) -> tuple[int, ...]:
    """The ids of those names that belong to users."""
    if not names:
        return ()
    request = access_service_pb2.ListUsersRequest(names=names)
    return tuple(user.user_id for user in access.ListUsers(request).users)


def _spec(submission: Submission) -> _pb.ExperimentSpec:
    return _pb.ExperimentSpec(
        config_yaml=submission.config,
        template=submission.template,
        paused=submission.paused,
        test_mode=submission.test_mode,
        kind=_kind(submission.kind),
        source=None if submission.source is None else _source(submission.source),
    )


def _kind(kind: ExperimentKind) -> experiment_pb2.ExperimentKind.ValueType:
    return experiment_pb2.ExperimentKind.Value(f"EXPERIMENT_KIND_{kind.value}")


def _source(state: GitState) -> experiment_pb2.CodeSource:
    return experiment_pb2.CodeSource(
        git_commit=state.commit,
        git_branch=state.branch,
        git_diff=state.diff,
        git_diff_truncated=state.truncated,
    )


def _parts(submission: Submission, archive: Archive) -> Iterator[_pb.CreateExperimentInChunksRequest]:
    header = _pb.CreateExperimentInChunksRequest.Header(
        request_id=submission.request_id, spec=_spec(submission)
    )
    yield _pb.CreateExperimentInChunksRequest(header=header)
    for chunk in archive.chunks():
        yield _pb.CreateExperimentInChunksRequest(chunk=chunk)


_STATES: Mapping[ExperimentState, experiment_pb2.ExperimentState.ValueType] = {
    enum_member(ExperimentState, experiment_pb2.ExperimentState.DESCRIPTOR, number): number
    for number in experiment_pb2.ExperimentState.values()
}
