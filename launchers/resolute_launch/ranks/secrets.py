"""The secrets that a rank can read: those in its environment, and the current tokens."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from resolute.contracts.run.directory import RunDirectory, read_token
from resolute.runtime.redaction import Secrets
from resolute_launch import environment_variables

_NAMES = ("DET_SESSION_TOKEN", environment_variables.COLLECTIVE_KEY)


class RankSecrets:
    """The secrets of a rank, with the current tokens, which the supervisor renews in files.

    Args:
        environ: The environment of the rank.
        run: Its run directory; None outside of a run.
    """

    def __init__(self, environ: Mapping[str, str], run: RunDirectory | None) -> None:
        self.known = Secrets(*(environ.get(name, "") for name in _NAMES))
        self._run = run
        for value in run.read_secrets() if run is not None else ():
            self.known.add_printed(value)
        self._looked_at: dict[Path, int] = {}

    def refresh_token(self) -> None:
        """Reads the tokens that were renewed since the last call."""
        if self._run is None:
            return
        for path in (self._run.token_file, self._run.user_token_file):
            try:
                written_at = path.stat().st_mtime_ns
            except OSError:
                continue
            if written_at != self._looked_at.get(path):
                self._looked_at[path] = written_at
                self.known.renew(read_token(path))
