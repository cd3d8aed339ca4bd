"""The reasons of events and of operations, as data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class ReasonKind(Enum):
    """The kind of a reason. The first group is for events, the second for operations and their actions."""

    NOT_RECORDED = "not_recorded"
    """Recorded by a version that kept no reasons."""

    SEARCH_CREATED = "search_created"
    ACTION_APPLIED = "action_applied"
    TRIAL_REPORTED = "trial_reported"
    LENGTH_REACHED_BEFORE = "length_reached_before"
    CLOSED_BY_SEARCH = "closed_by_search"
    ENDED_BY_ITSELF = "ended_by_itself"
    EXITED = "exited"
    RUN_ENDED = "run_ended"
    SUGGESTION_REQUESTED = "suggestion_requested"
    USER_REQUEST = "user_request"

    CLIENT_DECISION = "client_decision"
    METHOD_DECISION = "method_decision"
    INITIAL_TRIAL = "initial_trial"
    FREE_SLOT = "free_slot"
    REPLACEMENT = "replacement"
    SUGGESTED = "suggested"
    FIRST_LENGTH = "first_length"
    TOP_OF_RUNG = "top_of_rung"
    BELOW_TOP_OF_RUNG = "below_top_of_rung"
    RUNG_COMPLETE = "rung_complete"
    MAX_LENGTH_REACHED = "max_length_reached"
    INVALID_HYPERPARAMETERS = "invalid_hyperparameters"
    SEARCH_EXTENDED = "search_extended"
    TRIAL_RETRIED = "trial_retried"
    ALL_TRIALS_CLOSED = "all_trials_closed"
    ALL_TRIALS_FAILED = "all_trials_failed"
    ALL_TRIALS_CANCELED = "all_trials_canceled"
    TOO_MANY_REFUSED = "too_many_refused"


@dataclass(frozen=True, slots=True)
class Reason:
    """A reason. Its kind determines which fields are set.

    Attributes:
        kind: The kind.
        cause_sequence: Position of the earlier event that caused this one; for events only.
        bracket: The bracket, in methods that have brackets.
        rung: The rung that decided, from 0 at the bottom.
        rank: Rank of the trial on the rung, from 1.
        rank_of: Number of trials on the rung.
        metric: The trial's metric on the rung; None if it exited there or reported NaN.
        threshold: Metric of the worst trial among the best of the rung; None if there is none.
        top_size: Number of the best trials on the rung, which continue.
    """

    kind: ReasonKind
    cause_sequence: int | None = None
    bracket: int | None = None
    rung: int | None = None
    rank: int | None = None
    rank_of: int | None = None
    metric: float | None = None
    threshold: float | None = None
    top_size: int | None = None


NOT_RECORDED = Reason(ReasonKind.NOT_RECORDED)
"""The reason of everything that was recorded before reasons were."""
