"""The media values that the intake processes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from resolute.contracts.spool.media_formats import MediaKind
from resolute_checkpoints.domain.checkpoint import Storage
from resolute_serving.ingestion.batches import Origin
from resolute_serving.validation import invalid

INLINE_BYTES = 4096
"""Most bytes of a content that is kept in its row: a file would cost more."""
ROW_BYTES = 300
"""About how many bytes a row takes beside its content."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One logged object, whose content matches its kind."""

    sequence: int
    name: str
    kind: MediaKind
    steps: int
    time: float
    caption: str
    content_type: str
    content: bytes
    digest: str
    """SHA-256 of the content, in hexadecimal."""

    @property
    def is_small(self) -> bool:
        """Whether its content is kept in its row."""
        return len(self.content) <= INLINE_BYTES


@dataclass(frozen=True, slots=True)
class Refusal:
    """One object that violates a rule and is not stored."""

    sequence: int
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Consecutive objects of one source."""

    origin: Origin
    first_sequence: int
    end: int
    """The first sequence behind the batch."""
    items: Sequence[Item]
    """Those that break no rule."""
    refusals: Sequence[Refusal]
    storage: Storage | None
    """Where large contents go; None where the sender knows none."""

    @property
    def place(self) -> Storage:
        """The same, where it is needed.

        Raises:
            InvalidArgumentError: The sender knows none.
        """
        if self.storage is None:
            raise invalid("storage", "storage is empty; name where the experiment's checkpoints are")
        return self.storage
