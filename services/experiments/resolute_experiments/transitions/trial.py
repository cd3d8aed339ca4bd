"""Transitions of a trial: the only code that writes its state.

The table of trials defines the effects of an event; this module carries them out, in the transaction in which
the state changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy.engine import Connection

from resolute_experiments.alerts.raising import raise_of_state
from resolute_experiments.states import TRIALS, TrialEffect, TrialEvent, TrialState
from resolute_experiments.store import outbox, trial_transitions, trials
from resolute_experiments.store.outbox import SearchEvent
from resolute_experiments.store.trial_transitions import TrialTransition
from resolute_experiments.store.trials import Trial
from resolute_experiments.timing import Timing
from resolute_experiments.transitions import signals
from resolute_experiments.transitions.signals import SignalReason
from resolute_serving.context import User, actor, current_principal

_F = TrialEffect
_SEARCH_EVENTS: Mapping[TrialEffect, SearchEvent] = {
    _F.NOTIFY_CLOSED: SearchEvent.CLOSED,
    _F.NOTIFY_ERRORED: SearchEvent.ERRORED,
    _F.NOTIFY_STOPPED: SearchEvent.USER_REQUESTED_STOP,
    _F.NOTIFY_CANCELED: SearchEvent.USER_CANCELED,
    _F.NOTIFY_INVALID: SearchEvent.INVALID_HP,
    _F.NOTIFY_INVALID_AT_INIT: SearchEvent.INIT_INVALID_HP,
}
"""What an effect tells the search."""
_SIGNALS = frozenset({_F.SIGNAL, _F.KILL})
_REQUESTED = frozenset({TrialEvent.PAUSE, TrialEvent.ACTIVATE, TrialEvent.CANCEL, TrialEvent.KILL})
"""Events that users ask for."""


def transition_trial(
    connection: Connection,
    trial: Trial,
    event: TrialEvent,
    timing: Timing,
    *,
    reason: SignalReason = SignalReason.USER,
    paused: bool = False,
    detail: str = "",
    search_event: int | None = None,
    **noted: Any,
) -> None:
    """Lets something happen to a trial.

    Args:
        connection: A transaction.
        trial: The trial, as that transaction sees it.
        event: What happens.
        timing: When.
        reason: Of the signal, if there is to be one.
        paused: Whether its experiment is paused, so that it does not queue.
        detail: Further reasons, for people; by default the explanation that is noted.
        search_event: Position in the log of its search of the event that caused it, if one did.
        noted: Columns that are written with it, and win over those of the effects.

    Raises:
        IllegalTransitionError: It cannot happen in the trial's state.
    """
    step = TRIALS.step(trial.state, event, resource=trial.label)
    after = TrialState.PAUSED if paused and _F.ENQUEUE in step.effects else step.after
    columns: dict[str, Any] = {}
    for effect in step.effects:
        columns.update(_columns(trial, effect, timing))
    columns.update(noted)
    # Anyone who decides what the end of a run means sees by the revision that something came between.
    if columns or after is not trial.state or _F.REEVALUATE_EXIT in step.effects:
        trials.update(connection, trial, state=after.value, **columns)
    for effect in step.effects:
        _carry_out(connection, trial, effect, timing, reason)
    if after is not trial.state:
        why = str(columns.get("explanation", ""))
        raise_of_state(connection, trial.experiment_id, after.value, now=timing.now, trial=trial, detail=why)
    if step.effects or after is not trial.state:
        signalled = not _SIGNALS.isdisjoint(step.effects)
        trial_transitions.record(
            connection,
            TrialTransition(
                trial_id=trial.id,
                time=timing.now,
                event=event.name,
                from_state=trial.state.value,
                to_state=after.value,
                run=columns.get("run", trial.run),
                signal_reason=reason.value if signalled else "",
                actor=_requester(event, reason),
                detail=detail or noted.get("explanation", ""),
                search_event=search_event,
            ),
        )


def _requester(event: TrialEvent, reason: SignalReason) -> str:
    """Names the user who asks for an event; empty for one that no user asks for."""
    asked = event in _REQUESTED and reason is SignalReason.USER
    return actor() if asked and isinstance(current_principal.get(), User) else ""


def _columns(trial: Trial, effect: TrialEffect, timing: Timing) -> dict[str, Any]:
    marks = {"closed": False, "kill_requested": False}
    changes: dict[TrialEffect, dict[str, Any]] = {
        _F.ENQUEUE: {"queued_at": timing.now},
        _F.BEGIN_RUN: {"run": trial.run + 1, "explanation": "", "status": "", "steps_due": True},
        _F.MARK_KILLED: {"kill_requested": True},
        _F.MARK_CLOSED: {"closed": True},
        _F.COUNT_RESTART: {"restarts": trial.restarts + 1},
        _F.RESET_RESTARTS: {
            "life": trial.life + 1,
            "restarts": 0,
            "explanation": "",
            "ended_at": None,
            **marks,
        },
        _F.CLEAR_END: {"ended_at": None, "status": "", "steps_due": True},
        _F.END: {"ended_at": timing.now, "explanation": ""},
    }
    return changes.get(effect, {})


def _carry_out(
    connection: Connection, trial: Trial, effect: TrialEffect, timing: Timing, reason: SignalReason
) -> None:
    if effect is _F.SIGNAL:
        signals.preempt(connection, signals.current_run(connection, trial), reason=reason, timing=timing)
    elif effect is _F.KILL:
        signals.kill(connection, signals.current_run(connection, trial), reason=reason, timing=timing)
    elif effect is _F.END:
        _enqueue_message(connection, trial, outbox.Kind.LOGS_CLOSED, "logs", {"trial_id": trial.id})
    elif effect in _SEARCH_EVENTS:
        payload = {"request_id": trial.request_id, "event": _SEARCH_EVENTS[effect].value}
        _enqueue_message(connection, trial, outbox.Kind.TRIAL_ENDED, "ended", payload)


def _enqueue_message(
    connection: Connection, trial: Trial, kind: outbox.Kind, name: str, payload: dict[str, str]
) -> None:
    # The identifier derives from the trial's life: a repetition is no second event.
    outbox.put(
        connection,
        event_id=f"{trial.id}/{trial.life}.{trial.run}/{name}",
        experiment_id=trial.experiment_id,
        kind=kind,
        payload=payload,
    )
