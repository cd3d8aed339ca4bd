"""Limits for the number of metrics of one trial."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from resolute.errors import InvalidArgumentError
from resolute_serving.ingestion.byte_limits import ByteLimits

_BYTES_PREFIX = "RESOLUTE_METRICS"
_PREFIX = f"{_BYTES_PREFIX}_"


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The limits of one trial. Each field names its environment variable."""

    names: int = 10_000
    """RESOLUTE_METRICS_MAX_NAMES: different metrics, counted by group and name."""
    combinations: int = 10_000
    """RESOLUTE_METRICS_MAX_COMBINATIONS: different sets of names that one run reports together."""
    bytes: ByteLimits = field(default_factory=lambda: ByteLimits(prefix=_BYTES_PREFIX))
    """Bytes of reports."""

    @classmethod
    def from_environment(cls, variables: Mapping[str, str]) -> Limits:
        """Reads and checks the limits.

        Raises:
            InvalidArgumentError: A variable is wrong; the message names it.
        """
        return cls(
            names=_count(variables, "MAX_NAMES", default=cls.names),
            combinations=_count(variables, "MAX_COMBINATIONS", default=cls.combinations),
            bytes=ByteLimits.from_environment(variables, prefix=_BYTES_PREFIX),
        )


def _count(variables: Mapping[str, str], name: str, *, default: int) -> int:
    text = variables.get(_PREFIX + name, "")
    if not text:
        return default
    if not text.isdecimal() or not int(text):
        raise InvalidArgumentError(f"{_PREFIX}{name} is {text!r}; it must be a whole number above 0")
    return int(text)
