"""Reads and packs the next batch of a spool while the service processes the previous one."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass

from resolute.errors import InvalidArgumentError
from resolute.spool.delivery.services import Delivery, IngestResult
from resolute.spool.reader import Chunk, SpoolReader


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch of consecutive records, packed into a request."""

    chunk: Chunk
    send: Callable[[], IngestResult]
    """Sends them and returns the answer of the service."""


class BatchPipeline:
    """Keeps a sender and its service busy at the same time.

    A call waits in a thread of its own, which releases the interpreter.

    Args:
        delivery: Packs records.
    """

    def __init__(self, delivery: Delivery) -> None:
        self._delivery = delivery
        # It starts its thread with the first call: a sender that keeps up never needs one.
        self._calls = ThreadPoolExecutor(1, thread_name_prefix=f"send{delivery.suffix}")

    def pack(self, source: str, chunk: Chunk) -> Batch:
        """Packs records of a source.

        Raises:
            InvalidArgumentError: One of them fits into no message, such as text that is not valid.
        """
        try:
            return Batch(chunk, self._delivery.pack(source, chunk))
        except ValueError as failure:
            raise InvalidArgumentError(f"a record cannot be sent ({failure}); it is left out") from failure

    def send(
        self, batch: Batch, source: str, reader: SpoolReader, *, most: int
    ) -> tuple[IngestResult, Batch | None]:
        """Sends a batch and makes the next one meanwhile.

        Args:
            batch: What to send.
            source: Its source.
            reader: Reads the source; it stays where it is.
            most: Bytes to read ahead.

        Returns:
            The answer of the service, and the next batch; None if there is none yet.

        Raises:
            ResoluteError: The service did not take it.
        """
        sending = self._calls.submit(batch.send)
        following: Batch | None = None
        # What is wrong with the next records is found again when it is their turn.
        with suppress(Exception):
            chunk = reader.peek(most, after=batch.chunk)
            following = self.pack(source, chunk) if len(chunk) else None
        wait([sending])
        return sending.result(), following

    def close(self) -> None:
        """Ends the thread."""
        self._calls.shutdown()
