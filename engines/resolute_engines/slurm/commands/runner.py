"""Runs Slurm's commands: here, or on a login node."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from resolute.contracts.calls.deadlines import in_time
from resolute.errors import DeadlineError, FailedPreconditionError, ResoluteError, UnavailableError
from resolute_engines.slurm.commands.login import SSH_FAILED, LoginNode

_READ_BYTES = 1 << 16
_ERROR_BYTES = 4096
"""What is kept of a command's complaint: its first lines say what is wrong."""
_REAP_SECONDS = 10.0
"""How long a killed command may take to be gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmCommands:
    """Runs commands of Slurm."""

    login: LoginNode | None = None
    """Where they run; None for this machine."""
    environment: Mapping[str, str]
    """The whole environment of what this machine starts, such as ``PATH`` and ``SLURM_CONF``.

    Where no login node is between, jobs that are submitted begin with it.
    """
    deadline_seconds: float = 30.0
    """How long one command may take."""
    output_bytes: int = 16 << 20
    """How much one command may print."""

    async def run(
        self,
        arguments: Sequence[str],
        *,
        stdin: bytes = b"",
        refusal: Callable[[str], ResoluteError | None] | None = None,
    ) -> str:
        """Returns what a command prints.

        Args:
            arguments: The command.
            stdin: What it reads.
            refusal: Tells, from what it complained of, what to raise where Slurm has refused it; None for
                what is never refused.

        Raises:
            ResoluteError: Slurm has refused it.
            FailedPreconditionError: It printed too much.
            UnavailableError: It cannot be started, or failed without a refusal: the controller may be away,
                or busy, and what was asked for may have happened.
            DeadlineError: It took too long. What it asked for may have happened.
        """
        words = arguments if self.login is None else self.login.words(arguments)
        try:
            process = await asyncio.create_subprocess_exec(
                *words,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=dict(self.environment),
                # So that a command and all that it starts end together.
                start_new_session=True,
            )
        except OSError as error:
            raise UnavailableError(
                f"{words[0]} cannot be started ({error.strerror}): install "
                + ("OpenSSH" if self.login else "Slurm's commands")
                + " on this machine"
                + ("" if self.login else ", or name a login node that has them")
            ) from None
        try:
            talking = self._talk(process, arguments[0], stdin)
            output, complaint = await in_time(talking, self.deadline_seconds, arguments[0])
        except DeadlineError:
            raise DeadlineError(
                f"{arguments[0]} did not answer in {self.deadline_seconds:g} s: see whether Slurm's "
                "daemons are well (`scontrol ping`)"
            ) from None
        finally:
            # Also after success: what the command left behind in its session has no owner.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await _reap(process)
        if process.returncode:
            complaint = complaint or f"exit code {process.returncode}"
            if self.login is not None and process.returncode == SSH_FAILED:
                raise self.login.failure(complaint)
            refused = refusal(complaint) if refusal is not None else None
            raise refused or UnavailableError(f"{arguments[0]} failed: {complaint}")
        return output.decode("utf-8", "replace")

    async def _talk(
        self, process: asyncio.subprocess.Process, command: str, stdin: bytes
    ) -> tuple[bytes, str]:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None  # noqa: PT018
        # The complaint is read beside the output: a full pipe would stop the command.
        complaining = asyncio.create_task(_first(process.stderr), name=f"{command}-stderr")
        try:
            with suppress(BrokenPipeError, ConnectionResetError):
                process.stdin.write(stdin)
                await process.stdin.drain()
            process.stdin.close()
            output = bytearray()
            while piece := await process.stdout.read(_READ_BYTES):
                output += piece
                if len(output) > self.output_bytes:
                    raise FailedPreconditionError(
                        f"{command} printed more than {self.output_bytes} bytes: there are too many jobs or "
                        "nodes to look at in one call"
                    )
            complaint = await complaining
            await process.wait()
            return bytes(output), complaint
        finally:
            complaining.cancel()


async def _reap(process: asyncio.subprocess.Process) -> None:
    """Waits for the end of a process that was killed.

    ``wait`` returns only once the pipes are at their end too, and a pipe that is over its limit is not read.
    """

    async def discard(stream: asyncio.StreamReader | None) -> None:
        while stream is not None and await stream.read(_READ_BYTES):
            pass

    with suppress(DeadlineError):
        # What left the session on purpose may keep a pipe open for ever.
        ended = asyncio.gather(discard(process.stdout), discard(process.stderr), process.wait())
        await in_time(ended, _REAP_SECONDS, "the end")


async def _first(stream: asyncio.StreamReader) -> str:
    kept = b""
    while piece := await stream.read(_READ_BYTES):
        kept = (kept + piece)[:_ERROR_BYTES]
    return " ".join(kept.decode("utf-8", "replace").split())
