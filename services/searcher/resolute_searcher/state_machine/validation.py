"""Checks events: a search accepts events that are new, possible in its state, and about its own trials."""

from __future__ import annotations

from resolute.errors import FailedPreconditionError, InvalidArgumentError
from resolute_searcher.log.events import (
    Event,
    Extended,
    OperationsPosted,
    Retried,
    Started,
    Suggested,
    TrialClosed,
    TrialCreated,
    TrialEvent,
    TrialExited,
    TrialFenced,
    ValidationCompleted,
    ValidationReported,
)
from resolute_searcher.state_machine.external_operations import accepts_operations
from resolute_searcher.state_machine.resume import accepts_extension, accepts_retry
from resolute_searcher.state_machine.state import SearchState
from resolute_searcher.state_machine.trial import TrialState


def accepts(search: SearchState, event: Event) -> bool:
    """Checks an event, and returns whether it changes anything: a repeated one does not.

    Raises:
        NotFoundError: It is of an unknown trial.
        FailedPreconditionError: It cannot happen now.
        InvalidArgumentError: Its values mean nothing.
    """
    match event:
        case Started():
            return search.sequence == 0
        case OperationsPosted():
            return accepts_operations(search, event)
        case Suggested():
            return _accepts_suggestion(search, event)
        case Extended():
            return accepts_extension(search, event)
        case _:
            return _accepts_of_trial(search, search.trial(event.trial_key), event)


def _accepts_of_trial(search: SearchState, trial: TrialState, event: TrialEvent | TrialFenced) -> bool:
    match event:
        case TrialCreated():
            return not trial.created
        case ValidationCompleted():
            return _accepts_completion(trial, event)
        case ValidationReported():
            return _accepts_report(search, trial, event)
        case TrialExited():
            # The first reason counts: a trial that was cancelled may well fail on its way out.
            return not trial.ended
        case TrialClosed(trial_key):
            return _accepts_close(trial, trial_key)
        case TrialFenced(_, min_run):
            return min_run > trial.min_run or trial.idle == trial.pending
        case Retried(trial_key):
            return accepts_retry(trial, trial_key)


def _accepts_suggestion(search: SearchState, event: Suggested) -> bool:
    if event.number <= search.suggested:
        return False
    if search.refused_too_often:
        return False  # asked for before
    question = search.suggestion_request()
    if question is None or event.number != search.suggested + 1:
        raise FailedPreconditionError(
            f"the search waits for suggestion {search.suggested + 1}, if any; {event.number} is too early"
        )
    return True


def _accepts_completion(trial: TrialState, event: ValidationCompleted) -> bool:
    if not trial.pending and trial.done is not None and trial.done[0] == event.length:
        if _same(trial.done[1], event.metric):
            return False
        raise _refused(
            event.trial_key,
            f"its operation of length {event.length} was already completed, with metric {trial.done[1]}; "
            f"a second metric ({event.metric}) is not taken",
        )
    if trial.pending and event.length == trial.length:
        return True
    if trial.done is not None and trial.done[0] == event.length and _same(trial.done[1], event.metric):
        return False
    if trial.exit is not None:
        raise _refused(
            event.trial_key, f"it left the search ({trial.exit.value}); its completions no longer count"
        )
    if trial.pending:
        raise _refused(
            event.trial_key, f"its operation is of length {trial.length}, not {event.length}; complete that"
        )
    raise _refused(event.trial_key, "it has no operation to complete; ask for its operation again")


def _accepts_report(search: SearchState, trial: TrialState, event: ValidationReported) -> bool:
    require_time_metric(search)
    # Anything but a number compares false, so the test is written for what is good.
    if not 0 <= event.time < float("inf"):
        raise InvalidArgumentError(
            f"trial {event.trial_key} reported {event.time} as {search.spec.time_metric}, "
            "which must be a finite number that is not negative"
        )
    if trial.ended:
        return False
    if not event.source:
        return True
    return event.position > (trial.report_positions or {}).get((event.run, event.source), -1)


def require_time_metric(search: SearchState) -> None:
    """Checks that a search is driven by validation reports.

    Raises:
        FailedPreconditionError: Operations do.
    """
    if search.spec.time_metric is None:
        raise FailedPreconditionError(
            "validation reports do not drive this search; complete operations, or set searcher.time_metric"
        )


def _accepts_close(trial: TrialState, trial_key: str) -> bool:
    if trial.closed:
        return False
    if trial.exit is not None or (trial.closing and not trial.pending):
        return True
    if trial.length == 0:
        return True  # it runs by itself and knows when it is done
    raise _refused(
        trial_key,
        "it cannot be over, since the search has not closed it or waits for its operation; "
        "report first why it exited",
    )


def _same(one: float, other: float) -> bool:
    # NaN differs from itself, and a retry may carry it.
    return one == other or (one != one and other != other)  # noqa: PLR0124


def _refused(trial_key: str, why: str) -> FailedPreconditionError:
    return FailedPreconditionError(f"trial {trial_key}: {why}", resource=f"trial {trial_key}")
