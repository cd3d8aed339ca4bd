"""The topics of this service's notifier."""

from __future__ import annotations

Topic = str | tuple[str, str]
"""The UUID of an experiment stands for what its controller acts upon."""
SCHEDULER_WAKEUP: Topic = "schedule"
"""Slots were freed or asked for."""
ALERTS: Topic = "alerts"
"""Alerts were set, or an endpoint has taken one, or has not, and is free for the next."""
REPORTED_STEPS: Topic = "reported steps"
"""Steps that trials have reported were copied."""
SIGNAL_CHANGES: Topic = "signals"
"""A signal of some allocation changed."""


def watched(experiment_id: str) -> Topic:
    """What watches show of an experiment."""
    return (experiment_id, "watch")
