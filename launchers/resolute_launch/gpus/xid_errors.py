"""Xid errors: errors of GPUs in the kernel's log."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Collection
from pathlib import Path

_LOG = Path("/dev/kmsg")
_GPUS = Path("/proc/driver/nvidia/gpus")
_OF_SCRIPTS = "13|31|43|45|68|69"
"""Errors that a script's own mistakes come to."""
_RECORD = re.compile(
    r"^\d+,\d+,(?P<microseconds>\d+),[^;]*;"
    rf"(?P<text>.*NVRM: Xid \((?:PCI:)?(?P<gpu>[^)]*)\): (?!(?:{_OF_SCRIPTS})\b)\d.*)$"
)
_UUID = re.compile(r"^GPU UUID:\s*(?P<uuid>\S+)", re.MULTILINE)
_SECONDS = 60.0
"""So long before a failure an error may have been its cause."""
_MOST_BYTES = 8192
_MOST_RECORDS = 100_000


class XidErrors:
    """The errors of a run's GPUs since this object's creation; none if the log is not readable.

    Args:
        devices: UUIDs of the run's GPUs. If the address of one of them is unknown, errors of all GPUs count.
        log: The kernel's log, which is read record by record.
        gpus: The driver's directory with the addresses of GPUs.
        now: Returns the seconds since the boot.
    """

    def __init__(
        self,
        devices: Collection[str],
        *,
        log: Path = _LOG,
        gpus: Path = _GPUS,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._log, self._now = log, now
        self._since = now()
        self._addresses = _addresses(devices, gpus)

    def latest(self, *, ago: float) -> str:
        """The latest record that may tell the cause of a failure; empty for none.

        Args:
            ago: Seconds since the failure. Errors of a minute before it count, and later ones.
        """
        since = max(self._since, self._now() - ago - _SECONDS)
        latest = ""
        for record in self._records():
            match = _RECORD.match(record)
            if match and int(match["microseconds"]) / 1e6 >= since and self._is_ours(match["gpu"]):
                latest = match["text"]
        return latest

    def _is_ours(self, gpu: str) -> bool:
        return not self._addresses or _address(gpu) in self._addresses

    def _records(self) -> list[str]:
        try:
            descriptor = os.open(self._log, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return []
        records: list[str] = []
        try:
            while len(records) < _MOST_RECORDS:
                try:
                    data = os.read(descriptor, _MOST_BYTES)
                except BrokenPipeError:
                    # Records were overwritten while they were read.
                    continue
                except OSError:
                    break
                if not data:
                    break
                records += data.decode(errors="replace").splitlines()
        finally:
            os.close(descriptor)
        return records


def _addresses(devices: Collection[str], gpus: Path) -> frozenset[str]:
    """Where the GPUs are on their bus; empty unless that is known of all."""
    found = {}
    for file in gpus.glob("*/information"):
        try:
            match = _UUID.search(file.read_text())
        except OSError:
            continue
        if match and match["uuid"] in devices:
            found[match["uuid"]] = _address(file.parent.name)
    return frozenset(found.values()) if found.keys() == set(devices) else frozenset()


def _address(text: str) -> str:
    """Domain, bus and device, such as ``0000:3b:00``, without the function that only some texts have."""
    return text.partition(".")[0].lower()
