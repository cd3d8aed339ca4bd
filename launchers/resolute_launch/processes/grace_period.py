"""The grace periods after SIGTERM, from the supervisor down to the ranks."""

from __future__ import annotations

from collections.abc import Mapping

from resolute.contracts.run.launch_order import TERM_GRACE_SECONDS
from resolute_launch import environment_variables

_HEAD_START = 5.0
"""Seconds by which a layer kills before the one around it does: it can still tell how its ranks ended."""


def supervisor_grace_period(environ: Mapping[str, str]) -> float:
    """Returns the seconds that the supervisor gives; outside of a run, those that one would give."""
    return float(environ.get(environment_variables.TERMINATION_GRACE) or TERM_GRACE_SECONDS)


def layer_grace_period(outer: float) -> float:
    """Returns the seconds that a layer gives, of those that it is given itself."""
    return max(outer - _HEAD_START, outer / 2)
