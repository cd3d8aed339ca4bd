"""A search: a state machine that turns events into operations and actions. Its log rebuilds it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from resolute_searcher.log.actions import Action, CloseTrial, CreateTrial, EndSearch, RunTrial, StopTrial
from resolute_searcher.log.entry import Entry
from resolute_searcher.log.events import (
    Event,
    ExitReason,
    Extended,
    MethodEvent,
    OperationsPosted,
    Retried,
    Started,
    Suggested,
    TrialClosed,
    TrialCreated,
    TrialExited,
    TrialFenced,
    ValidationCompleted,
    ValidationReported,
)
from resolute_searcher.log.operations import (
    Close,
    Create,
    Operation,
    Progress,
    Promote,
    Shutdown,
    Stop,
    ValidateAfter,
)
from resolute_searcher.log.reasons import Reason, ReasonKind
from resolute_searcher.spec.search import GridSpec, SearchSpec, SingleSpec
from resolute_searcher.state_machine import validation
from resolute_searcher.state_machine.event_reasons import event_reason
from resolute_searcher.state_machine.state import SearchState
from resolute_searcher.state_machine.trial import TrialState


class Search:
    """A search, rebuilt from its spec and its log.

    Args:
        spec: The checked spec.

    Attributes:
        state: State of the search, for reading.
    """

    def __init__(self, spec: SearchSpec) -> None:
        self.state = SearchState(spec)

    def record(self, event: Event) -> Entry | None:
        """Records an event and the decisions that follow from it.

        Returns:
            The entry to append to the log, already applied; None when the event changes nothing, as
            duplicates do.

        Raises:
            NotFoundError: The event is of an unknown trial.
            FailedPreconditionError: The event cannot happen now. The state is as before.
        """
        if not validation.accepts(self.state, event):
            return None
        reason = event_reason(self.state, event)
        self.state.sequence += 1
        self._absorb(event)
        operations: list[Operation] = []
        actions: list[Action] = []
        if not isinstance(event, TrialFenced):
            self._decide(event, operations, actions)
        return Entry(
            sequence=self.state.sequence,
            event=event,
            operations=tuple(operations),
            actions=tuple(actions),
            last_action=self.state.last_action,
            draws=self.state.draws,
            reason=reason,
        )

    def implied_event(self) -> Event | None:
        """Returns the event that the state implies and that must be recorded next; None without one.

        Rungs that lie close together can have equal lengths. A trial that rises from one to the next has
        nothing to train: it completes its new operation with the metric that it has.
        """
        for trial_key in self.state.repeated:
            trial = self.state.trials[trial_key]
            if trial.pending and trial.done is not None:
                return ValidationCompleted(trial_key, trial.done[1], trial.length)
        return None

    def apply(self, entry: Entry) -> None:
        """Applies an entry of the log, without new decisions.

        Raises:
            ValueError: The entry is not the next one.
        """
        if entry.sequence != self.state.sequence + 1:
            raise ValueError(f"entry {entry.sequence} cannot follow entry {self.state.sequence}")
        self.state.sequence = entry.sequence
        self._absorb(entry.event)
        for operation in entry.operations:
            self._apply_operation(operation)
        for action in entry.actions:
            self._apply_action(action)
        self.state.last_action = entry.last_action
        self.state.draws = entry.draws

    def _decide(self, event: MethodEvent, operations: list[Operation], actions: list[Action]) -> None:
        self.state.sampler.random.advance_to(self.state.draws)
        if isinstance(event, Retried):
            # It is there again before anything is decided about it.
            again = self.state.trials[event.trial_key]
            retried = Reason(ReasonKind.TRIAL_RETRIED)
            run = RunTrial(event.trial_key, again.length, reopens=True, reason=retried)
            self._emit_action(run, actions)
        for operation in self._decided(event):
            self._record_operation(operation, operations, actions)
        if isinstance(event, Retried):
            # Recovery hands actions out after the operations: what both leave behind must be the same.
            self._apply_action(actions[0])
        if self._is_finished_by(event):
            self._record_operation(self._shutdown(), operations, actions)
        self.state.draws = self.state.sampler.random.position.draws

    def _decided(self, event: MethodEvent) -> Iterator[Operation]:
        """Yields the method's operations, without those of trials that it may not replace."""
        left_out = set()
        for operation in self.state.method.decide(event, self.state.sampler):
            replaces = operation.reason.kind is ReasonKind.REPLACEMENT
            if isinstance(operation, Create) and replaces and self.state.refused_too_often:
                left_out.add(operation.trial_key)
            elif isinstance(operation, Progress | Shutdown) or operation.trial_key not in left_out:
                yield operation

    def _record_operation(
        self, operation: Operation, operations: list[Operation], actions: list[Action]
    ) -> None:
        if operation.reason.kind is ReasonKind.NOT_RECORDED:
            operation = replace(operation, reason=Reason(ReasonKind.METHOD_DECISION))
        operations.append(operation)
        # Whether a trial must be asked to run again depends on its state before the operation.
        action = self._action(operation)
        self._apply_operation(operation)
        if action is not None:
            self._emit_action(action, actions)

    def _emit_action(self, action: Action, actions: list[Action]) -> None:
        self._apply_action(action)
        self.state.last_action += 1
        actions.append(action)

    def _is_finished_by(self, event: MethodEvent) -> bool:
        """Returns whether the search is finished after an event."""
        if self.state.over or self.state.kind.custom or not isinstance(event, TrialClosed | Extended):
            return False
        return self.state.closed == self.state.requested and not self.state.awaits_suggestion

    def _shutdown(self) -> Shutdown:
        cancel, failure = (
            self.state.cancels >= self.state.requested,
            self.state.failures >= self.state.requested,
        )
        kind = ReasonKind.ALL_TRIALS_CLOSED
        if cancel:
            kind = ReasonKind.ALL_TRIALS_CANCELED
        elif failure:
            kind = ReasonKind.ALL_TRIALS_FAILED
        elif self.state.refused_too_often and not isinstance(self.state.spec.method, GridSpec | SingleSpec):
            failure, kind = True, ReasonKind.TOO_MANY_REFUSED
        return Shutdown(cancel=cancel, failure=failure, reason=Reason(kind))

    def _action(self, operation: Operation) -> Action | None:
        why = operation.reason
        match operation:
            case Create(trial_key, hparams, trial_seed, _, checkpoint_id):
                source = checkpoint_id or self.state.spec.source_checkpoint_id
                return CreateTrial(trial_key, hparams, trial_seed, source, why)
            case ValidateAfter(trial_key, length):
                trial = self.state.trials[trial_key]
                if (trial.idle or trial.closed) and not trial.completed(length):
                    return RunTrial(trial_key, length, reopens=trial.closed, reason=why)
            case Promote(trial_key) if self._reopens(trial_key):
                return RunTrial(trial_key, 0, reopens=True, reason=why)
            case Close(trial_key):
                return CloseTrial(trial_key, why)
            case Stop(trial_key):
                return StopTrial(trial_key, why)
            case Shutdown(cancel, failure):
                return EndSearch(cancel=cancel, failure=failure, reason=why)
        return None

    def _absorb(self, event: Event) -> None:
        """Updates the state with an event, before decisions."""
        self._count_refusals(event)
        match event:
            case TrialFenced(trial_key, min_run):
                trial = self.state.trials[trial_key]
                trial.min_run = max(trial.min_run, min_run)
                trial.idle = not trial.pending
                return
            case TrialCreated(trial_key):
                self.state.trials[trial_key].created = True
            case ValidationCompleted(trial_key, metric, length):
                trial = self.state.trials[trial_key]
                trial.pending = False
                trial.done = (length, metric)
                if trial_key in self.state.repeated:
                    self.state.repeated.remove(trial_key)
            case ValidationReported(trial_key) if event.source:
                trial = self.state.trials[trial_key]
                trial.report_positions = {
                    **(trial.report_positions or {}),
                    (event.run, event.source): event.position,
                }
            case TrialExited(trial_key, reason):
                self._exit(trial_key, reason)
            case TrialClosed(trial_key):
                self.state.trials[trial_key].closed = True
                self.state.closed += 1
                self.state.reached_by_trial.pop(trial_key, None)
            case _:
                self._absorb_external(event)
        self.state.method.absorb(event)
        if self.state.model is not None:
            while len(self.state.open_requests) < self.state.model.open_requests:
                self.state.open_requests.append(self.state.sequence)

    def _count_refusals(self, event: Event) -> None:
        match event:
            case TrialExited(_, reason) if reason.invalid:
                self.state.refused_in_a_row += 1
            case TrialExited() | ValidationCompleted() | ValidationReported() | Extended() | Retried():
                self.state.refused_in_a_row = 0
            case TrialClosed(trial_key) if self.state.trials[trial_key].exit is None:
                self.state.refused_in_a_row = 0

    def _absorb_external(self, event: MethodEvent) -> None:
        """Updates the state with an event that was decided outside of the search."""
        match event:
            case OperationsPosted(_, answers):
                self.state.answered = answers
            case Suggested(number):
                self.state.suggested = number
                self.state.open_requests.popleft()
            case Extended():
                self.state.extend(event)
                self.state.over = False
            case Retried(trial_key):
                self._retry(trial_key)

    def _exit(self, trial_key: str, reason: ExitReason) -> None:
        trial = self.state.trials[trial_key]
        trial.exit = reason
        trial.decided_at = self.state.sequence
        trial.pending = False
        self.state.failures += reason is ExitReason.ERRORED
        self.state.cancels += reason is ExitReason.USER_CANCELED
        if reason.invalid:
            self.state.reached_by_trial.pop(trial_key, None)

    def _retry(self, trial_key: str) -> None:
        trial = self.state.trials[trial_key]
        self.state.failures -= trial.exit is ExitReason.ERRORED
        self.state.cancels -= trial.exit is ExitReason.USER_CANCELED
        trial.exit = None
        trial.decided_at = self.state.sequence
        trial.idle = False
        trial.pending = trial.length > 0 and not trial.completed(trial.length)
        self._reopen(trial)

    def _reopen(self, trial: TrialState) -> None:
        trial.closed = False
        self.state.closed -= 1
        self.state.over = False

    def _reopens(self, trial_key: str) -> bool:
        """Returns whether a promotion continues a trial of a time-driven search."""
        trial = self.state.trials[trial_key]
        return self.state.spec.time_metric is not None and trial.closed and trial.exit is None

    def _apply_operation(self, operation: Operation) -> None:
        """Updates the state with an operation."""
        match operation:
            case Create(trial_key):
                self.state.trials[trial_key] = TrialState()
                self.state.requested += 1
            case ValidateAfter(trial_key, length):
                trial = self.state.trials[trial_key]
                if trial.closed:
                    self._reopen(trial)
                    trial.closing = False
                trial.length = length
                trial.pending = True
                if trial.repeats:
                    self.state.repeated.append(trial_key)
            case Close(trial_key) | Stop(trial_key):
                self.state.trials[trial_key].closing = True
            case Promote(trial_key) if self._reopens(trial_key):
                self._reopen(self.state.trials[trial_key])
                self.state.trials[trial_key].closing = False
            case Promote() | Progress():
                pass
            case Shutdown():
                self.state.over = True
                return
        self.state.method.apply(operation)
        if not isinstance(operation, Progress):
            self.state.trials[operation.trial_key].decided_at = self.state.sequence

    def _apply_action(self, action: Action) -> None:
        """Updates the state with an action."""
        if isinstance(action, RunTrial):
            trial = self.state.trials[action.trial_key]
            # A trial that is tried again after it left without work rests until it gets some.
            trial.idle = action.length > 0 and not trial.pending


def fold(spec: SearchSpec, entries: Sequence[Entry]) -> Search:
    """Rebuilds a search from its log."""
    search = Search(spec)
    for entry in entries:
        search.apply(entry)
    return search


def start(spec: SearchSpec) -> tuple[Search, Entry]:
    """Creates a search.

    Returns:
        The search, and the first entry of its log.
    """
    search = Search(spec)
    entry = search.record(Started())
    assert entry is not None
    return search, entry
