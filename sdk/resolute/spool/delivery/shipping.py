"""Sends what a run leaves in its spools, while it runs and after."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import grpc

from resolute.contracts.clock import Clock
from resolute.spool.delivery.requests import RunIdentity
from resolute.spool.delivery.sender import SpoolSender
from resolute.spool.delivery.sender_thread import SenderThread
from resolute.spool.delivery.services import LineDelivery, ReportDelivery

_SLICE_SECONDS = 0.5


class SpoolShipper:
    """The senders of reports and lines, each in its thread.

    Args:
        channel: A channel of ``resolute.rpc``.
        spool: Where the run's spools lie.
        identity: Whose reports and lines they are.
        clock: Measures time limits.
    """

    def __init__(self, channel: grpc.Channel, spool: Path, identity: RunIdentity, *, clock: Clock) -> None:
        reports = SpoolSender(spool, ReportDelivery.over(channel, identity), clock=clock)
        lines = SpoolSender(spool, LineDelivery.over(channel, identity), clock=clock)
        self._threads = (
            SenderThread(reports, name="send-reports", clock=clock),
            SenderThread(lines, name="send-lines", clock=clock),
        )

    def start(self) -> None:
        """Begins to send."""
        for thread in self._threads:
            thread.start()

    def drain(self, *, give_up: Callable[[], bool]) -> bool:
        """Waits until everything has arrived. Call it once nobody writes any more.

        What meets only defects is not waited for: it stays on disk, to be sent again before it is removed.

        Args:
            give_up: Asked now and then whether to leave the rest on disk.

        Returns:
            Whether everything has arrived.
        """
        arrived = True
        for thread in self._threads:
            while not thread.drain(_SLICE_SECONDS):
                if give_up():
                    return False
                if thread.stuck:
                    arrived = False
                    break
        return arrived

    def stop(self) -> None:
        """Ends the threads. What has not arrived stays on disk."""
        for thread in self._threads:
            thread.stop()
