"""Experiments and trials that continue."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from resolute.api.experiments.v1 import continuation_service_pb2 as pb
from resolute.api.experiments.v1 import continuation_service_pb2_grpc
from resolute.client.connection.session import Session
from resolute.client.schema import convert
from resolute.client.schema.records import ExperimentRecord, TrialRecord


@dataclass(frozen=True, kw_only=True)
class ContinuedTrial:
    """A trial that continues, with its earlier state."""

    trial: TrialRecord
    keeps_weights: bool
    """Whether the weights of its newest checkpoint are kept; if not, it has none and begins again."""
    keeps_steps: bool
    """Whether the count of steps continues where that checkpoint was made; if not, it begins at zero."""


@dataclass(frozen=True, kw_only=True)
class Continuation:
    """The trials and results that are kept when an experiment or a trial continues."""

    experiment: ExperimentRecord | None
    """The experiment that continues, or was begun; None where nothing was begun."""
    trials: tuple[ContinuedTrial, ...]
    keeps_search: bool
    """Whether the decisions of the search so far stay."""
    max_trials: int | None
    """Trials of the search from now on; None for as many as before."""
    max_length: int | None
    """Length of its longest trial from now on; None for the one before."""
    changed_fields: tuple[str, ...]
    """Fields of the config that change, by their paths."""
    warnings: tuple[str, ...]
    """What in the config has no effect here, and other advice."""


class Continuations:
    """Calls that let experiments and trials continue.

    Each call takes the config fields to change as YAML (empty for none). With ``validate_only`` it changes
    nothing and returns what would be kept.

    Args:
        session: The connection.
    """

    def __init__(self, session: Session) -> None:
        self._stub = session.stub(continuation_service_pb2_grpc.ContinuationServiceStub)

    def experiment(self, key: int | str, *, config: str = "", validate_only: bool = False) -> Continuation:
        """Lets an experiment continue as itself.

        Raises:
            FailedPreconditionError: It has nothing to continue with, or is not where it could.
            InvalidConfigError: A field cannot change in an experiment that continues.
        """
        request = pb.ContinueExperimentRequest(
            experiment=convert.experiment_key(key),
            request_id=str(uuid.uuid4()),
            config_yaml=config,
            validate_only=validate_only,
        )
        return _continuation(self._stub.ContinueExperiment(request))

    def trial(self, key: int | str, *, config: str = "", validate_only: bool = False) -> Continuation:
        """Begins an experiment whose one trial starts from the weights of another.

        Raises:
            FailedPreconditionError: The trial has no checkpoint.
            InvalidConfigError: The config is wrong; every fault is listed.
        """
        request = pb.ContinueTrialRequest(
            trial=convert.trial_key(key),
            request_id=str(uuid.uuid4()),
            config_yaml=config,
            validate_only=validate_only,
        )
        return _continuation(self._stub.ContinueTrial(request))

    def fork(self, key: int | str, *, config: str = "", validate_only: bool = False) -> Continuation:
        """Begins an experiment from the config and the code of another, without its weights.

        Raises:
            InvalidConfigError: The config is wrong; every fault is listed.
        """
        request = pb.ForkExperimentRequest(
            experiment=convert.experiment_key(key),
            request_id=str(uuid.uuid4()),
            config_yaml=config,
            validate_only=validate_only,
        )
        return _continuation(self._stub.ForkExperiment(request))


def _continuation(
    response: pb.ContinueExperimentResponse | pb.ContinueTrialResponse | pb.ForkExperimentResponse,
) -> Continuation:
    kept = response.continuation
    return Continuation(
        experiment=convert.experiment(response.experiment) if response.HasField("experiment") else None,
        trials=tuple(
            ContinuedTrial(
                trial=convert.trial(trial.trial),
                keeps_weights=trial.keeps_weights,
                keeps_steps=trial.keeps_steps,
            )
            for trial in kept.trials
        ),
        keeps_search=kept.keeps_search,
        max_trials=kept.max_trials if kept.HasField("max_trials") else None,
        max_length=kept.max_length if kept.HasField("max_length") else None,
        changed_fields=tuple(kept.changed_fields),
        warnings=tuple(kept.warnings),
    )
