"""Calls one engine, and records whether it answers."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TypeVar

from resolute.contracts.clock import Clock
from resolute.errors import UnavailableError
from resolute_engines.protocol import Engine

T = TypeVar("T")


class EngineContact:
    """An engine with its name in settings and messages.

    Args:
        engine: The engine.
        name: Its name.
        clock: Measures the time since the last call.
    """

    def __init__(self, engine: Engine, *, name: str, clock: Clock) -> None:
        self._clock = clock
        self._asked_at = clock.monotonic()
        self.engine = engine
        """The engine. Its calls are awaited by ``ask``."""
        self.name = name
        """Its name in settings and messages."""
        self.problem = ""
        """Why it did not do what it was last asked; empty while it answers."""

    async def ask(self, answer: Awaitable[T]) -> T:
        """Waits for an answer of the engine, and notes whether it comes.

        Raises:
            UnavailableError: It does not.
            Exception: What the engine raised.
        """
        try:
            given = await answer
        except UnavailableError as failure:
            self.problem = f"engine {self.name} does not answer, so its runs are not looked after: {failure}"
            raise
        finally:
            self._asked_at = self._clock.monotonic()
        self.problem = ""
        return given

    async def kill(self, allocation_id: str) -> None:
        """Ends every process of an allocation at once.

        Raises:
            UnavailableError: The engine does not answer.
        """
        await self.ask(self.engine.kill(allocation_id))

    @property
    def quiet_seconds(self) -> float:
        """For how long the engine was not asked for anything."""
        return self._clock.monotonic() - self._asked_at
