"""The secrets that a rank can know: those of its environment, and the token of the moment."""

from __future__ import annotations

from collections.abc import Mapping

from resolute.contracts.run.directory import RunDirectory
from resolute_launch import environment_variables
from resolute_launch.redaction import Secrets

_NAMES = ("DET_SESSION_TOKEN", environment_variables.COLLECTIVE_KEY)


class RankSecrets:
    """Follows the token, which the supervisor renews in a file.

    Args:
        environ: The environment of the rank.
        run: Its run directory; None outside of any.
    """

    def __init__(self, environ: Mapping[str, str], run: RunDirectory | None) -> None:
        self.known = Secrets(*(environ.get(name, "") for name in _NAMES))
        self._run = run
        self._looked_at = 0

    def refresh_token(self) -> None:
        """Learns of a token that was renewed since this was last called."""
        if self._run is None:
            return
        try:
            written_at = self._run.token_file.stat().st_mtime_ns
        except OSError:
            return
        if written_at != self._looked_at:
            self._looked_at = written_at
            self.known.renew(self._run.read_token())
