"""Assembles the searcher service."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlalchemy.engine import make_url

from resolute.api.searcher.v1.searcher_service_pb2_grpc import add_SearcherServiceServicer_to_server
from resolute_searcher.runtime.change_poller import ChangePoller
from resolute_searcher.runtime.live_searches import LiveSearches
from resolute_searcher.runtime.snapshotter import Snapshotter
from resolute_searcher.runtime.storage import Storage
from resolute_searcher.runtime.suggestion_worker import SuggestionWorker
from resolute_searcher.runtime.topics import Topic
from resolute_searcher.runtime.trial_index import TrialIndex
from resolute_searcher.servicers.searcher import SERVICE, searcher_servicer
from resolute_searcher.store import log
from resolute_serving.notifier import Notifier
from resolute_serving.observability.gauges import Gauge
from resolute_serving.server.service import Environment
from resolute_serving.workers.pool import WorkerPool
from resolute_serving.workers.process import WorkerLimits

if TYPE_CHECKING:
    import grpc

NAME = "searcher"
_OWN_WORK = WorkerLimits(cpu_seconds=None, memory_bytes=None, growth_bytes=None)
"""Suggestions and snapshots are made for the service itself, of searches whose size is bounded."""
ESTIMATE_LIMITS = WorkerLimits(cpu_seconds=30, memory_bytes=4 * 1024**3, growth_bytes=512 * 1024**2)
"""scikit-learn and its libraries reserve much address space, of which they use little."""


class SearcherService:
    """The searcher service.

    Args:
        environment: The parameters of every service.
    """

    name: str = NAME
    grpc_names: Sequence[str] = (SERVICE.full_name,)

    def __init__(self, environment: Environment) -> None:
        self.access_lookup = environment.access_lookup
        self._clock = environment.clock
        # An embedded database has one process; on a server there may be replicas beside this one.
        shared = make_url(environment.database_url).get_backend_name() != "sqlite"
        self._storage = Storage(environment.open_database(NAME))
        self._notifier = Notifier[Topic]()
        # Suggestions are waited for by trials: nothing that can wait longer stands before them.
        self._suggestion_pool = WorkerPool("searcher-suggestion", processes=2, limits=_OWN_WORK)
        self._snapshot_pool = WorkerPool("searcher-snapshot", processes=1, limits=_OWN_WORK)
        self._planning_pool = WorkerPool("searcher-planning", processes=2, limits=WorkerLimits())
        # One evaluation at a time: a forest takes a processor for seconds, and its answer is kept.
        self._importance_pool = WorkerPool("searcher-importance", processes=1, limits=ESTIMATE_LIMITS)
        self._snapshotter = Snapshotter(self._storage, self._snapshot_pool)
        trial_index = TrialIndex(self._storage)
        searches = LiveSearches(
            self._storage,
            clock=environment.clock,
            trial_index=trial_index,
            notifier=self._notifier,
            shared=shared,
            on_question=self._answer,
            on_growth=self._snapshotter.notify,
        )
        self._suggestion_worker = SuggestionWorker(self._storage, searches, self._suggestion_pool)
        self._change_poller = ChangePoller(self._storage, self._notifier) if shared else None
        self._servicer = searcher_servicer(
            storage=self._storage,
            searches=searches,
            trial_index=trial_index,
            notifier=self._notifier,
            clock=environment.clock,
            planning_pool=self._planning_pool,
            importance_pool=self._importance_pool,
        )

    def register(self, server: grpc.aio.Server) -> None:
        """Adds the handlers."""
        add_SearcherServiceServicer_to_server(self._servicer, server)

    async def gauges(self) -> Sequence[Gauge]:
        """Returns the unacknowledged actions of searches, and the number of waiting writes."""
        count, since = await self._storage.read(log.unacknowledged)
        age = 0.0 if since is None else max(self._clock.time() - since, 0.0)
        return [
            *await self._storage.database.gauges(),
            Gauge(
                name="resolute_unacknowledged_actions",
                help="Actions of searches that the experiments service has not applied.",
                value=count,
            ),
            Gauge(
                name="resolute_oldest_unacknowledged_action_seconds",
                help="Age of the oldest of them; zero without any.",
                value=age,
            ),
        ]

    async def start(self) -> None:
        """Starts to poll for changes by other replicas. Searches are loaded on demand."""
        if self._change_poller is not None:
            self._change_poller.polls.start()

    async def stop(self) -> None:
        """Ends the streams, waits for pending writes, and closes the database."""
        self._notifier.close()
        if self._change_poller is not None:
            await self._change_poller.polls.stop()
        await self._suggestion_worker.close()
        await self._snapshotter.close()
        for pool in (self._suggestion_pool, self._snapshot_pool, self._planning_pool, self._importance_pool):
            await pool.close()
        await self._storage.close()

    def _answer(self, search_id: str) -> None:
        self._suggestion_worker.notify(search_id)
