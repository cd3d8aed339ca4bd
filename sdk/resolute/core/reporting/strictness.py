"""The rule that decides whether a report that cannot be recorded raises an error."""

from __future__ import annotations

import enum
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from resolute.spool.omissions import CountedWarnings, Omissions, Raised

_log = logging.getLogger("resolute.core")


class Strictness(enum.Enum):
    """The treatment of reports, or parts of them, that cannot be recorded.

    Examples:
        >>> from resolute import core
        >>> core.Strictness.of_config({"reports": "strict"}, least=core.Strictness.WARN)
        <Strictness.STRICT: 'strict'>
    """

    WARN = "warn"
    """It is left out, with one counted warning of each kind."""
    RAISE = "raise"
    """What is wrong with its content raises in the call; what a service refuses is a counted warning."""
    STRICT = "strict"
    """Both raise in the call, which waits until the service has answered."""

    @classmethod
    def of_config(cls, config: Mapping[str, Any], *, least: Strictness) -> Strictness:
        """Returns the strictness of an experiment's config, or that of the script if it is stricter.

        Args:
            config: The experiment's config, with its field ``reports``.
            least: The strictness that the script asks for.
        """
        return cls.STRICT if config.get("reports") == cls.STRICT.value else least

    def omissions(self, counts: Path | None = None) -> Omissions:
        """Makes the receiver of parts that are left out.

        Args:
            counts: The file that keeps how many there were; None to keep them nowhere.
        """
        return CountedWarnings(_log.warning, file=counts) if self is Strictness.WARN else Raised()
