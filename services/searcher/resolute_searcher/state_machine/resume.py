"""Conditions for extending a search and for retrying a trial."""

from __future__ import annotations

import math

from resolute.errors import FailedPreconditionError, InvalidArgumentError
from resolute_searcher.identifiers import invalid_field
from resolute_searcher.log.events import ExitReason, Extended
from resolute_searcher.spec.search import MAX_TRIALS, AdaptiveAshaSpec, AsyncHalvingSpec, MethodSpec
from resolute_searcher.state_machine.state import SearchState
from resolute_searcher.state_machine.trial import TrialState

_RETRIABLE = (ExitReason.ERRORED, ExitReason.USER_CANCELED, ExitReason.USER_REQUESTED_STOP)


def accepts_extension(search: SearchState, event: Extended) -> bool:
    """Checks that a search can be extended.

    Raises:
        FailedPreconditionError: It is not over, or its method cannot be extended so.
        InvalidArgumentError: The extension gives it nothing.
    """
    if event.max_trials is None and event.max_length is None:
        raise InvalidArgumentError("an extension must name max_trials, max_length or both")
    if not search.over:
        raise FailedPreconditionError("the search is under way; extend it when it is over")
    if _has_equal_rungs(search.spec.method):
        # An ended trial could rise to a rung of equal length, with nothing to run and nothing to end it.
        raise FailedPreconditionError(
            "some rungs of the search have the same length, so it cannot be extended; "
            "begin a new search with a larger max_length or fewer rungs"
        )
    for field, now in (("max_trials", event.max_trials), ("max_length", event.max_length)):
        if now is None:
            continue
        if field not in search.kind.extends:
            raise FailedPreconditionError(f"the {field} of a search by {search.kind.name} cannot be extended")
        before = search.limits[field]
        if before is None:
            raise FailedPreconditionError(f"the search has no {field}; its trials end by themselves")
        if now <= before:
            raise invalid_field(field, f"must be above the {before} that the search has, not {now}")
    if event.max_trials is not None and event.max_trials > MAX_TRIALS:
        raise invalid_field("max_trials", f"must be at most {MAX_TRIALS}, not {event.max_trials}")
    return True


def _has_equal_rungs(method: MethodSpec) -> bool:
    if isinstance(method, AsyncHalvingSpec):
        rungs = method.num_rungs
    elif isinstance(method, AdaptiveAshaSpec):
        rungs = max(method.bracket_rungs, default=_most_rungs(method))
    else:
        return False
    lengths = [max(int(method.max_length / method.divisor**below), 1) for below in range(rungs)]
    return len(set(lengths)) < rungs


def _most_rungs(method: AdaptiveAshaSpec) -> int:
    fitting = (
        int(math.log(bound) / math.log(method.divisor)) + 1
        for bound in (method.max_length, method.max_trials)
    )
    return min(method.max_rungs, *fitting)


def accepts_retry(trial: TrialState, trial_key: str) -> bool:
    """Checks that a trial can be retried.

    Raises:
        FailedPreconditionError: It has not failed, or another trial took its place.
    """
    problem = ""
    if trial.exit is None or not trial.closed:
        problem = "it has not failed; only a trial that failed or was cancelled can be tried again"
    elif trial.exit not in _RETRIABLE:
        problem = f"it refused its hyperparameters ({trial.exit.value}), and another trial took its place"
    elif trial.closing and trial.length and trial.completed(trial.length):
        problem = "it had completed all that was asked of it when it left"
    if problem:
        raise FailedPreconditionError(f"trial {trial_key}: {problem}", resource=f"trial {trial_key}")
    return True
