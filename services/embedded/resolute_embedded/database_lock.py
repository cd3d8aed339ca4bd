"""Lets one process serve the clusters of a PostgreSQL database, which several homes may name by mistake."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa
from sqlalchemy.exc import OperationalError

from resolute.errors import FailedPreconditionError, UnavailableError
from resolute_embedded.state_directory import StateDirectory
from resolute_serving.database.engine import create_engine

_TAKE = sa.text("SELECT pg_try_advisory_lock(hashtext('resolute.serves'))")


@contextmanager
def served_alone(state: StateDirectory) -> Iterator[None]:
    """Holds the lock of a home's database while the block runs; SQLite files are protected by the home's own.

    It keeps a second start off, and is no fence: the server frees it when the connection breaks.

    Raises:
        FailedPreconditionError: Another process holds it.
        UnavailableError: The server does not answer.
    """
    if not state.is_moved:
        yield
        return
    engine = create_engine(state.database_url("experiments"), name="public", writes=True)
    try:
        try:
            connection = engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        except OperationalError as error:
            raise UnavailableError(
                f"PostgreSQL, which has the databases of {state.home.path}, does not answer: "
                f"{str(error.orig).splitlines()[0]}"
            ) from error
        with connection:
            if not connection.execute(_TAKE).scalar():
                raise FailedPreconditionError(
                    f"another process serves the database of {state.home.path}; two would start runs twice: "
                    "stop the other one, on whichever machine it is"
                )
            yield
    finally:
        engine.dispose()
