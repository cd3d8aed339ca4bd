"""The engine of a service's database: one writer thread that commits in groups, and a few reader threads.

All writes of a process go through one thread. It takes all queued work, runs each piece in a savepoint of one
transaction, and commits once. So all waiting callers share the cost of a durable commit. SQLite allows only
one writer anyway. On PostgreSQL several replicas may write at the same time, and the work itself must be safe
against that (unique keys, comparisons inside the transaction).
"""

from __future__ import annotations

import asyncio
import os
import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import copy_context
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, Generic, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine, make_url
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, OperationalError

from resolute.errors import (
    ConflictError,
    FailedPreconditionError,
    InvalidArgumentError,
    QuotaError,
    ResoluteError,
    UnavailableError,
)
from resolute_serving.context import TrialRun, current_principal
from resolute_serving.database import text_search
from resolute_serving.database.fence import Fence
from resolute_serving.database.prepared import PreparedStatement
from resolute_serving.observability.gauges import Gauge


class DiskFullError(QuotaError):
    """The disk that holds a database is full."""


T = TypeVar("T")
Work = Callable[[Connection], T]
"""Reads and writes with one connection, inside a transaction that its caller ends."""


_WRITER_CACHE_KIB = 1024
_READER_CACHE_KIB = 256
"""Most memory for pages of one SQLite connection. A cluster has dozens, and short experiments fill all.
What is missing there, the system has in its own cache: a row under a random UUID costs 4 µs more."""
_READERS_FOR_RUNS = 2

_POSTGRES_KEEPALIVE = {
    "keepalives_idle": 5,
    "keepalives_interval": 3,
    "keepalives_count": 3,
    "tcp_user_timeout": 14_000,
}
"""A server that is lost without a close is detected within 15 seconds, as at connections between services."""


@dataclass
class _Item(Generic[T]):
    work: Work[T]
    future: Future[T]
    order: str


MAX_WAITING_WRITES = 10_000
"""Most pieces of work that wait for the writer of a database; the server bounds their bytes."""


class Database:
    """Runs work of one service on its SQLite file or its PostgreSQL schema.

    Args:
        url: ``sqlite:///path`` or ``postgresql+psycopg://…``.
        name: Name of the service, of its PostgreSQL schema and of its threads.
        group_limit: Most pieces of work in one commit.
        readers: Number of threads for reading; two more read only for runs.
        max_pages: Largest size of an SQLite file in pages of 4096 bytes; None for no limit.
        max_waiting: Most pieces of work that may wait for the writer.
        fence: Fence for writes, if another process may take over; None otherwise.
    """

    def __init__(
        self,
        url: str,
        *,
        name: str,
        group_limit: int = 256,
        readers: int = 4,
        max_pages: int | None = None,
        max_waiting: int = MAX_WAITING_WRITES,
        fence: Fence | None = None,
    ) -> None:
        self._max_waiting = max_waiting
        self.name = name
        self.url = url
        self._fence = fence
        self._group_limit = group_limit
        self._writer_engine = create_engine(url, name=name, writes=True, max_pages=max_pages, fence=fence)
        self._reader_engine = create_engine(url, name=name, writes=False, fence=fence)
        # Callers beyond `max_waiting` are refused: waiting for space would take as much memory.
        self._queue: queue.SimpleQueue[_Item[Any] | None] = queue.SimpleQueue()
        self._readers = ThreadPoolExecutor(readers, thread_name_prefix=f"{name}-read")
        # Leases and signals do not wait for what people read.
        self._readers_for_runs = ThreadPoolExecutor(
            _READERS_FOR_RUNS, thread_name_prefix=f"{name}-read-for-run"
        )
        self._writer = threading.Thread(target=self._write_loop, name=f"{name}-write", daemon=True)
        self._thread = threading.local()
        self._held: list[Connection] = []
        self._closed = False
        self._closing = threading.Lock()
        self.disk_full = False
        """Whether the last write failed because the disk is full."""
        self.commits: int | None = None if self._writer_engine.dialect.name == "postgresql" else 0
        """Commits so far: while it stays the same, so does what can be read. None where others write too."""
        self._writer.start()

    @property
    def engine(self) -> Engine:
        """The engine of the writer, for migrations before the service starts."""
        return self._writer_engine

    async def read_fenced(self, work: Work[T]) -> T:
        """Reads what this process is about to do elsewhere, such as a run that it launches.

        Only a transaction that writes passes the fence: a former process can still read, and what it reads
        may be the business of its successor.

        Raises:
            FencedError: Another process serves the cluster now.
        """
        return await (self.read(work) if self._fence is None else self.write(work))

    async def write(self, work: Work[T], *, order: str = "") -> T:
        """Runs ``work`` in a transaction and returns its result once that is durable.

        Args:
            work: What to do.
            order: What the work locks. Work that shares a commit is done by ascending order, so that the
                commits of several replicas never wait for each other in a circle.

        Raises:
            ResoluteError: What the work raised; nothing of it was kept.
            UnavailableError: The database cannot be reached, or too much waits for it.
            QuotaError: Its disk is full.
        """
        future: Future[T] = Future()
        # The writer's thread must know the caller: audit rows are written in the same transaction.
        caller = copy_context()
        item = _Item(lambda connection: caller.run(work, connection), future, order)
        with self._closing:
            self._require_open()
            if self._queue.qsize() >= self._max_waiting:
                raise UnavailableError(
                    f"{self._max_waiting} writes wait for the {self.name} database already; try again"
                )
            self._queue.put(item)
        return await asyncio.wrap_future(future)

    async def read(self, work: Work[T]) -> T:
        """Runs ``work`` and returns its result.

        On SQLite it reads one snapshot, on PostgreSQL each statement has its own. Where the connection is
        lost, it runs a second time from its start: it may change only what it makes itself, and returns what
        is then kept, counted or sent.

        Raises:
            UnavailableError: The database cannot be reached.
        """
        self._require_open()
        # As with writes, the work knows who calls and what the caller may see.
        call = copy_context().run
        for_run = isinstance(current_principal.get(), TrialRun)
        readers = self._readers_for_runs if for_run else self._readers
        return await asyncio.get_running_loop().run_in_executor(readers, call, self._read, work)

    async def gauges(self) -> list[Gauge]:
        """Returns how much work is queued.

        Raises:
            UnavailableError: The database cannot be reached.
        """
        await self.read(lambda c: c.execute(sa.select(sa.literal(1))).scalar_one())
        return [
            Gauge(
                name="resolute_database_waiting_writes",
                help="Pieces of work that wait for the writer of a database.",
                value=self._queue.qsize(),
                labels={"service": self.name},
            )
        ]

    def close(self) -> None:
        """Finishes what is queued and ends the threads. Idempotent."""
        with self._closing:
            if self._closed:
                return
            self._closed = True
            # Nothing is queued behind it, where no one would take it.
            self._queue.put(None)
        self._writer.join()
        self._readers.shutdown()
        self._readers_for_runs.shutdown()
        for connection in self._held:
            connection.close()
        self._writer_engine.dispose()
        self._reader_engine.dispose()

    def _require_open(self) -> None:
        # Calls may still be running when their service closes its database: they must fail, not hang.
        if self._closed:
            raise UnavailableError(f"the {self.name} service stops; try again")

    def _read(self, work: Work[T]) -> T:
        with typed_errors(self.name):
            try:
                return self._read_once(work)
            except DBAPIError as error:
                # The server has closed the connection, as at its restart; all of them are opened anew.
                if not error.connection_invalidated:
                    raise
                return self._read_once(work)

    def _read_once(self, work: Work[T]) -> T:
        with self._connection(self._reader_engine) as connection, connection.begin():
            return work(connection)

    def _connection(self, engine: Engine) -> AbstractContextManager[Connection]:
        """The connection of this thread, which it keeps; a server's connections can break and are pooled."""
        if engine.dialect.name != "sqlite":
            return engine.connect()
        held: Connection | None = getattr(self._thread, "connection", None)
        if held is None:
            held = self._thread.connection = engine.connect()
            self._held.append(held)
        return nullcontext(held)

    def _write_loop(self) -> None:
        while (item := self._queue.get()) is not None:
            group = [item]
            while len(group) < self._group_limit:
                try:
                    following = self._queue.get_nowait()
                except queue.Empty:
                    break
                if following is None:
                    self._commit(group)
                    return
                group.append(following)
            self._commit(group)

    def _commit(self, group: list[_Item[Any]]) -> None:
        # Work of callers that were cancelled is dropped; from here on they can no longer cancel.
        group = [item for item in group if item.future.set_running_or_notify_cancel()]
        group.sort(key=lambda item: item.order)
        if len(group) == 1:
            self._commit_alone(group[0])
            return
        try:
            with self._writing() as connection:
                outcomes = [self._attempt(connection, item) for item in group]
        except BaseException as error:  # noqa: BLE001 - the callers must get any failure
            self.disk_full = isinstance(error, DiskFullError)
            for item in group:
                item.future.set_exception(error)
            return
        self._committed()
        for item, result, failure in outcomes:
            if failure is None:
                item.future.set_result(result)
            else:
                item.future.set_exception(failure)

    def _commit_alone(self, item: _Item[Any]) -> None:
        # No other work shares the transaction, so no savepoint is needed.
        try:
            with self._writing() as connection:
                result = item.work(connection)
        except BaseException as error:  # noqa: BLE001 - the callers must get any failure
            self.disk_full = isinstance(error, DiskFullError)
            item.future.set_exception(error)
        else:
            self._committed()
            item.future.set_result(result)

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        with (
            typed_errors(self.name),
            self._connection(self._writer_engine) as connection,
            connection.begin(),
        ):
            yield connection

    def _committed(self) -> None:
        self.disk_full = False
        if self.commits is not None:
            self.commits += 1

    def _attempt(
        self, connection: Connection, item: _Item[Any]
    ) -> tuple[_Item[Any], Any, BaseException | None]:
        savepoint = connection.begin_nested()
        try:
            with typed_errors(self.name):
                result = item.work(connection)
                savepoint.commit()
        except (UnavailableError, QuotaError):
            # A failing database fails the whole group: its transaction is not usable any more.
            raise
        except Exception as error:  # noqa: BLE001 - it is raised to the caller of this piece of work
            savepoint.rollback()
            return item, None, error
        return item, result, None


@contextmanager
def typed_errors(name: str) -> Iterator[None]:
    """Turns the errors of a database into those of the platform.

    Args:
        name: The service whose database it is.
    """
    try:
        yield
    except ResoluteError:
        raise
    except IntegrityError as error:
        raise ConflictError(f"{name}: another writer changed it first; read again and repeat") from error
    except DataError as error:
        # PostgreSQL refuses what does not fit a column, also in comparisons; SQLite finds nothing there.
        raise InvalidArgumentError(
            f"the {name} database cannot hold a value of the request ({error.orig}); use a smaller number"
        ) from error
    except OperationalError as error:
        if "disk is full" in str(error.orig) or "No space left" in str(error.orig):
            raise DiskFullError(
                f"the disk that holds the {name} database is full; free some space and repeat"
            ) from error
        raise UnavailableError(f"the {name} database does not answer ({error.orig}); try again") from error
    except DBAPIError as error:
        if error.connection_invalidated:
            raise UnavailableError(f"the {name} database closed the connection; try again") from error
        raise


def insert_new(connection: Connection, table: sa.Table, values: dict[str, Any]) -> bool:
    """Inserts a row unless one with the same unique key exists.

    On PostgreSQL it waits for a transaction that is inserting the same key.

    Returns:
        Whether the row was inserted.
    """
    return _insert_new(table, tuple(values), connection.dialect.name).run(connection, values) == 1


@lru_cache(maxsize=64)
def _insert_new(table: sa.Table, columns: tuple[str, ...], dialect: str) -> PreparedStatement:
    # PostgreSQL's dialect has thirty modules, which a home with files of SQLite does without.
    insert: Any = import_module(f"sqlalchemy.dialects.{dialect}").insert
    return PreparedStatement(insert(table).on_conflict_do_nothing(), columns=columns)


def create_engine(
    url: str, *, name: str, writes: bool, max_pages: int | None = None, fence: Fence | None = None
) -> Engine:
    """Builds an engine with durable settings.

    Args:
        url: ``sqlite:///path`` or ``postgresql+psycopg://…``.
        name: Schema on PostgreSQL.
        writes: Whether transactions take SQLite's write lock at once.
        max_pages: Upper bound of an SQLite file in pages.
        fence: What each transaction that writes passes first, on PostgreSQL; it names all sessions.
    """
    parsed = make_url(url)
    if parsed.get_backend_name() == "sqlite":
        if parsed.database:
            Path(parsed.database).parent.mkdir(parents=True, exist_ok=True)
            _keep_private(Path(parsed.database))
        # Errors reach the log, and parameters may be secrets.
        connect_args = {"check_same_thread": False, "timeout": 30}
        engine = sa.create_engine(url, connect_args=connect_args, hide_parameters=True)
        _tune_sqlite(engine, writes=writes, max_pages=max_pages)
        return engine
    arguments = {"options": f"-csearch_path={name}", "connect_timeout": 5, **_POSTGRES_KEEPALIVE}
    if fence is not None:
        arguments["application_name"] = fence.session
    if not writes:
        # Each statement has its own snapshot, in a transaction or not: three round trips fewer for each read.
        return sa.create_engine(
            url, isolation_level="AUTOCOMMIT", connect_args=arguments, hide_parameters=True
        )
    engine = sa.create_engine(url, pool_pre_ping=True, connect_args=arguments, hide_parameters=True)
    if fence is not None:
        sa.event.listen(engine, "begin", fence.require)
    return engine


def _keep_private(database: Path) -> None:
    """Lets the owner alone use a file of SQLite; the files that SQLite makes beside it become the same.

    Raises:
        FailedPreconditionError: The file belongs to somebody else.
    """
    try:
        os.close(os.open(database, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        for suffix in ("", "-wal", "-shm"):
            with suppress(FileNotFoundError):
                Path(f"{database}{suffix}").chmod(0o600)
    except PermissionError as error:
        raise FailedPreconditionError(
            f"{error.filename} cannot be opened and made private ({error.strerror}); "
            "run the service as the owner of its database, or chown the file"
        ) from error


def _tune_sqlite(engine: Engine, *, writes: bool, max_pages: int | None) -> None:
    cache = _WRITER_CACHE_KIB if writes else _READER_CACHE_KIB

    @sa.event.listens_for(engine, "connect")
    def configure(connection: Any, _: Any) -> None:
        # The driver must not open transactions on its own: savepoints would break.
        connection.isolation_level = None
        text_search.add_functions(connection)
        cursor = connection.cursor()
        cursor.execute("PRAGMA journal_mode=WAL")
        cursor.execute("PRAGMA synchronous=FULL")
        cursor.execute("PRAGMA foreign_keys=ON")
        cursor.execute(f"PRAGMA cache_size=-{cache}")
        if max_pages is not None:
            cursor.execute(f"PRAGMA max_page_count={int(max_pages)}")
        cursor.close()

    def begin(connection: Any) -> None:
        if connection.in_transaction:  # The last commit failed: that leaves its transaction open.
            connection.rollback()
        connection.cursor().execute("BEGIN IMMEDIATE" if writes else "BEGIN")

    # Not by a listener for "begin": once an engine has one, each statement asks for listeners of its own.
    engine.dialect.do_begin = begin  # type: ignore[method-assign, assignment]
