"""Calls the Ray driver with deadlines. A driver that does not answer is restarted."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from resolute.contracts.calls.deadlines import in_time
from resolute.errors import DeadlineError, InternalError, UnavailableError

DRIVER = Path(__file__).with_name("driver.py")
"""The program that asks."""
_ANSWER_BYTES = 16 << 20
"""How long an answer may be."""
_TAIL_CHARACTERS = 1000


class Driver:
    """The driver process.

    Args:
        address: ``host:port`` of Ray's head.
        prefix: Prefix of all names of the cluster in Ray.
        python: Interpreter that has the Ray version of the cluster; empty for that of this process.
        deadline_seconds: Time limit of one call, including the start of the driver.
    """

    def __init__(
        self, address: str, *, prefix: str, python: str = "", deadline_seconds: float = 60.0
    ) -> None:
        # Isolated: a module of this folder must not be found instead of another of its name.
        self._command = (python or sys.executable, "-I", str(DRIVER), address, prefix)
        self._address = address
        self._deadline_seconds = deadline_seconds
        self._process: asyncio.subprocess.Process | None = None
        self._complaint: asyncio.Task[str] | None = None
        self._lock = asyncio.Lock()
        self._closed = False

    async def call(self, name: str, *, deadline_seconds: float | None = None, **arguments: Any) -> Any:
        """Has the driver answer one question.

        Args:
            name: The question.
            deadline_seconds: How long it may take, the start of the driver included; None for the usual time.
            arguments: What it is about.

        Raises:
            UnavailableError: Ray does not answer, or the driver did not; whether it did what was asked is not
                known.
            InternalError: The driver has a defect.
        """
        async with self._lock:
            if self._closed:
                raise UnavailableError("the service is being stopped, and makes no more calls of Ray")
            seconds = deadline_seconds or self._deadline_seconds
            question = f"{json.dumps({'call': name, 'arguments': arguments})}\n".encode()
            try:
                answer = json.loads(await in_time(self._exchange(question), seconds, name))
            except DeadlineError:
                await self._end()
                raise UnavailableError(
                    f"Ray at {self._address} did not answer in {seconds:g} s: see whether its "
                    f"head is well (`ray status --address {self._address}`)"
                ) from None
            except (OSError, ValueError) as failure:
                raise UnavailableError(
                    f"the driver of Ray at {self._address} ended: {await self._end() or failure}"
                ) from None
            except BaseException:
                # Its answer would be taken for that of the next question.
                await self._end()
                raise
            if answer.get("away"):
                # It may hold on to a head that is gone: the next one finds its successor.
                await self._end()
        if "failure" in answer:
            message = f"the request to Ray at {self._address} failed: {answer['failure']}"
            raise UnavailableError(message) if answer["away"] else InternalError(message)
        return answer["answer"]

    async def close(self) -> None:
        """Ends the driver."""
        self._closed = True
        if self._process is not None:
            # Callers that wait for an answer must not wait until the deadline.
            with suppress(ProcessLookupError):
                self._process.kill()
        async with self._lock:
            await self._end()

    async def _exchange(self, question: bytes) -> bytes:
        if self._process is None:
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                limit=_ANSWER_BYTES,
            )
            assert self._process.stderr is not None
            self._complaint = asyncio.create_task(_tail(self._process.stderr), name="ray-driver-stderr")
        assert self._process.stdin is not None and self._process.stdout is not None  # noqa: PT018
        self._process.stdin.write(question)
        await self._process.stdin.drain()
        return await self._process.stdout.readline()

    async def _end(self) -> str:
        """Ends the driver, if there is one, and returns what it complained of."""
        process, self._process = self._process, None
        complaint, self._complaint = self._complaint, None
        if process is None or complaint is None or process.stdin is None:
            return ""
        process.stdin.close()
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        return await complaint


async def _tail(stream: asyncio.StreamReader) -> str:
    kept = b""
    while piece := await stream.read(1 << 16):
        kept = (kept + piece)[-_TAIL_CHARACTERS:]
    return " ".join(kept.decode("utf-8", "replace").split())
