"""Drives the searcher service as the platform does: creates searches, applies actions, plays trials."""

from __future__ import annotations

import asyncio
import uuid
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from support.services.in_process import Running, serving
from support.services.stand_ins.platform_stub import PlatformStub

from resolute.api.searcher.v1 import action_pb2 as action_pb
from resolute.api.searcher.v1 import event_pb2 as event_pb
from resolute.api.searcher.v1 import operation_pb2 as operation_pb
from resolute.api.searcher.v1 import search_pb2 as search_pb
from resolute.api.searcher.v1 import search_spec_pb2 as spec_pb
from resolute.api.searcher.v1 import searcher_service_pb2 as service_pb
from resolute.api.searcher.v1.searcher_service_pb2_grpc import SearcherServiceStub
from resolute_searcher.blueprint import BLUEPRINT
from resolute_serving.context import TrialRun

if TYPE_CHECKING:
    import grpc

    from resolute.api.searcher.v1.searcher_service_pb2_grpc import SearcherServiceAsyncStub

T = TypeVar("T")
DEADLINE = 20.0
SEARCH = "5b8e1a62-4b3c-4d0f-9a59-6f0a2f0f6a10"


def space(**axes: spec_pb.Hyperparameter) -> spec_pb.Space:
    """A space of named axes; one of reals by default."""
    return spec_pb.Space(
        hyperparameters=axes
        or {"x": spec_pb.Hyperparameter(double_range=spec_pb.DoubleRange(minval=0.0, maxval=1.0))}
    )


def spec(**fields: Any) -> spec_pb.SearchSpec:
    """A spec that minimizes a loss; the method is a keyword argument."""
    return spec_pb.SearchSpec(
        **{"metric": "loss", "smaller_is_better": True, "seed": 7, "space": space(), **fields}
    )


def adaptive(**fields: Any) -> spec_pb.SearchSpec:
    """A spec of an adaptive search with the documented defaults."""
    defaults = {
        "max_length": 64,
        "max_trials": 16,
        "divisor": 4.0,
        "max_rungs": 5,
        "max_concurrent_trials": 16,
        "mode": spec_pb.ADAPTIVE_MODE_STANDARD,
    }
    return spec(adaptive_asha=spec_pb.AdaptiveAshaMethod(**{**defaults, **fields}))


def run(scenario: Callable[[], Awaitable[T]], *, deadline: float = DEADLINE) -> T:
    """Runs an asynchronous test; one that hangs fails at the deadline, in seconds."""

    async def bounded() -> T:
        return await asyncio.wait_for(scenario(), deadline)

    return asyncio.run(bounded())


@dataclass
class Searcher:
    """A running searcher service, and clients of it."""

    running: Running
    channels: list[grpc.aio.Channel] = field(default_factory=list)

    def client(self, token: str) -> SearcherServiceAsyncStub:
        """A client with a token."""
        channel = self.running.channel(token)
        self.channels.append(channel)
        return cast("SearcherServiceAsyncStub", SearcherServiceStub(channel))

    def platform(self) -> SearcherServiceAsyncStub:
        """A client that is the experiments service, and speaks for trials and an admin besides."""
        stub = PlatformStub(SearcherServiceStub, signer=self.running.signer, address=self.running.address)
        self.channels.append(stub.peers.channel("*"))
        return cast("SearcherServiceAsyncStub", stub)

    def trial(self, trial_id: str, *, of_run: int = 1) -> SearcherServiceAsyncStub:
        """A client that is a run of a trial."""
        token = self.running.trial_token(
            TrialRun(trial_id, of_run, str(uuid.uuid4()), "allocation", "workspace")
        )
        return self.client(token)


@asynccontextmanager
async def searcher(tmp_path: Path, **options: Any) -> AsyncIterator[Searcher]:
    """Serves a searcher until the block ends; a second one on the path finds what the first one left."""
    async with serving([BLUEPRINT], tmp_path, **options) as running:
        service = Searcher(running)
        try:
            yield service
        finally:
            for channel in service.channels:
                await channel.close()


@dataclass
class Played:
    """What came of a search that was played to its end."""

    numbers: dict[str, int] = field(default_factory=dict)
    lengths: dict[int, list[int]] = field(default_factory=dict)
    actions: list[action_pb.Action] = field(default_factory=list)

    def in_order(self) -> list[list[int]]:
        """The lengths that each trial trained to, in order of creation."""
        return [self.lengths[number] for number in sorted(self.lengths)]


class Player:
    """Applies a search's actions and plays its trials, one operation at a time, oldest first.

    Args:
        client: The platform's client; it also speaks for the trials.
        search_id: The search.
        metric: Constant metric of each trial by its number, from 1.
    """

    def __init__(
        self, client: SearcherServiceAsyncStub, search_id: str, metric: Callable[[int], float]
    ) -> None:
        self.client = client
        self.search_id = search_id
        self.metric = metric
        self.played = Played()
        self._requests: dict[str, str] = {}
        self._runs: dict[str, int] = {}
        self._closing: set[str] = set()
        self._runnable: deque[str] = deque()

    async def play(self, *, steps: int | None = None) -> Played:
        """Plays until the search shuts down, or for a number of operations."""
        after = self.played.actions[-1].sequence if self.played.actions else 0
        while steps is None or steps > 0:
            actions = await self.actions(after)
            for action in actions:
                after = action.sequence
                self.played.actions.append(action)
                await self._apply(action)
            if actions:
                await self.client.AcknowledgeActions(
                    service_pb.AcknowledgeActionsRequest(search_id=self.search_id, sequence=after)
                )
                if actions[-1].HasField("shutdown"):
                    break
            if self._runnable:
                await self._work(self._runnable.popleft())
                steps = None if steps is None else steps - 1
        return self.played

    async def actions(self, after: int) -> list[action_pb.Action]:
        """Reads the actions that are there beyond a position."""
        last = (await self._search()).status.last_action_sequence
        actions: list[action_pb.Action] = []
        if last > after:
            request = service_pb.FollowActionsRequest(search_id=self.search_id, after_sequence=after)
            async for response in self.client.FollowActions(request):
                actions += response.actions
                if actions and actions[-1].sequence >= last:
                    break
        return actions

    async def _search(self) -> search_pb.Search:
        request = service_pb.GetSearchRequest(search_id=self.search_id)
        return (await self.client.GetSearch(request)).search

    async def _apply(self, action: action_pb.Action) -> None:
        if action.HasField("create_trial"):
            trial = action.create_trial
            number = len(self.played.numbers) + 1
            self.played.numbers[trial.trial_id] = number
            self.played.lengths[number] = []
            self._requests[trial.trial_id] = trial.trial_key
            created = event_pb.Event.TrialCreated(trial_key=trial.trial_key)
            await self._report(event_pb.Event(event_id=f"{trial.trial_id}/created", trial_created=created))
            self._runnable.append(trial.trial_id)
        elif action.HasField("run_trial"):
            self._runnable.append(action.run_trial.trial_id)
        elif action.HasField("close_trial"):
            self._closing.add(action.close_trial.trial_id)
            if action.close_trial.trial_id not in self._runnable:
                await self._close(action.close_trial.trial_id)

    async def _work(self, trial_id: str) -> None:
        """One run of a trial: trains one operation; whether it rests then, its seal tells."""
        of_run = self._runs[trial_id] = self._runs.get(trial_id, 0) + 1
        number = self.played.numbers[trial_id]
        asked = service_pb.GetOperationRequest(trial_id=trial_id, run=of_run)
        operation = (await self.client.GetOperation(asked)).operation
        if not operation.completed:
            self.played.lengths[number].append(operation.length)
            await self.client.CompleteOperation(
                service_pb.CompleteOperationRequest(
                    trial_id=trial_id, run=of_run, length=operation.length, metric=self.metric(number)
                )
            )
        sealed = await self.client.FenceTrial(
            service_pb.FenceTrialRequest(trial_id=trial_id, min_run=of_run + 1)
        )
        if not sealed.operation.completed:
            self._runnable.append(trial_id)
        elif sealed.operation.closed:
            self._closing.add(trial_id)
            await self._close(trial_id)

    async def _close(self, trial_id: str) -> None:
        closed = event_pb.Event.TrialClosed(trial_key=self._requests[trial_id])
        # A search that is extended can let a trial run, and end, again.
        event_id = f"{trial_id}/{self._runs.get(trial_id, 0)}/ended"
        await self._report(event_pb.Event(event_id=event_id, trial_closed=closed))

    async def _report(self, event: event_pb.Event) -> None:
        await self.client.ReportEvents(
            service_pb.ReportEventsRequest(search_id=self.search_id, events=[event])
        )


SINGLE = spec(single=spec_pb.SingleMethod(max_length=10))
TIMED = spec(
    async_halving=spec_pb.AsyncHalvingMethod(
        num_rungs=2, max_length=100, max_trials=3, divisor=4.0, max_concurrent_trials=2, time_driven=True
    ),
    time_metric="batches",
)


class SearchSession:
    """One search of a running service, with short calls."""

    def __init__(self, service: Searcher, search_id: str = SEARCH) -> None:
        self.service = service
        self.client = service.platform()
        self.search_id = search_id

    async def create(self, asked: spec_pb.SearchSpec) -> list[action_pb.Action]:
        request = service_pb.CreateSearchRequest(search_id=self.search_id, spec=asked)
        await self.client.CreateSearch(request)
        return await self.actions()

    async def actions(self, after: int = 0) -> list[action_pb.Action]:
        return await Player(self.client, self.search_id, float).actions(after)

    async def trials(self, asked: spec_pb.SearchSpec) -> list[action_pb.Action.CreateTrial]:
        return [action.create_trial for action in await self.create(asked) if action.HasField("create_trial")]

    async def complete(self, trial_id: str, metric: float, *, length: int, of_run: int = 1) -> None:
        await self.client.CompleteOperation(
            service_pb.CompleteOperationRequest(trial_id=trial_id, run=of_run, length=length, metric=metric)
        )

    async def operation(self, trial_id: str, *, of_run: int | None = None) -> operation_pb.TrialOperation:
        request = service_pb.GetOperationRequest(trial_id=trial_id, run=of_run)
        return (await self.client.GetOperation(request)).operation

    async def seal(self, trial_id: str, min_run: int) -> operation_pb.TrialOperation:
        request = service_pb.FenceTrialRequest(trial_id=trial_id, min_run=min_run)
        return (await self.client.FenceTrial(request)).operation

    async def report(self, *events: event_pb.Event) -> int:
        request = service_pb.ReportEventsRequest(search_id=self.search_id, events=events)
        return (await self.client.ReportEvents(request)).last_event_sequence

    async def validate(self, trial_id: str, sequence: int, **values: Any) -> bool:
        response = await self.report_validation(trial_id, sequence, **values)
        assert not response.refusals
        return response.stop

    async def report_validation(
        self, trial_id: str, sequence: int, *, of_run: int = 1, source: str = "spool", **values: float
    ) -> service_pb.ReportValidationsResponse:
        validation = service_pb.ReportValidationsRequest.Validation(sequence=sequence, **values)
        request = service_pb.ReportValidationsRequest(
            trial_id=trial_id, run=of_run, source=source, validations=[validation]
        )
        return await self.client.ReportValidations(request)

    async def search(self) -> search_pb.Search:
        request = service_pb.GetSearchRequest(search_id=self.search_id)
        return (await self.client.GetSearch(request)).search

    async def log(self) -> list[event_pb.LogEntry]:
        request = service_pb.ListEventsRequest(search_id=self.search_id, page_size=1000)
        return list((await self.client.ListEvents(request)).entries)

    async def replay(self, until: int | None = None) -> service_pb.ReplaySearchResponse:
        request = service_pb.ReplaySearchRequest(search_id=self.search_id, until_sequence=until)
        return await self.client.ReplaySearch(request)


def exited(trial_key: str, reason: event_pb.ExitReason.ValueType, event_id: str = "exit") -> event_pb.Event:
    return event_pb.Event(
        event_id=event_id, trial_exited=event_pb.Event.TrialExited(trial_key=trial_key, reason=reason)
    )


def closed(trial_key: str, event_id: str = "end") -> event_pb.Event:
    return event_pb.Event(event_id=event_id, trial_closed=event_pb.Event.TrialClosed(trial_key=trial_key))
