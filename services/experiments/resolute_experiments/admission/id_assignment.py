"""Assigns ids of workspaces and users to objects that the checkpoints service stored by name before 0.1.0."""

from __future__ import annotations

import sqlalchemy as sa
import structlog
from sqlalchemy.engine import Connection

from resolute.api.checkpoints.v1 import checkpoints_service_pb2
from resolute.contracts.calls.logged_backoff import LoggedBackoff, until_it_succeeds
from resolute_experiments.clients import Clients
from resolute_experiments.store.schema import users, workspaces
from resolute_serving.database.engine import Database

_log = structlog.get_logger("ids")


async def assign_ids(database: Database, clients: Clients) -> None:
    """Sends the ids once, as soon as the checkpoints service answers.

    Args:
        database: Knows the ids.
        clients: The checkpoints service.
    """
    backoff = LoggedBackoff(_log, "the checkpoints service did not receive the ids of workspaces and users")

    async def assign() -> None:
        await clients.checkpoints.AssignIds(await database.read(_request))

    await until_it_succeeds(assign, backoff)


def _request(connection: Connection) -> checkpoints_service_pb2.AssignIdsRequest:
    def ids(table: sa.Table) -> dict[str, int]:
        rows = connection.execute(sa.select(table.c.name, table.c.number))
        return {row.name: row.number for row in rows}

    return checkpoints_service_pb2.AssignIdsRequest(workspace_ids=ids(workspaces), user_ids=ids(users))
