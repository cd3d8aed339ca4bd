"""A cluster whose state a test sets: the real server, tokens, permissions and errors around scripts.

It stands for the services where a test needs states that real ones reach only by training, or faults that
they do not have.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import grpc
from support.services.in_process import Running, serving
from support.services.stand_ins.no_roles import NoRoles
from wire.cli.scripted_handlers import Handlers
from wire.cli.scripted_state import State

from resolute.api.checkpoints.v1 import checkpoints_service_pb2_grpc
from resolute.api.experiments.v1 import (
    access_service_pb2_grpc,
    cluster_service_pb2_grpc,
    experiments_service_pb2_grpc,
    jobs_service_pb2_grpc,
    trials_service_pb2_grpc,
)
from resolute.api.logs.v1 import logs_service_pb2_grpc
from resolute.api.metrics.v1 import metrics_service_pb2_grpc
from resolute.api.searcher.v1 import searcher_service_pb2_grpc
from resolute_serving.context import Role
from resolute_serving.server.service import Blueprint

ResultT = TypeVar("ResultT")
_MODULES = (
    (access_service_pb2_grpc, "AccessService"),
    (checkpoints_service_pb2_grpc, "CheckpointsService"),
    (cluster_service_pb2_grpc, "ClusterService"),
    (experiments_service_pb2_grpc, "ExperimentsService"),
    (jobs_service_pb2_grpc, "JobsService"),
    (logs_service_pb2_grpc, "LogsService"),
    (metrics_service_pb2_grpc, "MetricsService"),
    (searcher_service_pb2_grpc, "SearcherService"),
    (trials_service_pb2_grpc, "TrialsService"),
)


class _Service:
    name = "scripted"
    grpc_names: Sequence[str] = ("scripted",)
    access_lookup = NoRoles()

    def __init__(self, handlers: Handlers) -> None:
        self._handlers = handlers

    def register(self, server: grpc.aio.Server) -> None:
        for module, service in _MODULES:
            servicer: Any = getattr(module, f"{service}Servicer")()
            for method in vars(type(servicer)):
                if not method.startswith("_") and hasattr(self._handlers, method):
                    setattr(servicer, method, getattr(self._handlers, method))
            getattr(module, f"add_{service}Servicer_to_server")(servicer, server)

    async def start(self) -> None:
        """Nothing runs in the background."""

    async def stop(self) -> None:
        """Nothing runs in the background."""


class ScriptedCluster:
    """A cluster on loopback, in a thread with an event loop of its own."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.state = State()
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._stop: asyncio.Event | None = None
        self._thread: threading.Thread | None = None
        self._changed: asyncio.Condition | None = None
        self._port = 0
        self.running: Running | None = None

    @property
    def address(self) -> str:
        """``host:port``."""
        assert self.running is not None
        return self.running.address

    def token(self, *, role: Role = Role.ADMIN, name: str = "ada") -> str:
        """A token of a person."""
        assert self.running is not None
        return self.running.user_token(role=role, name=name)

    def change(self, work: Callable[[State], ResultT]) -> ResultT:
        """Changes the state between two calls, and lets watches see it."""

        async def apply() -> ResultT:
            result = work(self.state)
            assert self._changed is not None
            async with self._changed:
                self._changed.notify_all()
            return result

        return asyncio.run_coroutine_threadsafe(apply(), self._loop).result(10)

    @contextmanager
    def serving(self) -> Iterator[ScriptedCluster]:
        """Serves until the block ends."""
        self._thread = threading.Thread(target=self._run, name="scripted-cluster", daemon=True)
        self._thread.start()
        assert self._ready.wait(60), "the scripted cluster did not start"
        try:
            yield self
        finally:
            assert self._stop is not None
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(60)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self) -> None:
        self._stop, self._changed = asyncio.Event(), asyncio.Condition()
        handlers = Handlers(self.state, self._token_of, self._changed)
        blueprint = Blueprint(name="scripted", package="", create=lambda _environment: _Service(handlers))
        async with serving([blueprint], self._directory) as running:
            self.running = running
            self._ready.set()
            await self._stop.wait()

    def _token_of(self, name: str) -> str:
        return self.token(role=Role.EDITOR, name=name)
