"""The volume of a run: files written before its supervisor starts, and read after it has ended."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Mapping
from typing import Any

from resolute.contracts.files.left_files import LISTING
from resolute.contracts.run.exit_record import ExitRecord
from resolute.contracts.run.launch_order import LaunchOrder

VOLUME = "/resolute"
"""Where a container sees it."""
MOUNTS = f"{VOLUME}/mounts"
"""Where directories are mounted that the working directory has links to."""
RUN = f"{VOLUME}/run"
"""The run directory."""
EXIT_FILE = f"{RUN}/exit.json"
SUPERVISOR_FILE = f"{RUN}/supervisor.json"
LISTING_FILE = f"{RUN}/{LISTING}"


def launch_files(order: LaunchOrder, *, owner: tuple[int, int]) -> bytes:
    """The run directory as it is before its supervisor starts.

    Args:
        order: The launch order.
        owner: User and group of the container.
    """
    return _packed({"run/launch.json": json.dumps(order.to_json()).encode()}, owner=owner)


def token_file(token: str, *, owner: tuple[int, int]) -> bytes:
    """A fresh token of a run."""
    return _packed({"run/token": token.encode()}, owner=owner)


def exit_record(archive: bytes) -> ExitRecord | None:
    """Reads how a run ended from the tar with its file; None for a file that says nothing, or is torn."""
    try:
        content = json_file(archive)
        return None if content is None else ExitRecord.parse(content)
    except (tarfile.TarError, ValueError, RecursionError):
        return None


def json_file(archive: bytes) -> Any:
    """Reads the JSON of the only file in a tar; None where there is none.

    Raises:
        tarfile.TarError: It is no tar.
        ValueError: It has no JSON.
    """
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        member = opened.next()
        content = opened.extractfile(member) if member is not None and member.isfile() else None
        return None if content is None else json.load(content)


def _packed(files: Mapping[str, bytes], *, owner: tuple[int, int]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.addfile(_entry("run", owner, kind=tarfile.DIRTYPE, mode=0o700))
        for name, content in files.items():
            entry = _entry(name, owner, mode=0o600)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
        end = archive.offset
    # No more than the mark of the end: Podman fails where its reader is done before all was written.
    return buffer.getvalue()[: end + 2 * tarfile.BLOCKSIZE]


def _entry(name: str, owner: tuple[int, int], *, kind: bytes = tarfile.REGTYPE, mode: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode = kind, mode
    entry.uid, entry.gid = owner
    return entry
