"""Sends the spools of a run, during the run and after it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import grpc

from resolute.contracts.clock import Clock
from resolute.errors import InvalidArgumentError
from resolute.spool.delivery.drop_notes import DropNotes
from resolute.spool.delivery.requests import RunIdentity
from resolute.spool.delivery.run_log import RunLog
from resolute.spool.delivery.sender import SpoolSender
from resolute.spool.delivery.sender_thread import SenderThread
from resolute.spool.delivery.services import LineDelivery, MediaDelivery, ReportDelivery
from resolute.spool.doorbell import Doorbell
from resolute.spool.omissions import LEFT_OUT_SUFFIX, CountedWarnings

_SLICE_SECONDS = 0.5
_MEDIA_SECONDS = 1.0
"""Seconds between looks for media: most runs have none, and no decision waits for a picture."""


class SpoolShipper:
    """The senders of reports, lines and media, each in its thread.

    Args:
        channel: A channel of ``resolute.rpc``.
        spool: Directory of the run's spools.
        identity: The run that they belong to.
        clock: Measures time limits.
    """

    def __init__(self, channel: grpc.Channel, spool: Path, identity: RunIdentity, *, clock: Clock) -> None:
        log = RunLog(spool, clock=clock)
        self._notes = DropNotes(log.warn)
        self._media_notes = DropNotes(log.warn)
        self._refusals = CountedWarnings(log.warn, file=spool / f"refused{LEFT_OUT_SUFFIX}")
        delivery = ReportDelivery.over(channel, identity, dropped=self._notes.note)
        reports = SpoolSender(spool, delivery, clock=clock, refused=self._note_refusal)
        lines = SpoolSender(spool, LineDelivery.over(channel, identity), clock=clock)
        delivery_of_media = MediaDelivery.over(channel, identity, dropped=self._media_notes.note)
        media = SpoolSender(spool, delivery_of_media, clock=clock, refused=self._note_refusal)
        self._doorbell = Doorbell(spool)
        self._reports = SenderThread(reports, name="send-reports", wake=self._doorbell, clock=clock)
        self._lines = SenderThread(lines, name="send-lines", clock=clock)
        self._media = SenderThread(media, name="send-media", idle_seconds=_MEDIA_SECONDS, clock=clock)

    def start(self) -> None:
        """Begins to send."""
        for thread in (self._reports, self._lines, self._media):
            thread.start()

    def drain(self, *, give_up: Callable[[], bool]) -> bool:
        """Waits until everything has arrived, reports first; see ``drain_reports``."""
        # Both are waited for, also when one of them cannot be sent.
        reports = self.drain_reports(give_up=give_up)
        return self.drain_lines(give_up=give_up) and reports

    def drain_reports(self, *, give_up: Callable[[], bool]) -> bool:
        """Waits until all reports and media have arrived. Call it once all writers have ended.

        What meets only defects is not waited for: it stays on disk, to be sent again before it is removed.

        Args:
            give_up: Asked now and then whether to leave the rest on disk.

        Returns:
            Whether they have arrived.
        """
        drained = _drain(self._reports, give_up)
        drained = _drain(self._media, give_up) and drained
        self._notes.finish()
        self._media_notes.finish()
        self._refusals.finish()
        return drained

    def drain_lines(self, *, give_up: Callable[[], bool]) -> bool:
        """Waits until all lines have arrived, as ``drain_reports`` does; begins at once."""
        self._lines.try_at_once()
        return _drain(self._lines, give_up)

    def _note_refusal(self, message: str) -> None:
        # Refusals of one kind end with the same remedy, whatever they name before.
        self._refusals.leave_out(message.rpartition("; ")[2], InvalidArgumentError(message))

    def stop(self) -> None:
        """Ends the threads. What has not arrived stays on disk."""
        for thread in (self._reports, self._lines, self._media):
            thread.stop()
        self._doorbell.close()


def _drain(thread: SenderThread, give_up: Callable[[], bool]) -> bool:
    while not thread.drain(_SLICE_SECONDS):
        if give_up() or thread.stuck:
            return False
    return True
