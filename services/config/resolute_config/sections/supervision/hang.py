"""The ``hang`` section: when a run counts as hanging, and the reaction to it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from resolute.contracts.documents.section import Number, Section

_LONGEST = 30 * 86_400


class Hang(Section):
    """The detection of hanging runs.

    Attributes:
        after: Seconds without a sign of life after which a run counts as hanging; ``auto`` for ten minutes,
            or ten times the run's own pauses if that is longer.
        on_hang: Reaction: ``warn`` notifies people; ``restart`` also ends the run, as if it had failed;
            ``pause`` also pauses the experiment.
    """

    after: Literal["auto"] | Annotated[Number, Field(ge=1, le=_LONGEST)] = Field(
        default="auto", description='"auto", or a number of seconds from 1 to 2592000'
    )
    on_hang: Literal["warn", "restart", "pause"] = Field(
        default="warn", description="one of warn, restart, pause"
    )
