"""Reads the media of trials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute.api.checkpoints.v1 import media_pb2
from resolute.api.checkpoints.v1 import media_service_pb2 as api
from resolute.contracts.messages import enum_number
from resolute.contracts.times import to_timestamp
from resolute.errors import NotFoundError
from resolute_checkpoints.domain.checkpoint import Storage
from resolute_checkpoints.media.limits import DROPPED
from resolute_checkpoints.media.parsing import to_kind
from resolute_checkpoints.store.rows import decode_storage
from resolute_checkpoints.store.schema import MEDIA_INTAKE, media, media_places
from resolute_serving.ingestion.byte_limits import Usage
from resolute_serving.pagination import Ordering

_MAX_NAMES = 10_000
_FIELDS = 400
"""About how many bytes an object takes in a response beside its content, name and caption."""
_trials, _experiments = MEDIA_INTAKE.trials, MEDIA_INTAKE.experiments
_known = _trials.join(_experiments, _experiments.c.experiment_key == _trials.c.experiment_key)
_live = _experiments.c.deleted_at.is_(None)
_length = sa.func.coalesce(sa.func.length(media.c.content), 0) + sa.func.length(media.c.name)
_BY_STEPS = Ordering(
    {"steps_completed": media.c.steps},
    unique=media.c.media_id,
    default="steps_completed",
    row_bytes=_length + sa.func.length(media.c.caption) + _FIELDS,
)


def list_names(connection: Connection, trial_ids: Sequence[str]) -> list[api.ListMediaNamesResponse.Name]:
    """Returns the names under which trials have logged media, by trial, name and kind."""
    query = (
        sa.select(
            _trials.c.trial_id,
            media.c.name,
            media.c.kind,
            sa.func.count().label("count"),
            sa.func.min(media.c.steps).label("first"),
            sa.func.max(media.c.steps).label("last"),
        )
        .select_from(_known.join(media, media.c.trial_key == _trials.c.trial_key))
        .where(_trials.c.trial_id.in_(trial_ids), _live)
        .group_by(_trials.c.trial_id, media.c.name, media.c.kind)
        .order_by(_trials.c.trial_id, media.c.name, media.c.kind)
        .limit(_MAX_NAMES)
    )
    return [
        api.ListMediaNamesResponse.Name(
            trial_id=row.trial_id,
            name=row.name,
            kind=_kind(row.kind),
            count=row._mapping["count"],
            min_steps=row.first,
            max_steps=row.last,
        )
        for row in connection.execute(query)
    ]


def list_dropped(connection: Connection, trial_ids: Sequence[str]) -> list[api.DroppedMedia]:
    """Returns the dropped media of trials; trials without any are left out."""
    query = (
        sa.select(_trials)
        .select_from(_known)
        .where(_trials.c.trial_id.in_(trial_ids), _live, _trials.c.dropped > 0)
        .order_by(_trials.c.trial_id)
    )
    return [
        to_dropped(row.trial_id, Usage(row.bytes, row.dropped, row.dropped_bytes, limit=row.byte_limit))
        for row in connection.execute(query)
    ]


def to_dropped(trial_id: str, usage: Usage) -> api.DroppedMedia:
    """Converts the dropped media of a trial to a message."""
    return api.DroppedMedia(
        trial_id=trial_id,
        count=usage.dropped,
        bytes=usage.dropped_bytes,
        explanation=usage.explain(DROPPED),
    )


def list_media(
    connection: Connection, trial_id: str, request: api.ListMediaRequest
) -> tuple[list[media_pb2.Media], str]:
    """Returns a page of a trial's media by steps, and the token of the next page.

    Raises:
        InvalidArgumentError: The kind, the size or the token is wrong.
    """
    wanted = [media.c.trial_key == MEDIA_INTAKE.find_trial(connection, trial_id)]
    if request.name:
        wanted.append(media.c.name == request.name)
    if request.kind != media_pb2.MEDIA_KIND_UNSPECIFIED:
        wanted.append(media.c.kind == to_kind(request.kind).value)
    page = _BY_STEPS.page(connection, request, sa.select(media).where(*wanted))
    return [_to_message(row, trial_id) for row in page.rows], page.next_page_token


def find(connection: Connection, trial_id: str, media_id: int) -> tuple[media_pb2.Media, str, Storage | None]:
    """Returns one object of a trial.

    Returns:
        The object, the UUID of its experiment, and where its content is stored; None if the object has it.

    Raises:
        NotFoundError: The trial has logged no such object.
    """
    query = (
        sa.select(media, _experiments.c.experiment_id, media_places.c.storage)
        .select_from(
            _known.join(media, media.c.trial_key == _trials.c.trial_key).outerjoin(
                media_places, media_places.c.place_key == media.c.place_key
            )
        )
        .where(_trials.c.trial_id == trial_id, media.c.media_id == media_id, _live)
    )
    row = connection.execute(query).one_or_none()
    if row is None:
        raise NotFoundError(
            f"trial {trial_id} has logged no media {media_id}; list what it has", resource=f"media {media_id}"
        )
    storage = None if row.storage is None else decode_storage(row.storage)
    return _to_message(row._mapping, trial_id), row.experiment_id, storage


def _to_message(row: Mapping[Any, Any], trial_id: str) -> media_pb2.Media:
    return media_pb2.Media(
        media_id=row["media_id"],
        trial_id=trial_id,
        run=row["run"],
        name=row["name"],
        kind=_kind(row["kind"]),
        steps_completed=row["steps"],
        log_time=to_timestamp(row["time"]),
        caption=row["caption"],
        content_type=row["content_type"],
        size=row["size"],
        digest=row["digest"],
        content=row["content"] or b"",
    )


def _kind(value: str) -> media_pb2.MediaKind.ValueType:
    return media_pb2.MediaKind.ValueType(enum_number(media_pb2.MediaKind.DESCRIPTOR, value.upper()))
