"""The ``on_failure`` section: how long the files of failed runs are held."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from resolute.contracts.documents.section import ByteSize, Number, Section

_LONGEST = 7 * 86_400


class OnFailure(Section):
    """The files of a failed run that are held for inspection.

    Attributes:
        hold: Seconds for which the files are held.
        hold_size: Largest size of the held files. A core file is truncated to it; larger files are not held.
    """

    hold: Annotated[Number, Field(ge=1, le=_LONGEST)] = Field(
        description="a number of seconds from 1 to 604800"
    )
    hold_size: ByteSize = 10 * 1024**3
