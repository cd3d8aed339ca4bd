"""Data from other services for the actions of a search, and the acknowledgement of unapplied actions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from resolute.api.checkpoints.v1 import checkpoints_service_pb2
from resolute.api.searcher.v1 import action_pb2, searcher_service_pb2
from resolute.errors import NotFoundError
from resolute_experiments.clients import Clients


@dataclass(frozen=True)
class LatestCheckpoint:
    """The latest checkpoint that a trial itself has written."""

    checkpoint_id: str
    steps_completed: int


@dataclass(frozen=True, kw_only=True)
class ActionInputs:
    """The answers of the other services."""

    last_action: int = 0
    """Sequence of the last of all actions; a shutdown before it is void, since its search continued."""
    newest: Mapping[str, LatestCheckpoint] = field(default_factory=dict)
    """By trial that continues after its end; absent for those that have no checkpoint."""


async def fetch_action_inputs(
    search_id: str, actions: Sequence[action_pb2.Action], *, clients: Clients
) -> ActionInputs:
    """Asks other services for what is needed to apply some consecutive actions.

    Raises:
        ResoluteError: A service did not answer.
    """
    newest: dict[str, LatestCheckpoint] = {}
    for action in actions:
        if not action.run_trial.reopens:
            continue
        trial_id = action.run_trial.trial_id
        # Retention may have removed what was the newest when the trial ended.
        request = checkpoints_service_pb2.GetLatestCheckpointRequest(trial_id=trial_id)
        response = await clients.checkpoints.GetLatestCheckpoint(request)
        if response.HasField("checkpoint"):
            newest[trial_id] = LatestCheckpoint(
                response.checkpoint.checkpoint_id, response.checkpoint.steps_completed
            )
    last_action = actions[-1].sequence
    if actions[-1].HasField("shutdown"):
        status_request = searcher_service_pb2.GetSearchRequest(search_id=search_id)
        last_action = (await clients.searcher.GetSearch(status_request)).search.status.last_action_sequence
    return ActionInputs(last_action=last_action, newest=newest)


async def acknowledge_unapplied(search_id: str, *, clients: Clients) -> None:
    """Acknowledges the actions of a search whose experiment has ended and applies no more of them.

    They wait for the experiment to continue, and no other call may wait for them.

    Raises:
        ResoluteError: The searcher did not answer.
    """
    try:
        request = searcher_service_pb2.GetSearchRequest(search_id=search_id)
        status = (await clients.searcher.GetSearch(request)).search.status
    except NotFoundError:
        return
    await clients.searcher.AcknowledgeActions(
        searcher_service_pb2.AcknowledgeActionsRequest(
            search_id=search_id, sequence=status.last_action_sequence
        )
    )
