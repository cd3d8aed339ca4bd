"""Continues ended experiments by calls of the searcher. The searcher's refusals are final.

Every call is idempotent by its request id, so the continuation can be interrupted anywhere and repeated. Its
effects arrive as actions of the search.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import structlog
from sqlalchemy.engine import Connection

from resolute.api.searcher.v1 import event_pb2, search_pb2, searcher_service_pb2
from resolute.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from resolute_experiments.clients import Clients
from resolute_experiments.states import ExperimentEvent, ExperimentState
from resolute_experiments.store import continuations, experiments
from resolute_experiments.store.continuations import Continuation
from resolute_experiments.store.experiments import Experiment
from resolute_experiments.timing import Timing
from resolute_experiments.transitions import transition_experiment
from resolute_serving.database.engine import Database

_log = structlog.get_logger("resume")

_PREVIOUS_STATE_EVENTS: Mapping[ExperimentState, ExperimentEvent] = {
    ExperimentState.COMPLETED: ExperimentEvent.SEARCH_COMPLETED,
    ExperimentState.CANCELED: ExperimentEvent.SEARCH_CANCELED,
    ExperimentState.ERROR: ExperimentEvent.SEARCH_FAILED,
}
"""What ends an experiment again in the state that it was in."""


async def resume_experiment(
    experiment: Experiment, timing: Timing, *, database: Database, clients: Clients
) -> bool:
    """Carries out what is to be carried out.

    Args:
        experiment: The experiment.
        timing: When this is.
        database: This service's database.
        clients: The other services.

    Returns:
        Whether anything was.

    Raises:
        ResoluteError: A service did not answer.
    """
    waiting = await database.read(lambda c: continuations.pending(c, experiment.id))
    for continuation in waiting:
        refusal = await _request_resume(experiment, continuation, clients)
        await database.write(partial(_conclude, asked=continuation, refusal=refusal, timing=timing))
    return bool(waiting)


async def _request_resume(experiment: Experiment, asked: Continuation, clients: Clients) -> str:
    """Asks the searcher to continue; returns why it cannot, or nothing."""
    refusals: list[str] = []
    try:
        if asked.extends:
            # Before trials are tried again: a search that is under way takes no extension.
            await clients.searcher.ExtendSearch(_extension(experiment, asked))
    except (FailedPreconditionError, InvalidArgumentError) as error:
        return str(error)
    for trial_id in asked.trial_ids:
        request = searcher_service_pb2.RetryTrialRequest(
            trial_id=trial_id, request_id=f"{asked.request_id}/{trial_id}/retried"
        )
        try:
            await clients.searcher.RetryTrial(request)
        except (FailedPreconditionError, NotFoundError) as error:
            _log.info("a trial is not tried again", experiment=experiment.number, reason=str(error))
            refusals.append(str(error))
    status_request = searcher_service_pb2.GetSearchRequest(search_id=experiment.id)
    status = (await clients.searcher.GetSearch(status_request)).search.status
    has_ended = status.state == search_pb2.SEARCH_STATE_SHUT_DOWN
    if has_ended and status.last_action_sequence <= experiment.action_cursor:
        return "; ".join(refusals) or "its search is over"
    return ""


def _extension(experiment: Experiment, asked: Continuation) -> searcher_service_pb2.ExtendSearchRequest:
    given = event_pb2.Event.Extended(max_trials=asked.max_trials, max_length=asked.max_length)
    return searcher_service_pb2.ExtendSearchRequest(
        search_id=experiment.id, request_id=f"{asked.request_id}/extended", extension=given
    )


def _conclude(connection: Connection, *, asked: Continuation, refusal: str, timing: Timing) -> None:
    continuations.finish(connection, asked.request_id)
    ends = _PREVIOUS_STATE_EVENTS.get(asked.previous_state)
    if not refusal or ends is None:
        return
    experiment = experiments.get(connection, experiment_id=asked.experiment_id)
    transition_experiment(
        connection,
        experiment,
        ends,
        timing,
        config=asked.previous_config,
        failure=f"it could not go on: {refusal}",
    )
