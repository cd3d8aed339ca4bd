"""Converts actions to and from the stored messages."""

from __future__ import annotations

from collections.abc import Mapping

from resolute.contracts.values import to_mapping, to_value
from resolute.errors import InvalidArgumentError
from resolute.storage.searcher.v1 import log_pb2 as pb
from resolute_searcher.identifiers import trial_id
from resolute_searcher.log.actions import Action, CloseTrial, CreateTrial, EndSearch, RunTrial, StopTrial
from resolute_searcher.wire.reasons import reason_from, set_reason


def action_to(action: Action, *, search_id: str) -> pb.Action:
    """Converts an action to its message; the caller sets its sequence and its event."""
    message = _bare_action(action, search_id)
    set_reason(message, action.reason)
    return message


def _bare_action(action: Action, search_id: str) -> pb.Action:
    match action:
        case CreateTrial(request_id, hparams, trial_seed, checkpoint_id):
            created = pb.Action.CreateTrial(
                request_id=request_id,
                trial_id=trial_id(search_id, request_id),
                hparams=to_value(hparams),
                trial_seed=trial_seed,
                checkpoint_id=checkpoint_id,
            )
            return pb.Action(create_trial=created)
        case RunTrial(request_id, length, reopens):
            run = pb.Action.RunTrial(trial_id=trial_id(search_id, request_id), length=length, reopens=reopens)
            return pb.Action(run_trial=run)
        case CloseTrial(request_id):
            return pb.Action(close_trial=pb.Action.CloseTrial(trial_id=trial_id(search_id, request_id)))
        case StopTrial(request_id):
            return pb.Action(stop_trial=pb.Action.StopTrial(trial_id=trial_id(search_id, request_id)))
        case EndSearch(cancel, failure):
            return pb.Action(shutdown=pb.Action.Shutdown(cancel=cancel, failure=failure))


def action_from(message: pb.Action, keys: Mapping[str, str]) -> Action:
    """Converts the message of an action.

    Args:
        message: What `action_to` wrote.
        keys: Keys of trials by their ids.

    Raises:
        InvalidArgumentError: It is of no kind.
    """
    why = reason_from(message)
    match message.WhichOneof("kind"):
        case "create_trial":
            made = message.create_trial
            return CreateTrial(
                made.request_id, to_mapping(made.hparams), made.trial_seed, made.checkpoint_id, why
            )
        case "run_trial":
            run = message.run_trial
            return RunTrial(keys[run.trial_id], run.length, run.reopens, why)
        case "close_trial":
            return CloseTrial(keys[message.close_trial.trial_id], why)
        case "stop_trial":
            return StopTrial(keys[message.stop_trial.trial_id], why)
        case "shutdown":
            return EndSearch(cancel=message.shutdown.cancel, failure=message.shutdown.failure, reason=why)
    raise InvalidArgumentError("an action is of no kind that this version knows")
