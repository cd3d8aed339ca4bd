"""Files that several checkpoints share: their holders, and the files that no longer have one.

Only files in buckets can be stored under another checkpoint, their home; in directories shared files are hard
links, which the file system counts. A home is shared only within one experiment, whose row is locked while
holders are added or removed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute_checkpoints.domain.checkpoint import LIVE, READABLE, Checkpoint, File, Home
from resolute_checkpoints.store import rows
from resolute_checkpoints.store.schema import checkpoints, files

_LIVE = sa.and_(sa.not_(files.c.doomed), checkpoints.c.state.in_(sorted(state.value for state in LIVE)))
# The original of a restored cluster may delete inherited files at any time.
_REUSABLE = sa.and_(
    sa.not_(checkpoints.c.inherited), checkpoints.c.state.in_([state.value for state in READABLE])
)
_JOINED = files.join(checkpoints, files.c.checkpoint_id == checkpoints.c.checkpoint_id)


def sizes_of_latest(connection: Connection, checkpoint: Checkpoint) -> set[int]:
    """Returns the file sizes of the latest readable checkpoints of the same trial and experiment."""
    sizes: set[int] = set()
    for column, key in (
        (checkpoints.c.trial_id, checkpoint.owner.trial_id),
        (checkpoints.c.experiment_id, checkpoint.owner.experiment_id),
    ):
        if not key:
            continue
        newest = (
            sa.select(checkpoints.c.checkpoint_id)
            .where(column == key, _REUSABLE)
            .order_by(checkpoints.c.list_time.desc())
            .limit(1)
        )
        query = sa.select(files.c.size).where(
            files.c.checkpoint_id == newest.scalar_subquery(), sa.not_(files.c.doomed)
        )
        sizes.update(connection.execute(query.distinct()).scalars())
    return sizes


def find_homes(
    connection: Connection, checkpoint: Checkpoint, digests: Sequence[str]
) -> Mapping[tuple[str, int], Home]:
    """Returns where readable checkpoints of the same experiment and storage have the same bytes.

    Returns:
        Where they lie, by digest and size.
    """
    homes: dict[tuple[str, int], Home] = {}
    columns = (
        files.c.digest,
        files.c.size,
        sa.func.coalesce(files.c.home_id, files.c.checkpoint_id).label("home_id"),
        sa.func.coalesce(files.c.home_path, files.c.path).label("home_path"),
        sa.func.row_number()
        .over(partition_by=files.c.digest, order_by=checkpoints.c.list_time.desc())
        .label("place"),
    )
    for batch in rows.batches(sorted(set(digests))):
        holders = (
            sa.select(*columns)
            .select_from(_JOINED)
            .where(
                files.c.digest.in_(batch),
                sa.not_(files.c.doomed),
                checkpoints.c.experiment_id == checkpoint.owner.experiment_id,
                checkpoints.c.storage == rows.encode_storage(checkpoint.storage),
                _REUSABLE,
            )
            .subquery()
        )
        for row in connection.execute(sa.select(holders).where(holders.c.place == 1)):
            homes[row.digest, row.size] = Home(row.home_id, row.home_path)
    return homes


def hold(connection: Connection, checkpoint_id: str, held: Sequence[File]) -> None:
    """Holds files for a checkpoint that is being written, so that their bytes are kept. Idempotent."""
    last = sa.select(sa.func.max(files.c.position)).where(files.c.checkpoint_id == checkpoint_id)
    position = connection.execute(last).scalar()
    rows.insert_files(connection, {checkpoint_id: held}, first=0 if position is None else position + 1)


def paths_in_use(connection: Connection, checkpoint_id: str) -> frozenset[str]:
    """Returns the paths of a checkpoint whose bytes other checkpoints need."""
    query = sa.select(files.c.home_path).select_from(_JOINED).where(files.c.home_id == checkpoint_id, _LIVE)
    return frozenset(connection.execute(query.distinct()).scalars())


def unreferenced(connection: Connection, homes: Sequence[Home]) -> tuple[Home, ...]:
    """Returns the homes that no checkpoint needs any more."""
    paths: defaultdict[str, set[str]] = defaultdict(set)
    for home in homes:
        paths[home.checkpoint_id].add(home.path)
    left: list[Home] = []
    for checkpoint_id, wanted in paths.items():
        own = (
            sa.select(files.c.path)
            .select_from(_JOINED)
            .where(files.c.checkpoint_id == checkpoint_id, files.c.home_id.is_(None), _LIVE)
        )
        needed = paths_in_use(connection, checkpoint_id) | set(connection.execute(own).scalars())
        left += (Home(checkpoint_id, path) for path in wanted - needed)
    return tuple(sorted(left))


def homes_in(connection: Connection, checkpoint_id: str, *, doomed: bool) -> list[Home]:
    """Returns the home of each file of a checkpoint.

    Args:
        connection: The caller's transaction.
        checkpoint_id: The checkpoint.
        doomed: Whether only of files that were taken out of it; else of all that lie elsewhere.
    """
    query = sa.select(files.c.path, files.c.home_id, files.c.home_path)
    chosen = files.c.doomed if doomed else files.c.home_id.is_not(None)
    query = query.where(files.c.checkpoint_id == checkpoint_id, chosen)
    return [
        Home(home_id or checkpoint_id, home_path if home_id else path)
        for path, home_id, home_path in connection.execute(query)
    ]
