"""Which answers of a custom search's client are taken: all of an answer, or nothing of it."""

from __future__ import annotations

from resolute.errors import FailedPreconditionError, InvalidArgumentError
from resolute_searcher.engine.state import SearchState
from resolute_searcher.engine.trial import TrialState
from resolute_searcher.identifiers import canonical_uuid
from resolute_searcher.log.events import OperationsPosted
from resolute_searcher.log.operations import Close, Create, PostedOperation, Progress, Shutdown, ValidateAfter


def accepts_operations(search: SearchState, event: OperationsPosted) -> bool:
    """Tells whether an answer is new.

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
    """Where trials would stand after some operations."""

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
            case Create(request_id):
                self._create(request_id, where)
            case ValidateAfter(request_id, length):
                self._validate(request_id, length, where)
            case Close(request_id):
                self._known(request_id, where)
                self._closing.add(request_id)
            case Progress(progress):
                if not 0.0 <= progress <= 1.0:
                    raise InvalidArgumentError(f"{where}: progress {progress} is outside of 0 to 1")
            case Shutdown():
                self._over = True

    def _create(self, request_id: str, where: str) -> None:
        if canonical_uuid(request_id, field=f"{where}.request_id") != request_id:
            raise InvalidArgumentError(f"{where}: request_id {request_id!r} must be a UUID in lower case")
        if request_id in self._search.trials or request_id in self._lengths:
            raise FailedPreconditionError(f"{where}: trial {request_id} is there already; make another UUID")
        self._lengths[request_id] = 0

    def _validate(self, request_id: str, length: int, where: str) -> None:
        trial = self._known(request_id, where)
        if request_id in self._pending or (trial is not None and trial.pending):
            raise FailedPreconditionError(
                f"{where}: trial {request_id} has an operation under way; wait until it is complete"
            )
        last = max(self._lengths.get(request_id, 0), trial.length if trial is not None else 0)
        if length <= last:
            raise FailedPreconditionError(
                f"{where}: trial {request_id} has trained to {last}; a length of {length} asks for nothing"
            )
        self._lengths[request_id] = length
        self._pending.add(request_id)

    def _known(self, request_id: str, where: str) -> TrialState | None:
        trial = self._search.trials.get(request_id)
        if trial is None and request_id not in self._lengths:
            raise FailedPreconditionError(
                f"{where}: trial {request_id} is not of this search; create it first"
            )
        if request_id in self._closing or (trial is not None and (trial.closing or trial.ended)):
            raise FailedPreconditionError(f"{where}: trial {request_id} was closed or has left")
        return trial
