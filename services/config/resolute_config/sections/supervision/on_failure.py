"""The ``on_failure`` section: what stays of runs that failed."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from resolute.contracts.documents.section import ByteSize, Number, Section

_LONGEST = 7 * 86_400


class OnFailure(Section):
    """What stays of a run that failed, for people to look at.

    Attributes:
        hold: Seconds for which its files stay.
        hold_size: They stay only if they take at most so much; a core file is cut to it.
    """

    hold: Annotated[Number, Field(ge=1, le=_LONGEST)] = Field(
        description="a number of seconds from 1 to 604800"
    )
    hold_size: ByteSize = 10 * 1024**3
