"""Decides which process serves the cluster of a PostgreSQL database: one at a time, the others stand by.

One row has the epoch, which grows with each process that begins to serve, and beats, which that process
advances every second. Another process may take over if it has seen no new beat for five seconds by its own
clock; two clocks are never compared. It advances the epoch. From then on the database refuses writes of the
former process (``resolute_serving.database.fence``), whether that one is dead, stopped, or alive and cut off.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace

import sqlalchemy as sa
import structlog
from sqlalchemy.exc import DBAPIError

from resolute.contracts.clock import Clock
from resolute_serving.database.engine import create_engine, typed_errors
from resolute_serving.database.fence import Fence

BEAT_SECONDS = 1.0
LOOK_SECONDS = 0.5
VACANT_SECONDS = 5.0
"""How long no beat was seen of a process that is taken for gone. More beats may be late on a busy machine."""
_LOCK_TIMEOUT = "2s"
_EXISTS = "SELECT to_regclass('cluster.leadership')"
_SCHEMA = "CREATE SCHEMA IF NOT EXISTS cluster"
_TABLE = (
    "CREATE TABLE cluster.leadership "
    "(epoch BIGINT PRIMARY KEY, beats BIGINT NOT NULL, holder TEXT NOT NULL, runs_of TEXT NOT NULL)"
)
_ROW = "INSERT INTO cluster.leadership VALUES (0, 0, '', '')"
_LOOK = sa.text("SELECT epoch, beats, holder, runs_of FROM cluster.leadership")
_END_SESSIONS = sa.text(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
    "AND usename = current_user AND application_name = :session"
)
_TAKE = sa.text(
    "UPDATE cluster.leadership SET epoch = epoch + 1, beats = 0, holder = :holder "
    "WHERE epoch = :epoch AND (beats = :beats OR holder = :holder) RETURNING epoch"
)
_RUNS = sa.text("UPDATE cluster.leadership SET runs_of = :holder WHERE epoch = :epoch")
_LEAVE = sa.text("UPDATE cluster.leadership SET holder = '' WHERE epoch = :epoch")
_log = structlog.get_logger("leadership")


@dataclass(frozen=True)
class Look:
    """The content of the row."""

    epoch: int
    beats: int
    holder: str
    """Which home is served; empty once its process has stopped by itself."""
    runs_of: str
    """In which home the runs are that the database knows; empty before the first."""


class Vacancy:
    """Decides whether the serving process is gone, by reading the row every ``LOOK_SECONDS``.

    Args:
        holder: Home of this process, whose lock this process holds.
        clock: Measures the time since the last change.
    """

    def __init__(self, holder: str, clock: Clock) -> None:
        self._holder = holder
        self._clock = clock
        self._last: Look | None = None
        self._looks = 0
        self._since = 0.0

    def is_vacant(self, look: Look) -> bool:
        """Takes the next look and says whether this process may take over."""
        if look != self._last:
            self._last, self._looks, self._since = look, 0, self._clock.monotonic()
        # Both are wanted: this process may have been paused, and looked once before and once after.
        self._looks += 1
        long = self._clock.monotonic() - self._since >= VACANT_SECONDS
        return look.holder in ("", self._holder) or (long and self._looks * LOOK_SECONDS > VACANT_SECONDS)

    def forget(self) -> None:
        """Begins again, because the database did not answer: the serving process could not beat either."""
        self._last = None


class Leadership:
    """The row of one database.

    Args:
        url: The PostgreSQL database.
        holder: Name of this process's home.
        clock: Clock for the database's last answer.
    """

    def __init__(self, url: str, *, holder: str, clock: Clock) -> None:
        self._clock = clock
        self.holder = holder
        """Names the home of this process."""
        self._engine = create_engine(url, name="public", writes=True)

    def prepare(self) -> None:
        """Makes the row where it is missing.

        Raises:
            UnavailableError: The database does not answer.
        """
        with typed_errors("cluster"), self._engine.begin() as connection:
            connection.execute(sa.text("SELECT pg_advisory_xact_lock(hashtext('resolute.leadership'))"))
            # Later starts need no right to make schemas.
            if connection.exec_driver_sql(_EXISTS).scalar() is None:
                for statement in (_SCHEMA, _TABLE, _ROW):
                    connection.exec_driver_sql(statement)

    def look(self) -> Look:
        """Reads the row.

        Raises:
            UnavailableError: The database does not answer.
        """
        with typed_errors("cluster"), self._engine.begin() as connection:
            return Look(*connection.execute(_LOOK).one())

    def take(self, look: Look) -> Term | None:
        """Begins to serve, after ending the sessions that the former process may have left.

        A stopped process holds its transactions open, and with them its locks.

        Returns:
            None if another process was faster, or if the former process still serves.

        Raises:
            UnavailableError: It does not answer, or a transaction of the former process does not end.
        """
        values = {"holder": self.holder, "epoch": look.epoch, "beats": look.beats}
        with typed_errors("cluster"), self._engine.begin() as connection:
            connection.execute(_END_SESSIONS, {"session": Fence(look.epoch).session})
            connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{_LOCK_TIMEOUT}'")
            epoch = connection.execute(_TAKE, values).scalar_one_or_none()
        if epoch is None:
            return None
        return Term(self._engine, replace(look, epoch=epoch, holder=self.holder), clock=self._clock)

    def close(self) -> None:
        """Ends its connections."""
        self._engine.dispose()


class Term:
    """The term during which this process serves.

    Args:
        engine: The database.
        look: The row at the start of the term.
        clock: Clock for the database's last confirmation.
    """

    def __init__(self, engine: sa.Engine, look: Look, *, clock: Clock) -> None:
        self._engine = engine
        self._look = look
        self.fence = Fence(look.epoch)
        """What writes of this process pass."""
        self._clock = clock
        self._confirmed = clock.monotonic()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def runs_are_elsewhere(self) -> bool:
        """Whether the runs that the database knows were started from another home."""
        return self._look.runs_of not in ("", self._look.holder)

    def is_held(self) -> bool:
        """Whether the database has confirmed this process lately: if not, another one may have taken over."""
        return self._clock.monotonic() - self._confirmed < VACANT_SECONDS

    def note_runs(self) -> None:
        """Notes that runs are in the home of this process from now on."""
        with typed_errors("cluster"), self._engine.begin() as connection:
            connection.execute(_RUNS, {"holder": self._look.holder, "epoch": self.fence.epoch})

    def begin(self, lost: Callable[[], None]) -> None:
        """Moves the beats in a thread, until ``end``.

        Args:
            lost: Called in that thread once another process has taken over.
        """
        self._thread = threading.Thread(target=self._beat, args=(lost,), name="leadership", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Lets another process take over at once."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()
        try:
            with self._engine.begin() as connection:
                connection.execute(_LEAVE, {"epoch": self.fence.epoch})
        except DBAPIError as error:
            _log.warning(
                "the next process must wait until the beats of this one are overdue", reason=str(error.orig)
            )

    def _beat(self, lost: Callable[[], None]) -> None:
        # Its driver is imported where a cluster has PostgreSQL alone.
        from resolute_serving.database.beats import Beats

        with closing(Beats(self._engine.url, epoch=self.fence.epoch)) as beats:
            while not self._stopped.wait(BEAT_SECONDS):
                # What the answer confirms is as old as this: the process may be stopped before it notes it.
                began = self._clock.monotonic()
                held = beats.move()
                if held is None:
                    # No other process can take over while it does not answer, and writes fail by themselves.
                    continue
                if not held:
                    lost()
                    return
                self._confirmed = began
