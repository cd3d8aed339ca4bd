"""Determines the exit of a script, and waits for its sidecar to finish."""

from __future__ import annotations

import logging
import subprocess
import sys
import traceback
from collections.abc import Callable
from types import TracebackType
from typing import Any

from resolute.contracts.clock import SYSTEM_CLOCK, Clock
from resolute.contracts.run.directory import RunDirectory
from resolute.contracts.run.early_exit import EarlyExit
from resolute.contracts.run.exit_record import ExitRecord
from resolute.contracts.run.lock import RunLock

DRAIN_SECONDS = 60.0
"""How long the end of a script waits until its reports have arrived; its sidecar then continues alone."""
_log = logging.getLogger("resolute.core")


class ExitHook:
    """Records the error or exit code that ends this process. Install it once; ``remove`` uninstalls it."""

    def __init__(self) -> None:
        self.failure = ""
        self.code = 0
        self._excepthook: Callable[..., Any] = sys.excepthook
        self._exit: Callable[..., Any] = sys.exit

    def install(self) -> None:
        """Begins to listen."""
        self._excepthook, self._exit = sys.excepthook, sys.exit
        sys.excepthook = self._on_exception
        sys.exit = self._on_exit

    def remove(self) -> None:
        """Ends listening, unless somebody else listens by now."""
        if sys.excepthook == self._on_exception:
            sys.excepthook = self._excepthook
        if sys.exit == self._on_exit:
            sys.exit = self._exit

    def record_error(self, error: BaseException) -> None:
        """An error ends the script."""
        if isinstance(error, SystemExit):
            self._record_code(error.code)
        else:
            self.code = 1
            self.failure = "".join(traceback.format_exception_only(type(error), error)).strip()

    def _on_exception(
        self, kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        self.record_error(error)
        self._excepthook(kind, error, trace)

    def _on_exit(self, code: Any = None) -> Any:
        self._record_code(code)
        return self._exit(code)

    def _record_code(self, code: Any) -> None:
        if code is None or code == 0:
            self.code = 0
        elif isinstance(code, int):
            self.code, self.failure = code, f"the script exited with {code}"
        else:
            self.code, self.failure = 1, str(code)


class ScriptExit:
    """The end of a run outside of the cluster, which its chief records.

    Args:
        run: The run's directory.
        sidecar: The sidecar process; None if the run is recorded to be sent later.
        lock: Lock of the run's directory, if this process holds it. It is released once the end is recorded.
        clock: Clock for the time of the end.
        timeout: Seconds to wait for the sidecar.
    """

    def __init__(
        self,
        run: RunDirectory,
        sidecar: subprocess.Popen[bytes] | None,
        *,
        lock: RunLock | None = None,
        clock: Clock = SYSTEM_CLOCK,
        timeout: float = DRAIN_SECONDS,
    ) -> None:
        self._run = run
        self._sidecar = sidecar
        self._lock = lock
        self._clock = clock
        self._timeout = timeout
        self.hook = ExitHook()
        self._done = False

    def finish(self) -> None:
        """Writes the end down and waits a while for what was reported to arrive. Idempotent."""
        if self._done:
            return
        self._done = True
        self.hook.remove()
        early = EarlyExit.read(self._run.early_exit_file)
        record = ExitRecord(
            exit_code=self.hook.code,
            early_exit_reason=early.reason,
            failure=early.message or self.hook.failure,
            end_time=self._clock.time(),
        )
        record.write(self._run.exit_file)
        if self._lock is not None:
            self._lock.release()
        if self._sidecar is not None:
            self._await_delivery(self._sidecar)

    def _await_delivery(self, sidecar: subprocess.Popen[bytes]) -> None:
        try:
            code = sidecar.wait(self._timeout)
        except subprocess.TimeoutExpired:
            _log.warning(
                "not everything that was reported has arrived; process %d goes on sending it, and "
                "`resolute sync %s` can send what it does not",
                sidecar.pid,
                self._run.path,
            )
            return
        if code != 0:
            _log.warning("not everything has arrived; send it with `resolute sync %s`", self._run.path)
