"""Settings of the preemption service, read from the environment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

from pydantic import Field, ValidationError

from resolute.contracts.documents.rejections import faults_of
from resolute.contracts.documents.section import Section
from resolute.errors import InvalidArgumentError

_PREFIX = "RESOLUTE_PREEMPTION_"
_Seconds = Annotated[float, Field(gt=0, lt=1e9)]


class PreemptionSettings(Section):
    """Settings of a deployed preemption service. Each field names its environment variable, in seconds."""

    renamed: ClassVar[Mapping[str, str]] = {"patience": "silence_timeout"}

    heartbeat: _Seconds = 15.0
    """RESOLUTE_PREEMPTION_HEARTBEAT: pause after which a quiet stream shows that it lives."""
    silence_timeout: _Seconds = 60.0
    """RESOLUTE_PREEMPTION_SILENCE_TIMEOUT: silence after which the experiments service is asked again."""
    lifetime: _Seconds = 1800.0
    """RESOLUTE_PREEMPTION_LIFETIME: age at which the experiments service is asked again; ended allocations
    are forgotten then."""
    first_pause: _Seconds = 0.1
    """RESOLUTE_PREEMPTION_FIRST_PAUSE: pause before the second attempt to reach the experiments service."""
    longest_pause: _Seconds = 5.0
    """RESOLUTE_PREEMPTION_LONGEST_PAUSE: longest pause between two attempts."""

    @classmethod
    def from_environment(cls, variables: Mapping[str, str]) -> PreemptionSettings:
        """Reads and checks the settings.

        Raises:
            InvalidArgumentError: A variable is wrong; the message names it.
        """
        names = (*cls.model_fields, *cls.renamed)
        given = {name: text for name in names if (text := variables.get(_PREFIX + name.upper()))}
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            faults = (f"{_PREFIX}{fault.path.upper()}: {fault.reason}" for fault in faults_of(error))
            raise InvalidArgumentError("; ".join(faults)) from None
