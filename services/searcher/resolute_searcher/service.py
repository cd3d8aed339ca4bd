"""The searcher as a service that a server can run."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlalchemy.engine import make_url

from resolute.api.searcher.v1 import searcher_service_pb2
from resolute.api.searcher.v1.searcher_service_pb2_grpc import add_SearcherServiceServicer_to_server
from resolute_searcher.answering import Answering
from resolute_searcher.keeping import Keeper
from resolute_searcher.live import LiveSearches
from resolute_searcher.lookout import Lookout
from resolute_searcher.owners import Owners
from resolute_searcher.servicers.searcher import SearcherServicer
from resolute_searcher.storage import Storage
from resolute_searcher.store import log
from resolute_searcher.watching import Watchers
from resolute_searcher.workers import Workers
from resolute_serving.readings import Reading
from resolute_serving.service import Environment

if TYPE_CHECKING:
    import grpc

NAME = "searcher"


class SearcherService:
    """Holds what the searcher consists of.

    Args:
        environment: Where it lives.
    """

    name: str = NAME
    grpc_names: Sequence[str] = (
        searcher_service_pb2.DESCRIPTOR.services_by_name["SearcherService"].full_name,
    )

    def __init__(self, environment: Environment) -> None:
        self._clock = environment.clock
        # An embedded database has one process; on a server there may be replicas beside this one.
        shared = make_url(environment.database_url).get_backend_name() != "sqlite"
        self._storage = Storage(environment.open_database(NAME))
        self._watchers = Watchers()
        # Suggestions are waited for by trials: nothing that can wait longer stands before them.
        self._suggesters = Workers()
        self._workers = Workers(1)
        self._keeper = Keeper(self._storage, self._workers)
        owners = Owners(self._storage)
        searches = LiveSearches(
            self._storage,
            clock=environment.clock,
            owners=owners,
            watchers=self._watchers,
            shared=shared,
            asked=self._answer,
            grown=self._keeper.look,
        )
        self._answering = Answering(self._storage, searches, self._suggesters)
        self._lookout = Lookout(self._storage, self._watchers) if shared else None
        self._servicer = SearcherServicer(
            storage=self._storage,
            searches=searches,
            owners=owners,
            watchers=self._watchers,
            workers=self._workers,
        )

    def register(self, server: grpc.aio.Server) -> None:
        """Adds the handlers."""
        add_SearcherServiceServicer_to_server(self._servicer, server)

    async def readings(self) -> Sequence[Reading]:
        """Tells what of the searches' actions is not acknowledged, and how much waits to be written."""
        count, since = await self._storage.read(log.unacknowledged)
        age = 0.0 if since is None else max(self._clock.time() - since, 0.0)
        return [
            *await self._storage.database.readings(),
            Reading(
                name="resolute_unacknowledged_actions",
                help="Actions of searches that the experiments service has not applied.",
                value=count,
            ),
            Reading(
                name="resolute_oldest_unacknowledged_action_seconds",
                help="Age of the oldest of them; zero without any.",
                value=age,
            ),
        ]

    async def start(self) -> None:
        """Looks out for what other replicas write. Searches are read when they are asked for."""
        if self._lookout is not None:
            self._lookout.start()

    async def stop(self) -> None:
        """Ends the streams, waits for what is on its way to the disk, closes the database."""
        self._watchers.close()
        if self._lookout is not None:
            await self._lookout.stop()
        await self._answering.close()
        await self._keeper.close()
        await asyncio.to_thread(self._suggesters.close)
        await asyncio.to_thread(self._workers.close)
        await self._storage.close()

    def _answer(self, search_id: str) -> None:
        self._answering.look(search_id)
