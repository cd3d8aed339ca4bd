"""Checks the operations of a custom search's client: all operations of a post are accepted, or none."""

from __future__ import annotations

from resolute.errors import FailedPreconditionError, InvalidArgumentError
from resolute_searcher.identifiers import canonical_uuid
from resolute_searcher.log.events import OperationsPosted
from resolute_searcher.log.operations import Close, Create, PostedOperation, Progress, Shutdown, ValidateAfter
from resolute_searcher.state_machine.state import SearchState
from resolute_searcher.state_machine.trial import TrialState


def accepts_operations(search: SearchState, event: OperationsPosted) -> bool:
    """Checks the client's answer to an event, and returns whether it is new.

    Raises:
        FailedPreconditionError: The search has no client, there is no such event, or an operation is not
            possible now.
        InvalidArgumentError: An operation means nothing.
    """
    if not search.kind.custom:
        raise FailedPreconditionError(
            f"the search decides by itself ({search.kind.name}); only custom searches take operations"
        )
    if event.answers <= search.answered:
        return False
    if event.answers > search.sequence:
        raise FailedPreconditionError(
            f"there is no event {event.answers} to answer yet; the last one is {search.sequence}"
        )
    if search.over:
        raise FailedPreconditionError("the search is over; nothing can be posted to it any more")
    dry_run = _DryRun(search)
    for number, operation in enumerate(event.operations):
        dry_run.take(operation, where=f"operations[{number}]")
    return True


class _DryRun:
    """The state of trials after some operations, without applying them."""

    def __init__(self, search: SearchState) -> None:
        self._search = search
        self._lengths: dict[str, int] = {}
        self._pending: set[str] = set()
        self._closing: set[str] = set()
        self._over = False

    def take(self, operation: PostedOperation, *, where: str) -> None:
        if self._over:
            raise FailedPreconditionError(f"{where} comes after a shutdown; post the shutdown last")
        match operation:
            case Create(trial_key):
                self._create(trial_key, where)
            case ValidateAfter(trial_key, length):
                self._validate(trial_key, length, where)
            case Close(trial_key):
                self._known(trial_key, where)
                self._closing.add(trial_key)
            case Progress(progress):
                if not 0.0 <= progress <= 1.0:
                    raise InvalidArgumentError(f"{where}: progress {progress} is outside of 0 to 1")
            case Shutdown():
                self._over = True

    def _create(self, trial_key: str, where: str) -> None:
        if canonical_uuid(trial_key, field=f"{where}.trial_key") != trial_key:
            raise InvalidArgumentError(f"{where}: trial_key {trial_key!r} must be a UUID in lower case")
        if trial_key in self._search.trials or trial_key in self._lengths:
            raise FailedPreconditionError(f"{where}: trial {trial_key} is there already; make another UUID")
        self._lengths[trial_key] = 0

    def _validate(self, trial_key: str, length: int, where: str) -> None:
        trial = self._known(trial_key, where)
        if trial_key in self._pending or (trial is not None and trial.pending):
            raise FailedPreconditionError(
                f"{where}: trial {trial_key} has an operation under way; wait until it is complete"
            )
        last = max(self._lengths.get(trial_key, 0), trial.length if trial is not None else 0)
        if length <= last:
            raise FailedPreconditionError(
                f"{where}: trial {trial_key} has trained to {last}; a length of {length} adds nothing"
            )
        self._lengths[trial_key] = length
        self._pending.add(trial_key)

    def _known(self, trial_key: str, where: str) -> TrialState | None:
        trial = self._search.trials.get(trial_key)
        if trial is None and trial_key not in self._lengths:
            raise FailedPreconditionError(
                f"{where}: trial {trial_key} is not of this search; create it first"
            )
        if trial_key in self._closing or (trial is not None and (trial.closing or trial.ended)):
            raise FailedPreconditionError(f"{where}: trial {trial_key} was closed or has left")
        return trial
