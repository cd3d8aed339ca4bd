"""The ``utilization_policy`` section: when the GPUs of a run count as idle, and the reaction to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import Field

from resolute.contracts.documents.section import Number, Section

_LONGEST = 30 * 86_400
_Percent: TypeAlias = Annotated[Number, Field(gt=0, le=100)]


class UtilizationPolicy(Section):
    """The required utilisation of a run's GPUs.

    Attributes:
        gpu_below: Utilisation in percent, over all GPUs of a container, below which they count as idle.
        over: Seconds over which the utilisation is measured.
        then: Reaction: ``warn`` changes nothing, ``pause`` pauses the experiment, ``end`` cancels it.
    """

    # A name that Python keeps for itself.
    renamed: ClassVar[Mapping[str, str]] = {"for": "over"}

    gpu_below: _Percent = Field(description="percent of the time, more than 0 and at most 100")
    over: Annotated[Number, Field(ge=10, le=_LONGEST)] = Field(
        default=3600, description="a number of seconds from 10 to 2592000"
    )
    then: Literal["warn", "pause", "end"] = Field(default="warn", description="one of warn, pause, end")
