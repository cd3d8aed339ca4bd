"""The searches in memory: a cache of their logs, and the only way to change them.

A change decides at once, on the event loop, based on decisions that may not be on disk yet. Its caller gets
the answer once the entries of the change are durable. An append succeeds only directly after its predecessor;
so if an entry is not written, all later decisions are not written either, and the search is read again from
its log. A large change decides in a thread, while other calls of the same search wait.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from sqlalchemy.engine import Connection

from resolute.api.searcher.v1 import search_spec_pb2 as pb
from resolute.contracts.clock import Clock
from resolute.errors import ConflictError, NotFoundError, ResoluteError
from resolute.storage.searcher.v1 import log_pb2
from resolute_searcher.log.entry import Entry
from resolute_searcher.log.events import Event
from resolute_searcher.runtime.storage import Storage
from resolute_searcher.runtime.topics import Aspect, Topic, everything
from resolute_searcher.runtime.trial_index import TrialIndex
from resolute_searcher.state_machine.search import Search, start
from resolute_searcher.store import log, repository, search_rows
from resolute_searcher.store.log import DuplicateEventError, NewEntry
from resolute_searcher.wire.spec import spec_from
from resolute_serving.notifier import Notifier

T = TypeVar("T")
MOST_ON_LOOP = 100
"""Events or operations that a change decides on the event loop; more would hold up all other calls."""
_ATTEMPTS = 10
_RECENT_ACTIONS = 100
"""Actions of a search that followers get without a look at its log."""
_ENDED_CAPACITY = 32
"""Ended searches kept in memory: their last calls come soon after the end, and few come later."""


class LiveSearch:
    """A search in memory.

    Args:
        search: State of the search.
        tip: Tip of the log at this state.
    """

    def __init__(self, search: Search, tip: str) -> None:
        self.search = search
        self.tip = tip
        # The newest write; those before it end earlier.
        self.tail: asyncio.Task[None] | None = None
        # What the newest write will append, as long as it has not begun: more may join it until then.
        self.waiting: list[NewEntry] | None = None
        # The last durable ones that this process wrote.
        self.recent_actions: deque[log_pb2.Action] = deque(maxlen=_RECENT_ACTIONS)
        # A thread changes the state: until it is done, no other task may read or change it.
        self.deciding: asyncio.Task[Any] | None = None


@dataclass(frozen=True, slots=True)
class _Decision(Generic[T]):
    """The result of a change: an answer, or an error to raise once earlier records are durable."""

    answer: T | None = None
    refusal: ResoluteError | None = None


class Change:
    """One change of one search.

    Args:
        live: The search.
        now: Seconds since 1970.
        taken: Identifiers of events that are in the log although the search did not recognize them.
    """

    def __init__(self, live: LiveSearch, *, now: float, taken: Collection[str] = ()) -> None:
        self.search = live.search
        self.appends: list[NewEntry] = []
        self._live = live
        self._now = now
        self._taken = taken

    def record(self, event: Event, *, event_id: str = "") -> None:
        """Records an event and all events that it implies, with their decisions.

        Args:
            event: What happened.
            event_id: Identifies the event across retries; empty where the search itself recognizes repeats.

        Raises:
            ResoluteError: The search refuses the event; the state is as before.
        """
        pending: Event | None = None if event_id in self._taken else event
        while pending is not None:
            entry = self.search.record(pending)
            if entry is not None:
                self._add_entry(entry, event_id)
            pending, event_id = self.search.implied_event(), ""

    def _add_entry(self, entry: Entry, event_id: str) -> None:
        append = NewEntry.of(self.search, entry, previous=self._live.tip, event_id=event_id, now=self._now)
        self._live.tip = append.tip
        self.appends.append(append)


class LiveSearches:
    """All searches of the service.

    Args:
        storage: The service's database.
        clock: Clock for the times of entries.
        trial_index: The index, to which new trials are added.
        notifier: Notified of each search with new entries.
        on_question: Called with each search that waits for a suggestion.
        on_growth: Called with each search whose log has grown, and its last durable position.
        shared: Whether other processes write to the database, so that the searches in memory may be outdated.
        capacity: Number of idle searches in memory.
    """

    def __init__(
        self,
        storage: Storage,
        *,
        clock: Clock,
        trial_index: TrialIndex,
        notifier: Notifier[Topic],
        shared: bool,
        on_question: Callable[[str], None] = lambda _: None,
        on_growth: Callable[[str, int], None] = lambda _, __: None,
        capacity: int = 2048,
    ) -> None:
        self._on_question = on_question
        self._on_growth = on_growth
        self._storage = storage
        self._trial_index = trial_index
        self._clock = clock
        self._notifier = notifier
        self._shared = shared
        self._capacity = capacity
        self._live: OrderedDict[str, LiveSearch] = OrderedDict()
        # Those of them that were over when they were last used.
        self._ended: OrderedDict[str, None] = OrderedDict()
        self._loads: dict[str, asyncio.Task[LiveSearch]] = {}
        # Writes of searches that were dropped: anyone who reads the log waits for them.
        self._draining: dict[str, asyncio.Task[None]] = {}

    async def create(self, search_id: str, message: pb.SearchSpec) -> None:
        """Creates a search, or returns the same one that was created before.

        Raises:
            InvalidArgumentError: The spec is wrong.
            AlreadyExistsError: It was begun with another spec.
            FailedPreconditionError: It was deleted.
        """
        spec = await asyncio.to_thread(spec_from, message)
        search, first = await asyncio.to_thread(start, spec)
        now = self._clock.time()

        def work(connection: Connection) -> bool:
            return repository.create_search(connection, search_id, message, search, first, now)

        await self._storage.write(work)
        self._notifier.notify(*everything(search_id))
        if search.state.awaits_suggestion:
            self._on_question(search_id)

    async def change(self, search_id: str, act: Callable[[Change], T], *, size: int = 1) -> T:
        """Changes or reads a search.

        Args:
            search_id: The search.
            act: Decides; it runs at once and may run again when another writer was first.
            size: How many events or operations `act` decides. Beyond `MOST_ON_LOOP` it runs in a thread.

        Returns:
            What `act` returned, once everything that it rests on is durable.

        Raises:
            NotFoundError: There is no such search.
            ResoluteError: What `act` raised; entries that it recorded before are durable.
        """
        taken: set[str] = set()
        for _ in range(_ATTEMPTS):
            live = await self._fresh(search_id)
            change = Change(live, now=self._clock.time(), taken=taken)
            if size > MOST_ON_LOOP:
                deciding = self._decide_in_thread(search_id, live, change, act)
                live.deciding = self._storage.begin(deciding, name=f"searcher-decide-{search_id}")
                # The decision continues when the caller gives up, as its write does.
                decision = await asyncio.shield(live.deciding)
            else:
                with self._writing(search_id, live, change):
                    decision = _decide(act, change)
            try:
                if live.tail is not None:
                    # The write continues when the caller gives up: what was decided is decided.
                    await asyncio.shield(live.tail)
            except ConflictError:
                continue
            except DuplicateEventError as error:
                taken.add(error.event_id)
                continue
            self._note_end(search_id, live)
            if decision.refusal is not None:
                raise decision.refusal
            return cast("T", decision.answer)
        raise ConflictError(f"search {search_id} changes faster than this call can follow; try again")

    async def delete(self, search_id: str) -> None:
        """Removes a search and leaves a tombstone."""
        live = self._live.get(search_id)
        if live is not None:
            self._drop(search_id, live)
        now = self._clock.time()
        await self._storage.write(lambda connection: search_rows.delete_search(connection, search_id, now))
        self._notifier.notify(*everything(search_id))

    def recent_actions(self, search_id: str, *, after: int) -> list[log_pb2.Action]:
        """Returns the actions after a position from memory; empty if they must be read from the log.

        Args:
            search_id: The search.
            after: Sequence of the last action that is known.
        """
        live = self._live.get(search_id)
        recent = live.recent_actions if live is not None else ()
        count = recent[-1].sequence - after if recent else 0
        if not 0 < count <= len(recent) or recent[-count].sequence != after + 1:
            # Another replica may have written some of those between.
            return []
        return list(recent)[-count:]

    async def _decide_in_thread(
        self, search_id: str, live: LiveSearch, change: Change, act: Callable[[Change], T]
    ) -> _Decision[T]:
        try:
            with self._writing(search_id, live, change):
                return await asyncio.to_thread(_decide, act, change)
        finally:
            live.deciding = None

    @contextmanager
    def _writing(self, search_id: str, live: LiveSearch, change: Change) -> Iterator[None]:
        """Writes the entries that are recorded within the block."""
        try:
            yield
        except BaseException:
            self._drop(search_id, live)
            raise
        if change.appends:
            self._write(search_id, live, change.appends)

    async def _fresh(self, search_id: str) -> LiveSearch:
        """Returns a search that is up to date with its log; valid until the next await."""
        while True:
            live = self._live.get(search_id) or await self._load(search_id)
            if live.deciding is not None:
                await asyncio.wait([live.deciding])
                continue
            if self._shared and not await self._catch_up(search_id, live):
                continue
            # While this waited, a write may have failed, and another have read the search again.
            if self._live.get(search_id) is live and live.deciding is None:
                self._live.move_to_end(search_id)
                return live

    async def _catch_up(self, search_id: str, live: LiveSearch) -> bool:
        """Applies the entries of other writers; returns whether that succeeded."""
        after, tip = live.search.state.sequence, live.tip
        try:
            missed = await self._storage.read(lambda c: log.catch_up(c, search_id, after=after, tip=tip))
        except (ConflictError, NotFoundError) as error:
            self._drop(search_id, live)
            if isinstance(error, NotFoundError):
                raise
            return False
        if live.deciding is not None or (missed and live.tip != tip):
            return False  # this process decides, or decided, meanwhile
        for recorded in missed:
            live.search.apply(recorded.entry)
            live.tip = recorded.tip
        return True

    async def _load(self, search_id: str) -> LiveSearch:
        loading = self._loads.get(search_id)
        if loading is None:
            loading = self._storage.begin(self._read(search_id), name=f"searcher-load-{search_id}")
            self._loads[search_id] = loading
            loading.add_done_callback(lambda _: self._loads.pop(search_id, None))
        return await asyncio.shield(loading)

    async def _read(self, search_id: str) -> LiveSearch:
        draining = self._draining.get(search_id)
        if draining is not None:
            await asyncio.wait([draining])
        search, tip = await self._storage.database.read(lambda c: repository.load_search(c, search_id))
        live = LiveSearch(search, tip)
        if search.implied_event() is not None:
            # A crash came between an event and what follows from it.
            self._append_implied(search_id, live)
        self._live[search_id] = live
        self._evict()
        if search.state.awaits_suggestion:
            self._on_question(search_id)
        return live

    def _append_implied(self, search_id: str, live: LiveSearch) -> None:
        change = Change(live, now=self._clock.time())
        event = live.search.implied_event()
        assert event is not None
        change.record(event)
        self._write(search_id, live, change.appends)

    def _write(self, search_id: str, live: LiveSearch, appends: list[NewEntry]) -> None:
        if live.waiting is not None:
            live.waiting += appends
            return
        batch = list(appends)
        live.tail = self._storage.begin(
            self._append(search_id, live, batch, before=live.tail), name=f"searcher-append-{search_id}"
        )
        live.waiting = batch

    async def _append(
        self, search_id: str, live: LiveSearch, batch: list[NewEntry], *, before: asyncio.Task[None] | None
    ) -> None:
        # While one write of a search is on its way to the disk, the next one grows: a transaction costs much
        # more than an entry.
        if before is not None and not before.done():
            await asyncio.wait([before])
        if live.waiting is batch:
            live.waiting = None
        try:
            appended = await self._storage.database.write(lambda c: log.append(c, search_id, batch))
        except BaseException:
            self._drop(search_id, live)
            raise
        self._trial_index.add(search_id, appended.trials)
        live.recent_actions.extend(appended.actions)
        self._notifier.notify((search_id, Aspect.LOG))
        if appended.actions:
            self._notifier.notify((search_id, Aspect.ACTIONS))
        self._on_growth(search_id, batch[-1].entry.sequence)
        if live.search.state.awaits_suggestion:
            self._on_question(search_id)

    def _drop(self, search_id: str, live: LiveSearch) -> None:
        """Removes a search from memory whose state may differ from its log."""
        if self._live.get(search_id) is live:
            del self._live[search_id]
            self._drain(search_id, live)

    def _note_end(self, search_id: str, live: LiveSearch) -> None:
        """Removes all but the latest ended searches from memory."""
        self._ended.pop(search_id, None)
        if not live.search.state.over or self._live.get(search_id) is not live:
            return
        self._ended[search_id] = None
        if len(self._ended) > _ENDED_CAPACITY:
            oldest, _ = self._ended.popitem(last=False)
            if oldest in self._live:
                self._drop(oldest, self._live[oldest])

    def _evict(self) -> None:
        while len(self._live) > self._capacity:
            search_id, live = self._live.popitem(last=False)
            self._drain(search_id, live)

    def _drain(self, search_id: str, live: LiveSearch) -> None:
        tail = live.tail
        if tail is None or tail.done():
            return
        self._draining[search_id] = tail

        def forget(_: asyncio.Task[None]) -> None:
            if self._draining.get(search_id) is tail:
                del self._draining[search_id]

        tail.add_done_callback(forget)


def _decide(act: Callable[[Change], T], change: Change) -> _Decision[T]:
    try:
        return _Decision(answer=act(change))
    except ResoluteError as error:
        return _Decision(refusal=error)
