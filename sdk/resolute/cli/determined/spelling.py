"""States, times and sizes in Determined's notation, and the calls to the cluster that renderings may make."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from enum import Enum
from typing import Any

import click

from resolute.cli.display.output import to_plain
from resolute.cli.options.settings import Settings
from resolute.client.schema.records import ExperimentRecord
from resolute.client.schema.states import TrialState
from resolute.client.services import Services

_UNITS = ("B", "KB", "MB", "GB", "TB", "PB")
_ACTIVITIES = {"QUEUED", "STARTING", "RUNNING"}


def services() -> Services:
    """The cluster that the command asked."""
    settings = click.get_current_context().obj
    assert isinstance(settings, Settings)
    return settings.services()


def experiment_state(experiment: ExperimentRecord) -> str:
    """The state without the prefix that JSON has."""
    return experiment.activity if experiment.activity in _ACTIVITIES else unprefixed(experiment.state)


def trial_state(state: TrialState) -> str:
    """The state without the prefix that JSON has; Determined knows no trial that waits for its search."""
    return "ACTIVE" if state is TrialState.WAITING else unprefixed(state)


def unprefixed(state: Enum) -> str:
    """A state without the prefix that JSON has."""
    return str(state.value).removeprefix("STATE_")


def prefixed(state: str) -> str:
    """A state as JSON has it."""
    return f"STATE_{state}"


def moment(time: datetime | None) -> str | None:
    """A time as JSON has it."""
    return None if time is None else time.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")


def shown(time: datetime | None) -> str | None:
    """A time as tables have it."""
    return None if time is None else time.astimezone(timezone.utc).strftime("%Y-%m-%d %H:%M:%S%z")


def seconds_between(start: datetime | None, end: datetime | None) -> float | None:
    """How long something took; None if it has not begun or ended."""
    return None if start is None or end is None else (end - start).total_seconds()


def share(done: float) -> str:
    """A share as tables have it."""
    return f"{done:.1%}"


def indented(value: Any, *, spaces: int = 4) -> str:
    """A mapping in a cell of a table."""
    return json.dumps(to_plain(value), indent=spaces)


def size(total: int) -> str:
    """Bytes in a cell of a table."""
    amount = float(total)
    for unit in _UNITS[:-1]:
        if amount < 1024:
            return f"{amount:.1f}{unit}"
        amount /= 1024
    return f"{amount:.1f}{_UNITS[-1]}"


def text_of(value: Any) -> str:
    """A value of a table that has no empty cells."""
    return "N/A" if value is None else str(value)
