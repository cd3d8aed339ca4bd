"""The startup hook of a run, and the overlay that it installs into."""

from __future__ import annotations

import codecs
import hashlib
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from resolute.contracts.clock import Clock
from resolute.errors import InvalidArgumentError
from resolute_launch.container.software import installed_packages
from resolute_launch.container.task import Task
from resolute_launch.overlays.base import BaseEnvironment
from resolute_launch.overlays.cache import Claim, LayerCache
from resolute_launch.overlays.overlay import Overlay, position

HOOK = "startup-hook.sh"
"""File of a model definition that is sourced before the entrypoint."""
_POLL_SECONDS = 0.05
_MOST_NAMED = 20
"""How many packages a line of the log names."""


class StartupHook:
    """The startup hook of one run, if its code has one.

    Args:
        task: The run's task.
        environ: The environment of the supervisor, with the limits of the cache.
        interrupted: Returns whether to stop. It is checked while the hook waits and between the files that it
            caches. Once true, waiting ends with ``InterruptedError``, and nothing is cached.
        wait: Waits some seconds, or until an event of the run.
        log_line: Adds a line to the log of the trial.
        clock: Tells the time.
    """

    def __init__(
        self,
        task: Task,
        *,
        environ: Mapping[str, str],
        interrupted: Callable[[], bool],
        wait: Callable[[float], None],
        log_line: Callable[[str], None],
        clock: Clock,
    ) -> None:
        self._task, self._environ, self._clock = task, environ, clock
        self._interrupted, self._wait, self._log_line = interrupted, wait, log_line
        self._overlay: Overlay | None = None
        self._claim: Claim | None = None
        self._began = 0.0

    @property
    def exists(self) -> bool:
        """Whether the code has one; known once the code is there."""
        return (self._task.run.work / HOOK).is_file()

    @property
    def python(self) -> str:
        """The interpreter of the run."""
        return self._task.order.python if self._overlay is None else str(self._overlay.python)

    @property
    def packages(self) -> tuple[str, ...]:
        """Directories of packages that the hook installed into, ahead of those of the platform."""
        return () if self._overlay is None else (str(self._overlay.packages), *self._overlay.below)

    def prepare(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Makes the hook readable, and an overlay that it installs into.

        Args:
            environment: The run's variables.

        Returns:
            The variables for the hook and the entrypoint.

        Raises:
            InvalidArgumentError: The hook is no text that a shell reads.
            OSError: The overlay cannot be created.
            InterruptedError: ``interrupted`` returned True.
        """
        if not self.exists:
            return dict(environment)
        if mended := mend(self._task.run.work / HOOK):
            self._log_line(f"{HOOK} is read without its {mended}")
        base = BaseEnvironment.look()
        # Where the config chooses a PATH without it, pip is that of another environment.
        if self._task.order.overlays and position(base, environment["PATH"].split(os.pathsep)) is not None:
            cache = LayerCache.from_environment(
                Path(self._task.order.overlays), self._environ, clock=self._clock
            )
            self._claim = cache.claim(self._key(base), pause=self._pause)
            self._overlay = Overlay.create(
                self._task.run.path / "overlay", base=base, layer=self._claim.layer
            )
            environment = self._overlay.environment(environment)
        self._began = self._clock.monotonic()
        return dict(environment)

    def finish(self) -> None:
        """Says what the hook has installed, and keeps it for later runs; the hook has succeeded."""
        if self._overlay is None or self._claim is None:
            return
        self._log_line(self._summary(self._overlay, seconds=self._clock.monotonic() - self._began))
        if changed := sorted(BaseEnvironment.look().names ^ self._overlay.base.names):
            self._log_line(
                f"WARNING: the platform's environment, which all runs share, changed while {HOOK} ran "
                f"({_listed(changed)}); if the hook names pip or python by a path, use the name alone"
            )
        self._claim.fill(self._overlay.path, check=self._check)

    def close(self) -> None:
        """Gives up what the run uses."""
        if self._claim is not None:
            self._claim.close()

    def _check(self) -> None:
        if self._interrupted():
            raise InterruptedError

    def _pause(self) -> None:
        self._check()
        self._wait(_POLL_SECONDS)

    def _key(self, base: BaseEnvironment) -> str:
        """Names what a hook starts from: the same code of the same experiment over the same packages."""
        spec = self._task.spec
        facts = [spec.cluster_id, spec.experiment_id, spec.model_definition_sha256, self._task.order.python]
        whole = json.dumps([*facts, sorted(base.names)])
        return hashlib.sha256(whole.encode()).hexdigest()[:32]

    def _summary(self, overlay: Overlay, *, seconds: float) -> str:
        before = installed_packages(overlay.below)
        installed = [
            f"{name} {version}" + (f" (in place of {before[name]})" if name in before else "")
            for name, version in sorted(installed_packages([str(overlay.packages)]).items())
        ]
        cached = []
        if overlay.layer is not None:
            platform = installed_packages(overlay.base.packages)
            cached = sorted(f"{name} {one}" for name, one in before.items() if platform.get(name) != one)
        parts = [f"{HOOK} took {seconds:.1f} s"]
        parts += [f"installed for this run: {_listed(installed)}"] if installed else []
        parts += [f"found from earlier runs of the experiment: {_listed(cached)}"] if cached else []
        return "; ".join(parts)


def mend(hook: Path) -> str:
    """Leaves out of a hook what editors of other systems add and no shell reads.

    Args:
        hook: The file.

    Returns:
        What was left out; empty for nothing.

    Raises:
        InvalidArgumentError: It is UTF-16 or UTF-32.
    """
    text = hook.read_bytes()
    if text.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)):
        raise InvalidArgumentError(f"{HOOK} is UTF-16 or UTF-32, which no shell reads; save it as UTF-8")
    mended = text.removeprefix(codecs.BOM_UTF8).replace(b"\r\n", b"\n")
    if mended == text:
        return ""
    # Not through a link, which may lead to what others read.
    hook.unlink()
    hook.write_bytes(mended)
    found = ["byte order mark"] if text.startswith(codecs.BOM_UTF8) else []
    return " and its ".join([*found, *(["carriage returns"] if b"\r\n" in text else [])])


def _listed(names: list[str]) -> str:
    rest = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {rest} more" if rest > 0 else "")
