"""One spool that is being sent: its reader, its acknowledgement and its failures."""

from __future__ import annotations

from pathlib import Path

from resolute.contracts.calls.backoff import Backoff
from resolute.contracts.spool.ack import AckFile
from resolute.spool.delivery.pipeline import Batch
from resolute.spool.reader import Chunk, SpoolReader
from resolute.spool.report_writer import append_refusals

_PROBE_BYTES = 4 << 10


class SpoolSource:
    """A spool, opened after the last record that its service has acknowledged.

    Args:
        path: The spool.
        backoff: The pauses after failures of this spool.

    Raises:
        DataLossError: The file is not a spool, or has a newer version.
        QuotaError: The disk is full, and has no space for the acknowledgement.
    """

    def __init__(self, path: Path, backoff: Backoff) -> None:
        self.path = path
        self.backoff = backoff
        self.name = path.stem
        self.next: Batch | None = None
        """The batch that was read ahead."""
        self.limit = 0
        """Bytes of the next batch while a record is searched that the service refuses; else zero."""
        self.complete = False
        """Whether all of it has arrived and the writer will not add to it."""
        self.retry_at = 0.0
        """When it is tried again after a failure."""
        self.ack = AckFile.of(path)
        self.reader = SpoolReader(path)
        try:
            self.reader.skip_to(offset=self.ack.offset)
        except BaseException:
            self.close()
            raise

    def follows(self, chunk: Chunk) -> bool:
        """Whether a chunk that was read ahead is the next one."""
        here = self.reader.offset, self.reader.sequence
        return not self.limit and here == (chunk.begin, chunk.first_sequence)

    def waiting(self) -> int:
        """Bytes that have not arrived."""
        return max(self.reader.size() - self.reader.offset, 0)

    def has_more(self) -> bool:
        """Whether a whole record has not arrived."""
        return self.reader.peek(_PROBE_BYTES).end > self.reader.offset

    def advance(self, chunk: Chunk, count: int | None) -> None:
        """Acknowledges the first records of a chunk; all of it without a count."""
        self.reader.take(chunk, count)
        self.ack.advance(self.reader.offset)
        self.complete = chunk.complete and self.reader.offset == chunk.end

    def move_to(self, sequence: int) -> None:
        """Moves to the record that the service expects next, forward or back."""
        if sequence < self.reader.sequence:
            self.reader.rewind()
        self.reader.skip_to(sequence=sequence)

    def refuse(self, refusals: list[tuple[int, str]]) -> None:
        """Stores refusals before the acknowledgement passes their records, so that the writer sees all."""
        if refusals:
            append_refusals(self.path, [{"sequence": number, "message": text} for number, text in refusals])
            self.ack.add_refusals(len(refusals))

    def close(self) -> None:
        """Closes the files."""
        self.reader.close()
        self.ack.close()
