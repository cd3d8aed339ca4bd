"""Random searches, played in random order with exits, repeats and crashes: what must hold for all of them.

Each of five parts plays 160 searches, and 400 with ``--whole``; RESOLUTE_PROPERTY_CASES sets another number.
"""

from __future__ import annotations

import json
import os
import random
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from resolute.errors import FailedPreconditionError
from resolute.storage.searcher.v1 import log_pb2
from resolute_searcher.log.actions import CloseTrial, CreateTrial, EndSearch, RunTrial, StopTrial
from resolute_searcher.log.entry import Entry
from resolute_searcher.log.events import (
    Event,
    ExitReason,
    Extended,
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
from resolute_searcher.rng import RandomStream
from resolute_searcher.spec.adaptive import AdaptiveMode
from resolute_searcher.spec.search import (
    AdaptiveAshaSpec,
    AsyncHalvingSpec,
    GridSpec,
    MethodSpec,
    ModelSpec,
    RandomSpec,
    SearchSpec,
    SingleSpec,
)
from resolute_searcher.spec.space import Categorical, DoubleRange, IntRange, LogRange, Space
from resolute_searcher.state_machine.replay import replay
from resolute_searcher.state_machine.resume import accepts_extension, accepts_retry
from resolute_searcher.state_machine.search import Search, fold
from resolute_searcher.store.packing import pack, unpack
from resolute_searcher.wire.log import entry_from, entry_to

PARTS = 5
CASES = int(os.environ.get("RESOLUTE_PROPERTY_CASES", 4 * settings().max_examples))
SEARCH = "0d9f8d0e-6d64-4c0a-9f4b-0c3e7f1c2b11"
SPACE = Space(
    {
        "a": Categorical(("x", None, 3)),
        "b": Space({"c": LogRange(-3.0, 0.0, count=2), "d": IntRange(1, 9, count=3)}),
        "e": DoubleRange(0.0, 1.0, count=2),
    }
)

lengths = st.integers(1, 300)
trial_counts = st.integers(1, 25)
concurrency = st.integers(0, 12)
divisors = st.sampled_from([1.5, 2.0, 3.0, 4.0])
methods: st.SearchStrategy[MethodSpec] = st.one_of(
    st.builds(SingleSpec, max_length=lengths | st.none()),
    st.builds(
        RandomSpec,
        max_length=lengths | st.none(),
        max_trials=trial_counts,
        max_concurrent_trials=concurrency,
    ),
    st.builds(GridSpec, max_length=lengths | st.none(), max_concurrent_trials=concurrency),
    st.builds(
        AsyncHalvingSpec,
        num_rungs=st.integers(1, 5),
        max_length=lengths,
        max_trials=trial_counts,
        divisor=divisors,
        max_concurrent_trials=concurrency,
        stop_once=st.booleans(),
        time_driven=st.booleans(),
    ),
    st.builds(
        AdaptiveAshaSpec,
        max_length=lengths,
        max_trials=trial_counts,
        divisor=divisors,
        max_rungs=st.integers(1, 5),
        max_concurrent_trials=concurrency,
        mode=st.sampled_from(AdaptiveMode),
        stop_once=st.booleans(),
        time_driven=st.booleans(),
    ),
    st.builds(
        ModelSpec,
        max_length=lengths,
        max_trials=trial_counts,
        max_concurrent_trials=concurrency,
        num_rungs=st.integers(1, 4),
        divisor=divisors,
    ),
)


def spec_of(method: MethodSpec, *, smaller: bool, seed: int) -> SearchSpec:
    timed = isinstance(method, AsyncHalvingSpec | AdaptiveAshaSpec) and method.time_driven
    spec = SearchSpec(
        method=method,
        smaller_is_better=smaller,
        seed=seed,
        space=SPACE,
        time_metric="steps" if timed else None,
    )
    spec.check()
    return spec


@dataclass
class Chaos:
    """A platform on which anything happens that can happen."""

    spec: SearchSpec
    choice: random.Random
    entries: list[Entry] = field(default_factory=list)
    alive: dict[str, int] = field(default_factory=dict)
    resting: set[str] = field(default_factory=set)
    times: dict[str, float] = field(default_factory=dict)
    refused: int = 0
    renewals: int = 0
    kept: tuple[int, bytes] | None = None

    def __post_init__(self) -> None:
        self.search = Search(self.spec)

    def play(self) -> None:
        self.feed(Started())
        while not self.search.state.over or self.renew():
            if self.choice.random() < 0.05:
                self.keep()
            if self.choice.random() < 0.1:
                self.crash()
            # Anyone who rests does nothing until the search tells it to run, or to end.
            running = [
                one for one in self.alive if one not in self.resting or self.search.state.trial(one).closing
            ]
            if self.search.state.awaits_suggestion and (not running or self.choice.random() < 0.5):
                self.suggest()
                continue
            assert running, "nobody can go on, and yet the search is not over"
            self.step(self.choice.choice(running))

    def suggest(self) -> None:
        question = self.search.state.suggestion_request()
        assert question is not None
        hparams = SPACE.sample(RandomStream(question.number)) if self.choice.random() < 0.9 else None
        self.feed(Suggested(question.number, hparams, {"note": question.number}))

    def renew(self) -> bool:
        """Extends the search, or tries a failed trial again; tells whether there is more to do."""
        if self.renewals == 2 or self.choice.random() < 0.5:
            return False
        self.renewals += 1
        # An extension may come before or after those who failed are tried again.
        extended_first = self.choice.random() < 0.3
        for trial_key, trial in self.search.state.trials.items():
            if extended_first:
                break
            try:
                accepts_retry(trial, trial_key)
            except FailedPreconditionError:
                continue
            self.once(Retried(trial_key))
            return True
        raised = {
            field: before + self.choice.randint(1, 2 * before)
            for field, before in self.search.state.limits.items()
            if field in self.search.state.kind.extends and before is not None and self.choice.random() < 0.7
        }
        if not raised:
            return False
        try:
            accepts_extension(self.search.state, Extended(**raised))
        except FailedPreconditionError:
            return False
        self.once(Extended(**raised))
        return not self.search.state.over

    def once(self, event: Event) -> None:
        before = len(self.entries)
        self.take(event)
        assert len(self.entries) > before

    def crash(self) -> None:
        """Loses the search in memory; it is read again from its log, perhaps from a snapshot on."""
        before = self.search.state.snapshot()
        if self.kept is None or self.choice.random() < 0.5:
            self.search = fold(self.spec, self.entries)
        else:
            sequence, packed = self.kept
            self.search = Search(self.spec)
            self.search.state.restore(unpack(packed))
            for entry in self.entries[sequence:]:
                self.search.apply(entry)
        assert json.dumps(self.search.state.snapshot()) == json.dumps(before)

    def keep(self) -> None:
        """Makes a snapshot of the log as it is; a crash may come much later, or at once."""
        self.kept = len(self.entries), pack(fold(self.spec, self.entries).state.snapshot())

    def feed(self, event: Event) -> None:
        """Feeds an event, sometimes twice, and does what it makes others do."""
        for _ in range(self.choice.choice([1, 1, 2])):
            self.take(event)

    def take(self, event: Event) -> None:
        pending: Event | None = event
        while pending is not None:
            entry = self.search.record(pending)
            if entry is not None:
                self.entries.append(entry)
                self.obey(entry)
                if self.choice.random() < 0.02:
                    # Between an event and what follows from it by itself.
                    self.keep()
                    self.crash()
            pending = self.search.implied_event()

    def obey(self, entry: Entry) -> None:
        for action in entry.actions:
            match action:
                case CreateTrial(trial_key):
                    assert trial_key not in self.alive
                    self.alive[trial_key] = 1
                case RunTrial(trial_key, length, reopens):
                    assert reopens == (trial_key not in self.alive)
                    assert reopens or trial_key in self.resting
                    self.resting.discard(trial_key)
                    if reopens and self.search.state.trial(trial_key).completed(length):
                        self.resting.add(trial_key)
                    self.alive[trial_key] = (
                        self.alive.get(trial_key, self.search.state.trial(trial_key).min_run) + 1
                    )
                case CloseTrial(trial_key) | StopTrial(trial_key):
                    assert trial_key in self.alive
                    assert self.search.state.trial(trial_key).closing
                case EndSearch():
                    assert self.search.state.over

    def step(self, trial_key: str) -> None:
        trial = self.search.state.trial(trial_key)
        lucky = self.choice.random()
        if self.resting and lucky < 0.02:
            self.leave(min(self.resting))
        elif trial.closing and not trial.pending:
            self.end(trial_key)
        elif lucky < 0.05:
            self.feed(TrialCreated(trial_key))
        elif lucky < 0.15 and self.refused < 5:
            self.leave(trial_key)
        elif trial.pending:
            self.complete(trial_key)
        elif self.spec.time_metric is not None:
            self.validate(trial_key)
        elif trial.length == 0:
            self.end(trial_key)
        else:
            self.rest(trial_key)

    def complete(self, trial_key: str) -> None:
        metric = self.choice.choice([0.5, 1.0, self.choice.random(), float("inf"), float("nan")])
        self.feed(ValidationCompleted(trial_key, metric, self.search.state.trial(trial_key).length))

    def validate(self, trial_key: str) -> None:
        self.times[trial_key] = self.times.get(trial_key, 0.0) + self.choice.choice([1.0, 30.0, 200.0])
        position = int(self.times[trial_key])
        self.feed(
            ValidationReported(trial_key, self.choice.random(), self.times[trial_key], 1, "spool", position)
        )

    def rest(self, trial_key: str) -> None:
        """The run ends: either its trial has new work by now, or it rests until it is told."""
        self.feed(TrialFenced(trial_key, self.alive[trial_key] + 1))
        if self.search.state.trial(trial_key).pending:
            self.alive[trial_key] += 1
        elif trial_key not in self.resting:
            self.resting.add(trial_key)

    def leave(self, trial_key: str) -> None:
        reason = self.choice.choice(list(ExitReason))
        self.refused += reason.invalid
        self.feed(TrialExited(trial_key, reason))
        self.end(trial_key)

    def end(self, trial_key: str) -> None:
        self.feed(TrialClosed(trial_key))
        self.alive.pop(trial_key, None)
        self.resting.discard(trial_key)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("part", range(PARTS))
@settings(max_examples=CASES, suppress_health_check=list(HealthCheck))
@given(methods, st.booleans(), st.integers(0, 2**32 - 1), st.integers(0, 10**9))
def test_every_search_ends_and_its_log_is_its_state(
    part: int, method: MethodSpec, smaller: bool, seed: int, order: int
) -> None:
    chaos = Chaos(spec_of(method, smaller=smaller, seed=seed), random.Random(order * PARTS + part))
    chaos.play()
    search, entries = chaos.search, chaos.entries
    assert fold(chaos.spec, entries).state.snapshot() == search.state.snapshot()
    again = replay(chaos.spec, entries)
    assert (again.equal, again.detail) == (True, "")
    assert json.dumps(again.state) == json.dumps(search.state.snapshot())
    assert search.state.closed == search.state.requested == len(search.state.trials)
    assert 0.0 <= search.state.progress() <= 1.0
    rebuilt = [through_messages(entry) for entry in entries]
    assert repr(rebuilt) == repr(entries)


def through_messages(entry: Entry) -> Entry:
    message = entry_to(entry, search_id=SEARCH, event_id="e", time=1.5)
    written = log_pb2.LoggedEvent.FromString(message.SerializeToString())
    assert [action.sequence for action in written.actions] == list(
        range(entry.last_action - len(entry.actions) + 1, entry.last_action + 1)
    )
    return entry_from(written, search_id=SEARCH, last_action=entry.last_action, draws=entry.draws)


@settings(max_examples=100)
@given(methods, st.integers(0, 2**32 - 1), st.integers(0, 10**9))
def test_equal_events_give_equal_actions(method: MethodSpec, seed: int, order: int) -> None:
    spec = spec_of(method, smaller=True, seed=seed)
    chaos = Chaos(spec, random.Random(order))
    chaos.play()
    other = Search(spec)
    for entry in chaos.entries:
        assert repr(other.record(entry.event)) == repr(entry)
