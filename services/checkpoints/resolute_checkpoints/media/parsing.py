"""Reads batches of media from their messages."""

from __future__ import annotations

import hashlib

from resolute.api.checkpoints.v1 import media_pb2
from resolute.api.checkpoints.v1 import media_service_pb2 as api
from resolute.contracts.messages import enum_member
from resolute.contracts.spool.format import MAX_NAME_LENGTH
from resolute.contracts.spool.media_formats import MediaKind, content_type
from resolute.contracts.times import seconds_of
from resolute.errors import InvalidArgumentError
from resolute_checkpoints.domain.checkpoint import Storage
from resolute_checkpoints.media.values import Batch, Item, Refusal
from resolute_serving.ingestion.batches import parse_origin, parse_sequence
from resolute_serving.validation import invalid

_MAX_ITEMS = 10_000
_MAX_CAPTION = 1000
_UNKNOWN = media_pb2.MEDIA_KIND_UNSPECIFIED


def parse_batch(request: api.IngestMediaRequest, *, storage: Storage | None) -> Batch:
    """Converts a batch; invalid objects become refusals.

    Args:
        request: The request.
        storage: Where large contents go; None where the request names none.

    Raises:
        InvalidArgumentError: A field of the batch itself is wrong.
    """
    first = parse_sequence(request.first_sequence)
    if not 0 <= request.count <= _MAX_ITEMS or (request.media and len(request.media) != request.count):
        message = (
            f"count is {request.count} and media has {len(request.media)} objects; send them all, or none"
        )
        raise invalid("count", message)
    items: list[Item] = []
    refusals: list[Refusal] = []
    for sequence, logged in enumerate(request.media, first):
        try:
            items.append(_item(sequence, logged))
        except InvalidArgumentError as error:
            refusals.append(Refusal(sequence, f"media {logged.name[:80]!r} is not kept: {error}"))
    return Batch(
        origin=parse_origin(request),
        first_sequence=first,
        end=first + request.count,
        items=items,
        refusals=refusals,
        storage=storage,
    )


def to_kind(number: media_pb2.MediaKind.ValueType) -> MediaKind:
    """Converts a kind.

    Raises:
        InvalidArgumentError: There is none, or it is not known here.
    """
    if number == _UNKNOWN or number not in media_pb2.MediaKind.values():
        raise InvalidArgumentError(f"its kind is {number}, which is unknown here; update the cluster")
    return enum_member(MediaKind, media_pb2.MediaKind.DESCRIPTOR, number)


def _item(sequence: int, logged: api.IngestMediaRequest.LoggedMedia) -> Item:
    for field, text in (("name", logged.name), ("caption", logged.caption)):
        if "\0" in text:
            raise InvalidArgumentError(f"its {field} has a NUL character; log it without")
    if not 0 < len(logged.name) <= MAX_NAME_LENGTH:
        raise InvalidArgumentError(
            f"its name has {len(logged.name)} characters; 1 to {MAX_NAME_LENGTH} are allowed"
        )
    kind = to_kind(logged.kind)
    return Item(
        sequence=sequence,
        name=logged.name,
        kind=kind,
        steps=logged.steps_completed,
        time=seconds_of(logged.log_time),
        caption=logged.caption[:_MAX_CAPTION],
        content_type=content_type(kind, logged.content),
        content=logged.content,
        digest=hashlib.sha256(logged.content).hexdigest(),
    )
