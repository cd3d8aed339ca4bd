"""Settings that only this service has, read once from the environment into a typed value."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

from resolute.errors import InvalidArgumentError

_PREFIX = "RESOLUTE_PREEMPTION_"


@dataclass(frozen=True, kw_only=True)
class PreemptionSettings:
    """What a deployed preemption service is told. Each field names its variable, in seconds."""

    heartbeat: float = 15.0
    """RESOLUTE_PREEMPTION_HEARTBEAT: pause after which a quiet stream shows that it lives."""
    patience: float = 60.0
    """RESOLUTE_PREEMPTION_PATIENCE: silence after which the experiments service is asked again."""
    lifetime: float = 1800.0
    """RESOLUTE_PREEMPTION_LIFETIME: age at which the experiments service is asked again; ended allocations
    are forgotten then."""
    first_pause: float = 0.1
    """RESOLUTE_PREEMPTION_FIRST_PAUSE: pause before the second attempt to reach the experiments service."""
    longest_pause: float = 5.0
    """RESOLUTE_PREEMPTION_LONGEST_PAUSE: longest pause between two attempts."""

    @classmethod
    def from_environment(cls, variables: Mapping[str, str]) -> PreemptionSettings:
        """Reads and checks the settings.

        Raises:
            InvalidArgumentError: A variable is wrong; the message names it.
        """
        names = (field.name for field in dataclasses.fields(cls))
        given = {name: variables.get(_PREFIX + name.upper(), "") for name in names}
        return cls(**{name: _seconds(name, text) for name, text in given.items() if text})


def _seconds(name: str, text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds < 1e9:
        variable = _PREFIX + name.upper()
        raise InvalidArgumentError(f"{variable} is {text!r}; it must be a number of seconds above 0")
    return seconds
