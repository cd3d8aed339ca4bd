"""Reports the software and the machine of a run, in the background."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence

from resolute.errors import ResoluteError
from resolute_launch.container.software import run_environment
from resolute_launch.control_plane.client import ControlPlane

_log = logging.getLogger("resolute.supervisor")


class EnvironmentReport:
    """One report, in a thread of its own. A failure is only logged.

    Args:
        control: The control plane.
    """

    def __init__(self, control: ControlPlane) -> None:
        self._control = control
        self._python = ""
        self._packages: Sequence[str] = ()
        self._thread = threading.Thread(target=self._report, name="environment", daemon=True)

    def start(self, *, python: str, packages: Sequence[str]) -> None:
        """Begins to find out and to report.

        Args:
            python: The interpreter of the run.
            packages: Directories of packages that the run sees before those of this process.
        """
        self._python, self._packages = python, packages
        self._thread.start()

    def wait(self, seconds: float) -> None:
        """Waits until it has been reported, if it was begun, for a bounded time."""
        if self._thread.ident is not None:
            self._thread.join(seconds)

    def _report(self) -> None:
        try:
            self._control.report_environment(run_environment(python=self._python, packages=self._packages))
        except (
            ResoluteError,
            ValueError,
        ) as failure:  # a channel that was closed meanwhile raises ValueError
            _log.info("the environment of the run was not recorded: %s", failure)
