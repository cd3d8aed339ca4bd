"""Limits on the bytes that the trials of a workspace may store, and counts of the dropped records.

Records above a limit are dropped, not refused, so that training continues. Dropped records are counted with
the trial and shown to users. The bytes of a trial are counted exactly. The bytes of its workspace are looked
up at intervals, so that trials of a workspace do not wait for each other; so a workspace may exceed its limit
by the records of one interval.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute.contracts.clock import Clock
from resolute.contracts.sizes import human_size
from resolute.errors import InvalidArgumentError
from resolute_serving.context import TrialRun, current_principal
from resolute_serving.database.engine import Database

_FRESH_SECONDS = 5.0
_TELL_FACTOR = 10
GIB = 1 << 30


@dataclass(frozen=True, kw_only=True)
class ByteLimits:
    """The storage limits of trials and workspaces in one service."""

    prefix: str
    """Begins the names of its variables, such as ``RESOLUTE_LOGS``."""
    trial: int = GIB
    """<prefix>_TRIAL_BYTES: bytes of one trial; 0 for no limit (1 GiB)."""
    workspace: int = 100 * GIB
    """<prefix>_WORKSPACE_BYTES: bytes of all trials of a workspace; 0 for no limit (100 GiB)."""

    @classmethod
    def from_environment(cls, variables: Mapping[str, str], *, prefix: str) -> ByteLimits:
        """Reads and checks the limits.

        Raises:
            InvalidArgumentError: A variable is wrong; the message names it.
        """
        return cls(
            prefix=prefix,
            trial=_bytes(variables, f"{prefix}_TRIAL_BYTES", default=cls.trial),
            workspace=_bytes(variables, f"{prefix}_WORKSPACE_BYTES", default=cls.workspace),
        )


@dataclass(frozen=True, slots=True)
class Usage:
    """The stored bytes and the dropped records of a trial."""

    bytes: int = 0
    dropped: int = 0
    """Dropped records."""
    dropped_bytes: int = 0
    last_reported: int = 0
    """How many were dropped when its log last reported it."""
    limit: str = ""
    """The limit that dropped the last of them, for people."""

    @property
    def is_worth_telling(self) -> bool:
        """Whether so much was dropped since the last note in its log that another one is due."""
        return self.dropped >= max(1, self.last_reported * _TELL_FACTOR) and self.dropped > self.last_reported

    def explain(self, what: str) -> str:
        """Writes what was dropped.

        Args:
            what: Names the records in the plural, such as ``lines of this log``.
        """
        size = human_size(self.dropped_bytes)
        return f"{self.dropped} {what} ({size}) were dropped so far: {self.limit}"


NOTHING_STORED = Usage()
"""The usage of a trial that has sent nothing."""


@dataclass(frozen=True, slots=True)
class Room:
    """The bytes that a trial may still store."""

    bytes: int | None
    """None for no limit."""
    limit: str = ""
    """The limit that ends it, for people."""
    is_trials: bool = False
    """Whether it is the trial's own."""

    def takes(self, size: int) -> bool:
        """Whether so many bytes can be stored."""
        return self.bytes is None or size <= self.bytes

    def without(self, size: int) -> Room:
        """What is left after so many bytes were stored."""
        return self if self.bytes is None else replace(self, bytes=self.bytes - size)


def room_of(usage: Usage, limits: ByteLimits, *, workspace_room: int | None) -> Room:
    """Returns how much a trial may still store.

    Args:
        usage: What it has stored.
        limits: The limits.
        workspace_room: What its workspace may still store; None for no limit.
    """
    own = limits.trial - usage.bytes if limits.trial else None
    if own is not None and (workspace_room is None or own <= workspace_room):
        text = f"the trial has reached {human_size(limits.trial)} ({limits.prefix}_TRIAL_BYTES)"
        return Room(max(own, 0), text, is_trials=True)
    if workspace_room is None:
        return Room(None)
    text = f"its workspace has reached {human_size(limits.workspace)} ({limits.prefix}_WORKSPACE_BYTES)"
    return Room(max(workspace_room, 0), text)


def used(usage: Usage, room: Room, *, stored: int, dropped: int, dropped_bytes: int) -> Usage:
    """Returns the usage of a trial after a batch.

    Args:
        usage: Before it.
        room: What it was given.
        stored: Bytes that were stored.
        dropped: Records that were dropped.
        dropped_bytes: Their bytes.
    """
    total = usage.bytes + stored
    if not dropped:
        return replace(usage, bytes=total)
    if room.is_trials:
        # Full from now on: shorter records that would still fit must not leave a log full of holes.
        total += (room.bytes or 0) - stored
    return replace(
        usage,
        bytes=total,
        dropped=usage.dropped + dropped,
        dropped_bytes=usage.dropped_bytes + dropped_bytes,
        limit=room.limit,
    )


class WorkspaceUsage:
    """The approximate number of stored bytes of each workspace.

    Args:
        database: The service's database.
        trials: The table of trials.
        limits: The limits.
        clock: Clock for the interval between two lookups.
    """

    def __init__(self, database: Database, trials: sa.Table, *, limits: ByteLimits, clock: Clock) -> None:
        self._database = database
        self._trials = trials
        self._limits = limits
        self._clock = clock
        self._known: dict[int, tuple[float, int]] = {}

    async def room(self, workspace: int) -> int | None:
        """What a workspace may still store; None for no limit.

        Args:
            workspace: Its number; zero when it is not known.
        """
        if not self._limits.workspace or not workspace:
            return None
        now = self._clock.monotonic()
        looked, stored = self._known.get(workspace, (float("-inf"), 0))
        if now - looked > _FRESH_SECONDS:
            stored = await self._database.read(lambda link: self._sum(link, workspace))
            self._known[workspace] = now, stored
        return self._limits.workspace - stored

    def _sum(self, connection: Connection, workspace: int) -> int:
        table = self._trials
        query = sa.select(sa.func.sum(table.c.bytes)).where(table.c.workspace == workspace)
        return int(connection.execute(query).scalar_one() or 0)


def workspace_of_caller() -> int:
    """Number of the workspace of the run that calls; zero for other callers."""
    principal = current_principal.get()
    return principal.workspace_id if isinstance(principal, TrialRun) else 0


def _bytes(variables: Mapping[str, str], name: str, *, default: int) -> int:
    text = variables.get(name, "")
    if not text:
        return default
    if not text.isdecimal() or int(text) >= 2**63:
        raise InvalidArgumentError(f"{name} is {text!r}; it must be a number of bytes, 0 for no limit")
    return int(text)
