"""The launch order, by which an engine configures a supervisor: ``launch.json`` of the run directory."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from resolute.contracts.files.atomic_files import read_json, write_json
from resolute.errors import InvalidArgumentError

TERM_GRACE_SECONDS = 15.0
"""Seconds between SIGTERM and SIGKILL where neither the config nor the machine says another number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchOrder:
    """One container's part of an allocation, and the machine that it runs on."""

    allocation_id: str
    """Allocation."""
    container_rank: int = 0
    """Container within the allocation, from 0."""
    master: str
    """``host:port`` of the control plane."""
    http_url: str = ""
    """URL of its HTTP gateway; empty if it has none that the trial reaches."""
    tls: Mapping[str, str] | None = None
    """Whom to trust there, as ``ClientTls.to_json`` has it; None for a plain port."""
    token: str
    """The first token of the run; later ones come with the lease."""
    slot_ids: tuple[int, ...] = ()
    """Slots of this container."""
    slot_kind: str = "cpu"
    """``cpu`` or ``gpu``."""
    devices: tuple[str, ...] = ()
    """For GPU slots, what ``CUDA_VISIBLE_DEVICES`` lists, one for each slot."""
    agent_id: str = ""
    """Name of the machine."""
    bind_address: str = "127.0.0.1"
    """Address at which the other containers of the allocation reach this one."""
    python: str = sys.executable
    """Interpreter of the trial; its directory comes first on its PATH. Empty for that of the supervisor."""
    compat_path: str = ""
    """Directory that holds the ``determined`` package; empty for the launcher's own."""
    lease_patience_seconds: float = 3600.0
    """How long the run continues while the control plane is away, before it checkpoints and exits."""
    log_wait_seconds: float = 10.0
    """How long the end of the run waits for the logs service to take the run's last lines."""
    term_grace_seconds: float = TERM_GRACE_SECONDS
    """Seconds between SIGTERM and SIGKILL once the processes must end, unless the config says it."""
    rendezvous_timeout_seconds: float = 600.0
    """Seconds that the containers of one run have to find each other."""
    warm_directory: str = ""
    """Directory of the parked processes that runs are forked from; empty where every run starts cold."""
    overlays: str = ""
    """Directory of what startup hooks have installed; empty where each run has a file system of its own."""
    links: Mapping[str, str] = field(default_factory=dict)
    """Links in the working directory beside the code, by their paths in it: to what is mounted elsewhere."""
    log_level: str = "INFO"
    """Level of the supervisor's own log."""

    @classmethod
    def read(cls, path: Path) -> LaunchOrder:
        """Reads an order.

        Raises:
            InvalidArgumentError: The file is not there, is not JSON, or lacks a field.
        """
        try:
            content = read_json(path)
        except ValueError as failure:
            raise InvalidArgumentError(f"{path} is not a launch order: {failure}") from failure
        if content is None:
            raise InvalidArgumentError(f"there is no launch order at {path}; an engine writes one")
        return cls.from_json(content, source=str(path))

    @classmethod
    def from_json(cls, content: Mapping[str, Any], *, source: str = "the launch order") -> LaunchOrder:
        """Builds an order from plain data; keys that this release does not know are left out.

        Raises:
            InvalidArgumentError: A field is missing.
        """
        known = {field.name for field in fields(cls)}
        values: dict[str, Any] = {key: value for key, value in content.items() if key in known}
        for key in ("slot_ids", "devices"):
            values[key] = tuple(values.get(key, ()))
        try:
            return cls(**values)
        except TypeError as failure:
            raise InvalidArgumentError(f"{source} is not complete: {failure}") from failure

    def write(self, path: Path) -> None:
        """Writes the order, readable by its owner alone because it holds a token."""
        write_json(path, self.to_json(), mode=0o600, sync=True)

    def to_json(self) -> dict[str, Any]:
        """Returns the order as plain data, its secret included."""
        return {field.name: getattr(self, field.name) for field in fields(self)}
