"""Handlers of ContinuationService."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from sqlalchemy.engine import Connection

from resolute.api.experiments.v1 import (
    continuation_pb2,
    continuation_service_pb2_grpc,
    experiment_pb2,
    trial_pb2,
)
from resolute.api.experiments.v1 import continuation_service_pb2 as pb2
from resolute.contracts.values import to_value
from resolute.errors import ConflictError, FailedPreconditionError
from resolute_config.layer import Layer
from resolute_experiments.accounts import secrets
from resolute_experiments.accounts.storage_quotas import StorageQuota
from resolute_experiments.admission.storage_roots import StorageRoots
from resolute_experiments.admission.submissions import Submission, Submissions
from resolute_experiments.context import ServiceContext
from resolute_experiments.continuation import derived_configs, planning
from resolute_experiments.servicers.checks.sizes import check_config_size
from resolute_experiments.servicers.messages.experiments import experiment_message, trial_message
from resolute_experiments.specs.storage import without_secrets
from resolute_experiments.states import ENDED_EXPERIMENTS
from resolute_experiments.store import continuations, experiments, runs, trials
from resolute_experiments.store.experiments import Experiment
from resolute_experiments.store.schema import IDEMPOTENCY_KEYS
from resolute_experiments.topics import SCHEDULER_WAKEUP, SIGNAL_CHANGES, watched


class ContinuationServicer(continuation_service_pb2_grpc.ContinuationServiceServicer):
    """Continues experiments, and starts new ones from existing experiments and trials.

    Args:
        core: The context that all handlers share.
        submissions: Accepts submissions.
        storage_quota: Checks whether a workspace may have more checkpoints.
        storage_roots: Checks where checkpoints may be stored.
        adopt: Starts the controller of an experiment.
    """

    def __init__(
        self,
        core: ServiceContext,
        *,
        submissions: Submissions,
        storage_quota: StorageQuota,
        storage_roots: StorageRoots,
        adopt: Callable[[str], None],
    ) -> None:
        self._core = core
        self._submissions = submissions
        self._storage_quota = storage_quota
        self._storage_roots = storage_roots
        self._adopt = adopt

    async def ContinueExperiment(
        self, request: pb2.ContinueExperimentRequest, context: Any
    ) -> pb2.ContinueExperimentResponse:
        """Lets an experiment continue as itself."""
        check_config_size(request.config_yaml)
        before = await self._core.database.read(lambda c: self._core.experiment(c, request.experiment))
        config, warnings, pool = await self._overridden(before, request)
        if before.state in ENDED_EXPERIMENTS and not request.validate_only:
            await self._storage_quota.admit(before.workspace)
        timing = self._core.timing()

        def plan(connection: Connection, experiment: Experiment) -> planning.Plan:
            if experiment.config != before.config:
                raise ConflictError(f"{experiment.label} changed meanwhile; read it again and repeat")
            if config != experiment.config:
                secrets.require_owner(experiment, config)
                secrets.require_named(connection, experiment, config)
            everything = trials.of_experiment(connection, experiment.id)
            return planning.plan(experiment, config, everything, resource_pool=pool)

        def preview(connection: Connection) -> pb2.ContinueExperimentResponse:
            experiment = experiments.get(connection, experiment_id=before.id)
            return pb2.ContinueExperimentResponse(
                experiment=_read(connection, experiment.id),
                continuation=_kept(experiment, plan(connection, experiment), config, warnings),
            )

        def begin(connection: Connection) -> pb2.ContinueExperimentResponse:
            experiment = experiments.get(connection, experiment_id=before.id)
            begun: list[planning.Plan] = []

            def create() -> str:
                begun.append(plan(connection, experiment))
                key = str(uuid.uuid4())
                planning.begin(connection, experiment, begun[0], continuation_id=key, timing=timing)
                return key

            key = IDEMPOTENCY_KEYS.once(connection, request, create, now=timing.now)
            if not begun:
                return _repeated(connection, experiment, continuations.get(connection, key))
            return pb2.ContinueExperimentResponse(
                experiment=_read(connection, experiment.id),
                continuation=_kept(experiment, begun[0], config, warnings),
            )

        if request.validate_only:
            return await self._core.database.read(preview)
        response = await self._core.database.write(begin)
        self._adopt(before.id)
        self._core.notifier.notify(before.id, watched(before.id), SCHEDULER_WAKEUP, SIGNAL_CHANGES)
        return response

    async def ContinueTrial(
        self, request: pb2.ContinueTrialRequest, context: Any
    ) -> pb2.ContinueTrialResponse:
        """Creates an experiment whose one trial starts from the newest checkpoint of another."""

        def look(connection: Connection) -> tuple[trials.Trial, Experiment]:
            trial = self._core.trial(connection, request.trial)
            return trial, experiments.get(connection, experiment_id=trial.experiment_id)

        trial, experiment = await self._core.database.read(look)
        if not trial.latest_checkpoint_id:
            raise FailedPreconditionError(
                f"{trial.label} has no checkpoint to start from; "
                f"`resolute experiment fork {experiment.number}` begins one from its config",
                resource=trial.label,
            )
        base = (
            derived_configs.weights_of(trial)
            if request.config_is_whole
            else derived_configs.continued_config(experiment, trial)
        )
        created, continuation = await self._derive(request, experiment, base)
        continuation.trials.add(trial=_as_it_is(trial, experiment), keeps_weights=True)
        return pb2.ContinueTrialResponse(experiment=created, continuation=continuation)

    async def ForkExperiment(
        self, request: pb2.ForkExperimentRequest, context: Any
    ) -> pb2.ForkExperimentResponse:
        """Creates an experiment from the config and the code of another."""
        experiment = await self._core.database.read(lambda c: self._core.experiment(c, request.experiment))
        base = None if request.config_is_whole else derived_configs.forked_config(experiment)
        created, continuation = await self._derive(request, experiment, base)
        return pb2.ForkExperimentResponse(experiment=created, continuation=continuation)

    async def _overridden(
        self, experiment: Experiment, request: pb2.ContinueExperimentRequest
    ) -> tuple[dict[str, Any], tuple[str, ...], str]:
        """Gives the config from now on, what in it has no effect here, and its pool."""
        if not request.config_yaml and not request.config_is_whole:
            await self._storage_roots.require(experiment.config)
            return experiment.config, (), experiment.resource_pool
        base = None if request.config_is_whole else Layer(experiment.label, experiment.config)
        accepted = await self._submissions.check(request.config_yaml, base=base)
        return without_secrets(accepted.config.to_dict()), accepted.warnings, accepted.resource_pool

    async def _derive(
        self,
        request: pb2.ContinueTrialRequest | pb2.ForkExperimentRequest,
        experiment: Experiment,
        base: Layer | None,
    ) -> tuple[experiment_pb2.Experiment | None, continuation_pb2.Continuation]:
        """Submits the code of an experiment again, with another config; or only looks whether it would do."""
        check_config_size(request.config_yaml)
        if request.validate_only:
            accepted = await self._submissions.check(request.config_yaml, base=base)
            return None, _begun(without_secrets(accepted.config.to_dict()), accepted.warnings)
        code = await self._core.database.read(lambda c: b"".join(experiments.definition(c, experiment.id)))
        source = await self._core.database.read(lambda c: experiments.source(c, experiment.id))
        submission = Submission(
            request=request,
            config_yaml=request.config_yaml,
            base=base,
            model_definition=code,
            kind=experiment.kind,
            source=source,
        )
        created, warnings = await self._submissions.submit(submission)
        self._adopt(created.id)
        return experiment_message(created, {}, whole=True, source=source), _begun(created.config, warnings)


def _read(connection: Connection, experiment_id: str) -> experiment_pb2.Experiment:
    experiment = experiments.get(connection, experiment_id=experiment_id)
    counts = experiments.trial_counts(connection, [experiment_id]).get(experiment_id, {})
    times = runs.times_of_experiments(connection, [experiment_id]).get(experiment_id)
    return experiment_message(experiment, counts, times=times)


def _as_it_is(trial: trials.Trial, experiment: Experiment) -> trial_pb2.Trial:
    return trial_message(trial, experiment, explanation=trial.explanation, times=None)


def _begun(config: dict[str, Any], warnings: tuple[str, ...]) -> continuation_pb2.Continuation:
    """Tells of an experiment that begins from another."""
    return continuation_pb2.Continuation(config=to_value(config), warnings=warnings)


def _kept(
    experiment: Experiment, plan: planning.Plan, config: dict[str, Any], warnings: tuple[str, ...]
) -> continuation_pb2.Continuation:
    return continuation_pb2.Continuation(
        trials=[
            continuation_pb2.ContinuedTrial(
                trial=_as_it_is(trial, experiment),
                keeps_weights=bool(trial.latest_checkpoint_id),
                keeps_steps=bool(trial.latest_checkpoint_id),
            )
            for trial in plan.trials
        ],
        keeps_search=experiment.search_created,
        max_trials=plan.max_trials,
        max_length=plan.max_length,
        changed_fields=plan.changed,
        warnings=warnings,
        config=to_value(config),
    )


def _repeated(
    connection: Connection, experiment: Experiment, known: continuations.Continuation
) -> pb2.ContinueExperimentResponse:
    """Answers a request that was carried out before."""
    retried = (trials.get(connection, trial_id=trial_id) for trial_id in known.trial_ids)
    kept = continuation_pb2.Continuation(
        trials=[continuation_pb2.ContinuedTrial(trial=_as_it_is(trial, experiment)) for trial in retried],
        keeps_search=experiment.search_created,
        max_trials=known.max_trials,
        max_length=known.max_length,
        config=to_value(experiment.config),
    )
    return pb2.ContinueExperimentResponse(experiment=_read(connection, experiment.id), continuation=kept)
