"""Checkpoints of an earlier incarnation of the cluster, whose files may be in use by the original.

A cluster that is restored from a backup, or continues on a copy of its home, is a new incarnation. It can
read the checkpoints that were written before, and removes none of them until the operator takes them over.
"""

from __future__ import annotations

from collections.abc import Iterable

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute.errors import FailedPreconditionError
from resolute_checkpoints.domain.checkpoint import Checkpoint, State
from resolute_checkpoints.store import pins
from resolute_checkpoints.store.schema import MEDIA_INTAKE, checkpoints, media_places

_REMEDY = "if the original is gone for good, `resolute take-over` makes them this cluster's own"


def inherit_all(connection: Connection) -> int:
    """Begins a new incarnation: every existing checkpoint becomes an inherited one.

    Returns:
        How many checkpoints are inherited now.
    """
    connection.execute(sa.update(media_places).values(inherited=True))
    return connection.execute(sa.update(checkpoints).values(inherited=True)).rowcount


def take_over(connection: Connection) -> int:
    """Makes inherited checkpoints owned by this cluster; pending removals can then begin.

    Returns:
        How many there were.
    """
    connection.execute(sa.update(media_places).values(inherited=False))
    inherited = sa.update(checkpoints).where(checkpoints.c.inherited)
    return connection.execute(inherited.values(inherited=False)).rowcount


def require_owned(checkpoints: Iterable[Checkpoint]) -> None:
    """Checks that the files of checkpoints may be removed.

    Raises:
        FailedPreconditionError: One is inherited.
    """
    for checkpoint in checkpoints:
        if checkpoint.inherited:
            raise FailedPreconditionError(
                f"{checkpoint} was written before this cluster was restored or copied, and the original may "
                f"need its files; {_REMEDY}",
                resource=str(checkpoint),
            )


def require_owned_experiment(connection: Connection, experiment_id: str) -> None:
    """Checks that the files of an experiment may be removed.

    Raises:
        FailedPreconditionError: Some of its checkpoints or media are inherited.
    """
    gone = checkpoints.c.state == State.DELETED.value
    query = sa.select(sa.func.count()).where(
        checkpoints.c.experiment_id == experiment_id,
        checkpoints.c.inherited,
        sa.not_(gone),
        sa.not_(pins.is_kept()),
    )
    count = connection.execute(query).scalar_one()
    if count:
        raise FailedPreconditionError(
            f"{count} checkpoints of experiment {experiment_id} were written before this cluster was "
            "restored or copied, and the original may need their files; archive the experiment instead, or "
            f"{_REMEDY}",
            resource=f"experiment {experiment_id}",
        )
    experiments = MEDIA_INTAKE.experiments
    places = (
        sa.select(media_places.c.place_key)
        .join(experiments, experiments.c.experiment_key == media_places.c.experiment_key)
        .where(experiments.c.experiment_id == experiment_id, media_places.c.inherited)
    )
    if connection.execute(places.limit(1)).one_or_none() is not None:
        raise FailedPreconditionError(
            f"media of experiment {experiment_id} were logged before this cluster was restored or copied, "
            f"and the original may need their files; archive the experiment instead, or {_REMEDY}",
            resource=f"experiment {experiment_id}",
        )
