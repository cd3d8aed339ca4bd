"""The reasons of a search's decisions, as values and in words."""

from __future__ import annotations

from dataclasses import dataclass

from resolute.api.searcher.v1 import reason_pb2
from resolute.contracts.messages import from_message


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasonRecord:
    """The recorded reason of a decision. Numbers that do not apply are None."""

    kind: str
    """The name in the contract, without its prefix, such as TOP_OF_RUNG."""
    cause_sequence: int | None = None
    """Of an event: position of the earlier event that led to it."""
    bracket: int | None = None
    rung: int | None = None
    """From 0 at the bottom."""
    rank: int | None = None
    """Place on the rung, from 1, the best."""
    rank_of: int | None = None
    """Trials on the rung."""
    metric: float | None = None
    threshold: float | None = None
    """Metric of the worst trial among the best of the rung."""
    top_size: int | None = None
    """How many trials on the rung are its best."""


def reason(message: reason_pb2.Reason) -> ReasonRecord:
    """Converts a reason."""
    value = reason_pb2.ReasonKind.DESCRIPTOR.values_by_number.get(message.kind)
    name = value.name.removeprefix("REASON_KIND_") if value is not None else "NOT_RECORDED"
    return from_message(ReasonRecord, message, kind=name)


_WORDS = {
    "UNSPECIFIED": "the reason was not recorded",
    "NOT_RECORDED": "the reason was not recorded",
    "CLIENT_DECISION": "the client of the custom search decided so",
    "METHOD_DECISION": "the search method decided so, and gave no reason",
    "INITIAL_TRIAL": "it is one of the trials that the search begins with",
    "FREE_SLOT": "there was room for another trial",
    "REPLACEMENT": "it replaces a trial whose hyperparameters were refused",
    "SUGGESTED": "the sampler suggested these hyperparameters",
    "FIRST_LENGTH": "it is the first length of a new trial",
    "TOP_OF_RUNG": "it is among the best",
    "BELOW_TOP_OF_RUNG": "it is not among the best",
    "RUNG_COMPLETE": "no later report can bring it among the best",
    "MAX_LENGTH_REACHED": "it trains no longer than the longest length of the search",
    "INVALID_HYPERPARAMETERS": "its code refused its hyperparameters",
    "SEARCH_EXTENDED": "the search was extended",
    "TRIAL_RETRIED": "it is tried again",
    "ALL_TRIALS_CLOSED": "every trial is closed, and the search wants no more",
    "ALL_TRIALS_FAILED": "every trial failed",
    "ALL_TRIALS_CANCELED": "every trial was canceled",
    "TOO_MANY_REFUSED": "50 sets of hyperparameters in a row were refused by the code",
}
_ORDINALS = {1: "st", 2: "nd", 3: "rd"}


def describe_reason(reason: ReasonRecord) -> str:
    """Tells why something was decided, such as "it is not among the best: 0.871 was 7th of 9 on rung 2"."""
    text = _WORDS.get(reason.kind, reason.kind.replace("_", " ").lower())
    if reason.rank is not None:
        value = f"{reason.metric:g}" if reason.metric is not None else "without a metric it"
        text += f": {value} was {ordinal(reason.rank)} of {reason.rank_of}"
    if reason.rung is not None:
        text += f" on rung {reason.rung}" + (
            "" if reason.bracket is None else f" of bracket {reason.bracket}"
        )
    if reason.top_size is not None:
        text += f"; the best {reason.top_size} go on"
    if reason.threshold is not None:
        text += f", the last of them with {reason.threshold:g}"
    return text


def ordinal(number: int) -> str:
    """Writes a place, such as "2nd"."""
    teens = 10 <= number % 100 < 20
    return f"{number}{'th' if teens else _ORDINALS.get(number % 10, 'th')}"
