"""Access to shared storage that does not block the process if the storage's server does not answer."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Protocol, TypeVar

from resolute.errors import DeadlineError, UnavailableError

T = TypeVar("T")
_QUESTION_SECONDS = 15.0
"""How long a question may take: an engine that does not answer is named within a minute."""
_WORK_SECONDS = 60.0
"""How long a look at all runs, or the removal of one, may take."""
_REMEDY = "look at its mount here and at its file server; its runs are looked after once it answers"
_THREADS = {"ask": 4, "walk": 1, "clean": 2}


class RunStorage(Protocol):
    """Makes blocking calls in threads."""

    async def ask(self, about: str, call: Callable[[], T]) -> T:
        """Makes a short call about an allocation; about all of them if that is empty."""

    async def walk(self, call: Callable[[], T]) -> T:
        """Makes a call that looks at all runs."""

    async def clean(self, about: str, call: Callable[[], T]) -> T:
        """Makes a call that looks after what an allocation left, which may take long."""


class OwnDisk:
    """A local disk, whose calls use the threads of the event loop: without this disk nothing here works."""

    async def ask(self, about: str, call: Callable[[], T]) -> T:
        """Makes a call in a thread."""
        return await asyncio.to_thread(call)

    async def walk(self, call: Callable[[], T]) -> T:
        """Makes a call in a thread."""
        return await asyncio.to_thread(call)

    async def clean(self, about: str, call: Callable[[], T]) -> T:
        """Makes a call in a thread."""
        return await asyncio.to_thread(call)


class SharedStorage:
    """A directory whose server may stop answering, accessed by threads of its own. Close it after use.

    A late call continues, because nothing can end it. Until it ends, no other call of its kind is made for
    the same allocation, so a repetition never runs at the same time as the call that it repeats.

    Args:
        directory: The directory, for messages.
        name: Prefix of the names of the threads.
        seconds: Time limit of a short call.
    """

    def __init__(self, directory: Path, *, name: str, seconds: float = _QUESTION_SECONDS) -> None:
        self._directory = directory
        self._asking, self._walking, self._cleaning = (
            _Threads(f"{name}-{kind}", threads=threads) for kind, threads in _THREADS.items()
        )
        self._seconds = seconds

    async def ask(self, about: str, call: Callable[[], T]) -> T:
        """Makes a short call about an allocation; about all of them if that is empty.

        Raises:
            UnavailableError: The storage does not answer, or the service stops.
            Exception: What the call raised.
        """
        return await self._make(call, self._asking, about=about, seconds=self._seconds)

    async def walk(self, call: Callable[[], T]) -> T:
        """Makes a call that looks at all runs: one at a time.

        Raises:
            UnavailableError: The storage does not answer, or the service stops.
            Exception: What the call raised.
        """
        return await self._make(call, self._walking, about="", seconds=_WORK_SECONDS)

    async def clean(self, about: str, call: Callable[[], T]) -> T:
        """Makes a call that looks after what an allocation left, which may take long.

        Raises:
            UnavailableError: The storage does not answer, or the service stops.
            Exception: What the call raised.
        """
        return await self._make(call, self._cleaning, about=about, seconds=_WORK_SECONDS)

    async def _make(self, call: Callable[[], T], threads: _Threads, *, about: str, seconds: float) -> T:
        now = asyncio.get_running_loop().time()
        if threads.hang(about, now=now):
            raise UnavailableError(f"{self._directory} still does not answer: {_REMEDY}")
        future = threads.submit(call, about=about, due=now + seconds)
        answer = asyncio.wrap_future(future)
        try:
            await asyncio.wait({answer}, timeout=seconds)
            if answer.done():
                return answer.result()
        finally:
            # One that has not begun is not made any more.
            future.cancel()
            answer.cancel()
        raise DeadlineError(f"{self._directory} did not answer for {seconds:g} s: {_REMEDY}")

    def close(self) -> None:
        """Takes no more calls; those in progress end by themselves, and keep no process from its end."""
        for threads in (self._asking, self._walking, self._cleaning):
            threads.close()


class _Threads:
    """A few daemon threads, started with the first call. An executor would join its threads at exit."""

    def __init__(self, name: str, *, threads: int) -> None:
        self._name = name
        self._size = threads
        self._calls: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = queue.SimpleQueue()
        self._begun: list[threading.Thread] = []
        self._open: dict[Future[Any], tuple[str, float]] = {}
        """What calls that have not ended are about, and when they should have."""
        self._closed = False

    def hang(self, about: str, *, now: float) -> bool:
        """Whether a call about something would only wait: for one that is late, or for any thread."""
        late = [subject for subject, due in tuple(self._open.values()) if due <= now]
        return about in late or len(late) >= self._size

    def submit(self, call: Callable[[], T], *, about: str, due: float) -> Future[T]:
        """Has a call made.

        Raises:
            UnavailableError: The service stops.
        """
        if self._closed:
            raise UnavailableError("the service is being stopped")
        if len(self._begun) < self._size:
            name = f"{self._name}-{len(self._begun)}"
            thread = threading.Thread(target=self._work, name=name, daemon=True)
            self._begun.append(thread)
            thread.start()
        future: Future[T] = Future()
        self._open[future] = about, due
        future.add_done_callback(lambda ended: self._open.pop(ended, None))
        self._calls.put((future, call))
        return future

    def close(self) -> None:
        """Ends the threads, each after the call that it makes."""
        self._closed = True
        for _ in self._begun:
            self._calls.put(None)

    def _work(self) -> None:
        while (taken := self._calls.get()) is not None:
            future, call = taken
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(call())
            except BaseException as failure:  # noqa: BLE001 - passed on to who waits
                future.set_exception(failure)
            del taken, future, call
