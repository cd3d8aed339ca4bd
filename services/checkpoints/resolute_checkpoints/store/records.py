"""Checkpoints in the database: begin, complete, read, list, patch."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute.errors import NotFoundError
from resolute_checkpoints.domain import manifest as manifest_rules
from resolute_checkpoints.domain import metadata as metadata_rules
from resolute_checkpoints.domain.checkpoint import READABLE, Candidate, Checkpoint, File, State
from resolute_checkpoints.domain.manifest import Manifest
from resolute_checkpoints.store import pins, rows
from resolute_checkpoints.store.inserts import insert_if_absent
from resolute_checkpoints.store.schema import checkpoints, files

PAGE_BYTES = 2 * 1024 * 1024
"""About how large a page may get; clients take messages of 4 MiB."""
MESSAGE_BYTES = 1024 * 1024
"""About how large the files of one checkpoint may get in a message; more are listed apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """Which checkpoints a list holds."""

    states: Collection[State]
    trial_id: str = ""
    experiment_id: str = ""


@dataclass(frozen=True, slots=True)
class Position:
    """The last checkpoint of a page."""

    list_time: float
    checkpoint_id: str


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a list."""

    checkpoints: tuple[Checkpoint, ...]
    following: Position | None
    """Where the next page begins; None on the last one."""


def insert(connection: Connection, checkpoint: Checkpoint) -> bool:
    """Adds a checkpoint that was begun, unless its identifier is taken; returns whether it is new."""
    return insert_if_absent(connection, checkpoints, rows.to_values(checkpoint))


def size_of(connection: Connection, workspace: str) -> int:
    """Sums up the bytes of checkpoints that were made in a workspace, each where it lies.

    Rows of files go after the files: what is being deleted counts until it is gone, and so do the bytes of a
    deleted checkpoint that others share.
    """
    homes = (
        sa.select(sa.func.max(files.c.size).label("size"))
        .select_from(files.join(checkpoints, files.c.checkpoint_id == checkpoints.c.checkpoint_id))
        .where(checkpoints.c.workspace == workspace)
        .group_by(
            sa.func.coalesce(files.c.home_id, files.c.checkpoint_id),
            sa.func.coalesce(files.c.home_path, files.c.path),
        )
        .subquery()
    )
    total = sa.func.coalesce(sa.func.sum(homes.c.size), 0)
    return int(connection.execute(sa.select(total)).scalar_one())


def find(
    connection: Connection,
    checkpoint_id: str,
    *,
    lock: bool = False,
    listed: bool = True,
    most_bytes: int | None = None,
) -> Checkpoint:
    """Reads one checkpoint.

    Args:
        connection: The caller's transaction.
        checkpoint_id: Which one.
        lock: Whether its row stays as it is until the transaction ends.
        listed: Whether with its files.
        most_bytes: Leaves out files that would take more in a response; None for no limit.

    Raises:
        NotFoundError: There is none.
    """
    found = rows.load(connection, [checkpoint_id], lock=lock, listed=listed, most_bytes=most_bytes)
    if checkpoint_id not in found:
        raise missing(checkpoint_id)
    return found[checkpoint_id]


def missing(checkpoint_id: str) -> NotFoundError:
    """Says that there is no such checkpoint."""
    return NotFoundError(
        f"checkpoint {checkpoint_id} does not exist; list the checkpoints of its trial to see which do",
        resource=f"checkpoint {checkpoint_id}",
    )


def complete(connection: Connection, checkpoint_id: str, manifest: Manifest, *, now: float) -> None:
    """Makes a checkpoint visible with what was committed."""
    # Files that were held for it have rows already.
    connection.execute(sa.delete(files).where(files.c.checkpoint_id == checkpoint_id))
    rows.insert_files(connection, checkpoint_id, manifest.files)
    connection.execute(
        sa.update(checkpoints)
        .where(checkpoints.c.checkpoint_id == checkpoint_id)
        .values(
            state=State.COMPLETED.value,
            metadata=metadata_rules.encode(manifest.metadata),
            manifest_digest=manifest.digest,
            manifest_bytes=manifest_rules.message_bytes(manifest.files),
            steps_completed=manifest.steps_completed,
            total_size=manifest.total_size,
            file_count=len(manifest.files),
            commit_time=now,
            list_time=now,
        )
    )


def replace_metadata(connection: Connection, checkpoint_id: str, metadata: Mapping[str, Any]) -> None:
    """Puts other metadata in the place of a checkpoint's own."""
    connection.execute(
        sa.update(checkpoints)
        .where(checkpoints.c.checkpoint_id == checkpoint_id)
        .values(metadata=metadata_rules.encode(metadata))
    )


def latest(connection: Connection, trial_id: str) -> Checkpoint | None:
    """The committed, complete checkpoint of a trial with the most steps; of several, the last committed."""
    query = (
        sa.select(checkpoints.c.checkpoint_id)
        .where(checkpoints.c.trial_id == trial_id, checkpoints.c.state == State.COMPLETED.value)
        .order_by(
            checkpoints.c.steps_completed.desc(),
            checkpoints.c.commit_time.desc(),
            checkpoints.c.checkpoint_id,
        )
        .limit(1)
    )
    found = connection.execute(query).scalar()
    return None if found is None else rows.load(connection, [found], most_bytes=MESSAGE_BYTES).get(found)


def candidates(connection: Connection, experiment_id: str) -> list[Candidate]:
    """The committed checkpoints of an experiment's trials, as retention sees them; no ranks yet."""
    columns = (
        checkpoints.c.checkpoint_id,
        checkpoints.c.trial_id,
        checkpoints.c.steps_completed,
        checkpoints.c.commit_time,
        sa.or_(checkpoints.c.pinned, pins.is_registered()),
    )
    query = sa.select(*columns).where(
        checkpoints.c.experiment_id == experiment_id,
        checkpoints.c.trial_id != "",
        checkpoints.c.state.in_([state.value for state in READABLE]),
    )
    return [
        Candidate(
            checkpoint_id=id_,
            trial_id=trial_id,
            steps_completed=steps,
            commit_time=commit_time or 0.0,
            kept=bool(kept),
        )
        for id_, trial_id, steps, commit_time, kept in connection.execute(query.order_by(columns[0]))
    ]


def page(connection: Connection, query: Query, *, after: Position | None, size: int) -> Page:
    """Reads a part of a list, newest first: at most ``size`` checkpoints, about ``PAGE_BYTES`` at most."""
    listed = sa.case((checkpoints.c.manifest_bytes > MESSAGE_BYTES, 0), else_=checkpoints.c.manifest_bytes)
    weight = listed + sa.func.length(checkpoints.c.metadata)
    statement = sa.select(checkpoints.c.checkpoint_id, checkpoints.c.list_time, weight)
    statement = statement.where(checkpoints.c.state.in_([state.value for state in query.states]))
    if query.trial_id:
        statement = statement.where(checkpoints.c.trial_id == query.trial_id)
    if query.experiment_id:
        statement = statement.where(checkpoints.c.experiment_id == query.experiment_id)
    if after is not None:
        key = sa.tuple_(checkpoints.c.list_time, checkpoints.c.checkpoint_id)
        statement = statement.where(key < sa.tuple_(sa.literal(after.list_time), after.checkpoint_id))
    order = (checkpoints.c.list_time.desc(), checkpoints.c.checkpoint_id.desc())
    heads = connection.execute(statement.order_by(*order).limit(size + 1)).all()
    chosen: list[Position] = []
    total = 0
    for checkpoint_id, list_time, bytes_ in heads[:size]:
        total += bytes_
        if chosen and total > PAGE_BYTES:
            break
        chosen.append(Position(list_time, checkpoint_id))
    ids = [position.checkpoint_id for position in chosen]
    found = rows.load(connection, ids, most_bytes=MESSAGE_BYTES)
    return Page(
        # Another replica may have erased some since.
        checkpoints=tuple(found[p.checkpoint_id] for p in chosen if p.checkpoint_id in found),
        following=chosen[-1] if chosen and len(chosen) < len(heads) else None,
    )


@dataclass(frozen=True, slots=True)
class FilePage:
    """A part of the files of a checkpoint."""

    files: tuple[File, ...]
    following: int | None
    """Position of the last one; None on the last page."""


def file_page(connection: Connection, checkpoint_id: str, *, after: int, size: int) -> FilePage:
    """Reads a part of the files of a checkpoint, by path: at most ``size``, about ``PAGE_BYTES`` at most."""
    found = rows.load_files(connection, checkpoint_id, after=after, limit=size + 1)
    chosen: list[File] = []
    total, last = 0, after
    for position, file in found[:size]:
        total += manifest_rules.message_bytes([file])
        if chosen and total > PAGE_BYTES:
            break
        chosen.append(file)
        last = position
    return FilePage(tuple(chosen), last if len(chosen) < len(found) else None)
