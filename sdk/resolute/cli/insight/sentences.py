"""Sentences about decisions of searches and changes of states."""

from __future__ import annotations

from resolute.cli.display.output import format_value
from resolute.client.insight.decisions import Decision, SearchEvent
from resolute.client.schema.reasons import describe_reason
from resolute.client.schema.transitions import TransitionRecord

_EVENTS = {
    "started": "the start of the search",
    "trial_created": "the creation of {trial}",
    "validation_completed": "the report of {trial}: {metric} at length {length}",
    "validation_reported": "the report of {trial}: {metric} at {length}",
    "trial_closed": "the end of {trial}",
    "trial_exited": "the early exit of {trial}",
    "operations_posted": "operations that the client posted",
    "suggested": "a suggestion of the sampler",
    "extended": "an extension of the search",
    "retried": "the retry of {trial}",
}
_SIGNALS = {
    "USER": "a user asked for it",
    "SCHEDULER": "the scheduler needs the slots",
    "MACHINE": "the machine goes away",
    "TIMEOUT": "a deadline passed",
    "SEARCH": "the search stopped it",
    "GUARD": "its guard found a bad report",
}
_TRANSITIONS = {
    "CREATE": "created by its search",
    "PAUSE": "the experiment was paused",
    "ACTIVATE": "the experiment was activated",
    "PLACE": "got slots",
    "CONFIRM_RUNNING": "its processes run",
    "PREEMPT": "asked to checkpoint and exit",
    "GO_BACK": "goes back to an earlier checkpoint",
    "CONTAINERS_ENDED": "its processes ended",
    "ASSIGN_OPERATION": "its search gave it more work",
    "CLOSE": "its search will give it no more work",
    "STOP": "its search stopped it",
    "CANCEL": "the experiment ends",
    "KILL": "killed",
    "FAIL_UNSCHEDULABLE": "no machine can run it",
    "REOPEN": "continues after its end",
    "REOPEN_IDLE": "continues after its end, with nothing to train yet",
    "RUN_FINISHED": "its run completed, and it has no more work",
    "RUN_EXITED_EARLY": "its code ended before its work was done",
    "RUN_INVALID": "its code refused the hyperparameters",
    "RUN_INVALID_AT_INIT": "its code refused the hyperparameters at once",
    "RUN_CANCELED": "its run ended because it was canceled",
    "RUN_IDLE": "its run completed its work; it waits for the search",
    "RUN_RESUMES": "its run ended before its work was done; it queues for the next",
    "RUN_RETRIED": "its run failed; it queues for another attempt",
    "RUN_FAILED": "its run failed, and no restart is left",
    "RUN_FAILED_BY_POLICY": "a log policy ended it",
}


def decided(decision: Decision) -> str:
    """Says what was decided, such as "train to 4"."""
    subject = "" if decision.trial is None else f" trial {decision.trial}"
    return {
        "create": f"create{subject}",
        "validate_after": f"train{subject} to length {decision.length}",
        "close": f"no more work for{subject}",
        "stop": f"stop{subject}",
        "promote": f"promote{subject}",
        "shutdown": "end the search",
    }.get(decision.kind, decision.kind)


def because(decision: Decision) -> str:
    """Says why, with the numbers and the event that decided."""
    return f"{describe_reason(decision.reason)}; decided by {happened(decision.event)}{_at(decision.event)}"


def happened(event: SearchEvent) -> str:
    """Says what happened in a search."""
    trial = "a trial" if event.trial is None else f"trial {event.trial}"
    text = _EVENTS.get(event.kind, event.kind.replace("_", " "))
    return text.format(trial=trial, metric=format_value(event.metric), length=format_value(event.length))


def moved(transition: TransitionRecord) -> str:
    """Says what changed the state of a trial, and why."""
    parts = [_TRANSITIONS.get(transition.event, transition.event.replace("_", " ").lower())]
    if transition.event == "PLACE":
        parts[0] += f" for run {transition.run}"
    if transition.actor:
        parts[0] += f" by {transition.actor}"
    elif transition.signal_reason:
        parts.append(_SIGNALS.get(transition.signal_reason, transition.signal_reason.lower()))
    if transition.detail:
        parts.append(transition.detail)
    return "; ".join(parts)


def _at(event: SearchEvent) -> str:
    return f" at {event.time.astimezone():%H:%M:%S} (event {event.sequence})" if event.time else ""
