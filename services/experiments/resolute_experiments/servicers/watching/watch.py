"""Watches of many experiments, their trials and the queue in one stream."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from sqlalchemy.engine import Connection

from resolute.api.experiments.v1 import experiments_service_pb2 as pb2
from resolute.api.experiments.v1 import trial_pb2
from resolute_experiments.context import ServiceContext
from resolute_experiments.scheduling import jobs
from resolute_experiments.scheduling.wait_reasons import WaitReasons
from resolute_experiments.servicers.messages.experiments import (
    experiment_message,
    experiment_state_number,
    job_message,
    trial_message,
)
from resolute_experiments.servicers.watching.revisions import Revisions
from resolute_experiments.states import ENDED_EXPERIMENTS, GONE_EXPERIMENTS, ExperimentState
from resolute_experiments.store import experiments, runs, trials
from resolute_experiments.store.experiments import Experiment
from resolute_experiments.topics import SCHEDULER_WAKEUP, Topic, watched
from resolute_serving.auth.grants import current_grants
from resolute_serving.following import PollIntervals, Turn, follow
from resolute_serving.pagination import page_size
from resolute_serving.validation import invalid

MAX_EXPERIMENTS = 1000
MAX_KEY_LENGTH = 100
_MAX_BYTES = 1024 * 1024
"""About how many bytes of trials one response has."""
_AT_ONCE = 100
"""Experiments of one read: their changes are held until they are sent."""
_PACE = PollIntervals(recheck=15.0, heartbeat=15.0)
"""Long intervals, as a change wakes a watch anyway: thousands of watches that poll cost the loop time."""
_FINAL = frozenset({*ENDED_EXPERIMENTS, *GONE_EXPERIMENTS, ExperimentState.DELETE_FAILED}) - {
    ExperimentState.DELETING
}
"""States after which nothing is watched any more."""
_FINAL_NUMBERS = frozenset(experiment_state_number(state) for state in _FINAL)
Request = pb2.WatchExperimentsRequest
Response = pb2.WatchExperimentsResponse


@dataclass
class _Subscription:
    """A watched experiment."""

    key: str
    experiment_id: str
    seen: int
    """Revision that the client has seen."""
    include_trials: bool

    @property
    def topics(self) -> tuple[Topic, ...]:
        """What wakes the watch of it."""
        return (self.experiment_id, watched(self.experiment_id))


_Change = tuple[_Subscription, list[Response], int]
"""A subscription, its changes, and the revision that it has seen then."""


class _Queue:
    """The watched queue."""

    topics: tuple[Topic, ...] = (SCHEDULER_WAKEUP,)


class Watch:
    """One call of WatchExperiments.

    Args:
        core: The context that all handlers share.
        revisions: The revisions of experiments.
        wait_reasons: The reasons why trials wait.
        request: The request with the watched objects.
    """

    def __init__(
        self, core: ServiceContext, revisions: Revisions, wait_reasons: WaitReasons, request: Request
    ) -> None:
        _check(request)
        self._core = core
        self._revisions = revisions
        self._wait_reasons = wait_reasons
        self._request = request
        self._sent_queue: Response | None = None

    async def responses(self) -> AsyncIterator[Response]:
        """Yields the present state of every subscription, then every change."""
        watched_objects: list[_Subscription | _Queue] = [*await self._core.database.read(self._subscriptions)]
        if self._request.HasField("queue"):
            watched_objects.append(_Queue())
        responses = follow(
            watched_objects,
            self._look,
            topics=lambda one: one.topics,
            notifier=self._core.notifier,
            clock=self._core.clock,
            pace=_PACE,
            quiet=Response(),
        )
        async for response in responses:
            yield response

    async def _look(self, turn: Turn[_Subscription | _Queue]) -> AsyncGenerator[Response, None]:
        due = [subscription for subscription in turn.due if isinstance(subscription, _Subscription)]
        for batch in _batches(await self._changed(due)):
            read = await self._core.database.read(partial(self._read_changes, batch=batch))
            for one, changes, seen in read:
                one.seen = seen
                for change in changes:
                    yield change
                if changes[-1].experiment_change.experiment.state in _FINAL_NUMBERS:
                    turn.finished.append(one)
        if len(due) < len(turn.due) and (queue := await self._queue_change()) is not None:
            yield queue

    def _subscriptions(self, connection: Connection) -> list[_Subscription]:
        wanted = self._request.experiments
        ids = self._core.experiment_ids(connection, [each.experiment for each in wanted])
        return [
            _Subscription(each.key, experiment_id, each.after_revision, each.include_trials)
            for each, experiment_id in zip(wanted, ids, strict=True)
        ]

    async def _changed(self, due: list[_Subscription]) -> list[_Subscription]:
        ids = {subscription.experiment_id for subscription in due}
        revisions = await self._revisions.read(ids)
        return [
            subscription for subscription in due if revisions[subscription.experiment_id] > subscription.seen
        ]

    def _read_changes(self, connection: Connection, batch: Sequence[_Subscription]) -> list[_Change]:
        ids = [subscription.experiment_id for subscription in batch]
        found, counts = experiments.known(connection, ids), experiments.trial_counts(connection, ids)
        times = runs.times_of_experiments(connection, ids)
        return [
            self._read_change(
                connection,
                subscription,
                found[subscription.experiment_id],
                counts.get(subscription.experiment_id, {}),
                times.get(subscription.experiment_id),
            )
            for subscription in batch
        ]

    def _read_change(
        self,
        connection: Connection,
        one: _Subscription,
        experiment: Experiment,
        counts: dict[str, int],
        times_of_all: runs.RunTimes | None,
    ) -> _Change:
        these = (
            trials.of_experiment(connection, experiment.id, revision=one.seen) if one.include_trials else []
        )
        times = runs.times_of(connection, [trial.id for trial in these])
        messages = (
            trial_message(
                trial,
                experiment,
                explanation=self._wait_reasons.explain(trial),
                times=times.get(trial.id),
            )
            for trial in these
        )
        responses = [
            Response(key=one.key, experiment_change=Response.ExperimentChange(trials=part))
            for part in _parts(messages)
        ]
        reason = self._wait_reasons.explain_experiment(experiment, counts)
        responses[-1].experiment_change.experiment.CopyFrom(
            experiment_message(experiment, counts, times=times_of_all, wait_reason=reason)
        )
        return one, responses, experiment.revision

    async def _queue_change(self) -> Response | None:
        """The queue, if it is not as it was sent last."""
        limit = page_size(self._request.queue.max_jobs)
        grants = current_grants.get()
        queue = await self._core.database.read(jobs.ordered_jobs)
        visible = [job for job in queue if grants.sees(job.workspace_id)]
        change = Response.QueueChange(
            jobs=[job_message(job, self._wait_reasons) for job in visible[:limit]], total_jobs=len(visible)
        )
        response = Response(key=self._request.queue.key, queue_change=change)
        if response == self._sent_queue:
            return None
        self._sent_queue = response
        return response


def _batches(changed: Sequence[_Subscription]) -> Iterator[Sequence[_Subscription]]:
    """What is read at once: many experiments, but only the trials of one, of which there can be many."""
    bare = [subscription for subscription in changed if not subscription.include_trials]
    yield from ([subscription] for subscription in changed if subscription.include_trials)
    yield from (bare[start : start + _AT_ONCE] for start in range(0, len(bare), _AT_ONCE))


def _parts(messages: Iterable[trial_pb2.Trial]) -> Iterator[list[trial_pb2.Trial]]:
    """Cuts trials into lists that fit into one response; at least one list, of none."""
    part: list[trial_pb2.Trial] = []
    size = 0
    for message in messages:
        if part and size + message.ByteSize() > _MAX_BYTES:
            yield part
            part, size = [], 0
        part.append(message)
        size += message.ByteSize()
    yield part


def _check(request: Request) -> None:
    if not request.experiments and not request.HasField("queue"):
        raise invalid("experiments", "nothing is to be watched; name experiments, or the queue")
    if len(request.experiments) > MAX_EXPERIMENTS:
        raise invalid(
            "experiments", f"{len(request.experiments)} experiments are too many; watch {MAX_EXPERIMENTS}"
        )
    keys = [experiment.key for experiment in request.experiments]
    if request.HasField("queue"):
        keys.append(request.queue.key)
        page_size(request.queue.max_jobs)
    if any(not 0 < len(key) <= MAX_KEY_LENGTH for key in keys):
        raise invalid("key", f"each subscription needs a key of 1 to {MAX_KEY_LENGTH} characters")
    if len(set(keys)) < len(keys):
        raise invalid("key", "two subscriptions have the same key; give each one of its own")
