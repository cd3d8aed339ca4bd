"""Idempotency of creating calls: the request id of a call and its result (AIP-155).

A client chooses a UUID for each object that it creates, and sends the same UUID when it repeats the call. The
service stores the id with the result in the transaction that creates the object. A repeated call gets the
stored result. Entries are kept for a day.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from google.protobuf.message import Message
from sqlalchemy.engine import Connection

from resolute.contracts.clock import Clock
from resolute.errors import AlreadyExistsError
from resolute_serving.context import actor
from resolute_serving.database.engine import Database, insert_new
from resolute_serving.database.prepared import PreparedStatement
from resolute_serving.database.retention import RetentionSweeper, Sleep
from resolute_serving.validation import parse_uuid

_TABLE = "idempotency_keys"
_KEPT_DAYS = 1.0
_SWEEP_ROWS = 1000
_ID_LENGTH = 36


class IdempotencyKeys:
    """The table of request ids in a service's own database.

    Args:
        metadata: The metadata object of the service's tables.
    """

    def __init__(self, metadata: sa.MetaData) -> None:
        self.table = table = sa.Table(_TABLE, metadata, *_columns())
        matches = [column == sa.bindparam(f"key_{column.name}") for column in table.primary_key]
        self._known = PreparedStatement(sa.select(table.c.digest, table.c.result).where(*matches))
        self._note_result = PreparedStatement(
            table.update().where(*matches).values(result=sa.bindparam("made"))
        )

    def once(
        self,
        connection: Connection,
        request: Any,
        create: Callable[[], str],
        *,
        now: float,
        content: bytes = b"",
    ) -> str:
        """Creates an object, or finds the one that an earlier call with the same request id created.

        Call it inside the creating write transaction. When ``create`` fails, nothing is remembered.

        Args:
            connection: The writing transaction.
            request: The request, with a ``request_id``. An empty one makes the call not repeatable.
            create: Creates the object and returns its id.
            now: Unix time.
            content: What belongs to the request beside its message, such as the digest of a streamed file.

        Returns:
            The id of the object.

        Raises:
            AlreadyExistsError: The caller used the request id for another request.
            InvalidArgumentError: The request id is not a UUID.
        """
        if not request.request_id:
            return create()
        request_id = parse_uuid(request.request_id, field="request_id")
        key = {"caller": actor(), "method": request.DESCRIPTOR.full_name, "request_id": request_id}
        digest = _digest(request, content)
        # Inserted before the object is: a call that repeats this one on another replica waits here.
        if not insert_new(connection, self.table, {**key, "digest": digest, "result": "", "created_at": now}):
            return self._recall(connection, key, digest)
        result = create()
        self._note_result.run(connection, {**_matches(key), "made": result})
        return result

    def first_use(self, connection: Connection, kind: str, digest: str, *, now: float) -> bool:
        """Whether something that is good for one use is used for the first time; notes that it is.

        Call it inside the write transaction of the use, for what is not accepted any more after a day.

        Args:
            connection: The writing transaction.
            kind: What it is, as a full name.
            digest: Its SHA-256 in hex.
            now: Unix time.
        """
        key = {"caller": "", "method": kind, "request_id": digest[:_ID_LENGTH]}
        return insert_new(connection, self.table, {**key, "digest": digest, "result": "", "created_at": now})

    def sweep(self, connection: Connection, *, before: float) -> bool:
        """Removes some entries from before a Unix time; returns whether more may be left."""
        table = self.table
        old = sa.select(table.c.request_id).where(table.c.created_at < before).limit(_SWEEP_ROWS)
        ids = connection.execute(old).scalars().all()
        connection.execute(sa.delete(table).where(table.c.request_id.in_(ids), table.c.created_at < before))
        return len(ids) == _SWEEP_ROWS

    def sweeper(self, database: Database, *, clock: Clock, sleep: Sleep = asyncio.sleep) -> RetentionSweeper:
        """Makes what removes old entries while the service runs; the service starts and stops it."""
        return RetentionSweeper(database, self.sweep, days=_KEPT_DAYS, clock=clock, sleep=sleep)

    def _recall(self, connection: Connection, key: dict[str, str], digest: str) -> str:
        found = self._known.first(connection, _matches(key))
        assert found is not None
        stored_digest, result = found
        if stored_digest != digest:
            raise AlreadyExistsError(
                f"request_id {key['request_id']} was used for another request; use a new UUID for each "
                "object to create",
                resource=f"request {key['request_id']}",
            )
        return str(result)


def _matches(key: dict[str, str]) -> dict[str, str]:
    return {f"key_{name}": value for name, value in key.items()}


def create_table(operations: Any) -> None:
    """Creates the table in a migration.

    Args:
        operations: ``alembic.op``.
    """
    operations.create_table(_TABLE, *_columns())


def drop_table(operations: Any) -> None:
    """Removes the table again, for the downgrade of a migration."""
    operations.drop_table(_TABLE)


def _columns() -> list[sa.schema.SchemaItem]:
    # Every service's migration has created exactly this: a change wants a migration in each of them.
    return [
        sa.Column("caller", sa.String(256), primary_key=True),
        sa.Column("method", sa.String(128), primary_key=True),
        sa.Column("request_id", sa.String(_ID_LENGTH), primary_key=True),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("result", sa.Text, nullable=False),
        sa.Column("created_at", sa.Float, nullable=False),
        sa.Index(f"{_TABLE}_by_age", "created_at"),
    ]


def _digest(request: Message, content: bytes) -> str:
    bare = type(request)()
    bare.CopyFrom(request)
    bare.ClearField("request_id")
    digest = hashlib.sha256(bare.SerializeToString(deterministic=True))
    digest.update(content)
    return digest.hexdigest()
