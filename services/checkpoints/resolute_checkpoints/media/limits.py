"""Selects the media of a batch that fit under the limits. The others are dropped and counted, not refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from resolute.contracts.sizes import human_size
from resolute_checkpoints.media.values import ROW_BYTES, Item
from resolute_serving.ingestion.byte_limits import ByteLimits, Room, Usage

DROPPED = "media of this trial"
"""Names media in notes on those that were dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaLimits:
    """The limits of a trial's media."""

    bytes: ByteLimits = field(default_factory=lambda: ByteLimits(prefix="RESOLUTE_MEDIA"))
    """RESOLUTE_MEDIA_TRIAL_BYTES and RESOLUTE_MEDIA_WORKSPACE_BYTES."""
    trial_count: int = 50_000
    """Most objects of a trial."""
    step_count: int = 200
    """Most objects of one step of a run."""
    step_bytes: int = 64 << 20
    """Most bytes of one step of a run."""


@dataclass(frozen=True, slots=True)
class Stored:
    """The stored media of a trial that matter for a batch."""

    usage: Usage
    count: int
    """Objects."""
    steps: Mapping[int, tuple[int, int]]
    """Objects and bytes, by steps of the batch."""
    digests: Mapping[str, int | None]
    """Contents of the batch that the experiment has already, with the place where each lies."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """The part of a batch that fits, and the usage after it."""

    kept: Sequence[Item]
    usage: Usage
    """Of the trial after it."""


def fit(items: Sequence[Item], stored: Stored, room: Room, limits: MediaLimits) -> Fitted:
    """Divides media into those that fit and the rest. A content counts once in an experiment.

    Args:
        items: The media, in order.
        stored: What the trial has.
        room: How many bytes it may still store.
        limits: The other limits.
    """
    kept: list[Item] = []
    usage, count, known, steps = stored.usage, stored.count, set(stored.digests), dict(stored.steps)
    for item in items:
        size = ROW_BYTES + (0 if item.digest in known else len(item.content))
        number, total = steps.get(item.steps, (0, 0))
        limit = ""
        if not room.takes(size):
            limit = room.limit
        elif count >= limits.trial_count:
            limit = f"the trial has reached {limits.trial_count} objects"
        elif number >= limits.step_count:
            limit = f"step {item.steps} has reached {limits.step_count} objects"
        elif total + len(item.content) > limits.step_bytes:
            limit = f"step {item.steps} has reached {human_size(limits.step_bytes)}"
        if limit:
            usage = replace(
                usage,
                dropped=usage.dropped + 1,
                dropped_bytes=usage.dropped_bytes + len(item.content),
                limit=limit,
            )
            continue
        kept.append(item)
        known.add(item.digest)
        room, count = room.without(size), count + 1
        steps[item.steps] = number + 1, total + len(item.content)
        usage = replace(usage, bytes=usage.bytes + size)
    return Fitted(kept, usage)
