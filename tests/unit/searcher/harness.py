"""Drives a search to its end in memory, the two ways that the conformance vectors ask for."""

from __future__ import annotations

import json
import random
from collections import Counter, deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from resolute_searcher.log.entry import Entry
from resolute_searcher.log.events import (
    Event,
    ExitReason,
    Started,
    TrialClosed,
    TrialCreated,
    TrialExited,
    ValidationCompleted,
)
from resolute_searcher.log.operations import Close, Create, Operation, Shutdown, ValidateAfter
from resolute_searcher.state_machine.search import Search, fold

Metric = Callable[[int], float]
"""The metric of the trial with a number, counted from 1 in the order of creation."""


@dataclass
class Run:
    """What a search asked for while it was driven."""

    search: Search
    entries: list[Entry] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)
    lengths: dict[int, list[int]] = field(default_factory=dict)
    creates: list[Create] = field(default_factory=list)
    shutdown: Shutdown | None = None

    def record(self, event: Event) -> list[Operation]:
        """Feeds an event and what follows from it by itself; notes and gives what came of it."""
        operations: list[Operation] = []
        pending: Event | None = event
        while pending is not None:
            entry = self.search.record(pending)
            if entry is not None:
                self.entries.append(entry)
                operations += entry.operations
            pending = self.search.implied_event()
        for operation in operations:
            self._note(operation)
        return operations

    def _note(self, operation: Operation) -> None:
        match operation:
            case Create(trial_key):
                number = len(self.numbers) + 1
                self.numbers[trial_key] = number
                self.lengths[number] = []
                self.creates.append(operation)
            case ValidateAfter(trial_key, length):
                self.lengths[self.numbers[trial_key]].append(length)
            case Shutdown():
                self.shutdown = operation

    def in_order(self) -> list[list[int]]:
        """The lengths of each trial, in order of creation."""
        return [self.lengths[number] for number in sorted(self.lengths)]

    def multiset(self) -> Counter[tuple[int, ...]]:
        """How many trials had which lengths."""
        return Counter(tuple(lengths) for lengths in self.lengths.values())


def drive_in_order(
    search: Search,
    metric: Metric,
    *,
    exits: Collection[tuple[int, int]] = (),
    reason: ExitReason = ExitReason.USER_REQUESTED_STOP,
) -> Run:
    """Harness V: operations are answered first in, first out.

    Args:
        search: A new search.
        metric: Constant metric of each trial.
        exits: Trials that exit, by number, and which of their operations they answer so, counted from 1.
        reason: Why they exit.
    """
    run = Run(search)
    waiting = deque(run.record(Started()))
    answered: Counter[int] = Counter()
    while waiting:
        match waiting.popleft():
            case Create(trial_key):
                waiting += run.record(TrialCreated(trial_key))
            case ValidateAfter(trial_key, length):
                number = run.numbers[trial_key]
                answered[number] += 1
                if (number, answered[number]) in exits:
                    waiting += run.record(TrialExited(trial_key, reason))
                    waiting += run.record(TrialClosed(trial_key))
                else:
                    waiting += run.record(ValidationCompleted(trial_key, metric(number), length))
                _assert_snapshot_is_exact(search)
            case Close(trial_key):
                waiting += run.record(TrialClosed(trial_key))
    assert fold(search.state.spec, run.entries).state.snapshot() == search.state.snapshot()
    return run


def drive_at_random(search: Search, metric: Metric, *, seed: int = 0, in_turn: bool = False) -> Run:
    """Harness S: each step answers one operation of some trial that has any.

    Args:
        search: A new search.
        metric: Constant metric of each trial.
        seed: Chooses the trials.
        in_turn: Choose the oldest trial instead of a random one.
    """
    choice = random.Random(seed)
    run = Run(search)
    pending: dict[str, deque[Operation]] = {}
    progress = [search.state.progress()]

    def feed(event: Event) -> None:
        for operation in run.record(event):
            if isinstance(operation, Create | ValidateAfter | Close):
                pending.setdefault(operation.trial_key, deque()).append(operation)
        progress.append(search.state.progress())

    feed(Started())
    while pending:
        trial_key = next(iter(pending)) if in_turn else choice.choice(list(pending))
        match pending[trial_key].popleft():
            case Create():
                feed(TrialCreated(trial_key))
            case ValidateAfter(_, length):
                search.state.reach(trial_key, length)
                feed(ValidationCompleted(trial_key, metric(run.numbers[trial_key]), length))
            case Close():
                feed(TrialClosed(trial_key))
        if not pending[trial_key]:
            del pending[trial_key]
    assert progress[0] == 0.0
    assert progress == sorted(progress)
    assert progress[-1] == 1.0
    assert all(trial.closed for trial in search.state.trials.values())
    assert run.shutdown == Shutdown(cancel=False, failure=False)
    return run


def _assert_snapshot_is_exact(search: Search) -> None:
    before = json.dumps(search.state.snapshot())
    other = Search(search.state.spec)
    other.state.restore(json.loads(before))
    assert json.dumps(other.state.snapshot()) == before
