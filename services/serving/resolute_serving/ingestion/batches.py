"""Batches of a source: their origin, and how they are read and stored."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from google.protobuf.message import Message

from resolute.errors import QuotaError, UnavailableError
from resolute_serving.database.engine import Database, T, Work
from resolute_serving.validation import invalid, parse_uuid

MAX_SOURCE_LENGTH = 200
MAX_RUN = 2**31 - 1
MAX_SEQUENCE = 2**62
_LARGE_REQUEST = 64 << 10
B = TypeVar("B")
M = TypeVar("M", bound=Message)


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of a batch."""

    experiment_id: str
    """UUID of the experiment."""
    trial_id: str
    """UUID of the trial."""
    run: int
    """Run that wrote it."""
    source: str
    """Names the spool."""

    @property
    def order(self) -> str:
        """Where the work of storing a batch comes among others, see ``Database.write``."""
        return lock_order(self.experiment_id, self.trial_id)


async def parse(request: M, parse_batch: Callable[[M], B]) -> B:
    """Reads a batch; a large one in a thread, since nothing else on the loop should wait for milliseconds."""
    if request.ByteSize() > _LARGE_REQUEST:
        return await asyncio.to_thread(parse_batch, request)
    return parse_batch(request)


async def store(database: Database, work: Work[T], *, order: str) -> T:
    """Stores a batch. A full disk is an outage to anyone who sends: nothing is wrong with what they have.

    Args:
        database: The service's database.
        work: Stores the batch.
        order: As for ``Database.write``.

    Raises:
        UnavailableError: The database cannot be reached, or its disk is full.
    """
    try:
        return await database.write(work, order=order)
    except QuotaError as full:
        raise UnavailableError(str(full)) from full


def lock_order(experiment_id: str, trial_id: str = "") -> str:
    """The order in which rows are locked: an experiment itself before its trials."""
    return f"{experiment_id}/{trial_id}"


def parse_origin(request: Any) -> Origin:
    """Reads where a batch comes from.

    Args:
        request: A message with the fields ``experiment_id``, ``trial_id``, ``run`` and ``source``.

    Raises:
        InvalidArgumentError: One of them is wrong.
    """
    if not 0 <= request.run <= MAX_RUN:
        raise invalid("run", f"run is {request.run}; it must be zero or above")
    if not 0 < len(request.source) <= MAX_SOURCE_LENGTH or "\0" in request.source:
        raise invalid("source", f"source must be text of 1 to {MAX_SOURCE_LENGTH} characters")
    return Origin(
        experiment_id=parse_uuid(request.experiment_id, field="experiment_id"),
        trial_id=parse_uuid(request.trial_id, field="trial_id"),
        run=request.run,
        source=request.source,
    )


def parse_sequence(first_sequence: int) -> int:
    """Reads the first sequence of a batch.

    Raises:
        InvalidArgumentError: It is negative or absurdly large.
    """
    if not 0 <= first_sequence < MAX_SEQUENCE:
        raise invalid(
            "first_sequence", f"first_sequence is {first_sequence}; it must be from 0 to below 2^62"
        )
    return first_sequence
