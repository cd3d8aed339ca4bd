"""Checkpoints that are never deleted: pinned ones, and versions of models."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute.errors import FailedPreconditionError
from resolute_checkpoints.domain.checkpoint import Checkpoint
from resolute_checkpoints.store.rows import batches
from resolute_checkpoints.store.schema import checkpoints, model_versions, models


def is_registered() -> sa.ColumnElement[bool]:
    """Holds for rows of checkpoints that are versions of a model."""
    return sa.exists().where(model_versions.c.checkpoint_id == checkpoints.c.checkpoint_id)


def is_kept() -> sa.ColumnElement[bool]:
    """Holds for rows of checkpoints that are pinned or versions of a model."""
    return sa.or_(checkpoints.c.pinned, is_registered())


def require_deletable(connection: Connection, checkpoints: Collection[Checkpoint]) -> None:
    """Checks that checkpoints may be deleted.

    Raises:
        FailedPreconditionError: One is pinned, or a version of a model.
    """
    for checkpoint in checkpoints:
        if checkpoint.pinned:
            raise FailedPreconditionError(
                f"{checkpoint} is pinned; unpin it before you delete it", resource=str(checkpoint)
            )
    for batch in batches([checkpoint.checkpoint_id for checkpoint in checkpoints]):
        query = (
            sa.select(model_versions.c.checkpoint_id, models.c.name, model_versions.c.version)
            .join(models, models.c.model_id == model_versions.c.model_id)
            .where(model_versions.c.checkpoint_id.in_(batch))
        )
        row = connection.execute(query.limit(1)).first()
        if row is not None:
            raise FailedPreconditionError(
                f"checkpoint {row.checkpoint_id} is version {row.version} of the model {row.name!r}; "
                "delete that version before you delete the checkpoint",
                resource=f"checkpoint {row.checkpoint_id}",
            )


def pin(connection: Connection, ids: Sequence[str], *, pinned: bool) -> None:
    """Pins checkpoints, or unpins them."""
    for batch in batches(ids):
        statement = sa.update(checkpoints).where(checkpoints.c.checkpoint_id.in_(batch))
        connection.execute(statement.values(pinned=pinned, revision=checkpoints.c.revision + 1))
