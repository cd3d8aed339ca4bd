"""Reasons for which a trial's own code ends it early."""

from __future__ import annotations

import enum


class EarlyExitReason(enum.Enum):
    """Reasons for ``TrainContext.report_early_exit``.

    Examples:
        >>> from resolute import core
        >>> with core.init() as context:
        ...     context.train.report_early_exit(core.EarlyExitReason.USER_REQUESTED_STOP)
    """

    INVALID_HP = "EXITED_REASON_INVALID_HP"
    """The hyperparameters make no sense; the search replaces the trial."""
    INIT_INVALID_HP = "EXITED_REASON_INIT_INVALID_HP"
    """The same, seen before any training."""
    USER_REQUESTED_STOP = "EXITED_REASON_USER_REQUESTED_STOP"
    """A person stopped the trial from within."""
