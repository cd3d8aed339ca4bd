"""The sources from which the files of a checkpoint are read."""

from __future__ import annotations

import contextlib
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from resolute.client.remote.checkpoints import Checkpoints
from resolute.client.schema.records import CheckpointRecord, DirectoryStorage
from resolute.errors import FailedPreconditionError, NotFoundError
from resolute.transfer.holds import HOLD_SECONDS, held
from resolute.transfer.sources import FileSource, PresignedUrls, url_source
from resolute.transfer.transport import BLOCK_BYTES, Sink, Transport

OUTAGE_TIMEOUT = 60.0
"""Seconds that a store which is away or busy is waited for."""
_CONNECT_TIMEOUT = 3.0


class DownloadMode(Enum):
    """The route by which the files of a checkpoint are downloaded.

    Examples:
        >>> from resolute import client
        >>> client.DownloadMode("master")
        <DownloadMode.MASTER: 'master'>
    """

    DIRECT = "direct"
    """From the store itself."""
    MASTER = "master"
    """Through the checkpoints service."""
    AUTO = "auto"
    """From the store if it can be reached, else through the service."""


@contextlib.contextmanager
def open_source(
    checkpoint: CheckpointRecord,
    registry: Checkpoints,
    mode: DownloadMode,
    *,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[FileSource]:
    """Finds the way to the bytes of a checkpoint.

    Args:
        checkpoint: The checkpoint.
        registry: The checkpoints service.
        mode: Which way they shall come.
        sleep: Waits some seconds for a store that is away.

    Yields:
        What gives them, until the block ends.

    Raises:
        FailedPreconditionError: The store cannot be reached directly, and ``mode`` wants that.
    """
    hold = partial(registry.hold, checkpoint.uuid, seconds=HOLD_SECONDS)
    with held(hold, name=f"checkpoint {checkpoint.uuid}"), Transport() as transport:
        direct = None
        if mode is not DownloadMode.MASTER:
            direct = _direct(checkpoint, registry, transport, sleep)
            if direct is None and mode is DownloadMode.DIRECT:
                raise FailedPreconditionError(
                    f"checkpoint {checkpoint.uuid} lies in {checkpoint.storage}, which cannot be reached "
                    "from here; download it through the service (mode master)"
                )
        yield direct or _ServiceSource(checkpoint.uuid, registry)


def _direct(
    checkpoint: CheckpointRecord,
    registry: Checkpoints,
    transport: Transport,
    sleep: Callable[[float], None],
) -> FileSource | None:
    if isinstance(checkpoint.storage, DirectoryStorage):
        directory = Path(checkpoint.storage.path) / checkpoint.uuid
        with contextlib.suppress(OSError):
            next(directory.iterdir(), None)
            return _DirectorySource(directory)
        return None

    def sign(paths: Sequence[str]) -> dict[str, str]:
        return {item.path: item.url for item in registry.presigned(checkpoint.uuid, paths)}

    files = [file.path for file in checkpoint.files if not file.path.endswith("/")]
    urls = PresignedUrls(f"checkpoint {checkpoint.uuid}", files, sign)
    first = urls.first()
    if not first or not _reachable(first):
        return None
    return url_source(urls, transport, outage_timeout=OUTAGE_TIMEOUT, sleep=sleep)


def _reachable(url: str) -> bool:
    """Whether somebody listens where a URL leads: the store may be known inside of the cluster only."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    with (
        contextlib.suppress(OSError),
        socket.create_connection((parts.hostname or "", port), _CONNECT_TIMEOUT),
    ):
        return True
    return False


class _ServiceSource:
    is_local = False
    parallel = False

    def __init__(self, uuid: str, registry: Checkpoints) -> None:
        self._uuid = uuid
        self._registry = registry

    def read(self, path: str, take: Sink, *, start: int = 0, size: int | None = None) -> None:
        left = sys.maxsize if size is None else size
        for piece in self._registry.read(self._uuid, path, offset=start):
            take(piece[:left])
            left -= len(piece)
            if left <= 0:
                return


class _DirectorySource:
    is_local = True
    parallel = False

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def read(self, path: str, take: Sink, *, start: int = 0, size: int | None = None) -> None:
        try:
            content = (self._directory / path).open("rb")
        except FileNotFoundError as error:
            raise NotFoundError(f"{self._directory / path} is gone from the store") from error
        left = sys.maxsize if size is None else size
        with content:
            content.seek(start)
            while piece := content.read(min(BLOCK_BYTES, left)):
                take(piece)
                left -= len(piece)
