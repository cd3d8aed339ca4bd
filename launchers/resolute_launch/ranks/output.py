"""Copies the output of a rank's process, with prefixes and without secrets, until the process ends.

The streams may stay open longer, because child processes such as a server or a data loader hold them too. A
rank ends with its process, not with its streams.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass

from resolute.contracts.clock import Clock
from resolute.contracts.processes import open_pidfd
from resolute.runtime.redaction import StreamRedactor
from resolute_launch.interpreter._resolute_output import WaitBudget
from resolute_launch.ranks.line_prefix import Prefixer
from resolute_launch.ranks.secrets import RankSecrets

LINGER_SECONDS = 0.5
"""Seconds that others may go on writing after the process has ended, such as ``>(tee log)``."""
_POLL_SECONDS = 0.2
_READ_BYTES = 1 << 16


@dataclass(frozen=True)
class Target:
    """The destination of a stream of the script."""

    descriptor: int
    other: int
    """Where the other stream goes: what was written there is read before what comes here."""
    budget: WaitBudget
    prefixer: Prefixer
    masking: StreamRedactor

    def feed(self, data: bytes) -> None:
        """Takes the next bytes."""
        self._write(self.prefixer.feed(self.masking.feed(data)))

    def finish(self) -> None:
        """Writes what is left when the stream has ended."""
        self._write(self.prefixer.feed(self.masking.finish()) + self.prefixer.finish())

    def _write(self, data: bytes) -> None:
        """Writes all of it; a closed reader does not stop the script."""
        view = memoryview(data)
        if view:
            self.budget.wait_until_read(self.other)
        with contextlib.suppress(BrokenPipeError):
            while view:
                view = view[os.write(self.descriptor, view) :]


class RankOutput:
    """The output of one process, which leads its own process group.

    Args:
        process: The process; its streams are pipes.
        targets: Their destinations, by descriptor.
        secrets: The secrets to redact.
        clock: Clock for the end of the process.
    """

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        targets: Mapping[int, Target],
        *,
        secrets: RankSecrets,
        clock: Clock,
    ) -> None:
        self._process = process
        self._open = dict(targets)
        self._secrets = secrets
        self._clock = clock
        self._selector = selectors.DefaultSelector()
        for source in targets:
            self._selector.register(source, selectors.EVENT_READ)

    def copy(self) -> float:
        """Copies until the process has ended, and ends what it leaves running in its group.

        Returns:
            The Unix time at which it ended.
        """
        with self._selector:
            self._copy_while_it_runs()
            ended_at = self._clock.time()
            self._copy_for(LINGER_SECONDS, wait=True)
            self._end_group()
            # Who left the group may write on forever.
            self._copy_for(LINGER_SECONDS, wait=False)
        for target in self._open.values():
            target.finish()
        return ended_at

    def _copy_while_it_runs(self) -> None:
        end = None if self._has_ended() else open_pidfd(self._process.pid)
        if end is None:
            while not self._has_ended():
                self._take(_POLL_SECONDS)
            return
        self._selector.register(end, selectors.EVENT_READ)
        try:
            while not self._has_ended():
                self._take(None)
        finally:
            self._selector.unregister(end)
            os.close(end)

    def _copy_for(self, seconds: float, *, wait: bool) -> None:
        deadline = self._clock.monotonic() + seconds
        while self._open and (left := deadline - self._clock.monotonic()) > 0:
            if not self._take(left if wait else 0):
                return

    def _take(self, timeout: float | None) -> bool:
        """Reads what is available within the timeout; False if there is nothing."""
        events = self._selector.select(timeout)
        for key, _ in events:
            target = self._open.get(key.fd)
            if target is None:
                continue
            data = os.read(key.fd, _READ_BYTES)
            if data:
                self._secrets.refresh_token()
                target.feed(data)
            else:
                self._open.pop(key.fd).finish()
                self._selector.unregister(key.fd)
        return bool(events)

    def _has_ended(self) -> bool:
        """Whether the process has ended; it is not reaped, so that its number stays that of its group."""
        if self._process.returncode is not None:
            return True
        try:
            return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:
            # A signal has just been passed on to it, and that reaps.
            return True

    def _end_group(self) -> None:
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
