"""Watches the containers of one engine and records its reports."""

from __future__ import annotations

import asyncio

import structlog

from resolute.contracts.calls.logged_backoff import LoggedBackoff
from resolute_engines.protocol import CapacityChange, ContainerReport, EngineEvent, EvictionNotice
from resolute_experiments.allocations.contact import EngineContact
from resolute_experiments.allocations.watching.container_ends import ContainerEnds
from resolute_experiments.allocations.watching.evictions import Evictions
from resolute_experiments.allocations.watching.waiting_containers import WaitingContainers
from resolute_experiments.topics import SCHEDULER_WAKEUP, Topic
from resolute_serving.notifier import Notifier

_log = structlog.get_logger("fleet")


class Watch:
    """Receives the events of an engine, and the reports that it returns on request.

    Args:
        contact: The engine.
        notifier: Notified of added and removed capacity; it is closed when the service stops.
        waiting: The containers that have not started.
        ends: Records the ends of containers.
        evictions: Asks runs to checkpoint whose machines are taken away.
    """

    def __init__(
        self,
        contact: EngineContact,
        notifier: Notifier[Topic],
        *,
        waiting: WaitingContainers,
        ends: ContainerEnds,
        evictions: Evictions,
    ) -> None:
        self._contact = contact
        self._notifier = notifier
        self._waiting = waiting
        self._ends = ends
        self._evictions = evictions

    async def run(self) -> None:
        """Takes events until the engine is closed."""
        backoff = LoggedBackoff(_log, "the watch over the containers failed", engine=self._contact.name)
        while not self._notifier.closed:
            try:
                async for event in self._contact.engine.watch():
                    backoff.succeeded()
                    await self.take(event)
                return
            except Exception as failure:  # noqa: BLE001 - a defect must not end the watch over the machines for good
                await asyncio.sleep(backoff.failed(failure))

    async def note(self, report: ContainerReport) -> None:
        """Writes down what the engine reported of a container when it was asked."""
        self._waiting.note(report)
        await self._ends.note(report)

    async def note_again(self) -> None:
        """Writes down what could not be when it was reported."""
        await self._ends.note_again()
        await self._evictions.note_again()

    async def take(self, event: EngineEvent) -> None:
        """Writes down an event, or keeps it for ``note_again``."""
        if isinstance(event, ContainerReport):
            self._waiting.note(event)
            await self._ends.note_or_keep(event)
        elif isinstance(event, EvictionNotice):
            await self._evictions.note_or_keep(event)
        elif isinstance(event, CapacityChange):
            self._notifier.notify(SCHEDULER_WAKEUP)
